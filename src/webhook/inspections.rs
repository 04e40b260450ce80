//! Inspections: reviews of objects that declare unions, which are `UnionDeclaration`s and CRDs with the annotation.
//!
//! They are answered at a path that ends in a secret token, which only the API server learns: an answer may cost requests to the
//! API server, and it shows what is in the cluster. At every other path such a review is one of a kind without unions.
//!
//! A CRD is judged by itself ([`definition_faults`]). A `UnionDeclaration` needs the schema of its target, which an
//! [`Inspector`] reads; this module must not know how. An inspector that fails denies nothing, because the condition of the
//! declaration reports the fault later. A fault that the old object has denies nothing either, so that its labels can be changed.
//!
//! `request` reads a review, `seats` bounds the memory, `finding` and `answer` write the answer.

mod answer;
mod finding;
mod request;
mod seats;

pub(super) use answer::Inspected;

use super::budget::Budget;
use super::config::Inspector;
use crate::telemetry::LabelledCounters;
use answer::{FindingEffect, InspectionResult};
use finding::InspectionFinding;
use kube_unions_core::admission::{InspectionToken, ReviewError};
use kube_unions_core::catalog::definition_faults;
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Fault, Severity, Source};
use request::{InspectedObject, InspectionRequest, SubjectKind, text_at};
use seats::{NoSeats, Seats, TakenSeats};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Longest wait for an inspector. The API server waits five seconds for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Answers reviews of objects that declare unions.
pub(super) struct Inspections {
    inspector: Inspector,
    token: watch::Receiver<Option<InspectionToken>>,
    seats: Seats,
    /// The one permit to compile a CRD, so that the processors are free for reviews.
    compiling: Arc<Semaphore>,
    counters: LabelledCounters<2>,
}

/// A review has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum InspectionError {
    /// The body is not a review that can be answered.
    #[error(transparent)]
    Request(#[from] ReviewError),
    /// Other inspections use all the memory.
    #[error("too many objects that declare unions are being checked: try again")]
    Busy,
}

impl Inspections {
    pub(super) fn new(
        inspector: Inspector,
        token: watch::Receiver<Option<InspectionToken>>,
        budget: &Arc<Budget>,
        counters: LabelledCounters<2>,
    ) -> Self {
        Self { inspector, token, seats: Seats::new(budget), compiling: Arc::new(Semaphore::new(1)), counters }
    }

