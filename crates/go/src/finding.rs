//! Findings: what was left out and why, and what may surprise.

use super::position::Position;
use super::severity::Severity;
use serde::Serialize;

/// A message about the Go sources, with the position that caused it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoFinding {
    /// Position of the marker, field or type in the sources.
    pub position: Position,
    /// Path of the object in the schema, for example `spec.strategy`; empty for the root.
    pub path: String,
    /// Severity: an error means that something was left out.
    pub severity: Severity,
    /// Category, stable for programs.
    pub reason: FindingReason,
    /// The problem and its remedy, in one line.
    pub message: String,
}

/// Category of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FindingReason {
    /// The markers allow more than one reading. The union is left out rather than guessed.
    Ambiguous,
    /// The markers describe a union that this schema cannot have.
    Fault,
    /// A marker has a syntax error, or has no effect at its position.
    Marker,
    /// The struct of a kind is missing, is declared twice, or does not fit the CRD.
    Kind,
    /// The sources of an imported package were not given.
    Package,
    /// A marked field is not in the schema.
    Skipped,
    /// A struct has markers, but no kind uses it.
    Unreached,
    /// The markers are ambiguous, and the CRD itself declares the union.
    Declared,
}
