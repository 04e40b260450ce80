//! What is answered to a review, from what was judged: a patch, warnings, or a denial.

use super::request::{Operation, Request};
use super::response::{AdmissionResponse, Annotations, Denial, DenialCause, LONGEST_CAUSE, Warnings};
use super::{Phase, ReviewOutcome};
use crate::field_path::{Printable, cut};
use crate::meter::{Exhausted, Meter, Unmetered, render};
use crate::union::{Capped, Change, ChangeReason, Changes, Judgement, LetThrough, Violation};

/// Bytes that any review takes beside its body.
pub(super) const FLAT: usize = 1024;

/// Longest name of an object that a denial shows, in bytes.
const LONGEST_NAME: usize = 253;

/// Longest discriminator value that an audit annotation shows, in bytes.
const LONGEST_VALUE: usize = 64;

/// The answer to one review.
#[derive(Debug)]
pub struct Review {
    uid: String,
    operation: Operation,
    ordinal: Option<usize>,
    outcome: ReviewOutcome,
    warnings: Vec<String>,
    changes: Changes,
    violations: Capped<Violation>,
    let_through: Capped<(Violation, LetThrough)>,
    denial: Option<Denial>,
    annotations: Annotations,
}

impl Review {
    /// Nothing to say.
    pub(super) fn allow(request: &Request<'_>) -> Self {
        Self {
            uid: request.uid.to_string(),
            operation: request.operation,
            ordinal: request.ordinal,
            outcome: ReviewOutcome::Allowed,
            warnings: Vec::new(),
            changes: Changes::default(),
            violations: Capped::default(),
            let_through: Capped::default(),
            denial: None,
            annotations: Annotations::default(),
        }
    }

    /// Allowed, with what normalisation changes and with warnings about it.
    pub(super) fn patch(
        request: &Request<'_>,
        phase: Phase,
        judgement: Judgement,
        meter: &dyn Meter,
    ) -> Result<Self, Exhausted> {
        let mut warnings = Warnings::default();
        let mut annotations = Annotations::default();
        for (position, clears) in judgement.changes.clears().enumerate() {
            let listing = if clears { &mut annotations.cleared } else { &mut annotations.set };
            if warnings.is_full() && listing.is_full() {
                warnings.leave_out(1);
                listing.leave_out(1);
                continue;
            }
            let Some(change) = judgement.changes.get(position) else { break };
            warnings.push(&change);
            match &change.reason {
                ChangeReason::Deduced { value, .. } => {
                    listing.push(format_args!("{}=\"{}\"", change.path, Printable::new(value, LONGEST_VALUE)));
                }
                ChangeReason::ClearedByDiscriminator { .. } | ChangeReason::ClearedByMember { .. } => {
                    listing.push(&change.path);
                }
            }
        }
        // The API server asks twice; what it is told twice it shows twice.
        if phase != Phase::Mutate {
            for (violation, reason) in judgement.let_through.kept() {
                let (reason, why) = match reason {
                    LetThrough::Unchanged => {
                        ("let through because the union did not change", "the union did not change")
                    }
                    LetThrough::WarnOnly => {
                        ("let through because its declaration only warns", "its declaration only warns")
                    }
                };
                warnings.push(&format_args!("{violation}; {reason}"));
                annotations.warned.push(format_args!("{}: {} ({why})", violation.path, violation.reason()));
            }
            warnings.leave_out(judgement.let_through.left_out());
            annotations.warned.leave_out(judgement.let_through.left_out());
        }
        let warnings = warnings.finish();
        let outcome = match (judgement.changes.is_empty(), warnings.is_empty()) {
            (false, _) => ReviewOutcome::Patched,
            (true, false) => ReviewOutcome::Warned,
            (true, true) => ReviewOutcome::Allowed,
        };
        let Judgement { changes, let_through, .. } = judgement;
        meter.charge(
            annotations.size().saturating_add(warnings.iter().map(|it| it.len() + size_of::<String>()).sum()),
        )?;
        Ok(Self { outcome, warnings, changes, let_through, annotations, ..Self::allow(request) })
    }

