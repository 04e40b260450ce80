//! Unions and members that are left out, and why.

use super::marked_struct::StructField;
use crate::finding::{FindingReason, GoFinding};
use crate::position::Position;
use crate::severity::Severity;

/// A union or a member that is left out.
#[derive(Debug, Clone)]
pub(crate) struct Omission {
    at: Position,
    severity: Severity,
    reason: FindingReason,
    message: String,
}

impl Omission {
    /// The markers allow more than one reading.
    pub(super) fn ambiguous(at: &Position, message: String) -> Self {
        Self::error(at, FindingReason::Ambiguous, message)
    }

    /// The markers describe a union that cannot exist.
    pub(super) fn fault(at: &Position, message: String) -> Self {
        Self::error(at, FindingReason::Fault, message)
    }

    pub(super) fn invalid_marker(at: &Position, message: String) -> Self {
        Self::error(at, FindingReason::Marker, message)
    }

    /// The schema lacks a field. It may be in another version, or behind a feature gate.
    pub(super) fn skipped(field: &StructField<'_, '_>, role: &str) -> Self {
        let message = format!("the {role} `{}` is not in the schema", field.name);
        Self { at: field.at().clone(), severity: Severity::Note, reason: FindingReason::Skipped, message }
    }

    fn error(at: &Position, reason: FindingReason, message: String) -> Self {
        Self { at: at.clone(), severity: Severity::Error, reason, message }
    }

    pub(crate) fn into_finding(self, path: String) -> GoFinding {
        let Self { at, severity, reason, message } = self;
        GoFinding { position: at, path, severity, reason, message: format!("{message}; left out") }
    }
}
