//! Answers an `AdmissionReview`: takes its bytes and returns the bytes of the response. This module fixes the order of the
//! steps.
//!
//! ```text
//! bytes ─▶ request ─▶ catalog (kind → plan) ─▶ projections of new and old ─▶ judge ─▶ response ─▶ bytes
//! ```
//!
//! The result depends on the catalog and the body alone. This module must not know a clock, the network or where the
//! catalog comes from. A body that cannot be answered is a [`ReviewError`]. [`response`] has the wire types;
//! [`StoredObject`] judges an object without a review.

mod error;
mod inspection;
mod manifests;
mod phase;
mod raw;
mod request;
pub mod response;
mod review;
mod stored;

pub use crate::meter::{Exhausted, Meter};
pub use error::ReviewError;
pub use inspection::InspectionToken;
pub use manifests::ApplyMethod;
pub use phase::{Phase, Ratcheting};
pub use request::Operation;
pub use review::{Review, ReviewOutcome};
pub use stored::{StoredObject, StoredObjectError};

use crate::catalog::Catalog;
use crate::meter::Unmetered;
use crate::union::{Manifests, Objects, Projection, Rules, judge};
use manifests::ManifestSource;
use request::AdmissionRequest;

/// Answers a review.
///
/// # Errors
/// Returns an error if the body is not an `AdmissionReview` of `admission.k8s.io/v1` that can be answered.
pub fn review(catalog: &Catalog, phase: Phase, ratcheting: Ratcheting, body: &[u8]) -> Result<Review, ReviewError> {
    review_within(catalog, phase, ratcheting, body, &Unmetered)
}

/// Answers a review of an apply whose manifest is known: JSON text with the fields that the author of the request sets. [`review`]
/// finds the manifest in the object, where the API server puts it. `method` tells how much of it the API server would keep there.
///
/// # Errors
/// Returns the errors of [`review`].
pub fn review_applied(
    catalog: &Catalog,
    phase: Phase,
    ratcheting: Ratcheting,
    body: &[u8],
    manifest: &str,
    method: ApplyMethod,
) -> Result<Review, ReviewError> {
    answer(catalog, phase, ratcheting, body, Some((manifest, method)), &Unmetered)
}

/// Answers a review with no more memory than `meter` grants. The memory of the returned review stays charged.
///
/// # Errors
/// Returns the errors of [`review`], and [`ReviewError::Exhausted`].
pub fn review_within(
    catalog: &Catalog,
    phase: Phase,
    ratcheting: Ratcheting,
    body: &[u8],
    meter: &dyn Meter,
) -> Result<Review, ReviewError> {
    answer(catalog, phase, ratcheting, body, None, meter)
}

fn answer(
    catalog: &Catalog,
    phase: Phase,
    ratcheting: Ratcheting,
    body: &[u8],
    manifest: Option<(&str, ApplyMethod)>,
    meter: &dyn Meter,
) -> Result<Review, ReviewError> {
    meter.charge(review::FLAT)?;
    let request = AdmissionRequest::read(catalog, body, meter)?;
    meter.charge(request.uid.len())?;
    let Some(subject) = &request.subject else {
        return Ok(Review::allow(&request));
    };
    let rules = Rules {
        normalize: phase != Phase::Validate,
        // No later step can resolve a contradiction. Validation reports everything else.
        validate: phase != Phase::Mutate,
        ratchet: ratcheting == Ratcheting::Enabled,
    };
    let judge = |rules, manifests: Option<&Manifests<Projection<'_>>>| {
        let objects = Objects { manifests, ..subject.objects() };
        let judgement = judge(subject.entry.plan(), subject.part, objects, rules, meter)?;
        if rules.validate || judgement.violations.is_empty() {
            return Ok(judgement);
        }
        // The review is denied, so report every violation at once.
        judgement.discard(meter);
        judge(subject.entry.plan(), subject.part, objects, Rules { validate: true, ..rules }, meter)
    };
    let mut judgement = judge(rules, None)?;
    // A manifest can only prevent a change, or explain a violation. A change that it prevented is its contradiction, which validation
    // alone tells as well.
    if !judgement.is_silent()
        && let Some(evidence) = manifest
            .map(|(text, method)| ManifestSource::given(text, method))
            .or_else(|| ManifestSource::of(&request, subject))
    {
        judgement.discard(meter);
        // Their memory is released afterwards.
        let texts = evidence.read(|source| source.text(subject, meter))?;
        let manifests = texts.as_ref().map(|texts| texts.read(|text| text.project(subject, meter))).transpose()?;
        judgement = judge(rules, manifests.flatten().as_ref())?;
    }
    let review = if judgement.violations.is_empty() {
        Review::patch(&request, phase, judgement, meter)
    } else {
        Review::deny(&request, judgement, meter)
    };
    Ok(review?)
}
