//! The states of unions. The words of one are its head, the range of the discriminator if there is one, and the words of its sets
//! that are not zero.

use super::word::StateAt;
use super::{Arena, ScalarRef, TextRange};
use crate::meter::Exhausted;
use crate::union::MemberSet;

/// The state of a union: the value of its discriminator and the members that are set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::union) struct UnionState<'s> {
    pub(in crate::union) discriminator: ScalarRef<'s>,
    pub(in crate::union) members: MemberSet,
    /// Members with a value that has no owner, and members that are empty objects and count as not set. Empty for all but manifests.
    pub(in crate::union) unowned: MemberSet,
    /// The members that are null and cannot be. They are not set.
    pub(in crate::union) nulls: MemberSet,
}

impl<'s> UnionState<'s> {
    /// Returns the value of the discriminator. Empty if it is missing, null or not a string.
    pub(in crate::union) fn value(&self) -> &'s str {
        match self.discriminator {
            ScalarRef::Text(value) => value,
            ScalarRef::Absent | ScalarRef::Literal(_) | ScalarRef::Unfit => "",
        }
    }

    /// Returns true if the discriminator is not a string.
    pub(in crate::union) fn is_wrong_type(&self) -> bool {
        matches!(self.discriminator, ScalarRef::Literal(_) | ScalarRef::Unfit)
    }

    /// Returns true if there is no choice: no member is set, and the discriminator has no value.
    pub(in crate::union) fn is_unset(&self) -> bool {
        self.choice() == ("", MemberSet::EMPTY)
    }

    /// Returns true if both have the same discriminator value and the same members set.
    pub(in crate::union) fn same_choice(&self, other: &UnionState<'_>) -> bool {
        self.choice() == other.choice()
    }

    /// Returns the value of the discriminator and the members that are set.
    pub(in crate::union) fn choice(&self) -> (&'s str, MemberSet) {
        (self.value(), self.members)
    }
}

/// The first word of a state: the position of the union in its object in 8 bits, and bits for the words that follow.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(super) struct StateHead(u32);

impl StateHead {
    /// The bit that is set if a discriminator follows.
    const DISCRIMINATOR: u32 = 12;
    /// The lowest bit of each set: the members that are set, those that nobody owns, and the nulls. A set has four words.
    const SETS: [u32; 3] = [8, 13, 17];

    fn new(position: u8, has_discriminator: bool, sets: &[[u32; 4]; 3]) -> Self {
        let mask_of = |words: &[u32; 4]| {
            (0..).zip(words).filter(|(_, word)| **word != 0).fold(0, |mask, (bit, _)| mask | 1_u32 << bit)
        };
        let masks = Self::SETS.iter().zip(sets).fold(0, |masks, (first, words)| masks | mask_of(words) << first);
        Self(u32::from(position) | masks | u32::from(has_discriminator) << Self::DISCRIMINATOR)
    }

    fn has(self, bit: u32) -> bool {
        self.0 & 1 << bit != 0
    }

    pub(super) fn position(self) -> u8 {
        let [position, ..] = self.0.to_le_bytes();
        position
    }

    /// Returns the number of words of the state. A discriminator has two.
    fn length(self) -> u32 {
        1 + (self.0 >> 8).count_ones() + u32::from(self.has(Self::DISCRIMINATOR))
    }
}

impl Arena<'_> {
    pub(super) fn state_head(&self, at: StateAt) -> StateHead {
        StateHead(self.word(at.0, 0))
    }

    /// Returns the offset behind a state.
    pub(super) fn behind_state(&self, at: StateAt) -> StateAt {
        StateAt(at.0.saturating_add(self.state_head(at).length()))
    }

    pub(in crate::union) fn state(&self, at: StateAt) -> UnionState<'_> {
        let head = self.state_head(at);
        let (mut number, mut discriminator) = (1_u32, ScalarRef::Absent);
        if head.has(StateHead::DISCRIMINATOR) {
            discriminator = self.scalar(self.text_range(at.0, number));
            number = number.saturating_add(2);
        }
        let [members, unowned, nulls] = StateHead::SETS.map(|first| {
            let mut words = [0; 4];
            for (bit, word) in (first..).zip(&mut words) {
                if head.has(bit) {
                    *word = self.word(at.0, number);
                    number = number.saturating_add(1);
                }
            }
            MemberSet::from_words(words)
        });
        UnionState { discriminator, members, unowned, nulls }
    }

    pub(in crate::union) fn push_state(
        &mut self,
        position: u8,
        discriminator: Option<TextRange>,
        sets: [MemberSet; 3],
    ) -> Result<(), Exhausted> {
        let sets = sets.map(MemberSet::words);
        self.push(&[StateHead::new(position, discriminator.is_some(), &sets).0])?;
        if let Some(discriminator) = discriminator {
            self.push(&discriminator.words())?;
        }
        for word in sets.into_iter().flatten().filter(|word| *word != 0) {
            self.push(&[word])?;
        }
        Ok(())
    }
}
