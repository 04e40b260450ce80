//! Validation of a union as it will be stored.

use super::breach::{Blame, Breaches, DiscriminatorBreach};
use super::shape::UnionState;
use super::{Form, Union};

/// Validates one union. `old` only tells which members were added and if the discriminator changed.
pub(super) fn validate(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Breaches {
    match union.form {
        Form::List if new.members.len() < 2 => Breaches::default(),
        // A union has at most one member. The schema may require exactly one.
        Form::List => Breaches::too_many(old, new.members),
        Form::Map => validate_map(union, old, new),
    }
}

/// Validates the 2022 form: the discriminator and the members must agree.
fn validate_map(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Breaches {
    let value = new.value();
    if new.is_wrong_type() || (value.is_empty() && new.members.is_empty()) {
        return Breaches::default();
    }
    let Some(choice) = union.choice(value) else {
        // Nothing tells which member was meant, so none is blamed.
        let fault = match new.members.first() {
            Some(first) if value.is_empty() => DiscriminatorBreach::Required(first),
            _ => DiscriminatorBreach::Unknown,
        };
        return Breaches { discriminator: Some(fault), ..Breaches::default() };
    };
    let selected = choice.selected.as_ref();
    let missing = selected.filter(|selected| !selected.optional && !new.members.contains(selected.index));
    Breaches {
        blamed: new.members.less(choice.selected()),
        blame: Blame::NotSelected { unchanged: old.is_some_and(|old| old.value() == value) },
        missing: missing.map(|selected| selected.index),
        discriminator: None,
    }
}
