//! The words that every report has: problems, places, names and messages.

use crate::cli::commands::test::run::{SuitesRun, TestRun};
use crate::cli::input::manifest::Problem;
use kube_unions_core::field_path::Printable;
use std::path::Path;

/// Longest name of a suite or test that a report shows, in bytes.
const LONGEST_NAME: usize = 400;

/// Longest message that a report shows, in bytes.
const LONGEST_MESSAGE: usize = 8_192;

/// Returns the problems that belong to no test, each with the name of its suite, or else of its file.
pub(super) fn problems(run: &SuitesRun) -> impl Iterator<Item = (String, &Problem)> {
    let of_files = run.problems.iter().map(|problem| (problem.file.display().to_string(), problem));
    let of_suites = run.suites.iter().flat_map(|suite| suite.problems.iter().map(|it| (suite.name.clone(), it)));
    of_files.chain(of_suites)
}

/// Returns `file:line:column`, or the file alone.
pub(super) fn place(file: &Path, position: Option<(usize, usize)>) -> String {
    let file = name(&file.display().to_string());
    position.map_or(file.clone(), |(line, column)| format!("{file}:{line}:{column}"))
}

pub(super) fn place_of(test: &TestRun) -> String {
    place(&test.file, test.position)
}

/// Returns a name on one line.
pub(super) fn name(name: &str) -> String {
    Printable::new(name, LONGEST_NAME).to_string()
}

/// Returns a message on one line.
pub(super) fn message(message: &str) -> String {
    Printable::new(message, LONGEST_MESSAGE).to_string()
}
