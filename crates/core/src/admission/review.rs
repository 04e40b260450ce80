//! Turns a judgement into the response of a review: a patch, warnings and annotations, or a denial.
//!
//! This module must not know how objects are judged ([`judge`](crate::union)) or how a response is written
//! ([`super::response`]).

use super::phase::Phase;
use super::raw::{field, string};
use super::request::{AdmissionRequest, Operation};
use super::response::{AdmissionResponse, Annotations, Denial, DenialCause, LONGEST_CAUSE, Listing, Warnings};
use crate::field_path::{AboutField, Printable, cut};
use crate::meter::{Exhausted, Meter, Unmetered, render};
use crate::names::GroupVersionKind;
use crate::union::{Capped, Change, ChangeReason, Judgement, LetThrough, Violation};

/// Bytes that every review takes in addition to its body.
pub(super) const FLAT: usize = 1024;

/// Longest name of an object that a denial shows, in bytes.
const LONGEST_NAME: usize = 253;

/// Longest discriminator value that an audit annotation shows, in bytes.
const LONGEST_VALUE: usize = 64;

/// The result of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewOutcome {
    /// Allowed without a change or a warning. The audit log may tell of a violation.
    Allowed,
    /// Allowed with a patch.
    Patched,
    /// Allowed without a change, with a warning about an old violation.
    Warned,
    /// Denied.
    Denied,
}

/// The result of one review, and the response to send.
#[derive(Debug)]
pub struct Review {
    uid: String,
    operation: Operation,
    ordinal: Option<usize>,
    outcome: ReviewOutcome,
    warnings: Vec<String>,
    judgement: Judgement,
    denial: Option<Denial>,
    annotations: Annotations,
}

impl Review {
    /// Allows a request without a change.
    pub(super) fn allow(request: &AdmissionRequest<'_>) -> Self {
        Self {
            uid: request.uid.to_string(),
            operation: request.operation,
            ordinal: request.ordinal,
            outcome: ReviewOutcome::Allowed,
            warnings: Vec::new(),
            judgement: Judgement::default(),
            denial: None,
            annotations: Annotations::default(),
        }
    }

    /// Allows a request with the changes of normalisation, and warns of each.
    pub(super) fn patch(
        request: &AdmissionRequest<'_>,
        phase: Phase,
        judgement: Judgement,
        meter: &dyn Meter,
    ) -> Result<Self, Exhausted> {
        let mut warnings = Warnings::default();
        let mut annotations = Annotations::default();
        for change in &judgement.changes {
            let listing = if change.clears() { &mut annotations.cleared } else { &mut annotations.set };
            if warnings.is_full() && listing.is_full() {
                warnings.leave_out(1);
                listing.leave_out(1);
                continue;
            }
            warnings.push(change);
            match &change.reason {
                ChangeReason::Deduced { value, .. } => {
                    listing.push(format_args!("{}=\"{}\"", change.path, Printable::new(value, LONGEST_VALUE)));
                }
                ChangeReason::ClearedByDiscriminator { .. }
                | ChangeReason::ClearedByMember { .. }
                | ChangeReason::ClearedUnowned
                | ChangeReason::ClearedNull => {
                    listing.push(&change.path);
                }
            }
        }
        // The API server sends each request to both phases. A warning of both would be shown twice.
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
        list(&judgement.audited, &mut annotations.audited);
        let warnings = warnings.finish();
        let outcome = match (judgement.changes.is_empty(), warnings.is_empty()) {
            (false, _) => ReviewOutcome::Patched,
            (true, false) => ReviewOutcome::Warned,
            (true, true) => ReviewOutcome::Allowed,
        };
        meter.charge(
            annotations.size().saturating_add(warnings.iter().map(|it| it.len() + size_of::<String>()).sum()),
        )?;
        Ok(Self { outcome, warnings, judgement, annotations, ..Self::allow(request) })
    }

