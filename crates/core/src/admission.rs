//! Answering an `AdmissionReview`: bytes in, bytes out, and the only place that knows the order of steps.
//!
//! ```text
//! bytes ─▶ request ─▶ catalog (kind → plan) ─▶ projections of new and old ─▶ judge ─▶ response ─▶ bytes
//! ```
//!
//! Pure: no clock, no network, no state but the catalog it is given. A body that can't be answered is a [`ReviewError`];
//! everything else has an answer.

mod error;
mod inspection;
mod request;
pub mod response;
mod review;
mod stored;
mod text;

pub use crate::meter::{Exhausted, Meter, Unmetered};
pub use error::ReviewError;
pub use inspection::InspectionToken;
pub use request::Operation;
pub use review::Review;
pub use stored::{StoredObject, StoredObjectError};

use crate::catalog::Catalog;
use crate::meter::Account;
use crate::union::{Rules, judge};
use request::Request;

/// Which of the API server's two calls a review belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Mutating admission: objects are normalised. Denied is only what contradicts itself, for nothing that comes later can
    /// mend that; other faults wait for validation, since another webhook may still repair the object.
    Mutate,
    /// Validating admission: objects are judged as they will be stored, and nothing is changed.
    Validate,
    /// One after the other, as becomes of a request in the end. For use without an API server.
    Both,
}

/// Whether a union that was invalid before and that the request does not touch is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ratcheting {
    /// It is, with a warning: a status update or the removal of a finalizer must not fail for an old fault.
    #[default]
    Enabled,
    /// It is not: every write must be valid, as the proposal of 2022 has it for its alpha.
    Disabled,
}

/// What came of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewOutcome {
    /// Allowed as it is.
    Allowed,
    /// Allowed with a patch.
    Patched,
    /// Allowed as it is, with a warning about an old fault.
    Warned,
    /// Denied.
    Denied,
}

/// Answers a review.
///
/// # Errors
/// Where the body is not an `AdmissionReview` of `admission.k8s.io/v1` that can be answered, and why.
pub fn review(catalog: &Catalog, phase: Phase, ratcheting: Ratcheting, body: &[u8]) -> Result<Review, ReviewError> {
    review_within(catalog, phase, ratcheting, body, &Unmetered)
}

/// Answers a review with no more memory than `meter` grants. The charges for the review that is returned stand for as long
/// as the meter does.
///
/// # Errors
/// As [`review`], and [`ReviewError::Exhausted`].
pub fn review_within(
    catalog: &Catalog,
    phase: Phase,
    ratcheting: Ratcheting,
    body: &[u8],
    meter: &dyn Meter,
) -> Result<Review, ReviewError> {
    let account = Account::new(meter);
    account.charge(review::FLAT)?;
    let request = Request::read(catalog, body, &account)?;
    account.charge(request.uid.len())?;
    let Some(subject) = &request.subject else {
        return Ok(Review::allow(&request));
    };
    let rules = Rules {
        normalize: phase != Phase::Validate,
        // Nothing that comes later can mend a contradiction. All else is for validation to say.
        validate: phase != Phase::Mutate,
        ratchet: ratcheting == Ratcheting::Enabled,
    };
    let judge = |rules| judge(subject.entry.plan(), subject.part, &subject.new, subject.old.as_ref(), rules, &account);
    let mut judgement = judge(rules)?;
    if !rules.validate && !judgement.violations.is_empty() {
        // It is denied. Then everything that is wrong is said at once.
        drop(judgement);
        judgement = judge(Rules { validate: true, ..rules })?;
    }
    let review = if judgement.violations.is_empty() {
        Review::patch(&request, phase, judgement, &account)
    } else {
        Review::deny(&request, judgement, &account)
    };
    Ok(review?)
}
