//! The semantics of unions. A union is a table of the values of a discriminator and the fields of an object that each of them
//! selects. Fields that no value selects together may not be set together.
//!
//! A [`Schema`](crate::schema::Schema) with declarations is [compiled](compile()) once into a [`Plan`]. Each review
//! projects the plan onto the JSON text of the new and the old object, walks both side by side and judges every union: it
//! normalises the union, validates it, or both.
//!
//! The terms are those of the proposals (KEP-1027 of 2019 and 2022):
//! - a *member* is a field of the table; it is *set* if it is present and not null, whatever its value. The annotation and a
//!   `UnionDeclaration` may say of members that their empty values are not set;
//! - the *discriminator* is a string or boolean field next to the members whose value selects those that count; a *choice* is
//!   one of its values;
//! - an *empty member* is a choice that selects no field;
//! - a *group* of the 2019 form is the members with the same value, mostly one.
//!
//! This module must not know clusters, files or admission. Start reading at [`compile`](compile()) and at `judge`.

mod arena;
mod breach;
mod change;
mod compile;
mod correlate;
mod judge;
mod manifest;
mod normalize;
mod places;
mod plan;
mod projection;
mod validate;
mod violation;

pub(crate) use arena::{Arena, LONGEST_TEXT};
pub use change::{Change, ChangeReason};
pub(crate) use compile::not_beside;
pub use compile::{Compiled, PlaceFault, compile};
pub use judge::LetThrough;
pub(crate) use judge::{Judgement, Objects, Rules, judge};
pub(crate) use manifest::{MOST_OTHERS, Manifests};
pub use places::{ItemKey, UnionPlace, UnionStep, have_same_unions};
pub use plan::{Part, Plan};
pub use projection::is_empty_value;
pub(crate) use projection::{Projected, Projection, Projector};
pub use violation::{Capped, MOST_VIOLATIONS, Violation, ViolationKind};

pub use crate::schema::Form;
use crate::schema::{Actions, Normalization, Origin, Source, Unowned};
use std::sync::Arc;

/// A compiled union. Its members, and its discriminator if it has one, are fields of the same object.
#[derive(Debug)]
pub struct Union {
    path: Box<str>,
    form: Form,
    source: Source,
    origin: Option<Origin>,
    /// The unions of `UnionDeclaration`s that declare the same.
    repeated_by: Box<[Origin]>,
    actions: Actions,
    normalization: Normalization,
    /// The names of the members, if an object must have a choice.
    required: Option<Arc<[Arc<str>]>>,
    discriminator: Option<Arc<str>>,
    /// True if the discriminator is a boolean. Its values are `"true"` and `"false"`.
    boolean: bool,
    /// True if the schema says that the discriminator may be null.
    nullable_discriminator: bool,
    // INVARIANT: sorted, distinct, at most `MemberSet::CAPACITY`.
    members: Box<[Member]>,
    /// The values of the discriminator except the empty string, sorted.
    supported: Arc<[Arc<str>]>,
    // INVARIANT: sorted by value, distinct; every index of a `MemberSet` is a position in `members`.
    choices: Box<[Choice]>,
    /// True if the schema describes the discriminator and the members.
    typed: bool,
}

/// A member of a union.
#[derive(Debug)]
struct Member {
    name: Arc<str>,
    /// The discriminator values that select the member, sorted.
    values: Arc<[Arc<str>]>,
    /// In the 2019 form: the members of the same value.
    group: MemberSet,
    /// True if an empty value counts as not set.
    empty_is_unset: bool,
    /// True if the member may be null.
    nullable: bool,
    /// The value that leaves no trace in `metadata.managedFields`, if there is one.
    unowned: Option<Arc<Unowned>>,
}

/// A value of the discriminator, and the members that it selects.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    value: Arc<str>,
    // INVARIANT: sorted by name, distinct.
    members: Box<[SelectedMember]>,
    selected: MemberSet,
    /// The members that must be set while the value selects them.
    required: MemberSet,
}

/// A member that a value of the discriminator selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedMember {
    name: Box<str>,
    optional: bool,
}

impl Member {
    /// Returns the member at a position, with the values of `choices` that select it.
    fn new(index: u8, name: &str, choices: &[Choice], empty_is_unset: bool) -> Self {
        let selecting = || choices.iter().filter(|choice| choice.selected.contains(index));
        let values = selecting().map(|choice| Arc::clone(&choice.value)).collect();
        let group = selecting().next().map_or(MemberSet::of(index), |choice| choice.selected);
        Self { name: name.into(), values, group, empty_is_unset, nullable: false, unowned: None }
    }
}

