//! What is wrong with a declaration or a file, and where: one line for people, one object for programs.

use super::manifest::{Definitions, Document, Problem};
use super::output::Paint;
use crate::declaration::{Fault, Severity};
use serde::Serialize;
use std::path::PathBuf;

/// A fault, placed in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Finding {
    file: PathBuf,
    /// Counted from 1, like the column; absent where a whole file is meant.
    line: Option<usize>,
    column: Option<usize>,
    /// The CRD's name.
    definition: Option<String>,
    version: Option<String>,
    /// The place in the schema; empty for the whole.
    path: String,
    severity: &'static str,
    source: Option<String>,
    message: String,
}

impl Finding {
    /// A fault of a CRD that was read from a document.
    pub(super) fn of_fault(fault: &Fault, document: &Document) -> Self {
        let position = document.position(&fault.pointer);
        Self {
            file: document.file.clone(),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            definition: Some(fault.definition.clone()),
            version: fault.version.clone(),
            path: fault.path.clone(),
            severity: match fault.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            source: fault.source.map(|source| source.to_string()),
            message: fault.message.clone(),
        }
    }

    /// A file or a CRD that could not be read.
    pub(super) fn of_problem(problem: &Problem, definition: Option<&str>) -> Self {
        Self {
            file: problem.file.clone(),
            line: problem.position.map(|(line, _)| line),
            column: problem.position.map(|(_, column)| column),
            definition: definition.map(str::to_owned),
            version: None,
            path: String::new(),
            severity: "error",
            source: None,
            message: problem.message.clone(),
        }
    }

    pub(super) fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// `file:line:column: path: message`, as compilers write it, so that editors find the place.
    pub(super) fn line(&self, paint: Paint) -> String {
        let position = [self.line, self.column].into_iter().flatten().map(|number| number.to_string());
        let place = [self.file.display().to_string()].into_iter().chain(position).collect::<Vec<_>>().join(":");
        let whole = self.definition.as_deref().unwrap_or_default();
        let path = if self.path.is_empty() { whole } else { &self.path };
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let severity = if self.is_error() { paint.error("error:") } else { paint.warning("warning:") };
        format!("{} {path}{severity} {}", paint.strong(&format!("{place}:")), self.message)
    }
}

/// Everything that was found wrong with the CRDs of some documents, in the order of the files.
pub(super) fn of_definitions(definitions: &Definitions) -> Vec<Finding> {
    let faults = definitions.catalog.faults().iter().filter_map(|fault| {
        let document = definitions.documents.get(&fault.definition)?;
        Some(Finding::of_fault(fault, document))
    });
    let problems = definitions.problems.iter().map(|problem| Finding::of_problem(problem, None));
    let mut findings: Vec<Finding> = faults.chain(problems).collect();
    findings.sort();
    findings
}