    /// Returns true if `path` is the token's path. The comparison takes as long for each wrong path of the same length.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.token.borrow().as_ref().is_some_and(|token| token.is_path(path))
    }

    /// Answers the review in `body`, and returns the body.
    pub(super) async fn answer<B>(&self, body: B) -> (Result<Inspected, InspectionError>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let request = match InspectionRequest::read(body.as_ref()) {
            Ok(request) => request,
            Err(error) => return (Err(error.into()), body),
        };
        let (request, judgement, body) = self.judge(request, body).await;
        let Some(judgement) = judgement else {
            self.count("other", "busy");
            return (Err(InspectionError::Busy), body);
        };
        let answer = Inspected::new(request, &judgement);
        self.count(answer.kind.1, answer.label);
        (Ok(answer), body)
    }

    /// Inspects the object of a request. Returns no judgement if other inspections use all the memory.
    async fn judge<B>(&self, request: InspectionRequest, body: B) -> (InspectionRequest, Option<InspectionResult>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let nothing = InspectionResult::Findings(Vec::new());
        let Some(subject) = &request.subject else { return (request, Some(nothing), body) };
        if subject.kind == SubjectKind::Definition && subject.unchanged {
            return (request, Some(nothing), body);
        }
        let seats = match self.seats.take(subject, body.as_ref()).await {
            Ok(seats) => seats,
            Err(NoSeats::Busy) => return (request, None, body),
            Err(NoSeats::TooLarge) => {
                return (request, Some(InspectionResult::Unchecked("it has too many entries".to_owned())), body);
            }
        };
        match subject.kind {
            SubjectKind::Definition => self.judge_definition(request, body, seats).await,
            SubjectKind::Declaration => {
                let object = text_at(body.as_ref(), &subject.object).to_owned();
                let judgement = match tokio::time::timeout(PATIENCE, (self.inspector)(object)).await {
                    Ok(Ok(faults)) => judge_declaration(subject, &faults),
                    Ok(Err(error)) => InspectionResult::Unchecked(with_causes(&*error)),
                    Err(_elapsed) => InspectionResult::Unchecked("the cluster did not answer in time".to_owned()),
                };
                drop(seats);
                (request, Some(judgement), body)
            }
        }
    }

    /// Compiles a CRD on a blocking thread.
    async fn judge_definition<B>(
        &self,
        request: InspectionRequest,
        body: B,
        seats: TakenSeats,
    ) -> (InspectionRequest, Option<InspectionResult>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let permit = tokio::time::timeout(PATIENCE, Arc::clone(&self.compiling).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else { return (request, None, body) };
        // The thread owns the seats and the permit, because the client may go away before the CRD is compiled.
        let compiled = tokio::task::spawn_blocking(move || {
            let _held = (permit, seats);
            let judgement = request.subject.as_ref().map(|subject| judge_definition(subject, body.as_ref()));
            (request, judgement, body)
        });
        match compiled.await {
            Ok(judged) => judged,
            // The runtime cancels a blocking task only when it shuts down.
            Err(error) => std::panic::resume_unwind(error.try_into_panic().unwrap_or_else(|error| Box::new(error))),
        }
    }

    fn count(&self, kind: &'static str, outcome: &'static str) {
        self.counters.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc();
    }
}

/// Decides the effect of a fault. `is_old` is true if the old object has it.
fn effect(severity: Severity, is_old: bool) -> FindingEffect {
    match severity {
        Severity::Note => FindingEffect::Noted,
        Severity::Warning => FindingEffect::Surprising,
        Severity::Error if is_old => FindingEffect::Old,
        Severity::Error => FindingEffect::Denied,
    }
}

/// Decides the effect of each fault of a declaration.
fn judge_declaration(subject: &InspectedObject, faults: &[Fault]) -> InspectionResult {
    // Other notes are in the condition: whoever applies the declaration cannot change anything about them.
    let told = faults.iter().filter(|fault| fault.severity() != Severity::Note || fault.left_out);
    let with_effect = |fault| (InspectionFinding::of_declaration(fault), effect(fault.severity(), subject.unchanged));
    InspectionResult::Findings(told.map(with_effect).collect())
}

/// Finds the faults of a CRD and decides the effect of each.
fn judge_definition(subject: &InspectedObject, body: &[u8]) -> InspectionResult {
    let severity = |fault: &Fault| match fault.source {
        // kubectl wrote this part of the CRD, which takes effect without it.
        Some(Source::LastApplied) => Severity::Warning,
        _ => fault.severity(),
    };
    let findings = |text: &str| -> Vec<(InspectionFinding, Severity)> {
        let faults = definition_faults(text);
        faults.iter().map(|fault| (InspectionFinding::of_definition(fault), severity(fault))).collect()
    };
    let new = findings(text_at(body, &subject.object));
    // The old CRD is compiled only if the new one has an error, which is rare.
    let has_error = new.iter().any(|(_, severity)| *severity == Severity::Error);
    let old = subject.old.as_ref().filter(|_| has_error).map(|old| findings(text_at(body, old)));
    let old: HashSet<InspectionFinding> = old.unwrap_or_default().into_iter().map(|(finding, _)| finding).collect();
    let with_effect = |(finding, severity)| {
        let effect = effect(severity, old.contains(&finding));
        (finding, effect)
    };
    InspectionResult::Findings(new.into_iter().map(with_effect).collect())
}
