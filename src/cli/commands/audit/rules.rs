//! The rules of an audit, and a finding: one object that breaks one rule in one field.

use crate::cli::report::sarif::{FilePlace, SarifFinding, SarifLevel, SarifRule, SarifSubject};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Violation, ViolationKind};

/// One finding about one object. It shows no value of the object but a discriminator's.
#[derive(Debug)]
pub(super) struct ObjectFinding<'f> {
    pub(super) rule: AuditRule,
    pub(super) kind: &'f GroupVersionKind,
    /// Empty for an object that is in no namespace.
    pub(super) namespace: &'f str,
    pub(super) name: &'f str,
    /// The path of the field, empty for the whole object.
    pub(super) field: String,
    pub(super) message: String,
    /// True if the object is invalid, and its next write makes it valid.
    pub(super) repaired: bool,
    /// The place of the field in a file.
    pub(super) location: Option<FilePlace<'f>>,
}

/// The consequence of a finding for its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impact {
    Invalid,
    WouldWarn,
    WouldAudit,
    WouldChange,
}

/// A rule that findings are reported under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditRule {
    UnknownValue,
    DiscriminatorRequired,
    MemberRequired,
    MemberNotSelected,
    TooManyMembers,
    ChoiceRequired,
    MoreViolations,
    WouldWarn,
    WouldAudit,
    WouldChange,
}

impl Impact {
    /// Returns the words of the table, the value in JSON, and the level in SARIF.
    fn row(self) -> (&'static str, &'static str, SarifLevel) {
        match self {
            Self::Invalid => ("invalid", "invalid", SarifLevel::Error),
            Self::WouldWarn => ("would warn", "wouldWarn", SarifLevel::Warning),
            Self::WouldAudit => ("would audit", "wouldAudit", SarifLevel::Note),
            Self::WouldChange => ("would change", "wouldChange", SarifLevel::Note),
        }
    }

    /// Returns the words of the table.
    pub(super) fn words(self) -> &'static str {
        self.row().0
    }

    /// Returns the value in JSON.
    pub(super) fn key(self) -> &'static str {
        self.row().1
    }
}

impl AuditRule {
    /// Every rule, in the order of their declaration.
    pub(super) const ALL: [Self; 10] = [
        Self::UnknownValue,
        Self::DiscriminatorRequired,
        Self::MemberRequired,
        Self::MemberNotSelected,
        Self::TooManyMembers,
        Self::ChoiceRequired,
        Self::MoreViolations,
        Self::WouldWarn,
        Self::WouldAudit,
        Self::WouldChange,
    ];

    pub(super) fn of_violation(violation: &Violation) -> Self {
        match violation.kind {
            ViolationKind::UnknownValue { .. } => Self::UnknownValue,
            ViolationKind::DiscriminatorRequired { .. } => Self::DiscriminatorRequired,
            ViolationKind::OneRequired { .. } | ViolationKind::ChoiceRequired { .. } => Self::ChoiceRequired,
            ViolationKind::MemberRequired { .. } => Self::MemberRequired,
            // A stored object is judged without a manifest.
            ViolationKind::NotSelected { .. } | ViolationKind::NotSelectedApplied { .. } => Self::MemberNotSelected,
            ViolationKind::TooMany { .. } | ViolationKind::SeveralApplied { .. } | ViolationKind::Contested { .. } => {
                Self::TooManyMembers
            }
        }
    }

    /// Returns the name in JSON and SARIF, the impact, and a description.
    fn row(self) -> (&'static str, Impact, &'static str) {
        match self {
            Self::UnknownValue => {
                ("unknown-value", Impact::Invalid, "The discriminator has a value that its union does not declare.")
            }
            Self::DiscriminatorRequired => {
                ("discriminator-required", Impact::Invalid, "A member is set, and the discriminator is empty.")
            }
            Self::ChoiceRequired => {
                ("choice-required", Impact::Invalid, "No member is set, and the union requires one.")
            }
            Self::MemberRequired => {
                ("member-required", Impact::Invalid, "The discriminator selects a member that is not set.")
            }
            Self::MemberNotSelected => {
                ("member-not-selected", Impact::Invalid, "A member is set that the discriminator does not select.")
            }
            Self::TooManyMembers => (
                "too-many-members",
                Impact::Invalid,
                "Several members are set, and no discriminator selects one of them.",
            ),
            Self::MoreViolations => {
                ("more-violations", Impact::Invalid, "The object has more violations than an audit lists.")
            }
            Self::WouldWarn => {
                ("would-warn", Impact::WouldWarn, "The object is invalid, and its declaration only warns.")
            }
            Self::WouldAudit => {
                ("would-audit", Impact::WouldAudit, "The object is invalid, and its declaration only audits.")
            }
            Self::WouldChange => (
                "would-change",
                Impact::WouldChange,
                "The next write of the object would be normalised: a member cleared, or a discriminator set.",
            ),
        }
    }

    /// Returns the name of the rule in JSON and SARIF.
    pub(super) fn id(self) -> &'static str {
        self.row().0
    }

    pub(super) fn impact(self) -> Impact {
        self.row().1
    }

    pub(super) fn sarif(self) -> SarifRule {
        let (id, impact, description) = self.row();
        SarifRule { id, description, level: impact.row().2 }
    }
}

impl<'f> ObjectFinding<'f> {
    pub(super) fn sarif(&self) -> SarifFinding<'f> {
        let Self { rule, kind, namespace, name, field, location, .. } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let object = format!("{} {namespace}{slash}{name}", title(kind));
        let full = if field.is_empty() { object } else { format!("{object}: {field}") };
        SarifFinding {
            rule: rule.id(),
            level: rule.impact().row().2,
            message: format!("{full}: {}", self.sentence()),
            place: *location,
            subjects: vec![SarifSubject { field: field.clone(), full }],
            related: Vec::new(),
            suppressed: None,
        }
    }

    /// Returns the message, and for an invalid object a note if its next write repairs it.
    pub(super) fn sentence(&self) -> String {
        let repaired = if self.repaired { "; the next write mends it by normalisation" } else { "" };
        format!("{}{repaired}", self.message)
    }
}

/// Returns the kind as `Widget.example.com/v1`, or `Pod/v1` in the core group.
pub(super) fn title(kind: &GroupVersionKind) -> String {
    format!("{}/{}", kind.group_kind(), kind.version)
}
