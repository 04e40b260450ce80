//! A fault of a declaration or a problem of a file, as a line for people and as JSON.

use super::kinds::Assembly;
use super::manifest::Problem;
use super::output::Paint;
use kube_unions_core::declaration::{Fault, Severity};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A fault or problem, with its place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Diagnostic {
    file: PathBuf,
    /// Counted from 1, as is the column. `None` for the whole file.
    line: Option<usize>,
    column: Option<usize>,
    /// The name of the CRD, or kind and group of a built-in type.
    definition: Option<String>,
    /// The name of the faulty `UnionDeclaration`.
    declaration: Option<String>,
    version: Option<String>,
    /// The path in the schema, empty for the whole schema.
    path: String,
    severity: &'static str,
    source: Option<String>,
    message: String,
}

impl Diagnostic {
    fn of_fault(fault: &Fault, file: &Path, position: Option<(usize, usize)>) -> Self {
        Self {
            file: file.to_owned(),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            definition: Some(fault.definition.clone()),
            declaration: fault.declaration.clone(),
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

    /// Describes a file or document that could not be read.
    pub(super) fn of_problem(problem: &Problem) -> Self {
        Self {
            file: problem.file.clone(),
            line: problem.position.map(|(line, _)| line),
            column: problem.position.map(|(_, column)| column),
            definition: None,
            declaration: None,
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

    /// Returns `file:line:column: path: message`, the format of compilers that editors understand.
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

/// Returns the faults and problems of documents, sorted by file.
pub(super) fn diagnose(assembly: &Assembly) -> Vec<Diagnostic> {
    let faults = assembly.catalog.faults().iter().filter_map(|fault| {
        let (file, position) = assembly.place_of(fault)?;
        Some(Diagnostic::of_fault(fault, file, position))
    });
    let problems = assembly.problems.iter().map(Diagnostic::of_problem);
    let mut diagnostics: Vec<Diagnostic> = faults.chain(problems).collect();
    diagnostics.sort();
    diagnostics
}
