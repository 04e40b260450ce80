//! Stores nodes in the arena.

use super::word::{ENTRY, ITEM, NONE, NodeAt, ObjectCounts, RecordAt, RecordChain, index};
use super::{Arena, NodeRef, TextRange};
use crate::meter::{Buffer, Exhausted, Meter};

#[derive(Clone, Copy)]
pub(crate) struct ArenaSize {
    words: usize,
    buffer: usize,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(text: &'a str, meter: &'a dyn Meter) -> Self {
        Self { text, buffer: Buffer::new(meter), words: Buffer::new(meter) }
    }

    /// Returns the offset of the next node.
    pub(crate) fn end(&self) -> Result<NodeAt, Exhausted> {
        u32::try_from(self.words.len()).ok().filter(|end| *end < NONE).map(NodeAt).ok_or(Exhausted)
    }

    pub(crate) fn size(&self) -> ArenaSize {
        ArenaSize { words: self.words.len(), buffer: self.buffer.len() }
    }

    /// Removes everything that was stored since the arena had this size.
    pub(crate) fn truncate(&mut self, size: ArenaSize) {
        self.words.truncate(size.words);
        self.buffer.truncate(size.buffer);
    }

    pub(super) fn push(&mut self, words: &[u32]) -> Result<(), Exhausted> {
        self.words.extend(words)
    }

    /// Stores an object, list or map that is whole.
    pub(crate) fn push_whole(&mut self) -> Result<(), Exhausted> {
        self.push(&[NONE])
    }

    /// Stores a list, given by its items and their number.
    pub(crate) fn push_list(&mut self, first: RecordAt<ITEM>, count: u32) -> Result<(), Exhausted> {
        self.push(&[first.0, count])
    }

    /// Stores a map, given by its entries.
    pub(crate) fn push_map(&mut self, first: RecordAt<ENTRY>) -> Result<(), Exhausted> {
        self.push(&[first.0])
    }

    /// Begins an item. Its node must follow. `text` is the offset of its text if the list is keyed.
    pub(crate) fn push_item(&mut self, index: u32, text: Option<usize>) -> Result<(), Exhausted> {
        if let Some(text) = text {
            self.push(&[u32::try_from(text).map_err(|_| Exhausted)?])?;
        }
        self.push(&[NONE, index])
    }

    /// Begins an entry. Its node must follow if the key says so.
    pub(crate) fn push_entry(&mut self, key: TextRange) -> Result<(), Exhausted> {
        let [offset, tagged] = key.words();
        self.push(&[NONE, offset, tagged])
    }

    /// Begins an object. Its keys, states and children must follow.
    pub(crate) fn push_object(&mut self, counts: ObjectCounts) -> Result<(), Exhausted> {
        self.push(&[counts.0])
    }

    pub(crate) fn push_key(&mut self, position: u32, key: TextRange) -> Result<(), Exhausted> {
        let [offset, tagged] = key.words();
        self.push(&[position, offset, tagged])
    }

    pub(crate) fn push_child(&mut self, position: u32, node: Option<NodeAt>) -> Result<(), Exhausted> {
        debug_assert!(node.is_some(), "a field without a node is dropped before");
        self.push(&[position, node.map_or(NONE, |node| node.0)])
    }

    /// Stores an object again. Both share their children.
    pub(crate) fn push_again(&mut self, object: NodeAt) -> Result<(), Exhausted> {
        let end = NodeRef { arena: self, at: object }.object().end();
        self.words.extend_from_within(index(object.0)..index(end))
    }

    /// Appends an item or entry to a chain.
    pub(crate) fn append<const N: u32>(&mut self, chain: &mut RecordChain<N>, record: RecordAt<N>) {
        match chain.last {
            Some(last) => self.link(last, record.0),
            None => chain.first = Some(record),
        }
        chain.last = Some(record);
    }

    fn link<const N: u32>(&mut self, record: RecordAt<N>, next: u32) {
        let word = self.words.get_mut(index(record.0));
        debug_assert!(word.is_some(), "{record:?} is outside the arena");
        if let Some(word) = word {
            *word = next;
        }
    }

    /// Sorts entries by key. Those with the same key keep their order, which is that of their offsets.
    pub(crate) fn sorted_entries(
        &mut self,
        chain: RecordChain<ENTRY>,
        meter: &dyn Meter,
    ) -> Result<RecordChain<ENTRY>, Exhausted> {
        let mut entries = Buffer::new(meter);
        for entry in self.chain(chain.first) {
            entries.push(entry)?;
        }
        entries.sort_unstable_by(|one, other| (self.entry_key(*one), one).cmp(&(self.entry_key(*other), other)));
        let mut sorted = RecordChain::default();
        for entry in entries.iter().copied() {
            self.link(entry, NONE);
            self.append(&mut sorted, entry);
        }
        Ok(sorted)
    }

    /// Keeps the last entry of each key if it has a node. Entries with the same key follow each other, unless all keys are
    /// `distinct`. Returns the first entry.
    pub(crate) fn settle_entries(&mut self, chain: RecordChain<ENTRY>, distinct: bool) -> Option<RecordAt<ENTRY>> {
        let mut kept = RecordChain::default();
        let mut following = chain.first;
        while let Some(entry) = following {
            following = self.next_record(entry);
            let is_replaced = |next| !distinct && self.entry_key(next) == self.entry_key(entry);
            if !following.is_some_and(is_replaced) && self.entry_has_node(entry) {
                self.link(entry, NONE);
                self.append(&mut kept, entry);
            }
        }
        kept.first
    }
}
