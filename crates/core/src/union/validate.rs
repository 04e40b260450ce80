//! Validation of a union as it will be stored.

use super::normalize::too_many;
use super::shape::State;
use super::{Form, MemberSet, Union};

/// What is wrong with one union, without a name or a path: those are built for the faults that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Members that are set and must not be.
    pub(super) blamed: MemberSet,
    /// Why the blamed members must not be set.
    pub(super) blame: Blame,
    /// The selected member, which is not set.
    pub(super) missing: Option<u8>,
    /// A fault of the discriminator.
    pub(super) discriminator: Option<DiscriminatorFault>,
}

/// Why a member must not be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Blame {
    /// Others are set, and nothing tells which one counts.
    #[default]
    TooMany,
    /// The discriminator does not select it.
    NotSelected {
        /// True if the request left the discriminator as it was.
        unchanged: bool,
    },
}

/// A fault of a discriminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscriminatorFault {
    /// No choice has its value.
    Unknown,
    /// It is empty although this member is set.
    Required(u8),
}

impl Faults {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of violations.
    pub(super) fn len(&self) -> usize {
        let blamed = usize::try_from(self.blamed.len()).unwrap_or(usize::MAX);
        blamed.saturating_add(usize::from(self.missing.is_some())).saturating_add(self.discriminator.is_some().into())
    }
}

/// Validates one union. `old` as for normalisation: it only tells what was added and whether the discriminator changed.
pub(super) fn validate(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Faults {
    match union.form {
        Form::List if new.members.len() < 2 => Faults::default(),
        // At most one member. "Exactly one" is the schema's business.
        Form::List => too_many(old, new.members),
        Form::Map => validate_map(union, old, new),
    }
}

/// The 2022 form: the discriminator and the members must say the same.
fn validate_map(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Faults {
    let value = new.value();
    if new.is_wrong_type() || (value.is_empty() && new.members.is_empty()) {
        return Faults::default();
    }
    let Some(choice) = union.choice(value) else {
        // Which member was meant can't be told, so the members are not blamed.
        let fault = match new.members.first() {
            Some(first) if value.is_empty() => DiscriminatorFault::Required(first),
            _ => DiscriminatorFault::Unknown,
        };
        return Faults { discriminator: Some(fault), ..Faults::default() };
    };
    let selected = choice.selected.as_ref();
    let missing = selected.filter(|selected| !selected.optional && !new.members.contains(selected.index));
    Faults {
        blamed: new.members.less(choice.selected()),
        blame: Blame::NotSelected { unchanged: old.is_some_and(|old| old.value() == value) },
        missing: missing.map(|selected| selected.index),
        discriminator: None,
    }
}
