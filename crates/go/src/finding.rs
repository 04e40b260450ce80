//! What there is to say about Go sources: what was left out and why, and what works and may surprise.

use super::types::Position;

/// One thing to say, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoFinding {
    /// In the Go sources, if it is about them.
    pub position: Option<Position>,
    /// The place in the schema, as people write it; empty for the whole.
    pub path: String,
    /// How bad it is.
    pub severity: Severity,
    /// Of which sort it is.
    pub reason: FindingReason,
    /// What is wrong and what to do.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something was left out.
    Error,
    /// Nothing was left out, and it may surprise.
    Warning,
    /// Worth knowing.
    Note,
}

/// Of which sort a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingReason {
    /// The markers leave open what is meant, and nothing was guessed.
    Ambiguous,
    /// The markers say something that can be no union here.
    Fault,
    /// A marker that can't be read, or stands where it has no effect.
    Marker,
    /// A file that is not Go.
    Syntax,
    /// The struct of a kind is not there, or is there twice, or is another one's.
    Kind,
    /// A package that was not given.
    Package,
    /// A field that the schema does not have.
    Skipped,
    /// Marked, and not reached from any kind.
    Unreached,
    /// Declared in the CRD by other means.
    Declared,
}

impl Severity {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl FindingReason {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ambiguous => "ambiguous",
            Self::Fault => "fault",
            Self::Marker => "marker",
            Self::Syntax => "syntax",
            Self::Kind => "kind",
            Self::Package => "package",
            Self::Skipped => "skipped",
            Self::Unreached => "unreached",
            Self::Declared => "declared",
        }
    }
}
