//! Validation of a union as it will be stored.

use super::arena::{ScalarRef, UnionState};
use super::breach::{Breaches, DiscriminatorBreach};
use super::{Form, MemberSet, Union};

/// Returns true if neither normalisation nor validation finds anything in a union, whatever it was before and whatever a manifest sets
/// of it.
pub(super) fn is_settled(union: &Union, new: &UnionState<'_>) -> bool {
    if new.is_wrong_type() || !new.nulls.is_empty() {
        return false;
    }
    match (union.form, new.members.first()) {
        (Form::List, None) => !union.is_required(),
        (Form::List, Some(first)) => {
            let selects = |value: &str| union.values_of(first).first().is_some_and(|first| **first == *value);
            let agrees = match new.discriminator {
                ScalarRef::Text(value) => selects(value),
                ScalarRef::Absent | ScalarRef::Literal(_) | ScalarRef::Unfit => union.discriminator.is_none(),
            };
            agrees && new.members.less(union.group_of(first)).is_empty()
        }
        (Form::Map, _) => union.choice(new.value()).is_some_and(|choice| {
            new.members.less(choice.selected).is_empty() && choice.required.less(new.members).is_empty()
        }),
    }
}

/// Validates one union. `old` only tells which members were added and if the discriminator changed.
pub(super) fn validate(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Breaches {
    match union.form {
        Form::List if new.members.is_empty() => Breaches { none_set: union.is_required(), ..Breaches::default() },
        Form::List if union.go_together(new.members) => Breaches::default(),
        Form::List => Breaches::too_many(union, old, new.members),
        Form::Map => validate_map(union, old, new),
    }
}

/// Validates a union that is never normalised. Without normalisation a discriminator of the 2019 form is what the writer made
/// of it, so it must agree with the members.
pub(super) fn validate_alone(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Breaches {
    let value = new.value();
    if union.form == Form::Map || value.is_empty() || new.is_wrong_type() {
        return validate(union, old, new);
    }
    let selected = union.choice(value).map_or(MemberSet::EMPTY, |choice| choice.selected);
    let unchanged = old.is_some_and(|old| old.value() == value);
    let none_set = union.is_required() && new.members.is_empty();
    Breaches { none_set, ..Breaches::not_selected(new.members.less(selected), unchanged) }
}

/// Validates the 2022 form: the discriminator and the members must agree.
fn validate_map(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Breaches {
    let value = new.value();
    if new.is_wrong_type() || (new.is_unset() && !union.is_required()) {
        return Breaches::default();
    }
    let Some(choice) = union.choice(value) else {
        // Nothing tells which member was meant, so none is blamed.
        let fault = match new.members.first() {
            Some(first) if value.is_empty() => DiscriminatorBreach::Required(first),
            None if value.is_empty() => DiscriminatorBreach::ChoiceRequired,
            _ => DiscriminatorBreach::Unknown,
        };
        return Breaches { discriminator: Some(fault), ..Breaches::default() };
    };
    let unchanged = old.is_some_and(|old| old.value() == value);
    let missing = choice.required.less(new.members);
    Breaches { missing, ..Breaches::not_selected(new.members.less(choice.selected), unchanged) }
}
