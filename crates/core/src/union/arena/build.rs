//! Stores nodes in the arena.

use super::text::ENTRY_HAS_NODE;
use super::{Arena, NONE, NodeRef, ONLY_MEMBERS, RecordChain, TextRange, index};
use crate::meter::{Buffer, Exhausted, Meter};

impl<'a> Arena<'a> {
    pub(in crate::union) fn new(text: &'a str, meter: &'a dyn Meter) -> Self {
        Self { text, side: Buffer::new(meter), words: Buffer::new(meter) }
    }

    /// Returns the number of words, the offset of the next node.
    pub(in crate::union) fn end(&self) -> Result<u32, Exhausted> {
        u32::try_from(self.words.len()).ok().filter(|end| *end < NONE).ok_or(Exhausted)
    }

    pub(in crate::union) fn side_end(&self) -> usize {
        self.side.len()
    }

    /// Removes everything that was stored since the arena had this size.
    pub(in crate::union) fn truncate(&mut self, end: u32, side_end: usize) {
        self.words.truncate(index(end));
        self.side.truncate(side_end);
    }

    pub(in crate::union) fn push(&mut self, words: &[u32]) -> Result<(), Exhausted> {
        self.words.extend(words)
    }

    /// Begins an item. Its node must follow. `text` is the offset of its text if the list is keyed.
    pub(in crate::union) fn push_item(&mut self, index: u32, text: Option<usize>) -> Result<(), Exhausted> {
        if let Some(text) = text {
            self.push(&[u32::try_from(text).map_err(|_| Exhausted)?])?;
        }
        self.push(&[NONE, index])
    }

    /// Stores an object again. Both share their children.
    pub(in crate::union) fn push_again(&mut self, object: u32) -> Result<(), Exhausted> {
        let end = NodeRef { arena: self, at: object }.object().end();
        self.words.extend_from_within(index(object)..index(end))
    }

    /// Begins an entry. If `has_node` is true, its node must follow.
    pub(in crate::union) fn push_entry(&mut self, key: TextRange, has_node: bool) -> Result<(), Exhausted> {
        let flag = if has_node { ENTRY_HAS_NODE } else { 0 };
        self.push(&[NONE, key.offset, key.tagged | flag])
    }

    pub(in crate::union) fn push_key(&mut self, position: u32, key: TextRange) -> Result<(), Exhausted> {
        self.push(&[position, key.offset, key.tagged])
    }

    /// Appends an item or entry to a chain.
    pub(in crate::union) fn append(&mut self, chain: &mut RecordChain, at: u32) {
        if chain.last == NONE {
            chain.first = at;
        } else {
            self.link(chain.last, at);
        }
        chain.last = at;
    }

    fn link(&mut self, at: u32, next: u32) {
        let word = self.words.get_mut(index(at));
        debug_assert!(word.is_some(), "offset {at} is outside the arena");
        if let Some(word) = word {
            *word = next;
        }
    }

    /// Sorts entries by key. Those with the same key keep their order, which is that of their offsets.
    pub(in crate::union) fn sorted_entries(
        &mut self,
        chain: RecordChain,
        meter: &dyn Meter,
    ) -> Result<RecordChain, Exhausted> {
        let mut entries = Buffer::new(meter);
        for at in self.chain(chain.first) {
            entries.push(at)?;
        }
        entries.sort_unstable_by(|one, other| (self.entry_key(*one), one).cmp(&(self.entry_key(*other), other)));
        let mut sorted = RecordChain::EMPTY;
        for at in entries.iter().copied() {
            self.link(at, NONE);
            self.append(&mut sorted, at);
        }
        Ok(sorted)
    }

    /// Keeps the last entry of each key if it has a node. Entries with the same key follow each other, unless all keys are
    /// `distinct`. Returns the first entry.
    pub(in crate::union) fn settle_entries(&mut self, chain: RecordChain, distinct: bool) -> u32 {
        let mut kept = RecordChain::EMPTY;
        let mut at = chain.first;
        while at != NONE {
            let next = self.word(at);
            let replaced = !distinct && next != NONE && self.entry_key(next) == self.entry_key(at);
            if !replaced && self.entry_has_node(at) {
                self.link(at, NONE);
                self.append(&mut kept, at);
            }
            at = next;
        }
        kept.first
    }
}

/// Returns the first word of an object, `None` if the object has too many fields to count. `only_members` is true if each of its fields
/// is a member that is set.
pub(in crate::union) fn object_head(states: usize, keys: usize, children: usize, only_members: bool) -> Option<u32> {
    let states = u8::try_from(states).ok()?;
    let keys = u8::try_from(keys).ok().filter(|keys| *keys < 0x80)?;
    let children = u16::try_from(children).ok()?;
    let flag = if only_members { ONLY_MEMBERS } else { 0 };
    Some(u32::from(states) | u32::from(keys) << 8 | u32::from(children) << 16 | flag)
}
