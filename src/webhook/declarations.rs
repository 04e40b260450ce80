//! Reviews of objects that declare unions: `UnionDeclaration`s, and CRDs that carry the annotation.
//!
//! They are answered at a path that ends in a token which only the API server is told, since an answer may cost requests
//! to the API server and tells what is in the cluster. At every other path such a review is one of a kind without unions.
//!
//! A CRD is judged by itself ([`definition_faults`]); a `UnionDeclaration` needs the schema of its target, which an
//! [`Inspector`] reads. An inspector that fails denies nothing: the condition of the declaration will tell. Nor is an
//! object denied for a fault that it had before, so that its labels can be changed whatever else has changed.

mod finding;
mod request;
mod seats;

use super::budget::Budget;
use crate::causes::with_causes;
use crate::telemetry::Inspections as Counted;
use finding::Finding;
use futures::future::BoxFuture;
use kube_unions_core::admission::response::{AdmissionResponse, Annotations, Denial, DenialCause, Warnings};
use kube_unions_core::admission::{InspectionToken, Operation, ReviewOutcome};
use kube_unions_core::catalog::definition_faults;
use kube_unions_core::declaration::{Fault, Severity, Source};
use request::{Request, Subject, SubjectKind};
use seats::{NoSeats, Seats, Taken};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

use request::RequestError;

/// Finds everything wrong with a `UnionDeclaration`, given as the JSON text of the whole object.
pub type Inspector = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<Fault>, InspectorError>> + Send + Sync>;

/// Why an inspector has nothing to say.
pub type InspectorError = Box<dyn std::error::Error + Send + Sync>;

/// Longest wait for an inspector. The API server waits five seconds for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The reason of every fault, as the API has them (`metav1.CauseType`).
const INVALID: &str = "FieldValueInvalid";

/// Answers reviews of objects that declare unions.
pub(super) struct Inspections {
    inspector: Inspector,
    token: watch::Receiver<Option<InspectionToken>>,
    seats: Seats,
    /// Held while a CRD is compiled, so that the processors are left to reviews.
    compiling: Arc<Semaphore>,
    counted: Counted,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum InspectionError {
    /// The body is not a review that can be answered.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Others are being inspected.
    #[error("too many objects that declare unions are being checked; try again")]
    Busy,
}

/// The answer to one review.
#[derive(Debug)]
pub(super) struct Inspected {
    pub(super) json: Vec<u8>,
    pub(super) uid: String,
    pub(super) operation: Operation,
    pub(super) outcome: ReviewOutcome,
    /// The outcome, and where it says too little, more.
    label: &'static str,
    /// Group and kind of the object.
    pub(super) kind: (&'static str, &'static str),
    /// The paths of a denial.
    pub(super) denied: Vec<String>,
}

impl Inspections {
    pub(super) fn new(
        inspector: Inspector,
        token: watch::Receiver<Option<InspectionToken>>,
        budget: &Arc<Budget>,
        counted: Counted,
    ) -> Self {
        Self { inspector, token, seats: Seats::new(budget), compiling: Arc::new(Semaphore::new(1)), counted }
    }

    /// True if a path is the one that the API server was told. Takes as long for each wrong one of the same length.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.token.borrow().as_ref().is_some_and(|token| token.is_path(path))
    }

    /// Answers the review in `body`, and gives the body back.
    pub(super) async fn answer<B>(&self, body: B) -> (Result<Inspected, InspectionError>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let (answer, body) = self.seated(body).await;
        match &answer {
            Ok(answer) => self.count(answer.kind.1, answer.label),
            Err(InspectionError::Busy) => self.count("other", "busy"),
            Err(InspectionError::Request(_)) => {}
        }
        (answer, body)
    }

    /// Answers the review in `body` once there are seats for it.
    async fn seated<B>(&self, body: B) -> (Result<Inspected, InspectionError>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let seats = match Request::read(body.as_ref()) {
            Err(error) => Err(Err(error.into())),
            Ok(request) => match &request.subject {
                None => Err(Ok(Inspected::new(&request, &[]))),
                Some(subject) if subject.kind == SubjectKind::Definition && subject.unchanged => {
                    Err(Ok(Inspected::new(&request, &[])))
                }
                Some(subject) => match self.seats.take(subject).await {
                    Ok(seats) => Ok((subject.kind, seats)),
                    Err(NoSeats::Busy) => Err(Err(InspectionError::Busy)),
                    Err(NoSeats::TooLarge) => Err(Ok(Inspected::unchecked(&request, "it has too many entries"))),
                },
            },
        };
        match seats {
            Err(answer) => (answer, body),
            Ok((SubjectKind::Definition, seats)) => self.definition(body, seats).await,
            Ok((SubjectKind::Declaration, _seats)) => {
                let answer = match Request::read(body.as_ref()) {
                    Err(error) => Err(error.into()),
                    Ok(request) => Ok(self.inspect(&request).await),
                };
                (answer, body)
            }
        }
    }

