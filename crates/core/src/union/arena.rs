//! The arena of a projection: the unions of one object, as words.
//!
//! Nodes have no tags, because the plan knows the type of the node at each place. Texts are ranges of the body, or of a
//! buffer if they have escapes. `build` stores nodes, `state` has the
//! unions, `text` discriminators and keys.
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

pub(super) use build::object_head;
pub(super) use state::UnionState;
pub(crate) use text::LONGEST_TEXT;
pub(super) use text::{ScalarRef, TextRange};

use crate::meter::Buffer;
use state::{position_of, state_length};
use std::cmp::Ordering;
use text::ENTRY_HAS_NODE;

/// The end of a chain, or no node.
pub(super) const NONE: u32 = u32::MAX;

/// The bit in the first word of an object that is set if each of its fields is a member that is set.
const ONLY_MEMBERS: u32 = 1 << 15;

/// The number of words before the node of an item.
pub(super) const ITEM: u32 = 2;

/// The number of words before the node of an entry.
pub(super) const ENTRY: u32 = 3;

/// The arena.
#[derive(Debug)]
pub(crate) struct Arena<'a> {
    text: &'a str,
    side: Buffer<'a, u8>,
    words: Buffer<'a, u32>,
}

/// The items of a list or the entries of a map while they are stored. Each is linked to the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordChain {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl RecordChain {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// A node of the arena. The plan knows its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeRef<'s> {
    pub(super) arena: &'s Arena<'s>,
    pub(super) at: u32,
}

/// An object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRef<'s> {
    arena: &'s Arena<'s>,
    only_members: bool,
    keys: (u32, u32),
    states: (u32, u32),
    children: (u32, u32),
}

impl<'s> NodeRef<'s> {
    /// Returns true if the place stands for all fields of its counterpart in the new object. Only the fields that a manifest
    /// sets have such places.
    pub(super) fn is_whole(self) -> bool {
        self.arena.word(self.at) == NONE
    }

    pub(super) fn object(self) -> ObjectRef<'s> {
        let Self { arena, at } = self;
        debug_assert!(!self.is_whole(), "a whole place has no fields to read");
        let head = arena.word(at);
        let ([states, keys, children], only_members) = (counts(head), head & ONLY_MEMBERS != 0);
        let keys_at = at.saturating_add(1);
        let states_at = keys_at.saturating_add(3 * keys);
        let mut children_at = states_at;
        for _ in 0..states {
            children_at = children_at.saturating_add(state_length(arena.word(children_at)));
        }
        let (keys, states, children) = ((keys_at, keys), (states_at, states), (children_at, children));
        ObjectRef { arena, only_members, keys, states, children }
    }

    /// Returns the stored items of a list, with their positions in the text.
    pub(super) fn items(self) -> impl Iterator<Item = (u32, NodeRef<'s>)> {
        let Self { arena, at } = self;
        let item = move |at: u32| (arena.word(at.saturating_add(1)), NodeRef { arena, at: at.saturating_add(ITEM) });
        arena.chain(arena.word(at)).map(item)
    }

    /// Returns the number of stored items of a list.
    pub(super) fn count(self) -> usize {
        index(self.arena.word(self.at.saturating_add(1)))
    }

    /// Returns the stored entries of a map, by key.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'s str, NodeRef<'s>)> {
        let Self { arena, at } = self;
        let entry = move |at: u32| (arena.entry_key(at), NodeRef { arena, at: at.saturating_add(ENTRY) });
        arena.chain(arena.word(at)).map(entry)
    }
}

impl<'s> ObjectRef<'s> {
    /// Returns the unions with something set, by their position in the object.
    pub(super) fn states(self) -> impl Iterator<Item = (u8, UnionState<'s>)> {
        self.state_offsets().map(move |at| (position_of(self.arena.word(at)), self.arena.state(at)))
    }

    /// Returns the unions with something set, and those at these positions even if nothing of them is set. `required` is
    /// sorted.
    pub(super) fn states_with(self, mut required: &[u8]) -> impl Iterator<Item = (u8, UnionState<'s>)> {
        let mut set = self.state_offsets().map(move |at| (position_of(self.arena.word(at)), at));
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

    /// Returns the offsets of the states.
    pub(super) fn state_offsets(self) -> impl Iterator<Item = u32> {
        let (first, count) = self.states;
        let mut next = first;
        (0..count).map(move |_| {
            let at = next;
            next = next.saturating_add(state_length(self.arena.word(at)));
            at
        })
    }

    /// Returns the union at a position, even if nothing of it is set.
    pub(super) fn state(self, position: u8) -> UnionState<'s> {
        self.states().find(|(known, _)| *known == position).map(|(_, state)| state).unwrap_or_default()
    }

