//! Breaches of one union's rules, by member position.
//!
//! Normalisation and validation report breaches. Names and paths are built later, and only for breaches that are reported.

use super::MemberSet;
use super::shape::State;

/// What is wrong with one union, without a name or a path: those are built for the faults that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Breaches {
    /// Members that are set and must not be.
    pub(super) blamed: MemberSet,
    /// Why the blamed members must not be set.
    pub(super) blame: Blame,
    /// The selected member, which is not set.
    pub(super) missing: Option<u8>,
    /// A fault of the discriminator.
    pub(super) discriminator: Option<DiscriminatorBreach>,
}

/// Why a member must not be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Blame {
    /// Others are set, and nothing tells which one counts.
    #[default]
    TooMany,
    /// The discriminator does not select it.
    NotSelected {
        /// True if the request left the discriminator as it was.
        unchanged: bool,
    },
}

/// A fault of a discriminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscriminatorBreach {
    /// No choice has its value.
    Unknown,
    /// It is empty although this member is set.
    Required(u8),
}

impl Breaches {
    /// Blames the members that were added. Where that says nothing, because none was or there is no old, all but the first.
    pub(super) fn too_many(old: Option<&State<'_>>, set: MemberSet) -> Self {
        let added = old.map_or(MemberSet::EMPTY, |old| set.less(old.members));
        let blamed =
            if added.is_empty() { set.less(set.first().map_or(MemberSet::EMPTY, MemberSet::of)) } else { added };
        Self { blamed, blame: Blame::TooMany, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of violations.
    pub(super) fn len(&self) -> usize {
        let blamed = usize::try_from(self.blamed.len()).unwrap_or(usize::MAX);
        blamed.saturating_add(usize::from(self.missing.is_some())).saturating_add(self.discriminator.is_some().into())
    }
}
