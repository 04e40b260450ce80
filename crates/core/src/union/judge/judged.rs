//! The judgement of one union, and the words of its violations.

use super::LetThrough;
use crate::meter::{Exhausted, Meter};
use crate::union::arena::{ScalarRef, UnionState};
use crate::union::breach::{Blame, Breach, Breaches, DiscriminatorBreach, ManifestBreach};
use crate::union::change::ChangeReason;
use crate::union::manifest::Residue;
use crate::union::normalize::{ClearingCause, Normalized};
use crate::union::violation::{ViolationKind, shown};
use crate::union::{MemberSet, Union};
use std::sync::Arc;

/// The judgement of one union that changes or has violations.
pub(super) struct JudgedUnion<'f> {
    pub(super) union: &'f Union,
    /// The position of the union in its object.
    pub(super) position: u8,
    /// The union as it is judged, normalised if the rules ask for it.
    pub(super) state: UnionState<'f>,
    pub(super) clear: MemberSet,
    /// The members of these that nobody chooses.
    pub(super) residue: Residue,
    pub(super) cause: Option<ClearingCause>,
    pub(super) deduced: Option<u8>,
    pub(super) faults: Breaches,
    pub(super) fate: Fate,
    /// The names of the members that are set, one of each group, shared by all violations.
    pub(super) set: Option<Arc<[Arc<str>]>>,
}

/// The treatment of the violations of a union. If the declaration audits, the audit log has them as well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Denied,
    LetThrough(LetThrough),
    /// Only the audit log tells of them.
    Observed,
}

/// A change or violation of one field.
pub(super) struct Event<'f> {
    pub(super) field: &'f str,
    /// The position among the judged unions of the object.
    pub(super) finding: usize,
    pub(super) kind: EventKind,
}

#[derive(Clone, Copy)]
pub(super) enum EventKind {
    Clear(u8),
    Deduce(u8),
    Breach(Breach),
}

impl JudgedUnion<'_> {
    fn name(&self, index: u8) -> Arc<str> {
        self.union.member(index).map(|member| Arc::clone(&member.name)).unwrap_or_default()
    }

    fn discriminator(&self) -> Arc<str> {
        debug_assert!(
            self.union.discriminator.is_some(),
            "a finding about a discriminator that the union does not have"
        );
        self.union.discriminator.clone().unwrap_or_default()
    }

    /// Returns the reason why a member is cleared.
    pub(super) fn clearing(&self, index: u8) -> ChangeReason {
        match self.cause {
            _ if self.residue.nulls.contains(index) => ChangeReason::ClearedNull,
            _ if self.residue.yielding.contains(index) => ChangeReason::ClearedUnowned,
            Some(ClearingCause::MemberSet(member)) => ChangeReason::ClearedByMember { member: self.name(member) },
            Some(ClearingCause::DiscriminatorChanged) | None => ChangeReason::ClearedByDiscriminator {
                discriminator: self.discriminator(),
                value: shown(self.state.value()).into(),
            },
        }
    }

    /// Returns the reason why the discriminator gets the value of a member.
    pub(super) fn deduction(&self, member: u8) -> ChangeReason {
        let value = self.union.values_of(member).first().cloned().unwrap_or_default();
        ChangeReason::Deduced { value, member: self.name(member), boolean: self.union.is_boolean() }
    }

    /// Builds a violation. Its names are shared with the plan.
    pub(super) fn violation(&mut self, breach: Breach, meter: &dyn Meter) -> Result<ViolationKind, Exhausted> {
        let union = self.union;
        Ok(match (breach, self.faults.blame) {
            (Breach::Blamed(index), Blame::NotSelected { unchanged }) => {
                let values = union.member(index).map(|member| Arc::clone(&member.values)).unwrap_or_default();
                ViolationKind::NotSelected { discriminator: self.discriminator(), values, unchanged }
            }
            (Breach::Missing(_), _) => {
                ViolationKind::MemberRequired { discriminator: self.discriminator(), value: self.state.value().into() }
            }
            (Breach::Discriminator(DiscriminatorBreach::Unknown), _) => {
                let value = shown(self.state.value()).into();
                ViolationKind::UnknownValue { value, supported: Arc::clone(&union.supported) }
            }
            (Breach::Discriminator(DiscriminatorBreach::Required(index)), _) => {
                ViolationKind::DiscriminatorRequired { member: self.name(index) }
            }
            (Breach::Discriminator(DiscriminatorBreach::ChoiceRequired), _) => {
                ViolationKind::ChoiceRequired { supported: Arc::clone(&union.supported) }
            }
            (Breach::NoneSet, _) => ViolationKind::OneRequired { members: union.required.clone().unwrap_or_default() },
            (Breach::Manifest(ManifestBreach::Several(members)), _) => {
                ViolationKind::SeveralApplied { members: names(union, members, meter)? }
            }
            (Breach::Manifest(ManifestBreach::NotSelected(members)), _) => ViolationKind::NotSelectedApplied {
                discriminator: self.discriminator(),
                value: shown(self.state.value()).into(),
                members: names(union, members, meter)?,
            },
            (Breach::Manifest(ManifestBreach::Contested { member, others }), _) => {
                let others =
                    if others.is_empty() { [self.discriminator()].into() } else { names(union, others, meter)? };
                ViolationKind::Contested { member: self.name(member), others }
            }
            (Breach::Blamed(_), Blame::TooMany) => ViolationKind::TooMany { set: self.set(meter)? },
        })
    }

    /// Returns the names of the members that are set, one of each group, as one list for all violations of the union.
    fn set(&mut self, meter: &dyn Meter) -> Result<Arc<[Arc<str>]>, Exhausted> {
        if let Some(set) = &self.set {
            return Ok(Arc::clone(set));
        }
        let set = names(self.union, self.union.first_of_groups(self.state.members), meter)?;
        self.set = Some(Arc::clone(&set));
        Ok(set)
    }
}

fn names(union: &Union, members: MemberSet, meter: &dyn Meter) -> Result<Arc<[Arc<str>]>, Exhausted> {
    // The names are collected first and then moved into the `Arc`.
    meter.charge(usize::try_from(members.len()).unwrap_or_default().saturating_mul(4 * size_of::<Arc<str>>()))?;
    Ok(members.iter().filter_map(|index| union.member(index)).map(|member| Arc::clone(&member.name)).collect())
}

impl Normalized {
    pub(super) fn applied_to<'s>(&self, union: &'s Union, state: UnionState<'s>) -> UnionState<'s> {
        let value = self.deduce.and_then(|index| union.values_of(index).first());
        let discriminator = value.map_or(state.discriminator, |value| ScalarRef::Text(value));
        UnionState { discriminator, members: state.members.less(self.clear), ..state }
    }
}
