//! Reports of runs: lines for people, and JUnit XML for test tools.

mod junit;

use super::run::SuitesRun;
use super::suite::SuiteTest;
use crate::cli::report::output::Paint;
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
}

/// Returns the report of a run.
pub(super) fn report(run: &SuitesRun, format: TestsFormat) -> anyhow::Result<String> {
    match format {
        TestsFormat::Text => Ok(text(run, Paint::of(&std::io::stdout()))),
        TestsFormat::Junit => junit::report(run),
    }
}

/// Returns a line for each problem and each test that failed, with a diff.
fn text(run: &SuitesRun, paint: Paint) -> String {
    let mut lines = Vec::new();
    for problem in run.problems.iter().chain(run.suites.iter().flat_map(|suite| &suite.problems)) {
        let place = paint.strong(&format!("{}:", place(&problem.file, problem.position)));
        lines.push(format!("{place} {} {}", paint.error("error:"), message(&problem.message)));
    }
    for (test, result) in run.tests() {
        let head = format!("{} {}", paint.strong(&format!("{}:", place_of(test))), name(&test.name));
        match result {
            Ok(None) => {}
            Err(error) => lines.push(format!("{head}: {} {}", paint.error("error:"), message(error))),
            Ok(Some(failure)) => {
                lines.push(format!("{head}: {} {}", paint.error("failed:"), message(&failure.message)));
                lines.extend(failure.difference.iter().map(|line| format!("  {}", painted(line, paint))));
            }
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn painted(line: &str, paint: Paint) -> String {
    match line.as_bytes().first() {
        Some(b'-') => paint.removed(line),
        Some(b'+') => paint.added(line),
        _ => paint.faint(line),
    }
}

/// Returns `file:line:column`, or the file alone.
fn place(file: &Path, position: Option<(usize, usize)>) -> String {
    let file = name(&file.display().to_string());
    position.map_or(file.clone(), |(line, column)| format!("{file}:{line}:{column}"))
}

fn place_of(test: &SuiteTest) -> String {
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