    /// Returns the fields that lead to nodes, by their position in the plan's node.
    pub(super) fn children(self) -> impl Iterator<Item = (u32, NodeRef<'s>)> {
        (0..self.children.1).map(move |number| self.child_at(number))
    }

    /// Returns the field at a position of the plan's node.
    pub(super) fn child(self, position: u32) -> Option<NodeRef<'s>> {
        let (mut low, mut high) = (0, self.children.1);
        while low < high {
            let middle = low.midpoint(high);
            let (known, shape) = self.child_at(middle);
            match known.cmp(&position) {
                Ordering::Equal => return Some(shape),
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns true if each field is a member that is set, so that the object is empty once all of them are cleared.
    pub(super) fn has_only_members(self) -> bool {
        self.only_members
    }

    /// Returns the offset behind the object.
    fn end(self) -> u32 {
        self.children.0.saturating_add(2 * self.children.1)
    }

    fn child_at(self, number: u32) -> (u32, NodeRef<'s>) {
        let at = self.children.0.saturating_add(2 * number);
        let arena = self.arena;
        (arena.word(at), NodeRef { arena, at: arena.word(at.saturating_add(1)) })
    }

    /// Returns the keys of a list item, with their position among the keys of the list. Empty if they do not identify the
    /// item.
    pub(super) fn keys(self) -> impl Iterator<Item = (u32, ScalarRef<'s>)> {
        let (first, count) = self.keys;
        (0..count).map(move |number| {
            let at = first.saturating_add(3 * number);
            (self.arena.word(at), self.arena.stored_scalar(at.saturating_add(1)))
        })
    }

    /// Returns true if two items have the same keys. An item that repeats another one has its words.
    pub(super) fn has_keys_of(self, other: ObjectRef<'_>) -> bool {
        let repeats = std::ptr::eq(self.arena, other.arena) && self.key_words() == other.key_words();
        repeats || self.keys().eq(other.keys())
    }

    fn key_words(self) -> &'s [u32] {
        let (first, count) = self.keys;
        let first = index(first);
        self.arena.words.get(first..first.saturating_add(index(3 * count))).unwrap_or_default()
    }

    /// Returns true if the keys identify the item. A missing key counts as a value, because the API server fills in
    /// defaults. An item without any key has no identity.
    pub(super) fn has_keys(self) -> bool {
        self.keys.1 > 0
    }
}

impl Arena<'_> {
    /// Returns true if the keys of the object at `at` identify it.
    pub(super) fn has_keys(&self, at: u32) -> bool {
        counts(self.word(at))[1] > 0
    }

    /// Returns the first item of a list.
    pub(super) fn first_item(&self, list: u32) -> Option<u32> {
        self.chain(self.word(list)).next()
    }

    /// Returns the item after another one.
    pub(super) fn next_item(&self, item: u32) -> Option<u32> {
        self.chain(item).nth(1)
    }

    /// Returns the offset of the text of an item of a keyed list, and its index.
    pub(super) fn origin(&self, item: u32) -> (usize, u32) {
        (index(self.word(item.saturating_sub(1))), self.word(item.saturating_add(1)))
    }

    pub(super) fn entry_key(&self, at: u32) -> &str {
        let stored = TextRange { offset: self.word(at.saturating_add(1)), tagged: self.word(at.saturating_add(2)) };
        match self.scalar(TextRange { tagged: stored.tagged & !ENTRY_HAS_NODE, ..stored }) {
            ScalarRef::Text(key) => key,
            ScalarRef::Absent | ScalarRef::Literal(_) | ScalarRef::Unfit => {
                debug_assert!(false, "a key of a map that is no text");
                ""
            }
        }
    }

    fn entry_has_node(&self, at: u32) -> bool {
        self.word(at.saturating_add(2)) & ENTRY_HAS_NODE != 0
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = u32> {
        let some = |at: u32| Some(at).filter(|at| *at != NONE);
        std::iter::successors(some(first), move |at| some(self.word(*at)))
    }

    fn word(&self, at: u32) -> u32 {
        let word = self.words.get(index(at));
        debug_assert!(word.is_some(), "offset {at} is outside the arena");
        word.copied().unwrap_or(NONE)
    }
}

fn counts(head: u32) -> [u32; 3] {
    [head & 0xff, head >> 8 & 0x7f, head >> 16]
}

fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
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
        assert_eq!(NodeRef { arena: &arena, at: 0 }.items().count(), 1);
    }

    #[test]
    fn the_last_item_ends_its_list() {
        let mut arena = Arena::new("", &Unmetered);
        arena.push(&[2, 1, NONE, 5]).unwrap();
        let items = NodeRef { arena: &arena, at: 0 }.items().map(|(index, _)| index);
        assert_eq!(items.collect::<Vec<_>>(), [5]);
    }
}
