//! Counts reviews by kind, operation, phase and outcome, and audited violations by kind.
//!
//! The labels come from the catalog. A request must not create a series, so reviews of unknown kinds count as `other`.
//! `published` shows the counters of the catalog in force.

use kube_unions_core::admission::{Operation, Phase, ReviewOutcome};
use std::sync::atomic::{AtomicU64, Ordering};

const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", OTHER];
const PHASES: [&str; 2] = ["mutate", "validate"];
const OUTCOMES: [&str; 5] = ["allowed", "patched", "warned", "denied", "unreadable"];

/// The operation, phase and outcome of a write that is denied. Only the phase `validate` denies, and no union forbids a deletion.
const DENIED_WRITES: [[&str; 3]; 2] = [["CREATE", "validate", "denied"], ["UPDATE", "validate", "denied"]];

/// The operation of a body that cannot be read, and the group and kind of a review that the catalog does not know.
pub(super) const OTHER: &str = "other";

/// The labels of a review except its group and kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReviewLabels {
    operation: usize,
    phase: usize,
    outcome: usize,
}

impl ReviewLabels {
    /// Returns the labels of a review that has an answer.
    pub(super) fn answered(operation: Operation, phase: Phase, outcome: ReviewOutcome) -> Self {
        let operation = match operation {
            Operation::Create => 0,
            Operation::Update => 1,
            Operation::Delete => 2,
            Operation::Connect => 3,
        };
        let outcome = match outcome {
            ReviewOutcome::Allowed => 0,
            ReviewOutcome::Patched => 1,
            ReviewOutcome::Warned => 2,
            ReviewOutcome::Denied => 3,
        };
        Self { operation, phase: phase_index(phase), outcome }
    }

    /// Returns the labels of a body that is not a review.
    pub(super) fn unreadable(phase: Phase) -> Self {
        Self { operation: OPERATIONS.len() - 1, phase: phase_index(phase), outcome: OUTCOMES.len() - 1 }
    }

    /// Returns the values of `operation`, `phase` and `outcome`.
    pub(super) fn names(self) -> [&'static str; 3] {
        let name = |names: &[&'static str], index: usize| names.get(index).copied().unwrap_or(OTHER);
        [name(&OPERATIONS, self.operation), name(&PHASES, self.phase), name(&OUTCOMES, self.outcome)]
    }
}

/// Returns the value of the label `phase`.
pub(super) fn phase_label(phase: Phase) -> &'static str {
    PHASES.get(phase_index(phase)).copied().unwrap_or(OTHER)
}

fn phase_index(phase: Phase) -> usize {
    match phase {
        Phase::Mutate | Phase::Both => 0,
        Phase::Validate => 1,
    }
}

/// The review counters of one kind, for all its versions.
///
/// They are atomics and not a `Family`: a review takes no lock, and the series of a kind disappear together with its kind,
/// even if a review of it is still in flight.
#[derive(Debug)]
pub(super) struct KindCounters {
    group: Box<str>,
    kind: Box<str>,
    cells: [[[AtomicU64; OUTCOMES.len()]; PHASES.len()]; OPERATIONS.len()],
    audited: AtomicU64,
}

impl KindCounters {
    /// Returns counters at zero.
    pub(super) fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), cells: Default::default(), audited: AtomicU64::default() }
    }

    pub(super) fn group_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    pub(super) fn count(&self, ReviewLabels { operation, phase, outcome }: ReviewLabels) {
        let cell = self.cells.get(operation).and_then(|it| it.get(phase)).and_then(|it| it.get(outcome));
        if let Some(cell) = cell {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts violations of unions whose declaration has the action `Audit`.
    pub(super) fn count_audited(&self, violations: usize) {
        self.audited.fetch_add(u64::try_from(violations).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the number of violations that were audited.
    pub(super) fn audited(&self) -> u64 {
        self.audited.load(Ordering::Relaxed)
    }

    /// Returns the labels and the value of each counter that is not zero, and of denied writes: Prometheus sees no increase in a series that
    /// begins with 1, so the first denial of a kind needs a zero before it.
    pub(super) fn series(&self) -> impl Iterator<Item = ([(&'static str, &str); 5], u64)> {
        OPERATIONS.iter().zip(&self.cells).flat_map(move |(&operation, phases)| {
            PHASES.iter().zip(phases).flat_map(move |(&phase, outcomes)| {
                OUTCOMES.iter().zip(outcomes).filter_map(move |(&outcome, cell)| {
                    let labels = [
                        ("group", &*self.group),
                        ("kind", &*self.kind),
                        ("operation", operation),
                        ("phase", phase),
                        ("outcome", outcome),
                    ];
                    let count = cell.load(Ordering::Relaxed);
                    let is_denied_write = DENIED_WRITES.contains(&[operation, phase, outcome]);
                    (count > 0 || is_denied_write).then_some((labels, count))
                })
            })
        })
    }
}
