//! Reports of runs: lines for people, and formats of test tools.

mod junit;
mod tap;
mod text;

use super::run::{SuitesRun, TestRun};
use crate::cli::manifest::Problem;
use crate::cli::output::Paint;
use clap::ValueEnum;
use kube_unions_core::field_path::Printable;
use std::path::Path;

/// Longest name of a suite or test that a report shows, in bytes.
const LONGEST_NAME: usize = 400;

/// Longest message that a report shows, in bytes.
const LONGEST_MESSAGE: usize = 8_192;

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TestsFormat {
    /// Lines for people: the tests that failed
    #[default]
    Text,
    /// JUnit XML, which CI systems read
    Junit,
    /// TAP 14, the Test Anything Protocol
    Tap,
}

/// Returns the report of a run.
pub(super) fn report(run: &SuitesRun, format: TestsFormat) -> anyhow::Result<String> {
    match format {
        TestsFormat::Text => Ok(text::report(run, Paint::of(&std::io::stdout()))),
        TestsFormat::Junit => junit::report(run),
        TestsFormat::Tap => tap::report(run),
    }
}

/// Returns the problems that belong to no test, each with the name of its suite, or else of its file.
fn problems(run: &SuitesRun) -> impl Iterator<Item = (String, &Problem)> {
    let of_files = run.problems.iter().map(|problem| (problem.file.display().to_string(), problem));
    let of_suites = run.suites.iter().flat_map(|suite| suite.problems.iter().map(|it| (suite.name.clone(), it)));
    of_files.chain(of_suites)
}

/// Returns `file:line:column`, or the file alone.
fn place(file: &Path, position: Option<(usize, usize)>) -> String {
    let file = name(&file.display().to_string());
    position.map_or(file.clone(), |(line, column)| format!("{file}:{line}:{column}"))
}

fn place_of(test: &TestRun) -> String {
    place(&test.file, test.position)
}

/// Returns a name on one line.
fn name(name: &str) -> String {
    Printable::new(name, LONGEST_NAME).to_string()
}

/// Returns a message on one line.
fn message(message: &str) -> String {
    Printable::new(message, LONGEST_MESSAGE).to_string()
}
