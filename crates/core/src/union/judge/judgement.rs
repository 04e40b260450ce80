//! The question that is judged, and the judgement.

use crate::meter::Meter;
use crate::union::arena::NodeRef;
use crate::union::change::Change;
use crate::union::manifest::Manifests;
use crate::union::projection::Projection;
use crate::union::violation::{Capped, Violation};

/// The rules by which an object is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Normalise the unions that are normalised, and validate the result. Otherwise validate the object as it is.
    pub(crate) normalize: bool,
    /// Report all violations. Otherwise report contradictions only: violations that normalisation cannot resolve.
    pub(crate) validate: bool,
    /// Let a violation through if the request did not change the choice of the union.
    pub(crate) ratchet: bool,
}

/// The result of judging an object, in the order of paths.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The changes of normalisation.
    pub(crate) changes: Vec<Change>,
    /// The bytes that are charged for the paths and reasons of the changes.
    pub(crate) charged: usize,
    /// The violations of the object, after normalisation if the rules ask for it.
    pub(crate) violations: Capped<Violation>,
    /// The violations that do not count, with the reason.
    pub(crate) let_through: Capped<(Violation, LetThrough)>,
    /// The violations that only the audit log tells of.
    pub(crate) observed: Capped<Violation>,
    /// All violations for the audit log, whatever else becomes of them.
    pub(crate) audited: Capped<Violation>,
    /// True if the rules do not ask for normalisation, and it would change something that is not wrong, or if it depends on manifests
    /// whether something changes.
    pub(crate) would_change: bool,
}

impl Judgement {
    /// Returns true if nothing changes and nothing is wrong, whatever the manifests are.
    pub(crate) fn is_silent(&self) -> bool {
        let Self { changes, charged: _, violations, let_through, observed, audited: _, would_change } = self;
        changes.is_empty() && violations.is_empty() && let_through.is_empty() && observed.is_empty() && !would_change
    }

    /// Drops the judgement, and releases the memory of its changes. The violations, which are few, stay charged.
    pub(crate) fn discard(self, meter: &dyn Meter) {
        let list = self.changes.capacity().saturating_mul(size_of::<Change>());
        meter.release(self.charged.saturating_add(list));
    }
}

/// The reason why a violation does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LetThrough {
    /// The violation is old and the request did not change the union.
    Unchanged,
    /// The declaration only warns.
    WarnOnly,
}

/// The objects of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objects<'a> {
    /// The new object, `None` if no part of it matters.
    pub(crate) new: Option<NodeRef<'a>>,
    /// The stored object, `None` on create.
    pub(crate) old: Option<NodeRef<'a>>,
    /// The manifests, `None` unless the request is an apply.
    pub(crate) manifests: Option<&'a Manifests<Projection<'a>>>,
}
