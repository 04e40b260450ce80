//! Normalisation: what a request must have meant, by the algorithm of the proposal that defined the union's form.

use super::breach::{Blame, Breaches};
use super::shape::{Scalar, State};
use super::{Form, MemberSet, Union};

/// What normalisation makes of one union.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Normalized {
    /// The members to clear; all of them are set.
    pub(super) clear: MemberSet,
    /// Why they are cleared, and what the discriminator becomes.
    pub(super) cause: Option<Cause>,
    /// The member whose value the discriminator is set to.
    pub(super) deduce: Option<u8>,
    /// Members that the request can't have meant. Then nothing is cleared and nothing deduced.
    pub(super) contradictions: Breaches,
}

/// What the user did that clears other members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    DiscriminatorChanged,
    MemberSet(u8),
}

/// Normalises one union. `old` is what it was before, `None` where it did not exist or nothing tells which one it was.
pub(super) fn normalize(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Normalized {
    // A discriminator that is a number, say, is the schema's to refuse; to act on it would hide that.
    if new.is_wrong_type() {
        return Normalized::default();
    }
    match union.form {
        Form::List => normalize_list(union, old, new),
        Form::Map => normalize_map(union, old, new),
    }
}

/// The 2022 proposal, "Normalization": on update, a discriminator that was changed is respected.
fn normalize_map(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Normalized {
    let changed = old.is_some_and(|old| old.value() != new.value());
    match union.choice(new.value()) {
        Some(choice) if changed => Normalized {
            clear: new.members.less(choice.selected()),
            cause: Some(Cause::DiscriminatorChanged),
            ..Normalized::default()
        },
        _ => Normalized::default(),
    }
}

/// The 2019 proposal, "Normalizing on updates".
fn normalize_list(union: &Union, old: Option<&State<'_>>, new: &State<'_>) -> Normalized {
    let added = new.members.less(old.map_or(MemberSet::EMPTY, |old| old.members));
    let value = new.value();
    let changed = !value.is_empty() && old.map_or("", State::value) != value;
    if changed && union.discriminator.is_some() {
        let selected = union.choice(value).map_or(MemberSet::EMPTY, super::Choice::selected);
        if added.less(selected).is_empty() {
            return Normalized {
                clear: new.members.less(selected),
                cause: Some(Cause::DiscriminatorChanged),
                ..Normalized::default()
            };
        }
        let blamed = added.less(selected);
        let contradictions = Breaches { blamed, blame: Blame::NotSelected { unchanged: false }, ..Breaches::default() };
        return Normalized { contradictions, ..Normalized::default() };
    }
    match (new.members.len(), added.len()) {
        (0, _) => Normalized::default(),
        (1, _) => Normalized { deduce: deduction(union, new, new.members), ..Normalized::default() },
        (_, 1) => Normalized {
            clear: new.members.less(added),
            cause: added.first().map(Cause::MemberSet),
            deduce: deduction(union, new, added),
            ..Normalized::default()
        },
        _ => Normalized { contradictions: Breaches::too_many(old, new.members), ..Normalized::default() },
    }
}

/// The member whose value the discriminator must take, if it has another one.
fn deduction(union: &Union, new: &State<'_>, members: MemberSet) -> Option<u8> {
    union.discriminator.as_ref()?;
    let index = members.first()?;
    let value = union.values_of(index).first()?;
    let stands = matches!(new.discriminator, Scalar::Text(text) if *text == **value);
    (!stands).then_some(index)
}
