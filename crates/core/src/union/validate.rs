//! Validation of a union as it will be stored.

use super::breach::{Blame, Breaches, DiscriminatorBreach};
use super::shape::State;
use super::{Form, Union};

/// Validates one union. `old` as for normalisation: it only tells what was added and whether the discriminator changed.
pub(super) fn validate(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Breaches {
    match union.form {
        Form::List if new.members.len() < 2 => Breaches::default(),
        // At most one member. "Exactly one" is the schema's business.
        Form::List => Breaches::too_many(old, new.members),
        Form::Map => validate_map(union, old, new),
    }
}

/// The 2022 form: the discriminator and the members must say the same.
fn validate_map(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Breaches {
    let value = new.value();
    if new.is_wrong_type() || (value.is_empty() && new.members.is_empty()) {
        return Breaches::default();
    }
    let Some(choice) = union.choice(value) else {
        // Which member was meant can't be told, so the members are not blamed.
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
