//! The rules of an audit, and a finding: one object that breaks one rule in one field.

use crate::report::sarif::{ExplainedRule, FilePlace, SarifFinding};
use kube_unions_core::declaration::Severity;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Violation, ViolationKind};
use kube_unions_offline::HelpPage;
use serde::Serialize;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Impact {
    Invalid,
    WouldWarn,
    WouldAudit,
    WouldChange,
}

/// A rule that findings are reported under.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditRule {
    /// The name of the rule in JSON and SARIF.
    pub(super) id: &'static str,
    pub(super) impact: Impact,
    description: &'static str,
}

impl Impact {
    /// Returns the words of the table, and the level in SARIF.
    fn row(self) -> (&'static str, Severity) {
        match self {
            Self::Invalid => ("invalid", Severity::Error),
            Self::WouldWarn => ("would warn", Severity::Warning),
            Self::WouldAudit => ("would audit", Severity::Note),
            Self::WouldChange => ("would change", Severity::Note),
        }
    }

    pub(super) fn words(self) -> &'static str {
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
    pub(super) const MORE_VIOLATIONS: Self =
        Self::invalid("more-violations", "The object has more violations than an audit lists.");
    pub(super) const WOULD_WARN: Self = Self {
        id: "would-warn",
        impact: Impact::WouldWarn,
        description: "The object is invalid, and its declaration only warns.",
    };
    pub(super) const WOULD_AUDIT: Self = Self {
        id: "would-audit",
        impact: Impact::WouldAudit,
        description: "The object is invalid, and its declaration only audits.",
    };
    pub(super) const WOULD_CHANGE: Self = Self {
        id: "would-change",
        impact: Impact::WouldChange,
        description: "The next write of the object would be normalised: a member cleared, or a discriminator set.",
    };

    /// Every rule.
    pub(super) const ALL: [Self; 10] = [
        Self::UNKNOWN_VALUE,
        Self::DISCRIMINATOR_REQUIRED,
        Self::MEMBER_REQUIRED,
        Self::MEMBER_NOT_SELECTED,
        Self::TOO_MANY_MEMBERS,
        Self::CHOICE_REQUIRED,
        Self::MORE_VIOLATIONS,
        Self::WOULD_WARN,
        Self::WOULD_AUDIT,
        Self::WOULD_CHANGE,
    ];

    const fn invalid(id: &'static str, description: &'static str) -> Self {
        Self { id, impact: Impact::Invalid, description }
    }

    pub(super) fn of_violation(violation: &Violation) -> Self {
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

    pub(super) fn sarif(self) -> ExplainedRule {
        ((self.id, self.impact.row().1, self.description), self.help())
    }

    /// Returns the page with the message of the webhook.
    pub(super) fn help(self) -> HelpPage {
        match self.impact {
            Impact::WouldChange => HelpPage::CLEARED,
            Impact::Invalid | Impact::WouldWarn | Impact::WouldAudit => HelpPage::DENIALS,
        }
    }
}

impl<'f> ObjectFinding<'f> {
    pub(super) fn sarif(&self) -> SarifFinding<'f> {
        let Self { rule, kind, namespace, name, field, location, .. } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let object = format!("{} {namespace}{slash}{name}", title(kind));
        let full = if field.is_empty() { object } else { format!("{object}: {field}") };
        SarifFinding::new(rule.id, rule.impact.row().1, field, full, self.sentence(), *location)
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
