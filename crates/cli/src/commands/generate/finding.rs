//! The findings of a run, each with the CRD that it is about.

use kube_unions_core::declaration::Severity;
use kube_unions_go::GoFinding;
use serde::Serialize;
use std::path::PathBuf;

/// A finding with the kind that it is about.
#[derive(Debug, Clone)]
pub(super) struct ReportedFinding {
    pub(super) finding: GoFinding,
    /// `None` for a finding about Go sources alone.
    pub(super) subject: Option<CrdSubject>,
    pub(super) standing: Standing,
}

/// The CRD that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrdSubject {
    /// Name of the CRD.
    pub(super) definition: String,
    pub(super) kind: String,
    /// `None` for the CRD as a whole.
    pub(super) version: Option<String>,
    /// The file with the CRD.
    pub(super) file: PathBuf,
    /// Line and column of the CRD in its file, counted from 1.
    pub(super) position: (usize, usize),
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    /// It counts.
    New,
    /// `--allow` names its kind.
    Allowed,
}

impl ReportedFinding {
    pub(super) fn of(finding: GoFinding, subject: Option<CrdSubject>) -> Self {
        Self { finding, subject, standing: Standing::New }
    }

    /// Returns `Kind version path`, as far as they are known.
    pub(super) fn place(&self) -> String {
        let subject = self.subject.as_ref();
        let kind = subject.map(|subject| subject.kind.as_str());
        let version = subject.and_then(|subject| subject.version.as_deref());
        let parts = [kind, version, Some(&*self.finding.path)];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn is_counted_error(&self) -> bool {
        self.finding.severity == Severity::Error && self.standing == Standing::New
    }

    /// Returns true if the finding is an error or a warning. A note never fails.
    pub(super) fn is_worth_a_count(&self) -> bool {
        self.finding.severity != Severity::Note
    }
}
