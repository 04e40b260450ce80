//! Normalisation: derives the intention of a request, by the algorithm of the proposal that defined the form of the union.

use super::arena::{ScalarRef, UnionState};
use super::breach::Breaches;
use super::{Form, MemberSet, Union};

/// The result of normalising one union.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Normalized {
    /// The members to clear. All of them are set.
    pub(super) clear: MemberSet,
    /// The reason why they are cleared.
    pub(super) cause: Option<ClearingCause>,
    /// A member whose value the discriminator gets.
    pub(super) deduce: Option<u8>,
    /// Contradictions in the request. If there are any, nothing is cleared and nothing deduced.
    pub(super) contradictions: Breaches,
}

/// The user's change that clears other members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClearingCause {
    DiscriminatorChanged,
    MemberSet(u8),
}

/// Normalises one union. `old` is its counterpart, `None` if the union is new or has no known counterpart.
pub(super) fn normalize(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Normalized {
    // The schema rejects a discriminator of another type. Normalisation would hide the error.
    if new.is_wrong_type() {
        return Normalized::default();
    }
    match union.form {
        Form::List => normalize_list(union, old, new),
        Form::Map => normalize_map(union, old, new),
    }
}

/// The 2022 proposal, "Normalization": on update, a change of the discriminator wins.
fn normalize_map(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Normalized {
    let changed = old.is_some_and(|old| old.value() != new.value());
    match union.choice(new.value()) {
        Some(choice) if changed => Normalized {
            clear: new.members.less(choice.selected),
            cause: Some(ClearingCause::DiscriminatorChanged),
            ..Normalized::default()
        },
        _ => Normalized::default(),
    }
}

/// The 2019 proposal, "Normalizing on updates".
fn normalize_list(union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Normalized {
    let added = new.members.less(old.map_or(MemberSet::EMPTY, |old| old.members));
    let value = new.value();
    let changed = !value.is_empty() && old.map_or("", UnionState::value) != value;
    if changed && union.discriminator.is_some() {
        let selected = union.choice(value).map_or(MemberSet::EMPTY, |choice| choice.selected);
        if added.less(selected).is_empty() {
            return Normalized {
                clear: new.members.less(selected),
                cause: Some(ClearingCause::DiscriminatorChanged),
                ..Normalized::default()
            };
        }
        let contradictions = Breaches::not_selected(added.less(selected), false);
        return Normalized { contradictions, ..Normalized::default() };
    }
    let groups = |set| union.first_of_groups(set).len();
    match (groups(new.members), groups(added)) {
        (0, _) => Normalized::default(),
        (1, _) => Normalized { deduce: deduction(union, new, new.members), ..Normalized::default() },
        (_, 1) => Normalized {
            clear: new.members.less(added.first().map_or(MemberSet::EMPTY, |first| union.group_of(first))),
            cause: added.first().map(ClearingCause::MemberSet),
            deduce: deduction(union, new, added),
            ..Normalized::default()
        },
        _ => Normalized { contradictions: Breaches::too_many(union, old, new.members), ..Normalized::default() },
    }
}

/// Returns the member whose value the discriminator must get, `None` if it has that value.
fn deduction(union: &Union, new: &UnionState<'_>, members: MemberSet) -> Option<u8> {
    union.discriminator.as_ref()?;
    let index = members.first()?;
    let value = union.values_of(index).first()?;
    let stands = matches!(new.discriminator, ScalarRef::Text(text) if *text == **value);
    (!stands).then_some(index)
}
