//! The fields that manifests set, beside a walk over the object that they are applied to.
//!
//! An apply sends a manifest, and sends it again. A field that the manifest sets comes back at the next apply, so clearing it or
//! overwriting it has no end: a manifest that sets two members of a union contradicts itself. This module must not know where
//! manifests come from, or how an object is judged.

use super::arena::{NodeRef, ObjectRef, ScalarRef, UnionState};
use super::breach::{Breaches, ManifestBreach};
use super::correlate::{KeyMatch, KeyedItems};
use super::normalize::{ClearingCause, Normalized, normalize};
use super::projection::Projection;
use super::{Form, MemberSet, Union};
use crate::meter::{Exhausted, Meter};

/// The most field managers whose manifests are compared with the manifest of a request.
pub(crate) const MOST_OTHERS: usize = 4;

/// The number of manifests of a walk: that of the request, its predecessor, the updates of the same field manager, and those of other
/// field managers.
const MANIFESTS: usize = 3 + MOST_OTHERS;

/// The manifests of a request that is an apply, as they are found or as they are read.
#[derive(Debug)]
pub(crate) struct Manifests<T> {
    /// The fields that the manifest of the request sets.
    pub(crate) own: T,
    /// The fields that the same field manager set by its apply before, if there was one.
    pub(crate) earlier: Option<T>,
    /// The fields that the same field manager set by updates. They tell an update from an apply. `None` for a client-side apply, which
    /// is an update itself.
    pub(crate) updated: Option<T>,
    /// The fields that other field managers set by applies. More than [`MOST_OTHERS`] are not compared.
    pub(crate) others: Vec<T>,
    /// True for a server-side apply. Its manifest is known by owned fields, of which an empty list of owned items has none.
    pub(crate) server_side: bool,
}

impl<T> Manifests<T> {
    /// Reads each manifest. Leaves out those that cannot be read. Returns `None` if that of the request cannot be read.
    pub(crate) fn read<'t, R, E>(
        &'t self,
        mut read: impl FnMut(&'t T) -> Result<Option<R>, E>,
    ) -> Result<Option<Manifests<R>>, E> {
        let Some(own) = read(&self.own)? else { return Ok(None) };
        let [earlier, updated] = [&self.earlier, &self.updated].map(|one| one.as_ref().map(&mut read).transpose());
        let others = self.others.iter().filter_map(|other| read(other).transpose()).collect::<Result<_, _>>()?;
        let (earlier, updated) = (earlier?.flatten(), updated?.flatten());
        Ok(Some(Manifests { own, earlier, updated, others, server_side: self.server_side }))
    }
}

/// The part of a manifest that belongs to one place.
#[derive(Debug, Clone, Copy, Default)]
enum Claim<'m> {
    /// The manifest sets nothing here.
    #[default]
    Nothing,
    /// The manifest sets everything that the object has here.
    Whole,
    Part(NodeRef<'m>),
}

/// The parts of all manifests that belong to one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'m> {
    all: [Claim<'m>; MANIFESTS],
    server_side: bool,
}

/// The members of a union that an apply leaves in the new object although nobody chooses them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Residue {
    /// Members that are no choice beside others.
    pub(super) yielding: MemberSet,
    /// Members that are null and cannot be, and that the manifest does not set.
    pub(super) nulls: MemberSet,
}

impl Residue {
    pub(super) fn all(self) -> MemberSet {
        self.yielding.with(self.nulls)
    }
}

/// The parts of all manifests that belong to one union.
#[derive(Debug)]
pub(super) struct UnionClaims<'m> {
    own: UnionState<'m>,
    earlier: UnionState<'m>,
    updated: UnionState<'m>,
    others: [UnionState<'m>; MOST_OTHERS],
    server_side: bool,
}

impl<'m> Manifests<Projection<'m>> {
    /// Returns the parts at the root.
    pub(super) fn claims(&'m self) -> Claims<'m> {
        let known = [Some(&self.own), self.earlier.as_ref(), self.updated.as_ref()];
        let all = known.into_iter().chain(self.others.iter().map(Some));
        let mut claims = Claims { all: [Claim::Nothing; MANIFESTS], server_side: self.server_side };
        for (claim, manifest) in claims.all.iter_mut().zip(all) {
            *claim = manifest.and_then(Projection::root).map_or(Claim::Nothing, Claim::of);
        }
        claims
    }
}

impl<'m> Claim<'m> {
    fn of(value: NodeRef<'m>) -> Self {
        if value.is_whole() { Self::Whole } else { Self::Part(value) }
    }

