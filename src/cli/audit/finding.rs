//! What is found of an object, and the rules that findings go by.

use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Change, Violation, ViolationKind};
use std::path::Path;

/// One thing that is found of one object. It has no value of the object but a discriminator's.
#[derive(Debug)]
pub(super) struct Finding<'f> {
    pub(super) rule: &'static Rule,
    pub(super) kind: &'f GroupVersionKind,
    /// Empty where the object is in none.
    pub(super) namespace: &'f str,
    pub(super) name: &'f str,
    /// The path of the field.
    pub(super) field: String,
    pub(super) message: String,
    /// Whether the object is invalid, and would not be after the next write.
    pub(super) mended: bool,
    /// Where the field is written.
    pub(super) place: Option<Place<'f>>,
}

/// A place in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'f> {
    pub(super) file: &'f Path,
    /// Line and column, counted from 1.
    pub(super) position: Option<(usize, usize)>,
}

/// What a finding means for its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Invalid,
    WouldWarn,
    WouldChange,
}

/// A kind of finding.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) sort: Sort,
    pub(super) description: &'static str,
}

/// All kinds of findings, those of violations first.
pub(super) static RULES: [Rule; 7] = [
    Rule {
        id: "unknown-value",
        sort: Sort::Invalid,
        description: "The discriminator has a value that is none of its union's.",
    },
    Rule {
        id: "discriminator-required",
        sort: Sort::Invalid,
        description: "A member is set, and the discriminator is empty.",
    },
    Rule {
        id: "member-required",
        sort: Sort::Invalid,
        description: "The discriminator selects a member that is not set.",
    },
    Rule {
        id: "member-not-selected",
        sort: Sort::Invalid,
        description: "A member is set that the discriminator does not select.",
    },
    Rule {
        id: "too-many-members",
        sort: Sort::Invalid,
        description: "Several members are set, and nothing tells which one counts.",
    },
    Rule {
        id: "would-warn",
        sort: Sort::WouldWarn,
        description: "The object is invalid, and its declaration only warns of that.",
    },
    Rule {
        id: "would-change",
        sort: Sort::WouldChange,
        description: "The next write of the object would be normalised: a member cleared, or a discriminator set.",
    },
];

impl Sort {
    /// As people read it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::WouldWarn => "would warn",
            Self::WouldChange => "would change",
        }
    }

    /// As programs read it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::WouldWarn => "wouldWarn",
            Self::WouldChange => "wouldChange",
        }
    }

    /// How bad it is, in the words of SARIF.
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Invalid => "error",
            Self::WouldWarn => "warning",
            Self::WouldChange => "note",
        }
    }
}

impl Rule {
    fn named(id: &str) -> &'static Self {
        let [first, ..] = &RULES;
        RULES.iter().find(|rule| rule.id == id).unwrap_or(first)
    }

    pub(super) fn of_violation(violation: &Violation) -> &'static Self {
        Self::named(match violation.kind {
            ViolationKind::UnknownValue { .. } => "unknown-value",
            ViolationKind::DiscriminatorRequired { .. } => "discriminator-required",
            ViolationKind::MemberRequired { .. } => "member-required",
            ViolationKind::NotSelected { .. } => "member-not-selected",
            ViolationKind::TooMany { .. } => "too-many-members",
        })
    }

    pub(super) fn of_warning(_: &Violation) -> &'static Self {
        Self::named("would-warn")
    }

    pub(super) fn of_change(_: &Change) -> &'static Self {
        Self::named("would-change")
    }
}

impl Finding<'_> {
    /// The message, and for an invalid object whether that goes away by itself.
    pub(super) fn sentence(&self) -> String {
        let mended = if self.mended { "; the next write mends it by normalisation" } else { "" };
        format!("{}{mended}", self.message)
    }
}

/// `Widget.example.com/v1`, and of the core group `Pod/v1`.
pub(super) fn title(GroupVersionKind { group, version, kind }: &GroupVersionKind) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{version}")
}