impl Union {
    /// Returns the place of the object with the union, for example `spec.filters[*]`. Empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the form of the declaration.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the source of the declaration.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Returns the unions of `UnionDeclaration`s that this one comes from, and those that declare the same.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.origin.iter().chain(&self.repeated_by)
    }

    /// Returns the name of the `UnionDeclaration`, if the source is one.
    pub fn declaration(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| &*origin.declaration)
    }

    /// Returns the treatment of an object that violates the union.
    pub fn actions(&self) -> Actions {
        self.actions
    }

    /// Returns the treatment of an object that normalisation would change.
    pub fn normalization(&self) -> Normalization {
        self.normalization
    }

    /// Returns true if objects are normalised, false if they are only judged.
    pub fn is_normalized(&self) -> bool {
        self.normalization.is_enabled()
    }

    /// Returns true if an object must have a choice: a member, or in the 2022 form a value that selects none.
    pub fn is_required(&self) -> bool {
        self.required.is_some()
    }

    /// Returns the members that count as not set if they are `false`, zero, `""`, `{}` or `[]`, sorted.
    pub fn empty_is_unset(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.empty_is_unset).map(|member| &*member.name)
    }

    /// Returns true for a member whose empty values count as not set.
    fn is_unset_when_empty(&self, index: u8) -> bool {
        self.member(index).is_some_and(|member| member.empty_is_unset)
    }

    /// Returns the members that can have a value which nobody owns, sorted.
    pub fn ownerless(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.unowned.is_some()).map(|member| &*member.name)
    }

    /// Returns true for a member that can have a value which nobody owns.
    fn is_ownerless(&self, index: u8) -> bool {
        self.member(index).is_some_and(|member| member.unowned.is_some())
    }

    /// Returns the members that may be null, which counts as not set, sorted.
    pub fn nullable_members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.nullable).map(|member| &*member.name)
    }

    /// Returns true if the schema describes the discriminator and the members. Otherwise they may have any value.
    pub(crate) fn is_typed(&self) -> bool {
        self.typed
    }

    /// Returns the name of the discriminator. A union of the 2022 form always has one.
    pub fn discriminator(&self) -> Option<&str> {
        self.discriminator.as_deref()
    }

    /// Returns true if the discriminator is a boolean, with the values `"true"` and `"false"`.
    pub fn is_boolean(&self) -> bool {
        self.boolean
    }

    /// Returns true if the schema says that the discriminator may be null, which is no value.
    pub fn has_nullable_discriminator(&self) -> bool {
        self.nullable_discriminator
    }

    /// Returns true if a value selects several members.
    pub fn has_groups(&self) -> bool {
        self.choices.iter().any(|choice| choice.members.len() > 1)
    }

    /// Returns the groups of the 2019 form, in the order of their first members.
    pub fn groups(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        let firsts = (0_u8..).zip(&self.members).filter(|(index, member)| member.group.first() == Some(*index));
        firsts.map(|(_, member)| member.group.iter().map(|index| self.member_name(index)))
    }

    /// Returns the names of the members, sorted.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| &*member.name)
    }

    /// Returns the choices, sorted by value. A union without a discriminator has them as well, one for each member.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    fn choice(&self, value: &str) -> Option<&Choice> {
        let found = self.choices.binary_search_by(|choice| (*choice.value).cmp(value)).ok()?;
        self.choices.get(found)
    }

    /// Returns the first member of each group of the 2019 form that has a member in a set.
    fn first_of_groups(&self, set: MemberSet) -> MemberSet {
        let (mut rest, mut firsts) = (set, MemberSet::EMPTY);
        while let Some(first) = rest.first() {
            firsts = firsts.with(MemberSet::of(first));
            rest = rest.less(self.group_of(first).with(MemberSet::of(first)));
        }
        firsts
    }

    /// Returns the members of the 2019 form with the same value as this one.
    fn group_of(&self, index: u8) -> MemberSet {
        self.member(index).map_or(MemberSet::EMPTY, |member| member.group)
    }

    /// Returns true if one value selects all members of a set.
    fn go_together(&self, set: MemberSet) -> bool {
        set.len() < 2 || self.choices.iter().any(|choice| set.less(choice.selected).is_empty())
    }

    /// Returns the values that select a member.
    fn values_of(&self, index: u8) -> &[Arc<str>] {
        self.member(index).map_or(&[], |member| &*member.values)
    }

    fn member(&self, index: u8) -> Option<&Member> {
        let member = self.members.get(usize::from(index));
        debug_assert!(member.is_some(), "member {index} is outside its union");
        member
    }

    fn member_name(&self, index: u8) -> &str {
        self.member(index).map_or("", |member| &*member.name)
    }
}

impl Choice {
    /// Returns the value of the discriminator.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the members that the value selects, sorted by name. None for an empty member.
    pub fn members(&self) -> &[SelectedMember] {
        &self.members
    }

    /// Returns the member that the value selects.
    pub fn selected(&self, member: &str) -> Option<&SelectedMember> {
        self.members.iter().find(|selected| &*selected.name == member)
    }
}

impl SelectedMember {
    /// Returns the name of the member.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the member may be missing while it is selected. Always true in the 2019 form.
    pub fn is_optional(&self) -> bool {
        self.optional
    }
}

/// A set of members of a union, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct MemberSet(u128);

impl MemberSet {
    const CAPACITY: usize = 128;
    const EMPTY: Self = Self(0);

    fn of(index: u8) -> Self {
        Self(1_u128.checked_shl(u32::from(index)).unwrap_or(0))
    }

    fn put(&mut self, index: u8, present: bool) {
        *self = if present { Self(self.0 | Self::of(index).0) } else { self.less(Self::of(index)) };
    }

    fn contains(self, index: u8) -> bool {
        self.0 & Self::of(index).0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn less(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn only(self, keep: impl Fn(u8) -> bool) -> Self {
        self.iter().filter(|index| keep(*index)).map(Self::of).fold(Self::EMPTY, Self::with)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn len(self) -> u32 {
        self.0.count_ones()
    }

    fn first(self) -> Option<u8> {
        (!self.is_empty()).then(|| u8::try_from(self.0.trailing_zeros()).unwrap_or(u8::MAX))
    }

    /// Returns the set as words, the lowest members first.
    fn words(self) -> [u32; 4] {
        let bytes = self.0.to_le_bytes();
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        words
    }

    fn from_words(words: [u32; 4]) -> Self {
        Self(words.into_iter().rev().fold(0, |set, word| set << 32 | u128::from(word)))
    }

    /// Returns the members in ascending order.
    fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let index = rest.first()?;
            rest = rest.less(Self::of(index));
            Some(index)
        })
    }
}