    /// Returns the claim of a part of this place.
    fn inside(self, find: impl FnOnce(NodeRef<'m>) -> Option<NodeRef<'m>>) -> Self {
        match self {
            Self::Part(value) => find(value).map_or(Self::Nothing, Self::of),
            Self::Nothing | Self::Whole => self,
        }
    }

    fn state(self, union: u8, new: UnionState<'m>, server_side: bool) -> UnionState<'m> {
        match self {
            Self::Nothing => UnionState::default(),
            // It sets the nulls, too.
            Self::Whole => UnionState { members: new.members.with(new.nulls), ..new },
            Self::Part(value) => {
                let state = value.object().state(union);
                let empty_objects = state.unowned.less(state.members);
                let members = if server_side {
                    // `managedFields` lists an empty object, whether it counts as set or not, a null, and none of the other unowned values.
                    state.members.less(state.unowned).with(empty_objects).with(state.nulls)
                } else {
                    state.members
                };
                UnionState { members, unowned: empty_objects, ..state }
            }
        }
    }
}

impl<'m> Claims<'m> {
    /// Returns the claims of the field at a position of the plan's node.
    pub(super) fn child(&self, position: u32) -> Self {
        Self { all: self.all.map(|claim| claim.inside(|value| value.object().child(position))), ..*self }
    }

    /// Returns the claims of one of the object's unions. `new` is its state in the new object.
    pub(super) fn of_union(&self, union: u8, new: UnionState<'m>) -> UnionClaims<'m> {
        let server_side = self.server_side;
        let [own, earlier, updated, others @ ..] = self.all.map(|claim| claim.state(union, new, server_side));
        UnionClaims { own, earlier, updated, others, server_side }
    }
}

/// The claims of the items of a list with keys.
#[derive(Debug)]
pub(super) struct ItemClaims<'m> {
    lists: Claims<'m>,
    items: [Option<KeyedItems<'m>>; MANIFESTS],
}

impl<'m> ItemClaims<'m> {
    pub(super) fn new(lists: Claims<'m>, meter: &'m dyn Meter) -> Result<Self, Exhausted> {
        let mut items = [const { None }; MANIFESTS];
        for (items, claim) in items.iter_mut().zip(lists.all) {
            if let Claim::Part(list) = claim {
                *items = Some(KeyedItems::new(list, meter)?);
            }
        }
        Ok(Self { lists, items })
    }

    /// Returns the claims of the item that has the keys of `item`.
    pub(super) fn of(&self, item: ObjectRef<'_>) -> Claims<'m> {
        let mut claims = self.lists;
        for (claim, items) in claims.all.iter_mut().zip(&self.items) {
            *claim = match items.as_ref().map(|items| items.find(item)) {
                None => *claim,
                Some(KeyMatch::Once(value)) if value.object().is_whole() => Claim::Whole,
                Some(KeyMatch::Once(value)) => Claim::Part(value),
                Some(KeyMatch::Never | KeyMatch::Twice) => Claim::Nothing,
            };
        }
        claims
    }
}

/// Returns a function from ascending keys to the values of a map.
pub(super) fn map_values<'m>(map: Option<NodeRef<'m>>) -> impl FnMut(&str) -> Option<NodeRef<'m>> {
    let mut entries = map.into_iter().flat_map(NodeRef::entries).peekable();
    move |key| {
        while entries.next_if(|(known, _)| *known < key).is_some() {}
        entries.next_if(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// Returns a function from ascending keys to the claims of the values of a map.
pub(super) fn value_claims<'m>(maps: Claims<'m>) -> impl FnMut(&str) -> Claims<'m> {
    let mut values = maps.all.map(|claim| match claim {
        Claim::Part(map) => map_values(Some(map)),
        Claim::Nothing | Claim::Whole => map_values(None),
    });
    move |key| {
        let mut claims = maps;
        for (claim, values) in claims.all.iter_mut().zip(&mut values) {
            *claim = claim.inside(|_| values(key));
        }
        claims
    }
}

impl UnionClaims<'_> {
    /// Returns the members that an apply leaves in the new object although nobody chooses them.
    ///
    /// An empty list of owned items, or an object with nothing but such lists and defaults, has no owner, so `metadata.managedFields` does not
    /// tell if the manifest sets it. With a client-side apply, the API server puts defaults into an empty object that counts as not set. Such a
    /// member may have been cleared before, and come back. One that comes is no choice beside a value or a member that the manifest sets. If
    /// the manifest sets none, it is no choice beside any other member.
    pub(super) fn residue(&self, union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> Residue {
        if !union.is_normalized() || new.is_wrong_type() {
            return Residue::default();
        }
        let nulls = if self.server_side { new.nulls.less(self.own.members) } else { MemberSet::EMPTY };
        let added = old.map_or(MemberSet::EMPTY, |old| new.members.less(old.members)).less(self.own.members);
        let added = if self.server_side {
            added.less(self.updated.members).only(|index| union.is_ownerless(index))
        } else {
            added.both(self.own.unowned)
        };
        let yielding = if union.form == Form::Map || sets_value(union, &self.own, new) {
            added.less(union.choice(new.value()).map_or(MemberSet::EMPTY, |choice| choice.selected))
        } else {
            let own = self.own.members.both(new.members);
            let firm = if own.is_empty() { new.members } else { own };
            added.only(|index| !firm.less(union.group_of(index)).is_empty())
        };
        Residue { yielding, nulls }
    }

    /// Returns what the manifest of the request allows of a normalisation.
    pub(super) fn restrict(
        &self,
        union: &Union,
        old: Option<&UnionState<'_>>,
        new: &UnionState<'_>,
        normalized: Normalized,
    ) -> Normalized {
        let normalized = if self.value_is_a_default(union, old, new) {
            let unchanged = UnionState { members: old.map_or(MemberSet::EMPTY, |old| old.members), ..*new };
            let normalized = normalize(union, Some(&unchanged), new);
            if !normalized.contradictions.is_empty() {
                // A union that is created has no members that stand: the first one of the new object does.
                let contradictions = Breaches::too_many(union, old, new.members);
                return Normalized { contradictions, ..normalized };
            }
            normalized
        } else {
            normalized
        };
        let Normalized { clear, cause, deduce, .. } = normalized;
        if clear.is_empty() && deduce.is_none() {
            return normalized;
        }
        let clears_its_own = !clear.both(self.own.members).is_empty();
        let sets_value = sets_value(union, &self.own, new);
        let breaches = if (clears_its_own || (deduce.is_some() && sets_value))
            && let Some(breach) = self.contradiction(union, new)
        {
            Breaches { manifest: Some(breach), ..Breaches::default() }
        } else if clears_its_own && cause == Some(ClearingCause::DiscriminatorChanged) && !self.names_value() {
            Breaches::not_selected(clear.both(self.own.members), false)
        } else if let Some(breach) = self.contest(union, new, &normalized) {
            Breaches { manifest: Some(breach), ..Breaches::default() }
        } else if deduce.is_some() && sets_value {
            // The manifest sets another value, which comes back.
            return Normalized::default();
        } else {
            return normalized;
        };
        Normalized { contradictions: breaches, ..Normalized::default() }
    }

    /// Returns the contradiction of the manifest, if it sets fields of the union that may not be set together.
    pub(super) fn contradiction(&self, union: &Union, new: &UnionState<'_>) -> Option<ManifestBreach> {
        let set = self.own.members.both(new.members);
        if sets_value(union, &self.own, new) {
            let selected = union.choice(new.value()).map_or(MemberSet::EMPTY, |choice| choice.selected);
            let others = set.less(selected);
            return (!others.is_empty()).then_some(ManifestBreach::NotSelected(others));
        }
        (!union.go_together(set)).then_some(ManifestBreach::Several(set))
    }

    /// Returns true if the new value of the discriminator is a default in the 2019 form: nobody names it, and it does not select the
    /// member of the manifest. Then the members decide.
    fn value_is_a_default(&self, union: &Union, old: Option<&UnionState<'_>>, new: &UnionState<'_>) -> bool {
        let value = new.value();
        let is_new = !value.is_empty() && old.map_or("", UnionState::value) != value;
        let selected = union.choice(value).map_or(MemberSet::EMPTY, |choice| choice.selected);
        union.form == Form::List
            && union.discriminator.is_some()
            && is_new
            && !self.names_value()
            && !self.own.members.both(new.members).less(selected).is_empty()
    }

    /// Returns true if the field manager names the discriminator, in its manifest or in an update. Otherwise its new value is a default.
    fn names_value(&self) -> bool {
        [self.own, self.updated].iter().any(|state| state.discriminator != ScalarRef::Absent)
    }

    /// Returns the conflict of two manifests. A manifest that is applied again and finds its member replaced by that of another
    /// manifest does not ask for a switch: without an end, each would replace the other's.
    fn contest(&self, union: &Union, new: &UnionState<'_>, normalized: &Normalized) -> Option<ManifestBreach> {
        let member = match normalized.cause {
            Some(ClearingCause::MemberSet(member)) => member,
            Some(ClearingCause::DiscriminatorChanged) => return None,
            None => normalized.deduce?,
        };
        if !self.own.members.both(self.earlier.members).contains(member) {
            return None;
        }
        let others = self.others.iter().fold(MemberSet::EMPTY, |all, other| all.with(other.members));
        let cleared = normalized.clear.both(others);
        let overwrites = normalized.deduce.is_some() && self.others.iter().any(|other| sets_value(union, other, new));
        (!cleared.is_empty() || overwrites).then_some(ManifestBreach::Contested { member, others: cleared })
    }
}

/// Returns true if a manifest sets the discriminator to the value that the new object has, and that value is a choice.
fn sets_value(union: &Union, manifest: &UnionState<'_>, new: &UnionState<'_>) -> bool {
    let value = new.value();
    let sets = match manifest.discriminator {
        ScalarRef::Absent => false,
        ScalarRef::Text(set) => set == value,
        // The fields of a manifest can be known without their values.
        ScalarRef::Literal(_) | ScalarRef::Unfit => true,
    };
    sets && (!value.is_empty() || (union.form == Form::Map && union.choice(value).is_some()))
}