    /// Answers the review of a CRD.
    async fn definition<B>(&self, body: B, seats: Taken) -> (Result<Inspected, InspectionError>, B)
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        let Ok(Ok(compiling)) = tokio::time::timeout(PATIENCE, Arc::clone(&self.compiling).acquire_owned()).await
        else {
            return (Err(InspectionError::Busy), body);
        };
        // With all that it holds: the client may be gone long before the CRD is compiled.
        let compiled = tokio::task::spawn_blocking(move || {
            let answer = Request::read(body.as_ref()).map(|request| match &request.subject {
                Some(subject) => Inspected::new(&request, &judge_definition(subject)),
                None => Inspected::new(&request, &[]),
            });
            drop((compiling, seats));
            (answer.map_err(Into::into), body)
        });
        match compiled.await {
            Ok(answered) => answered,
            // Compiling is never cut off but while the runtime ends.
            Err(error) => std::panic::resume_unwind(error.try_into_panic().unwrap_or_else(|error| Box::new(error))),
        }
    }

    async fn inspect(&self, request: &Request<'_>) -> Inspected {
        let declaration = request.subject.as_ref().filter(|subject| subject.kind == SubjectKind::Declaration);
        let Some(declaration) = declaration else { return Inspected::new(request, &[]) };
        match tokio::time::timeout(PATIENCE, (self.inspector)(declaration.object.to_owned())).await {
            Ok(Ok(faults)) => Inspected::new(request, &judge_declaration(declaration, &faults)),
            Ok(Err(error)) => Inspected::unchecked(request, &with_causes(&*error)),
            Err(_elapsed) => Inspected::unchecked(request, "the cluster did not answer in time"),
        }
    }

    fn count(&self, kind: &'static str, outcome: &'static str) {
        self.counted.get_or_create(&[("kind", kind), ("outcome", outcome)]).inc();
    }
}

impl fmt::Debug for Inspections {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inspections").finish_non_exhaustive()
    }
}

/// The weight of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// The object is denied.
    Denied,
    /// The object had the fault before.
    Old,
    /// The object takes effect, and may surprise.
    Surprise,
}

/// Weighs the faults of a declaration.
fn judge_declaration(subject: &Subject<'_>, faults: &[Fault]) -> Vec<(Finding, Weight)> {
    let weight = |fault: &Fault| match fault.severity {
        Severity::Warning => Weight::Surprise,
        Severity::Error if subject.unchanged => Weight::Old,
        Severity::Error => Weight::Denied,
    };
    faults.iter().map(|fault| (Finding::of_declaration(fault), weight(fault))).collect()
}

/// Finds the faults of a CRD and weighs them.
fn judge_definition(subject: &Subject<'_>) -> Vec<(Finding, Weight)> {
    let severity = |fault: &Fault| match fault.source {
        // kubectl has written it, and the CRD takes effect without it.
        Some(Source::LastApplied) => Severity::Warning,
        _ => fault.severity,
    };
    let findings = |text: &str| -> Vec<(Finding, Severity)> {
        definition_faults(text).iter().map(|fault| (Finding::of_definition(fault), severity(fault))).collect()
    };
    let now = findings(subject.object);
    let is_denied = |severity: Severity| severity == Severity::Error;
    // Most CRDs have no fault, and then the old one is not compiled.
    let old = subject.old.filter(|_| now.iter().any(|(_, severity)| is_denied(*severity)));
    let before: HashSet<Finding> =
        old.map(findings).unwrap_or_default().into_iter().map(|(finding, _)| finding).collect();
    let weigh = |(finding, severity): (Finding, Severity)| {
        let weight = match severity {
            Severity::Warning => Weight::Surprise,
            Severity::Error if before.contains(&finding) => Weight::Old,
            Severity::Error => Weight::Denied,
        };
        (finding, weight)
    };
    now.into_iter().map(weigh).collect()
}

