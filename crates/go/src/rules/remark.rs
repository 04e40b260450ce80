//! Remarks of the rules: what is left out and why, and what may surprise.

use super::marked_struct::StructField;
use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::position::Position;

/// A remark about a union or a member.
#[derive(Debug, Clone)]
pub(crate) struct Remark {
    at: Position,
    kind: FindingKind,
    message: String,
    /// True if the union or the member is left out.
    left_out: bool,
}

impl Remark {
    /// Something is left out.
    pub(super) fn new(at: &Position, kind: FindingKind, message: String) -> Self {
        Self { at: at.clone(), kind, message, left_out: true }
    }

    /// Nothing is left out.
    pub(super) fn besides(at: &Position, kind: FindingKind, message: String) -> Self {
        Self { left_out: false, ..Self::new(at, kind, message) }
    }

    /// The schema lacks a field. It may be in another version, or behind a feature gate.
    pub(super) fn skipped(field: &StructField<'_, '_>, role: &str) -> Self {
        let message = format!("the {role} `{}` is not in the schema", field.name);
        Self::new(field.at(), FindingKind::MissingField, message)
    }

    pub(crate) fn into_finding(self, path: String) -> GoFinding {
        let Self { at, kind, message, left_out } = self;
        let message = if left_out { format!("{message}; left out") } else { message };
        GoFinding { position: at, path, severity: kind.severity(), kind, message }
    }
}
