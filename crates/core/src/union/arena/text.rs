//! Texts of the arena: discriminators and keys.

use super::{Arena, index};
use crate::meter::Exhausted;

/// Longest text that offsets and tagged lengths can address, in bytes.
pub(crate) const LONGEST_TEXT: usize = ENTRY_HAS_NODE as usize - 1;

/// The bit in the tagged length of an entry that is set if a node follows.
pub(super) const ENTRY_HAS_NODE: u32 = 1 << 29;

const TAG: u32 = 30;

/// A value that is read as a discriminator or as a list key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::union) enum ScalarRef<'s> {
    /// The value is missing or null.
    #[default]
    Absent,
    Text(&'s str),
    /// A number or boolean, as it is written.
    Literal(&'s str),
    /// A list or a map, which can be neither a discriminator nor a key.
    Unfit,
}

/// A stored [`ScalarRef`] other than `Absent`.
#[derive(Debug, Clone, Copy)]
pub(in crate::union) struct TextRange {
    pub(super) offset: u32,
    /// The length, with the kind in the two highest bits.
    pub(super) tagged: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum TextKind {
    Text = 0,
    SideText = 1,
    Literal = 2,
    SideLiteral = 3,
}

impl TextRange {
    /// A number or boolean is never empty.
    pub(in crate::union) const UNFIT: Self = Self { offset: 0, tagged: (TextKind::Literal as u32) << TAG };

    pub(in crate::union) fn is_unfit(self) -> bool {
        self.tagged == Self::UNFIT.tagged
    }

    fn new(kind: TextKind, offset: usize, length: usize) -> Result<Self, Exhausted> {
        if length > LONGEST_TEXT {
            return Err(Exhausted);
        }
        let narrow = |number| u32::try_from(number).map_err(|_| Exhausted);
        Ok(Self { offset: narrow(offset)?, tagged: narrow(length)? | (kind as u32) << TAG })
    }
}

impl Arena<'_> {
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

    pub(super) fn scalar(&self, stored: TextRange) -> ScalarRef<'_> {
        let (offset, length) = (index(stored.offset), index(stored.tagged & (ENTRY_HAS_NODE - 1)));
        let range = offset..offset.saturating_add(length);
        let kind = stored.tagged >> TAG;
        let beside = |range| self.side.get(range).and_then(|text| str::from_utf8(text).ok());
        let text = if kind & 1 == 0 { self.text.get(range) } else { beside(range) };
        debug_assert!(text.is_some(), "a text outside the body and the buffer");
        match (kind >> 1, text.unwrap_or_default()) {
            (0, text) => ScalarRef::Text(text),
            (_, "") => ScalarRef::Unfit,
            (_, literal) => ScalarRef::Literal(literal),
        }
    }

    pub(super) fn stored_scalar(&self, at: u32) -> ScalarRef<'_> {
        self.scalar(TextRange { offset: self.word(at), tagged: self.word(at.saturating_add(1)) })
    }
}
