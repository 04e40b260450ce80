//! The states of unions.

use super::{Arena, ScalarRef, TextRange};
use crate::meter::Exhausted;
use crate::union::MemberSet;

/// The positions in the first word of a state of the masks that tell which words of its sets follow: the members that are set,
/// those that nobody owns, and the nulls.
const SET_MASKS: [u32; 3] = [8, 13, 17];

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

impl Arena<'_> {
    /// Returns the state stored at `at`.
    pub(in crate::union) fn state(&self, at: u32) -> UnionState<'_> {
        let head = self.word(at);
        let mut next = at.saturating_add(1);
        let mut discriminator = ScalarRef::Absent;
        if head & 1 << 12 != 0 {
            discriminator = self.stored_scalar(next);
            next = next.saturating_add(2);
        }
        let [members, unowned, nulls] = SET_MASKS.map(|shift| {
            let mut parts = [0; 4];
            for (bit, part) in (shift..).zip(&mut parts) {
                if head & 1 << bit != 0 {
                    *part = self.word(next);
                    next = next.saturating_add(1);
                }
            }
            MemberSet::from_words(parts)
        });
        UnionState { discriminator, members, unowned, nulls }
    }

    pub(in crate::union) fn push_state(
        &mut self,
        position: u8,
        discriminator: Option<TextRange>,
        sets: [MemberSet; 3],
    ) -> Result<(), Exhausted> {
        let parts = sets.map(MemberSet::words);
        let mask_of = |words: &[u32; 4]| {
            (0..).zip(words).filter(|(_, part)| **part != 0).fold(0, |mask, (bit, _)| mask | 1_u32 << bit)
        };
        let masks = SET_MASKS.iter().zip(&parts).fold(0, |masks, (shift, words)| masks | mask_of(words) << shift);
        self.push(&[u32::from(position) | masks | u32::from(discriminator.is_some()) << 12])?;
        if let Some(TextRange { offset, tagged }) = discriminator {
            self.push(&[offset, tagged])?;
        }
        for part in parts.into_iter().flatten().filter(|part| *part != 0) {
            self.push(&[part])?;
        }
        Ok(())
    }
}

pub(super) fn state_length(head: u32) -> u32 {
    let sets = SET_MASKS.map(|shift| (head >> shift & 0xf).count_ones());
    1 + sets.iter().sum::<u32>() + 2 * (head >> 12 & 1)
}

pub(super) fn position_of(head: u32) -> u8 {
    u8::try_from(head & 0xff).unwrap_or(u8::MAX)
}
