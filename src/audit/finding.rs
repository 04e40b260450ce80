//! The rules of an audit, and a finding: one object that breaks one rule in one field.

use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Violation, ViolationKind};
use serde::Serialize;

/// One finding about one object. It shows no value of the object but a discriminator's.
#[derive(Debug)]
pub struct ObjectFinding<'f> {
    pub rule: AuditRule,
    pub kind: &'f GroupVersionKind,
    /// Empty for an object that is in no namespace.
    pub namespace: &'f str,
    pub name: &'f str,
    /// The path of the field, the root for the whole object.
    pub path: FieldPath,
    pub message: String,
    /// True if the object is invalid, and its next write makes it valid.
    pub repaired: bool,
}

/// The consequence of a finding for its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Impact {
    Invalid,
    WouldWarn,
    WouldAudit,
    WouldChange,
}

/// A rule that findings are reported under.
#[derive(Debug, Clone, Copy)]
pub struct AuditRule {
    /// The name of the rule in JSON and SARIF.
    pub id: &'static str,
    pub impact: Impact,
    /// The meaning of the rule.
    pub description: &'static str,
}

impl Impact {
    /// Returns the words of the table, and the level in SARIF.
    pub fn row(self) -> (&'static str, Severity) {
        match self {
            Self::Invalid => ("invalid", Severity::Error),
            Self::WouldWarn => ("would warn", Severity::Warning),
            Self::WouldAudit => ("would audit", Severity::Note),
            Self::WouldChange => ("would change", Severity::Note),
        }
    }

    pub fn words(self) -> &'static str {
        self.row().0
    }
}

impl AuditRule {
    const UNKNOWN_VALUE: Self =
        Self::invalid("unknown-value", "The discriminator has a value that its union does not declare.");
    const DISCRIMINATOR_REQUIRED: Self =
        Self::invalid("discriminator-required", "A member is set, and the discriminator is empty.");
    const MEMBER_REQUIRED: Self =
        Self::invalid("member-required", "The discriminator selects a member that is not set.");
    const MEMBER_NOT_SELECTED: Self =
        Self::invalid("member-not-selected", "A member is set that the discriminator does not select.");
    const TOO_MANY_MEMBERS: Self =
        Self::invalid("too-many-members", "Several members are set, and no discriminator selects one of them.");
    const CHOICE_REQUIRED: Self = Self::invalid("choice-required", "No member is set, and the union requires one.");
    /// Only files are judged by it: an API server stores no such object.
    pub const REFUSED: Self =
        Self::invalid("refused", "The API server refuses a value of a wrong type, or a field beside another.");
    pub const MORE_VIOLATIONS: Self =
        Self::invalid("more-violations", "The object has more violations than an audit lists.");
    pub const WOULD_WARN: Self = Self {
        id: "would-warn",
        impact: Impact::WouldWarn,
        description: "The object is invalid, and its declaration only warns.",
    };
    pub const WOULD_AUDIT: Self = Self {
        id: "would-audit",
        impact: Impact::WouldAudit,
        description: "The object is invalid, and its declaration only audits.",
    };
    pub const WOULD_CHANGE: Self = Self {
        id: "would-change",
        impact: Impact::WouldChange,
        description: "The next write of the object would be normalised: a member cleared, or a discriminator set.",
    };

    /// Every rule.
    pub const ALL: [Self; 11] = [
        Self::UNKNOWN_VALUE,
        Self::DISCRIMINATOR_REQUIRED,
        Self::MEMBER_REQUIRED,
        Self::MEMBER_NOT_SELECTED,
        Self::TOO_MANY_MEMBERS,
        Self::CHOICE_REQUIRED,
        Self::REFUSED,
        Self::MORE_VIOLATIONS,
        Self::WOULD_WARN,
        Self::WOULD_AUDIT,
        Self::WOULD_CHANGE,
    ];

    const fn invalid(id: &'static str, description: &'static str) -> Self {
        Self { id, impact: Impact::Invalid, description }
    }

    pub fn of_violation(violation: &Violation) -> Self {
        match violation.kind {
            ViolationKind::UnknownValue { .. } => Self::UNKNOWN_VALUE,
            ViolationKind::DiscriminatorRequired { .. } => Self::DISCRIMINATOR_REQUIRED,
            ViolationKind::OneRequired { .. } | ViolationKind::ChoiceRequired { .. } => Self::CHOICE_REQUIRED,
            ViolationKind::MemberRequired { .. } => Self::MEMBER_REQUIRED,
            // A stored object is judged without a manifest.
            ViolationKind::NotSelected { .. } | ViolationKind::NotSelectedApplied { .. } => Self::MEMBER_NOT_SELECTED,
            ViolationKind::TooMany { .. } | ViolationKind::SeveralApplied { .. } | ViolationKind::Contested { .. } => {
                Self::TOO_MANY_MEMBERS
            }
        }
    }
}

impl ObjectFinding<'_> {
    /// Returns the message, and for an invalid object a note if its next write repairs it.
    pub fn sentence(&self) -> String {
        let repaired = if self.repaired { "; the next write mends it by normalisation" } else { "" };
        format!("{}{repaired}", self.message)
    }
}

/// Returns the kind as `Widget.example.com/v1`, or `Pod/v1` in the core group.
pub fn title(kind: &GroupVersionKind) -> String {
    format!("{}/{}", kind.group_kind(), kind.version)
}
