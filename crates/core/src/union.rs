//! Unions: groups of fields of one object of which at most one is set.
//!
//! What flows through here: a [`Schema`](crate::schema::Schema) with its declarations is [compiled](compile()) once into a
//! [`Plan`]; for each request the plan is projected onto the JSON text of the new and the old object; the two
//! are walked side by side and every union is judged: normalised, validated, or both.
//!
//! The words are those of the proposals (KEP-1027 of 2019 and of 2022):
//! - a *member* is a field of the group; it is *set* when it is present and not null, whatever its value;
//! - the *discriminator* is a string field beside the members that tells which one counts; a *choice* is one of its values;
//! - an *empty member* is a choice that selects no field.
//!
//! Pure: text and schemas in, operations and violations out. May not know clusters, files or admission.

mod breach;
mod change;
mod compile;
mod correlate;
mod judge;
mod normalize;
mod plan;
mod projection;
mod shape;
mod validate;
mod violation;

pub use change::{Change, ChangeReason, Changes};
pub use compile::{Compiled, PlaceFault, PlaceFaultKind, compile};
pub use judge::LetThrough;
pub(crate) use judge::{Judgement, Rules, judge};
pub use plan::{Part, Plan};
pub(crate) use projection::{Projection, ProjectionSeed};
pub(crate) use shape::LONGEST_TEXT;
pub use violation::{Capped, MOST_VIOLATIONS, Violation, ViolationKind};

use crate::schema::{Action, Origin, Source};
use std::sync::Arc;

/// The two forms of `x-kubernetes-unions`. They differ in where they stand and in how they normalise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The form of 2019: a list on the object's schema, the discriminator is optional.
    List,
    /// The form of 2022: a map on the discriminator's property.
    Map,
}

/// A union, compiled: its members are fields of one object, its discriminator, if it has one, is a string beside them.
#[derive(Debug)]
pub struct Union {
    path: Box<str>,
    form: Form,
    source: Source,
    origin: Option<Origin>,
    action: Action,
    discriminator: Option<Arc<str>>,
    // INVARIANT: sorted, distinct, at most `MemberSet::CAPACITY`.
    members: Box<[Member]>,
    /// The values that are no empty string, sorted.
    supported: Arc<[Arc<str>]>,
    // INVARIANT: sorted by value, distinct; every `Selected::index` is a position in `members`.
    choices: Box<[Choice]>,
}

/// A field of the group.
#[derive(Debug)]
struct Member {
    name: Arc<str>,
    /// The values that select it, sorted.
    values: Arc<[Arc<str>]>,
}

/// A value of the discriminator and what it selects.
#[derive(Debug)]
pub struct Choice {
    value: Arc<str>,
    selected: Option<Selected>,
}

#[derive(Debug)]
struct Selected {
    index: u8,
    name: Box<str>,
    optional: bool,
}

impl Member {
    /// The member at a position, with the values of `choices` that select it.
    fn new(index: u8, name: &str, choices: &[Choice]) -> Self {
        let selects = |choice: &&Choice| choice.selected.as_ref().is_some_and(|selected| selected.index == index);
        let values = choices.iter().filter(selects).map(|choice| Arc::clone(&choice.value)).collect();
        Self { name: name.into(), values }
    }
}

impl Union {
    /// The object that holds it, as people write places: `spec.filters[*]`, the empty string for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The form it was declared in.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Where it was declared.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The name of the `UnionDeclaration` that declares it, where the source is one.
    pub fn declaration(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| &*origin.declaration)
    }

    /// What becomes of an object that it makes invalid.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The discriminator's name. Always there in the 2022 form.
    pub fn discriminator(&self) -> Option<&str> {
        self.discriminator.as_deref()
    }

    /// The members' names, sorted.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| &*member.name)
    }

    /// Every declared value, sorted. A union without a discriminator has one for each member too, as it was declared.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    fn choice(&self, value: &str) -> Option<&Choice> {
        let found = self.choices.binary_search_by(|choice| (*choice.value).cmp(value)).ok()?;
        self.choices.get(found)
    }

    /// The values that select a member.
    fn values_of(&self, index: u8) -> &[Arc<str>] {
        self.member(index).map_or(&[], |member| &*member.values)
    }

    fn member(&self, index: u8) -> Option<&Member> {
        self.members.get(usize::from(index))
    }

    fn member_name(&self, index: u8) -> &str {
        self.member(index).map_or("", |member| &*member.name)
    }
}

impl Choice {
    /// The discriminator's value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The member it selects; `None` is an empty member.
    pub fn member(&self) -> Option<&str> {
        self.selected.as_ref().map(|selected| &*selected.name)
    }

    /// Whether the member may be missing although it is selected. Always so in the 2019 form.
    pub fn optional(&self) -> bool {
        self.selected.as_ref().is_some_and(|selected| selected.optional)
    }

    fn selected(&self) -> MemberSet {
        self.selected.as_ref().map_or(MemberSet::EMPTY, |selected| MemberSet::of(selected.index))
    }
}

/// A set of members of one union, by their position in it.
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

    fn less(self, other: Self) -> Self {
        Self(self.0 & !other.0)
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

    /// The set as words, the lowest members first.
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

    /// The members of the set, in order.
    fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let index = rest.first()?;
            rest = rest.less(Self::of(index));
            Some(index)
        })
    }
}
