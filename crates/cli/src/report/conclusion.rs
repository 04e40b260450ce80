//! The end of every command that checks what it is given: the exit code, which reports repeat, and the last line on standard error.

use super::exit::FAILED;
use super::{Verdict, output};
use crate::input::require::RequireArg;
use anyhow::anyhow;
use kube_unions_manifests::counts::count;

/// The end of a command: its findings, its summary and its exit code.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) verdict: Verdict,
    /// True for a warning that there was nothing to check.
    is_warning: bool,
    /// The sentence that says which files and objects were checked.
    summary: String,
    /// The problems that kept something from being checked, a line each, for reports.
    pub(crate) problems: Vec<String>,
    /// The error that the command ends with, after its report.
    failure: Option<anyhow::Error>,
}

impl Conclusion {
    /// `nothing` says that there was nothing to check, in place of the summary. An empty summary is not printed.
    pub(crate) fn new(require: RequireArg, nothing: Option<String>, rejected: bool, summary: String) -> Self {
        let verdict = if nothing.is_some() { require.verdict() } else { Verdict::rejected_if(rejected) };
        let is_warning = nothing.is_some();
        Self { verdict, is_warning, summary: nothing.unwrap_or(summary), problems: Vec::new(), failure: None }
    }

    /// Adds what kept something from being checked. A failure is an error, whatever was found.
    pub(crate) fn beside(self, problems: Vec<String>, failure: Option<anyhow::Error>) -> Self {
        Self { problems, failure, ..self }
    }

    pub(crate) fn code(&self) -> u8 {
        if self.failure.is_some() { FAILED } else { self.verdict.code() }
    }

    /// Prints the last line.
    pub(crate) fn end(self) -> anyhow::Result<Verdict> {
        match self.summary {
            nothing if self.is_warning => output::warn(nothing),
            summary if summary.is_empty() => {}
            summary => output::summary(summary),
        }
        self.failure.map_or(Ok(self.verdict), Err)
    }
}

/// Returns the error of a command that could not do all that it was asked to, `None` without problems. `done` is for example `checked`.
pub(crate) fn kept_from(problems: usize, done: &str) -> Option<anyhow::Error> {
    (problems > 0).then(|| anyhow!("{} kept something from being {done}", count(problems, "problem")))
}
