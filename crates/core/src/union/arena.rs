//! The arena of a projection: the unions of one object, as words.
//!
//! Nodes have no tags, because the plan knows the type of the node at each place. Texts are ranges of the body, or of a
//! buffer if they have escapes. `build` stores nodes, `state` has the unions, `text` discriminators and keys, `word` the offsets.
//!
//! | node | words |
//! |---|---|
//! | object | counts of states, keys and children, and a bit; keys; states; children as (position, node) |
//! | list | the first item, the number of items |
//! | item | the next item, the index; then the node. Before it, if the list is keyed, the offset of its text |
//! | map | the first entry; entries are sorted by key, distinct |
//! | entry | the next entry, the key; then the node |
//! | whole object, list or map | `NONE` |
//!
//! INVARIANT: every offset that a node holds is one of a word of the arena. A broken one would read as a part that is absent,
//! and let an invalid object pass, so that builds with debug assertions check each read.

mod build;
mod state;
mod text;
mod word;

pub(super) use state::UnionState;
pub(crate) use text::LONGEST_TEXT;
pub(super) use text::{ScalarRef, TextRange};
pub(super) use word::{KeyedNode, NodeAt, ObjectCounts, RecordChain, StateAt};

use crate::meter::Buffer;
use std::cmp::Ordering;
use word::{ENTRY, ITEM, NONE, PartRun, RecordAt, index};

#[derive(Debug)]
pub(crate) struct Arena<'a> {
    text: &'a str,
    buffer: Buffer<'a, u8>,
    words: Buffer<'a, u32>,
}

/// A node of the arena. The plan knows its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeRef<'s> {
    pub(super) arena: &'s Arena<'s>,
    pub(super) at: NodeAt,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRef<'s> {
    arena: &'s Arena<'s>,
    counts: ObjectCounts,
    keys: PartRun<3>,
    states: StateAt,
    children: PartRun<2>,
}

impl<'s> NodeRef<'s> {
    /// Returns true if the place stands for all fields of its counterpart in the new object. Only the fields that a manifest
    /// sets have such places.
    pub(super) fn is_whole(self) -> bool {
        self.arena.word(self.at.0, 0) == NONE
    }

    pub(super) fn object(self) -> ObjectRef<'s> {
        let Self { arena, at } = self;
        debug_assert!(!self.is_whole(), "a whole place has no fields to read");
        let counts = arena.counts(at);
        let keys = PartRun { first: at.0.saturating_add(1), count: counts.keys() };
        let states = StateAt(keys.end());
        let StateAt(behind) = (0..counts.states()).fold(states, |at, _| arena.behind_state(at));
        ObjectRef { arena, counts, keys, states, children: PartRun { first: behind, count: counts.children() } }
    }

    /// Returns the stored items of a list, with their positions in the text.
    pub(super) fn items(self) -> impl Iterator<Item = (u32, NodeRef<'s>)> {
        let Self { arena, at } = self;
        let item = move |item: RecordAt<ITEM>| (arena.item_index(item), NodeRef { arena, at: item.node() });
        arena.chain(arena.first_record(at)).map(item)
    }

    /// Returns the number of stored items of a list.
    pub(super) fn count(self) -> usize {
        index(self.arena.word(self.at.0, 1))
    }

    /// Returns the stored entries of a map, by key.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'s str, NodeRef<'s>)> {
        let Self { arena, at } = self;
        let entry = move |entry: RecordAt<ENTRY>| (arena.entry_key(entry), NodeRef { arena, at: entry.node() });
        arena.chain(arena.first_record(at)).map(entry)
    }
}

impl<'s> ObjectRef<'s> {
    /// Returns the unions with something set, by their position in the object.
    pub(super) fn states(self) -> impl Iterator<Item = (u8, UnionState<'s>)> {
        self.state_offsets().map(move |(position, at)| (position, self.arena.state(at)))
    }

    /// Returns the unions with something set, and those at these positions even if nothing of them is set. `required` is
    /// sorted.
    pub(super) fn states_with(self, mut required: &[u8]) -> impl Iterator<Item = (u8, UnionState<'s>)> {
        let mut set = self.state_offsets();
        let mut next = set.next();
        std::iter::from_fn(move || {
            if let Some((position, rest)) = required.split_first()
                && next.is_none_or(|(next, _)| *position <= next)
            {
                required = rest;
                if next.is_none_or(|(next, _)| *position < next) {
                    return Some((*position, UnionState::default()));
                }
            }
            let (position, at) = next?;
            next = set.next();
            Some((position, self.arena.state(at)))
        })
    }

    /// Returns the unions with something set and the offsets of their states.
    pub(super) fn state_offsets(self) -> impl Iterator<Item = (u8, StateAt)> {
        let Self { arena, counts, states: mut next, .. } = self;
        (0..counts.states()).map(move |_| {
            let at = next;
            next = arena.behind_state(at);
            (arena.state_head(at).position(), at)
        })
    }

