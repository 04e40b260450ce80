//! Findings: what was left out and why, and what may surprise.

use super::finding_kind::FindingKind;
use super::position::Position;
use kube_unions_core::declaration::Severity;
use kube_unions_core::schema::Place;

/// A message about the Go sources, with the position that caused it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoFinding {
    /// Position of the marker, field or type in the sources.
    pub position: Position,
    /// Path of the object in the schema, for example `spec.strategy`; empty for the root.
    pub path: String,
    /// Severity: an error means that something was left out.
    pub severity: Severity,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The problem and its remedy, in one line. Names and values from the sources are in backticks.
    pub message: String,
}

impl GoFinding {
    /// Returns a finding without a path.
    pub(super) fn new(at: &Position, kind: FindingKind, message: impl Into<String>) -> Self {
        let (position, path, severity, message) = (at.clone(), String::new(), kind.severity(), message.into());
        Self { position, path, severity, kind, message }
    }

    /// Returns a finding whose message says that a union or a member is left out.
    pub(super) fn left_out(at: &Position, kind: FindingKind, message: impl std::fmt::Display) -> Self {
        Self::new(at, kind, format!("{message}; left out"))
    }

    /// Returns the finding about an object in the schema.
    pub(super) fn about(self, place: &Place) -> Self {
        Self { path: place.to_string(), ..self }
    }

    /// Returns the names and values in the message, in its order: the texts in backticks, without markers.
    ///
    /// With kind and path they identify a finding wherever it moves in its file, and when its message is reworded.
    pub fn names(&self) -> Vec<&str> {
        let quoted = self.message.split('`').skip(1).step_by(2);
        quoted.filter(|name| !name.starts_with('+')).collect()
    }
}