impl Inspected {
    /// Denies for every fault that weighs so much at once; allows with warnings where there is none.
    fn new(request: &Request<'_>, findings: &[(Finding, Weight)]) -> Self {
        let denied: Vec<_> = findings.iter().filter(|(_, weight)| *weight == Weight::Denied).collect();
        if !denied.is_empty() {
            return Self::denied(request, denied.into_iter().map(|(finding, _)| finding));
        }
        let said = findings.iter().map(|(finding, weight)| {
            let why = match weight {
                Weight::Old => "the fault is an old one",
                Weight::Denied | Weight::Surprise => "may surprise",
            };
            (finding.warning(), format!("{} ({why})", finding.field))
        });
        Self::allowed(request, said)
    }

    /// Allows, and says that nothing was checked.
    fn unchecked(request: &Request<'_>, reason: &str) -> Self {
        let name = request.subject.as_ref().map_or("", |subject| &subject.name);
        let kind = request.subject.as_ref().map_or("", |subject| subject.kind.name());
        tracing::warn!(reason, kind, name, "an object that declares unions could not be checked and was let through");
        let later = match request.subject.as_ref().map(|subject| subject.kind) {
            Some(SubjectKind::Definition) => "`kube-unions lint` tells whether its unions are in force",
            Some(SubjectKind::Declaration) | None => "its condition will tell whether it is in force",
        };
        let warning = format!("not checked, {later}: {reason}");
        let allowed = Self::allowed(request, [(warning, "not checked".to_owned())]);
        Self { label: "unchecked", ..allowed }
    }

    /// Allows with warnings, each with a note for the audit log. The versions of a kind mostly have the same to say.
    fn allowed(request: &Request<'_>, said: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut warnings, mut annotations) = (Warnings::default(), Annotations::default());
        let (mut warned, mut noted) = (HashSet::new(), HashSet::new());
        for (warning, note) in said {
            if !warned.contains(&warning) {
                warnings.push(&warning);
                warned.insert(warning);
            }
            if !noted.contains(&note) {
                annotations.warned.push(&note);
                noted.insert(note);
            }
        }
        let (outcome, label) =
            if warned.is_empty() { (ReviewOutcome::Allowed, "allowed") } else { (ReviewOutcome::Warned, "warned") };
        let answer = AdmissionResponse {
            uid: &request.uid,
            denial: None,
            patch: None,
            warnings: &warnings.finish(),
            annotations: &annotations,
        };
        Self { json: answer.to_json(), outcome, label, denied: Vec::new(), ..Self::empty(request) }
    }

    fn denied<'f>(request: &Request<'_>, findings: impl Iterator<Item = &'f Finding>) -> Self {
        let mut annotations = Annotations::default();
        // The versions of a target mostly have the same fault.
        let mut told = HashSet::new();
        let causes: Vec<DenialCause> = findings
            .filter(|finding| told.insert(*finding))
            .map(|finding| DenialCause { reason: INVALID, message: finding.cause(), field: finding.field.clone() })
            .collect();
        let mut denied: Vec<String> = causes.iter().map(|cause| cause.field.clone()).collect();
        denied.dedup();
        for field in &denied {
            annotations.denied.push(format_args!("{field}: {INVALID}"));
        }
        let empty = Self::empty(request);
        let (group, kind) = empty.kind;
        let name = request.subject.as_ref().map(|subject| subject.name.to_string()).unwrap_or_default();
        let denial = Denial::new(group, kind, name, causes);
        let answer = AdmissionResponse {
            uid: &request.uid,
            denial: Some(&denial),
            patch: None,
            warnings: &[],
            annotations: &annotations,
        };
        Self { json: answer.to_json(), outcome: ReviewOutcome::Denied, label: "denied", denied, ..empty }
    }

    /// An answer without its text.
    fn empty(request: &Request<'_>) -> Self {
        let kind = request.subject.as_ref().map_or(("other", "other"), |it| (it.kind.group(), it.kind.name()));
        Self {
            json: Vec::new(),
            uid: request.uid.to_string(),
            operation: request.operation,
            outcome: ReviewOutcome::Allowed,
            label: "allowed",
            kind,
            denied: Vec::new(),
        }
    }
}
