//! Findings: what was left out and why, and what may surprise.

use super::finding_kind::FindingKind;
use super::position::Position;
use super::severity::FindingSeverity;

/// A message about the Go sources, with the position that caused it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoFinding {
    /// Position of the marker, field or type in the sources.
    pub position: Position,
    /// Path of the object in the schema, for example `spec.strategy`; empty for the root.
    pub path: String,
    /// Severity: an error means that something was left out.
    pub severity: FindingSeverity,
    /// The kind of finding.
    pub kind: FindingKind,
    /// The problem and its remedy, in one line. Names and values from the sources are in backticks.
    pub message: String,
}

impl GoFinding {
    /// Returns the names and values in the message, in its order: the texts in backticks, without markers.
    ///
    /// With kind and path they identify a finding wherever it moves in its file, and when its message is reworded.
    pub fn names(&self) -> Vec<&str> {
        let quoted = self.message.split('`').skip(1).step_by(2);
        quoted.filter(|name| !name.starts_with('+')).collect()
    }
}
