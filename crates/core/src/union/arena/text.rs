//! Texts of the arena: discriminators and keys.

use super::Arena;
use super::word::index;
use crate::meter::Exhausted;

/// A value that is read as a discriminator or as a list key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum ScalarRef<'s> {
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
pub(crate) struct TextRange {
    offset: u32,
    /// The length, and the bits of the text.
    tagged: u32,
}

/// Longest text that offsets and tagged lengths can address, in bytes.
pub(crate) const LONGEST_TEXT: usize = TextRange::NODE_FOLLOWS as usize - 1;

impl TextRange {
    /// The bit of a key that is set if the node of its entry follows.
    const NODE_FOLLOWS: u32 = 1 << 29;
    /// The bit of a text that is in the buffer.
    const BUFFERED: u32 = 1 << 30;
    /// The bit of a number or boolean.
    const LITERAL: u32 = 1 << 31;

    /// A number or boolean is never empty.
    pub(crate) const UNFIT: Self = Self { offset: 0, tagged: Self::LITERAL };

    fn new(offset: usize, length: usize, bits: u32) -> Result<Self, Exhausted> {
        if length > LONGEST_TEXT {
            return Err(Exhausted);
        }
        let narrow = |number| u32::try_from(number).map_err(|_| Exhausted);
        Ok(Self { offset: narrow(offset)?, tagged: narrow(length)? | bits })
    }

    pub(super) fn words(self) -> [u32; 2] {
        [self.offset, self.tagged]
    }

    pub(crate) fn is_unfit(self) -> bool {
        self.tagged == Self::UNFIT.tagged
    }

    /// Returns the key of an entry that has a node.
    pub(crate) fn before_node(self) -> Self {
        Self { tagged: self.tagged | Self::NODE_FOLLOWS, ..self }
    }

    /// Returns true if the text is the key of an entry that has a node.
    pub(super) fn is_before_node(self) -> bool {
        self.tagged & Self::NODE_FOLLOWS != 0
    }
}

impl Arena<'_> {
    /// Stores a text, as a range of the body if it is one.
    pub(crate) fn store_text(&mut self, text: &str) -> Result<TextRange, Exhausted> {
        self.store(text, 0)
    }

    /// Stores a number or boolean, as a range of the body if it is one.
    pub(crate) fn store_literal(&mut self, text: &str) -> Result<TextRange, Exhausted> {
        self.store(text, TextRange::LITERAL)
    }

    fn store(&mut self, text: &str, bits: u32) -> Result<TextRange, Exhausted> {
        let offset = text.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if self.text.get(offset..offset.saturating_add(text.len())).is_some() {
            return TextRange::new(offset, text.len(), bits);
        }
        let offset = self.buffer.len();
        self.buffer.extend(text.as_bytes())?;
        TextRange::new(offset, text.len(), bits | TextRange::BUFFERED)
    }

    /// Returns the text whose two words follow this number of words after an offset.
    pub(super) fn text_range(&self, at: u32, number: u32) -> TextRange {
        TextRange { offset: self.word(at, number), tagged: self.word(at, number.saturating_add(1)) }
    }

    pub(super) fn scalar(&self, stored: TextRange) -> ScalarRef<'_> {
        let TextRange { offset, tagged } = stored;
        let (offset, length) = (index(offset), index(tagged & (TextRange::NODE_FOLLOWS - 1)));
        let range = offset..offset.saturating_add(length);
        let buffered = |range| self.buffer.get(range).and_then(|text| str::from_utf8(text).ok());
        let text = if tagged & TextRange::BUFFERED == 0 { self.text.get(range) } else { buffered(range) };
        debug_assert!(text.is_some(), "a text outside the body and the buffer");
        match (tagged & TextRange::LITERAL, text.unwrap_or_default()) {
            (0, text) => ScalarRef::Text(text),
            (_, "") => ScalarRef::Unfit,
            (_, literal) => ScalarRef::Literal(literal),
        }
    }
}
