//! Reports of runs: lines for people, and JUnit XML for test tools.

mod junit;
mod text;
mod words;

use super::run::SuitesRun;
use crate::cli::report::output::Paint;
use clap::ValueEnum;

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
        TestsFormat::Text => Ok(text::report(run, Paint::of(&std::io::stdout()))),
        TestsFormat::Junit => junit::report(run),
    }
}
