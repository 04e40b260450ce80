//! Violations of one union, by member position.
//!
//! Normalisation and validation report them. Names and paths are built later, and only for violations that are reported.

use super::arena::UnionState;
use super::{MemberSet, Union};

/// The violations of one union, without names and paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Breaches {
    /// The members that are set and must not be.
    pub(super) blamed: MemberSet,
    /// The reason why the blamed members must not be set.
    pub(super) blame: Blame,
    /// The members that are selected and not set.
    pub(super) missing: MemberSet,
    /// The violation of the discriminator.
    pub(super) discriminator: Option<DiscriminatorBreach>,
    /// True if no member is set and the union requires one. This is a violation of the object.
    pub(super) none_set: bool,
    /// The violation of the manifest that the request applies. This is a violation of the object.
    pub(super) manifest: Option<ManifestBreach>,
}

/// One violation of a union.
#[derive(Debug, Clone, Copy)]
pub(super) enum Breach {
    NoneSet,
    Manifest(ManifestBreach),
    Blamed(u8),
    Missing(u8),
    Discriminator(DiscriminatorBreach),
}

/// The reason why a manifest cannot be applied as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManifestBreach {
    /// It sets several members, and nothing in it selects one of them.
    Several(MemberSet),
    /// It sets the discriminator, and members that the value does not select.
    NotSelected(MemberSet),
    /// It sets a member that was cleared since it was applied, and the manifest of another field manager sets others, or the
    /// discriminator if there are none.
    Contested { member: u8, others: MemberSet },
}

/// The reason why a member must not be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Blame {
    /// Other members are set as well, and nothing tells which one counts.
    #[default]
    TooMany,
    /// The discriminator does not select it.
    NotSelected {
        /// True if the request did not change the discriminator.
        unchanged: bool,
    },
}

/// A violation of a discriminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscriminatorBreach {
    /// The value is not declared.
    Unknown,
    /// The discriminator is empty although this member is set.
    Required(u8),
    /// The discriminator is empty, no member is set, and the union requires a choice.
    ChoiceRequired,
}

impl Breaches {
    /// Blames members that the discriminator does not select.
    pub(super) fn not_selected(blamed: MemberSet, unchanged: bool) -> Self {
        Self { blamed, blame: Blame::NotSelected { unchanged }, ..Self::default() }
    }

    /// Blames the members that were added. If no member was added, or there is no old union, blames all members but those of
    /// the first group.
    pub(super) fn too_many(union: &Union, old: Option<&UnionState<'_>>, set: MemberSet) -> Self {
        let added = old.map_or(MemberSet::EMPTY, |old| set.less(old.members));
        let first = || set.first().map_or(MemberSet::EMPTY, |first| union.group_of(first));
        let blamed = if added.is_empty() { set.less(first()) } else { added };
        Self { blamed, blame: Blame::TooMany, ..Self::default() }
    }

    /// Blames the manifest instead of the members that it sets.
    pub(super) fn blame_manifest(self, manifest: Option<ManifestBreach>) -> Self {
        match manifest {
            Some(_) if !self.blamed.is_empty() => Self { blamed: MemberSet::EMPTY, manifest, ..self },
            _ => self,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { blamed, blame: _, missing, discriminator, none_set, manifest } = self;
        blamed.is_empty() && missing.is_empty() && discriminator.is_none() && !none_set && manifest.is_none()
    }

    /// Returns each violation, those of the object before those of its fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = Breach> {
        let of_object = self.none_set.then_some(Breach::NoneSet).into_iter().chain(self.manifest.map(Breach::Manifest));
        let of_members = self.blamed.iter().map(Breach::Blamed).chain(self.missing.iter().map(Breach::Missing));
        of_object.chain(of_members).chain(self.discriminator.map(Breach::Discriminator))
    }
}

impl Breach {
    /// Returns the name of the field, `None` if it is a violation of the object.
    pub(super) fn field(self, union: &Union) -> Option<&str> {
        match self {
            Self::NoneSet | Self::Manifest(_) => None,
            Self::Blamed(index) | Self::Missing(index) => Some(union.member_name(index)),
            Self::Discriminator(_) => Some(union.discriminator().unwrap_or_default()),
        }
    }
}