    /// Returns the union at a position, even if nothing of it is set.
    pub(super) fn state(self, position: u8) -> UnionState<'s> {
        self.states().find(|(known, _)| *known == position).map(|(_, state)| state).unwrap_or_default()
    }

    /// Returns the fields that lead to nodes, by their position in the plan's node.
    pub(super) fn children(self) -> impl Iterator<Item = (u32, NodeRef<'s>)> {
        (0..self.children.count).map(move |number| self.child_at(number))
    }

    /// Returns the field at a position of the plan's node.
    pub(super) fn child(self, position: u32) -> Option<NodeRef<'s>> {
        let (mut low, mut high) = (0, self.children.count);
        while low < high {
            let middle = low.midpoint(high);
            let (known, child) = self.child_at(middle);
            match known.cmp(&position) {
                Ordering::Equal => return Some(child),
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns true if the item stands for all fields of its counterpart in the new object, but for its keys. Only the items of a
    /// manifest do.
    pub(super) fn is_whole(self) -> bool {
        self.counts.is_whole()
    }

    /// Returns true if each field is a member that is set, so that the object is empty once all of them are cleared.
    pub(super) fn has_only_members(self) -> bool {
        self.counts.has_only_members()
    }

    /// Returns the offset behind the object.
    fn end(self) -> u32 {
        self.children.end()
    }

    fn child_at(self, number: u32) -> (u32, NodeRef<'s>) {
        let Self { arena, children, .. } = self;
        let at = children.at(number);
        (arena.word(at, 0), NodeRef { arena, at: NodeAt(arena.word(at, 1)) })
    }

    /// Returns the keys of a list item, with their position among the keys of the list. Empty if they do not identify the
    /// item.
    pub(super) fn keys(self) -> impl Iterator<Item = (u32, ScalarRef<'s>)> {
        let Self { arena, keys, .. } = self;
        (0..keys.count).map(move |number| {
            let at = keys.at(number);
            (arena.word(at, 0), arena.scalar(arena.text_range(at, 1)))
        })
    }

    /// Returns true if two items have the same keys. An item that repeats another one has its words.
    pub(super) fn has_keys_of(self, other: ObjectRef<'_>) -> bool {
        let repeats = std::ptr::eq(self.arena, other.arena) && self.key_words() == other.key_words();
        repeats || self.keys().eq(other.keys())
    }

    fn key_words(self) -> &'s [u32] {
        self.arena.words.get(index(self.keys.first)..index(self.keys.end())).unwrap_or_default()
    }

    /// Returns true if the keys identify the item. A missing key counts as a value, because the API server fills in
    /// defaults. An item without any key has no identity.
    pub(super) fn has_keys(self) -> bool {
        self.keys.count > 0
    }
}

impl Arena<'_> {
    /// Returns true if the keys of an object identify it.
    pub(super) fn has_keys(&self, object: NodeAt) -> bool {
        self.counts(object).keys() > 0
    }

    fn counts(&self, object: NodeAt) -> ObjectCounts {
        ObjectCounts(self.word(object.0, 0))
    }

    /// Returns the first item of a list or entry of a map.
    pub(super) fn first_record<const N: u32>(&self, node: NodeAt) -> Option<RecordAt<N>> {
        RecordAt::from_link(self.word(node.0, 0))
    }

    /// Returns the item or entry after another one.
    pub(super) fn next_record<const N: u32>(&self, record: RecordAt<N>) -> Option<RecordAt<N>> {
        RecordAt::from_link(self.word(record.0, 0))
    }

    fn chain<const N: u32>(&self, first: Option<RecordAt<N>>) -> impl Iterator<Item = RecordAt<N>> {
        std::iter::successors(first, |record| self.next_record(*record))
    }

    /// Returns the offset of the text of an item of a keyed list.
    pub(super) fn item_text(&self, item: RecordAt<ITEM>) -> usize {
        index(self.word(item.0.saturating_sub(1), 0))
    }

    /// Returns the position of an item in the text of its list.
    pub(super) fn item_index(&self, item: RecordAt<ITEM>) -> u32 {
        self.word(item.0, 1)
    }

    pub(super) fn entry_key(&self, entry: RecordAt<ENTRY>) -> &str {
        match self.scalar(self.text_range(entry.0, 1)) {
            ScalarRef::Text(key) => key,
            ScalarRef::Absent | ScalarRef::Literal(_) | ScalarRef::Unfit => {
                debug_assert!(false, "a key of a map that is no text");
                ""
            }
        }
    }

    fn entry_has_node(&self, entry: RecordAt<ENTRY>) -> bool {
        self.text_range(entry.0, 1).is_before_node()
    }

    /// Returns the word that is this number of words after an offset.
    fn word(&self, at: u32, number: u32) -> u32 {
        let at = at.saturating_add(number);
        let word = self.words.get(index(at));
        debug_assert!(word.is_some(), "offset {at} is outside the arena");
        word.copied().unwrap_or(NONE)
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::meter::Unmetered;

    #[test]
    #[should_panic(expected = "outside the arena")]
    fn a_broken_offset_does_not_read_as_an_absent_part() {
        let mut arena = Arena::new("", &Unmetered);
        arena.push(&[7, 1]).unwrap();
        assert_eq!(NodeRef { arena: &arena, at: NodeAt(0) }.items().count(), 1);
    }

    #[test]
    fn the_last_item_ends_its_list() {
        let mut arena = Arena::new("", &Unmetered);
        arena.push(&[2, 1, NONE, 5]).unwrap();
        let items = NodeRef { arena: &arena, at: NodeAt(0) }.items().map(|(index, _)| index);
        assert_eq!(items.collect::<Vec<_>>(), [5]);
    }
}