    /// Denied, with every violation at once.
    pub(super) fn deny(request: &Request<'_>, judgement: Judgement, meter: &dyn Meter) -> Result<Self, Exhausted> {
        // On CREATE the API server may leave the name to the object.
        let in_object = || request.subject.as_ref().map_or("", |subject| subject.new.name());
        let name = if request.name.is_empty() { in_object() } else { &request.name };
        let Judgement { violations, let_through, .. } = judgement;
        let mut causes = Vec::new();
        meter.charge(violations.kept().len().saturating_mul(size_of::<DenialCause>()))?;
        causes.reserve_exact(violations.kept().len());
        let mut annotations = Annotations::default();
        for violation in violations.kept() {
            causes.push(DenialCause {
                reason: violation.reason(),
                message: render(meter, &violation.kind, LONGEST_CAUSE)?,
                field: render(meter, &violation.path, usize::MAX)?,
            });
            annotations.denied.push(format_args!("{}: {}", violation.path, violation.reason()));
        }
        annotations.denied.leave_out(violations.left_out());
        let (kind, name) = (&request.kind, cut(name, LONGEST_NAME).to_owned());
        let denial = Denial::with_rest(&kind.group, &kind.name, name, causes, violations.left_out());
        meter.charge(annotations.size().saturating_add(denial.size()))?;
        let denied = Self::allow(request);
        Ok(Self {
            outcome: ReviewOutcome::Denied,
            violations,
            let_through,
            denial: Some(denial),
            annotations,
            ..denied
        })
    }

    /// The `AdmissionReview` to send back.
    pub fn to_json(&self) -> Vec<u8> {
        // Without a meter nothing is refused.
        self.write(&Unmetered).unwrap_or_default()
    }

    /// The `AdmissionReview` to send back, with no more memory than `meter` grants. It stays charged.
    pub fn write(&self, meter: &dyn Meter) -> Result<Vec<u8>, Exhausted> {
        let answer = AdmissionResponse {
            uid: &self.uid,
            denial: self.denial.as_ref(),
            patch: Some(&self.changes),
            warnings: &self.warnings,
            annotations: &self.annotations,
        };
        answer.write(meter)
    }

    /// The uid of the request.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// What was asked.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What came of it.
    pub fn outcome(&self) -> ReviewOutcome {
        self.outcome
    }

    /// The position of the kind in the catalog that was asked, `None` if that does not know the kind.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }

    /// What the patch changes, in the order of paths.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = Change> {
        self.changes.iter()
    }

    /// The number of members that the patch clears.
    pub fn cleared(&self) -> usize {
        self.changes.cleared()
    }

    /// Why it is denied: the first [`MOST_VIOLATIONS`](crate::union::MOST_VIOLATIONS), and the number of the rest. In
    /// mutating admission these are contradictions only.
    pub fn violations(&self) -> &Capped<Violation> {
        &self.violations
    }

    /// Violations that don't count, and why, with the same cap. Empty in mutating admission.
    pub fn let_through(&self) -> &Capped<(Violation, LetThrough)> {
        &self.let_through
    }

    /// The warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The message of a denial.
    pub fn denial(&self) -> Option<&str> {
        self.denial.as_ref().map(Denial::message)
    }

    /// The faults of a denial: path and message of each.
    pub fn causes(&self) -> impl Iterator<Item = (&str, &str)> {
        let causes = self.denial.iter().flat_map(Denial::causes);
        causes.map(|cause| (&*cause.field, &*cause.message))
    }

    /// The paths of a denial, for the log.
    pub fn denied_paths(&self) -> Vec<String> {
        self.causes().map(|(path, _)| path.to_owned()).collect()
    }
}
