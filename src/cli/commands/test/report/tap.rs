//! A report in TAP, version 14: <https://testanything.org/tap-version-14-specification.html>

use super::words::{self, message, name};
use crate::cli::commands::test::judge::Failure;
use crate::cli::commands::test::run::{SuitesRun, TestResult, TestRun};
use crate::cli::input::manifest::{self, Problem};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The lines of the tests, and their number.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    number: usize,
}

pub(super) fn report(run: &SuitesRun) -> anyhow::Result<String> {
    let mut lines = Lines::default();
    for (suite, problem) in words::problems(run) {
        let Problem { file, position, message } = problem;
        lines.push(&suite, Some(Diagnosis::error(file, *position, message)))?;
    }
    for suite in &run.suites {
        for test in &suite.tests {
            let TestRun { file, position, .. } = test;
            let failure = match &test.result {
                TestResult::Passed => None,
                TestResult::Broken(error) => Some(Diagnosis::error(file, *position, error)),
                TestResult::Failed(failure) => Some(Diagnosis::failure(file, *position, failure)),
            };
            lines.push(&format!("{}: {}", suite.name, test.name), failure)?;
        }
    }
    let Lines { text, number } = lines;
    let reason = if number == 0 { " # SKIP no tests" } else { "" };
    Ok(format!("TAP version 14\n1..{number}{reason}\n{text}"))
}

impl Lines {
    /// Adds the line of a test. With a diagnosis, the test failed.
    fn push(&mut self, title: &str, diagnosis: Option<Diagnosis>) -> anyhow::Result<()> {
        self.number += 1;
        let not = if diagnosis.is_some() { "not " } else { "" };
        // A `#` begins a directive.
        let title = name(title).replace('\\', "\\\\").replace('#', "\\#");
        writeln!(self.text, "{not}ok {} - {title}", self.number)?;
        if let Some(diagnosis) = diagnosis {
            let yaml = manifest::to_yaml(&serde_json::to_string(&diagnosis)?)?;
            self.text.push_str("  ---\n");
            for line in yaml.lines() {
                writeln!(self.text, "  {line}")?;
            }
            self.text.push_str("  ...\n");
        }
        Ok(())
    }
}

/// The reason that a test failed.
#[derive(Serialize)]
struct Diagnosis {
    message: String,
    severity: &'static str,
    at: At,
    #[serde(skip_serializing_if = "String::is_empty")]
    diff: String,
}

#[derive(Serialize)]
struct At {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Diagnosis {
    /// Describes something that could not run.
    fn error(file: &Path, position: Option<(usize, usize)>, text: &str) -> Self {
        let (line, column) = position.unzip();
        let at = At { file: name(&file.display().to_string()), line, column };
        Self { message: message(text), severity: "error", at, diff: String::new() }
    }

    fn failure(file: &Path, position: Option<(usize, usize)>, failure: &Failure) -> Self {
        let diff = failure.difference.iter().flat_map(|line| [line, "\n"]).collect();
        Self { severity: "fail", diff, ..Self::error(file, position, &failure.message) }
    }
}