    /// Denies a request with every violation at once.
    pub(super) fn deny(
        request: &AdmissionRequest<'_>,
        judgement: Judgement,
        meter: &dyn Meter,
    ) -> Result<Self, Exhausted> {
        // On CREATE the request may have no name, because the object has it.
        let in_object = || string(field(request.subject.as_ref()?.new.metadata(), "name")?);
        let name = if request.name.is_empty() { in_object().unwrap_or_default() } else { request.name.clone() };
        let Judgement { violations, audited, .. } = &judgement;
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
        }
        list(violations, &mut annotations.denied);
        list(audited, &mut annotations.audited);
        let (kind, name) = (&request.kind, cut(&name, LONGEST_NAME).to_owned());
        let denial = Denial::with_unlisted(&kind.group, &kind.name, name, causes, violations.left_out());
        meter.charge(annotations.size().saturating_add(denial.size()))?;
        let judgement = Judgement { changes: Vec::new(), ..judgement };
        let (outcome, denial) = (ReviewOutcome::Denied, Some(denial));
        Ok(Self { outcome, judgement, denial, annotations, ..Self::allow(request) })
    }

    /// Denies a request also for causes that are no violations of unions, and patches nothing. Without causes, nothing changes. Such a cause
    /// replaces the violations of its field.
    #[must_use]
    pub fn refused(mut self, kind: &GroupVersionKind, name: &str, causes: Vec<DenialCause>) -> Self {
        if causes.is_empty() {
            return self;
        }
        let own = self.denial.take().map(Denial::into_causes).unwrap_or_default();
        let is_told = |field: &str| causes.iter().any(|cause| cause.field == field);
        let own: Vec<DenialCause> = own.into_iter().filter(|own| !is_told(&own.field)).collect();
        self.judgement.violations.retain(|violation| !is_told(&violation.path.to_string()));
        let causes = own.into_iter().chain(causes);
        let denial = Denial::new(&kind.group, &kind.kind, cut(name, LONGEST_NAME).to_owned(), causes);
        self.judgement.changes.clear();
        Self { outcome: ReviewOutcome::Denied, warnings: Vec::new(), denial: Some(denial), ..self }
    }

    /// Returns the `AdmissionReview` to send.
    pub fn to_json(&self) -> Vec<u8> {
        // `Unmetered` never refuses memory.
        self.write(&Unmetered).unwrap_or_default()
    }

    /// Returns the `AdmissionReview` to send. Its memory stays charged to `meter`.
    pub fn write(&self, meter: &dyn Meter) -> Result<Vec<u8>, Exhausted> {
        let answer = AdmissionResponse {
            uid: &self.uid,
            denial: self.denial.as_ref(),
            patch: Some(&self.judgement.changes),
            warnings: &self.warnings,
            annotations: &self.annotations,
        };
        answer.write(meter)
    }

    /// Returns the uid of the request.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the operation of the request.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the result of the review.
    pub fn outcome(&self) -> ReviewOutcome {
        self.outcome
    }

    /// Returns the position of the kind in the catalog, `None` if the catalog does not have the kind.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }

    /// Returns the changes of the patch, in the order of paths.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = Change> {
        self.judgement.changes.iter().cloned()
    }

    /// Returns the number of members that the patch clears.
    pub fn cleared(&self) -> usize {
        self.judgement.changes.iter().filter(|change| change.clears()).count()
    }

    /// Returns the violations that deny the request: the first [`MOST_VIOLATIONS`](crate::union::MOST_VIOLATIONS), and the
    /// number of the rest. In mutating admission these are contradictions only.
    pub fn violations(&self) -> &Capped<Violation> {
        &self.judgement.violations
    }

    /// Returns the violations that do not count, with the reason, up to the same limit. Empty in mutating admission.
    pub fn let_through(&self) -> &Capped<(Violation, LetThrough)> {
        &self.judgement.let_through
    }

    /// Returns the violations that only the audit log tells of, up to the same limit. Empty in mutating admission, unless it
    /// denies the request.
    pub fn observed(&self) -> &Capped<Violation> {
        &self.judgement.observed
    }

    /// Returns the number of violations that the audit log tells of because their declaration asks for it. Each request that
    /// the API server sends to both phases has them once.
    pub fn audited(&self) -> usize {
        self.judgement.audited.total()
    }

    /// Returns the warnings for the client.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the message of a denial.
    pub fn denial(&self) -> Option<&str> {
        self.denial.as_ref().map(Denial::message)
    }

    /// Returns the path and the message of each cause of a denial.
    pub fn causes(&self) -> impl Iterator<Item = (&str, &str)> {
        let causes = self.denial.iter().flat_map(Denial::causes);
        causes.map(|cause| (&*cause.field, &*cause.message))
    }

    /// Returns the reason of each cause of a denial, a `metav1.CauseType`.
    pub fn reasons(&self) -> impl Iterator<Item = &'static str> {
        self.denial.iter().flat_map(Denial::causes).map(|cause| cause.reason)
    }

    /// Returns the paths of a denial, for the log.
    pub fn denied_paths(&self) -> Vec<String> {
        self.causes().map(|(path, _)| path.to_owned()).collect()
    }
}

/// Writes violations into an audit annotation.
fn list(violations: &Capped<Violation>, listing: &mut Listing) {
    for violation in violations.kept() {
        listing.push(AboutField { path: &violation.path.to_string(), text: violation.reason() });
    }
    listing.leave_out(violations.left_out());
}
