//! Reports of runs: lines for people, and formats of test tools.

mod junit;
mod tap;
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
