//! Validation of a union as it will be stored.

use super::normalize::too_many;
use super::projection::State;
use super::violation::{Violation, ViolationKind};
use super::{Form, Union};
use crate::field_path::Trail;

/// The violations of one union whose object stands at `trail`. `old` as for normalisation: it only tells what was added and
/// whether the discriminator changed.
pub(super) fn validate(union: &Union, old: Option<&State<'_>>, new: &State<'_>, trail: &Trail<'_>) -> Vec<Violation> {
    match union.form {
        Form::List => validate_list(union, old, new, trail),
        Form::Map => validate_map(union, old, new, trail),
    }
}

/// The 2019 form: at most one member. "Exactly one" is the schema's business.
fn validate_list(union: &Union, old: Option<&State<'_>>, new: &State<'_>, trail: &Trail<'_>) -> Vec<Violation> {
    if new.members.len() < 2 {
        return Vec::new();
    }
    let violation = |(index, kind)| Violation { path: trail.field(union.member(index)), kind };
    too_many(union, old, new.members).into_iter().map(violation).collect()
}

/// The 2022 form: the discriminator and the members must say the same.
fn validate_map(union: &Union, old: Option<&State<'_>>, new: &State<'_>, trail: &Trail<'_>) -> Vec<Violation> {
    let Some(discriminator) = union.discriminator() else { return Vec::new() };
    let value = new.value();
    if new.is_wrong_type() || (value.is_empty() && new.members.is_empty()) {
        return Vec::new();
    }
    let Some(choice) = union.choice(value) else {
        // Which member was meant can't be told, so the members are not blamed.
        let kind = match new.members.first() {
            Some(first) if value.is_empty() => {
                ViolationKind::DiscriminatorRequired { member: union.member(first).into() }
            }
            _ => ViolationKind::UnknownValue {
                value: value.into(),
                supported: union
                    .choices()
                    .iter()
                    .map(|choice| choice.value.clone())
                    .filter(|value| !value.is_empty())
                    .collect(),
            },
        };
        return vec![Violation { path: trail.field(discriminator), kind }];
    };
    let unchanged = old.is_some_and(|old| old.value() == value);
    let not_selected = |index| Violation {
        path: trail.field(union.member(index)),
        kind: ViolationKind::NotSelected {
            discriminator: discriminator.into(),
            values: union.values_of(index).map(Into::into).collect(),
            unchanged,
        },
    };
    let mut violations: Vec<_> = new.members.less(choice.selected()).iter().map(not_selected).collect();
    if let Some(selected) = &choice.selected
        && !selected.optional
        && !new.members.contains(selected.index)
    {
        violations.push(Violation {
            path: trail.field(&selected.name),
            kind: ViolationKind::MemberRequired { discriminator: discriminator.into(), value: value.into() },
        });
    }
    violations
}
