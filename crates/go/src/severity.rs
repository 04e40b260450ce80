//! Severities of findings.

use serde::Serialize;

/// Severity of a finding, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// A union, or one of its members, was left out.
    Error,
    /// Nothing was left out, but the result may surprise.
    Warning,
    /// Information.
    Note,
}
