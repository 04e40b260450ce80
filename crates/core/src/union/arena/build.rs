//! Stores nodes in the arena.

use super::{Arena, ENTRY_HAS_NODE, LONGEST_TEXT, NONE, TAG, TextKind, TextRange, index};
use crate::meter::{Buffer, Exhausted, Meter};
use crate::union::MemberSet;

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

    /// Stores a text, as a range of the body if it is one.
    pub(in crate::union) fn store_text(&mut self, text: &str) -> Result<TextRange, Exhausted> {
        self.store(TextKind::Text, TextKind::SideText, text)
    }

    /// Stores a number or boolean, as a range of the body if it is one.
    pub(in crate::union) fn store_literal(&mut self, text: &str) -> Result<TextRange, Exhausted> {
        self.store(TextKind::Literal, TextKind::SideLiteral, text)
    }

    fn store(&mut self, kind: TextKind, beside: TextKind, text: &str) -> Result<TextRange, Exhausted> {
        let offset = text.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if self.text.get(offset..offset.saturating_add(text.len())).is_some() {
            return TextRange::new(kind, offset, text.len());
        }
        let offset = self.side.len();
        self.side.extend(text.as_bytes())?;
        TextRange::new(beside, offset, text.len())
    }

    /// Begins an item. Its node must follow.
    pub(in crate::union) fn push_item(&mut self, index: u32) -> Result<(), Exhausted> {
        self.push(&[NONE, index])
    }

    /// Begins an entry. If `has_node` is true, its node must follow.
    pub(in crate::union) fn push_entry(&mut self, key: TextRange, has_node: bool) -> Result<(), Exhausted> {
        let flag = if has_node { ENTRY_HAS_NODE } else { 0 };
        self.push(&[NONE, key.offset, key.tagged | flag])
    }

    pub(in crate::union) fn push_key(&mut self, position: u32, key: TextRange) -> Result<(), Exhausted> {
        self.push(&[position, key.offset, key.tagged])
    }

    pub(in crate::union) fn push_state(
        &mut self,
        position: u8,
        discriminator: Option<TextRange>,
        members: MemberSet,
    ) -> Result<(), Exhausted> {
        let parts = members.words();
        let mask = (0..).zip(parts).filter(|(_, part)| *part != 0).fold(0, |mask, (bit, _)| mask | 1_u32 << bit);
        self.push(&[u32::from(position) | mask << 8 | u32::from(discriminator.is_some()) << 12])?;
        if let Some(TextRange { offset, tagged }) = discriminator {
            self.push(&[offset, tagged])?;
        }
        for part in parts.into_iter().filter(|part| *part != 0) {
            self.push(&[part])?;
        }
        Ok(())
    }

    /// Links an item or entry to the next one.
    pub(in crate::union) fn link(&mut self, at: u32, next: u32) {
        let word = self.words.get_mut(index(at));
        debug_assert!(word.is_some(), "offset {at} is outside the arena");
        if let Some(word) = word {
            *word = next;
        }
    }

    /// Sorts a chain of entries by key, and keeps the last entry of each key if it has a node. Returns the first entry.
    pub(in crate::union) fn settle_entries(&mut self, first: u32, sorted: bool) -> u32 {
        let chain = if sorted { first } else { self.sort_entries(first) };
        let (mut kept_first, mut kept_last) = (NONE, NONE);
        let mut at = chain;
        while at != NONE {
            let next = self.word(at);
            let replaced = !sorted && next != NONE && self.entry_key(next) == self.entry_key(at);
            if !replaced && self.entry_has_node(at) {
                self.link(at, NONE);
                if kept_last == NONE {
                    kept_first = at;
                } else {
                    self.link(kept_last, at);
                }
                kept_last = at;
            }
            at = next;
        }
        kept_first
    }

    /// Sorts a chain of entries in place: a stable merge sort without memory of its own.
    fn sort_entries(&mut self, first: u32) -> u32 {
        // The run at position n has 2^n entries, all from before those at lower positions.
        let mut runs = [NONE; 32];
        let mut at = first;
        while at != NONE {
            let next = self.word(at);
            self.link(at, NONE);
            let mut run = at;
            for earlier in &mut runs {
                if *earlier == NONE {
                    *earlier = run;
                    break;
                }
                run = self.merge_entries(std::mem::replace(earlier, NONE), run);
            }
            at = next;
        }
        runs.into_iter().fold(NONE, |later, earlier| self.merge_entries(earlier, later))
    }

    fn merge_entries(&mut self, mut earlier: u32, mut later: u32) -> u32 {
        let (mut first, mut last) = (NONE, NONE);
        while earlier != NONE || later != NONE {
            let from_later = earlier == NONE || (later != NONE && self.entry_key(later) < self.entry_key(earlier));
            let source = if from_later { &mut later } else { &mut earlier };
            let at = *source;
            *source = self.word(at);
            if last == NONE {
                first = at;
            } else {
                self.link(last, at);
            }
            last = at;
            // The remaining run is already linked.
            if earlier == NONE || later == NONE {
                let rest = if earlier == NONE { later } else { earlier };
                self.link(last, rest);
                break;
            }
        }
        first
    }
}

/// Returns the first word of an object, `None` if the object has too many fields to count.
pub(in crate::union) fn object_head(states: usize, keys: usize, children: usize) -> Option<u32> {
    let states = u8::try_from(states).ok()?;
    let keys = u8::try_from(keys).ok()?;
    let children = u16::try_from(children).ok()?;
    Some(u32::from(states) | u32::from(keys) << 8 | u32::from(children) << 16)
}

impl TextRange {
    fn new(kind: TextKind, offset: usize, length: usize) -> Result<Self, Exhausted> {
        if length > LONGEST_TEXT {
            return Err(Exhausted);
        }
        let narrow = |number| u32::try_from(number).map_err(|_| Exhausted);
        Ok(Self { offset: narrow(offset)?, tagged: narrow(length)? | (kind as u32) << TAG })
    }
}
