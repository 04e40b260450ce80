//! The routes of both ports: from an HTTP request to its answer or its refusal.
//!
//! A request takes one way: read the body (`body`), answer the review (`reviews`, `inspections`), send the answer. The routes
//! must not know how a review is judged.

use super::body::BodyReader;
use super::budget::Reserved;
use super::caller::{AttendedMemory, Caller, Waits};
use super::connections::Connection;
use super::exposition::Exposition;
use super::inspections::{InspectionError, Inspections};
use super::readiness::Readiness;
use super::refusal::{HttpAnswer, RequestRefusal};
use super::reviews::Reviews;
use super::turns::Turns;
use crate::telemetry::{METRICS_CONTENT_TYPE, Metrics, SpanStart};
use futures::FutureExt;
use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use kube_unions_core::admission::{Phase, ReviewError};
use kube_unions_core::causes::with_causes;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// Length from which a body is reviewed on a blocking thread, so that it delays no other request.
const INLINE: usize = 256 * 1024;

/// Content type of the answers to probes.
const PLAIN: &str = "text/plain; charset=utf-8";

/// The routes of one port.
pub(super) trait Routes: Send + Sync + 'static {
    /// Answers a request that arrives on `connection`.
    fn answer(&self, request: Request<Incoming>, connection: &Connection) -> impl Future<Output = HttpAnswer> + Send;
}

/// The routes of the webhook port.
pub(super) struct Webhook {
    pub(super) reviews: Arc<Reviews>,
    /// `None` if nothing is inspected.
    pub(super) inspections: Option<Inspections>,
    pub(super) bodies: BodyReader,
    /// The order of reviews of large bodies.
    pub(super) turns: Arc<Turns>,
    /// The one permit for a review that is repeated after it ran out of memory, so that such reviews do not wake each other.
    pub(super) retries: Semaphore,
    pub(super) metrics: Arc<Metrics>,
}

/// The routes of the ops port.
pub(super) struct Ops {
    readiness: Readiness,
    exposition: Exposition,
}

impl Routes for Webhook {
    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> HttpAnswer {
        let path = request.uri().path();
        let phase = match path {
            "/mutate" => Some(Phase::Mutate),
            "/validate" => Some(Phase::Validate),
            _ => None,
        };
        let inspections = self.inspections.as_ref().filter(|inspections| phase.is_none() && inspections.is_at(path));
        match (phase, inspections) {
            (None, None) => self.refuse(request, RequestRefusal::NotFound).await,
            _ if request.method() != Method::POST => {
                self.refuse(request, RequestRefusal::MethodNotAllowed("POST")).await
            }
            (Some(phase), _) => self.respond(self.review(phase, request, connection)).await,
            (None, Some(inspections)) => self.respond(self.inspect(inspections, request, connection)).await,
        }
    }
}

impl Ops {
    /// Returns the routes of the ops port.
    pub(super) fn new(readiness: Readiness, metrics: Arc<Metrics>) -> Self {
        Self { readiness, exposition: Exposition::new(metrics) }
    }

    fn ready(&self, verbose: bool) -> HttpAnswer {
        let report = self.readiness.report();
        let code = if report.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let body = if report.is_ready() && !verbose { "ok\n".to_owned() } else { report.to_string() };
        text(code, PLAIN, body)
    }
}

impl Routes for Ops {
    async fn answer(&self, request: Request<Incoming>, _connection: &Connection) -> HttpAnswer {
        let path = request.uri().path();
        if !matches!(path, "/livez" | "/readyz" | "/metrics") {
            return RequestRefusal::NotFoundOps.into_response();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return RequestRefusal::MethodNotAllowed("GET, HEAD").into_response();
        }
        match path {
            "/livez" => text(StatusCode::OK, PLAIN, "ok\n"),
            "/readyz" => self.ready(request.uri().query().is_some_and(asks_for_details)),
            _ => match self.exposition.text() {
                Ok(body) => text(StatusCode::OK, METRICS_CONTENT_TYPE, Bytes::from_owner(body)),
                Err(_) => RequestRefusal::Internal.into_response(),
            },
        }
    }
}

/// The result of one attempt to answer a review.
enum ReviewAttempt {
    /// The answer, which holds its bytes of the budget until it is sent.
    Answered(Reserved),
    /// Other requests hold the memory that the review needs. Returns the body.
    NoRoom(Reserved),
}

impl Webhook {
    /// Sends an answer or a refusal. A panic becomes status 500.
    async fn respond(&self, answer: impl Future<Output = Result<Reserved, RequestRefusal>>) -> HttpAnswer {
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(Ok(json)) => text(StatusCode::OK, "application/json", Bytes::from_owner(json)),
            Ok(Err(refusal)) => {
                if let Some(reason) = refusal.pressure_label() {
                    self.metrics.refused.get_or_create(&[("reason", reason)]).inc();
                }
                refusal.into_response()
            }
            Err(_panic) => {
                self.metrics.panics.inc();
                RequestRefusal::Internal.into_response()
            }
        }
    }

    /// Answers the review in `request`, as long as its caller waits.
    async fn review(
        &self,
        phase: Phase,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<Reserved, RequestRefusal> {
        let start = self.reviews.start_span(request.headers());
        let caller = Caller::new(request.uri().query(), &self.metrics.given_up);
        let announced = request.body().size_hint().exact().and_then(|exact| usize::try_from(exact).ok());
        if let Some(length) = announced.filter(|length| *length >= INLINE)
            && let Err(refusal) = self.turns.check(length, caller.deadline)
        {
            return Err(self.bodies.refuse(request, refusal).await);
        }
        let body =
            caller.wait(self.bodies.read(request, connection)).await.unwrap_or(Err(RequestRefusal::BodyTimeout))?;
        caller.attend(|waits| self.review_body(phase, body, start, connection, (&caller, waits))).await
    }

    /// Answers a review. One that runs out of memory is repeated when other requests have freed some.
    async fn review_body(
        &self,
        phase: Phase,
        body: Reserved,
        start: Option<SpanStart>,
        connection: &Connection,
        (caller, waits): (&Caller, Waits),
    ) -> Result<Reserved, RequestRefusal> {
        let mut body = match self.attempt(phase, body, start.clone(), caller, &waits).await? {
            ReviewAttempt::Answered(answer) => return Ok(answer),
            ReviewAttempt::NoRoom(body) => body,
        };
        let repeated = async {
            // The semaphore is never closed.
            let _retry = self.retries.acquire().await.map_err(|_| RequestRefusal::Internal)?;
            let mut room = self.bodies.room(connection);
            loop {
                body = match self.attempt(phase, body, start.clone(), caller, &waits).await? {
                    ReviewAttempt::Answered(answer) => return Ok(answer),
                    ReviewAttempt::NoRoom(body) => body,
                };
                room.wait().await?;
            }
        };
        // Bodies that are being read give up sooner, which frees memory for a review whose caller still waits.
        match caller.deadline {
            Some(_) => repeated.await,
            None => self.bodies.for_memory(repeated).await,
        }
    }

    /// Answers a review once: a small one in place, a large one in its turn on a blocking thread.
    async fn attempt(
        &self,
        phase: Phase,
        body: Reserved,
        start: Option<SpanStart>,
        caller: &Caller,
        waits: &Waits,
    ) -> Result<ReviewAttempt, RequestRefusal> {
        if body.len() < INLINE {
            return attempt(&self.reviews, phase, body, start, waits);
        }
        let turn = self.turns.take(body.len(), caller.deadline).await?;
        let (reviews, waits) = (Arc::clone(&self.reviews), Arc::clone(waits));
        // The thread owns the body and the turn, because the client may go away before the review is done.
        let reviewed = tokio::task::spawn_blocking(move || {
            let result = attempt(&reviews, phase, body, start, &waits);
            turn.end(!matches!(result, Err(RequestRefusal::Deadline) | Ok(ReviewAttempt::NoRoom(_))));
            result
        });
        match reviewed.await {
            Ok(attempt) => attempt,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime shuts down.
            Err(_) => Err(RequestRefusal::Internal),
        }
    }

    /// Answers the review of an object that declares unions, as long as its caller waits.
    async fn inspect(
        &self,
        inspections: &Inspections,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Result<Reserved, RequestRefusal> {
        let start = self.reviews.start_span(request.headers());
        let caller = Caller::new(request.uri().query(), &self.metrics.given_up);
        let body =
            caller.wait(self.bodies.read(request, connection)).await.unwrap_or(Err(RequestRefusal::BodyTimeout))?;
        if !self.reviews.has_catalog() {
            return Err(RequestRefusal::NotReady);
        }
        let inspected = caller.attend(async |_| Ok(self.reviews.inspect(start, inspections.answer(body)).await));
        match inspected.await? {
            (Ok(inspected), body) => body.replace(inspected.json).map_err(|_| RequestRefusal::Budget),
            (Err(InspectionError::Busy), _) => Err(RequestRefusal::Inspections),
            (Err(InspectionError::Request(error)), _) => Err(RequestRefusal::BadRequest(with_causes(&error))),
        }
    }

    async fn refuse(&self, request: Request<Incoming>, refusal: RequestRefusal) -> HttpAnswer {
        self.bodies.refuse(request, refusal).await.into_response()
    }
}

fn attempt(
    reviews: &Reviews,
    phase: Phase,
    body: Reserved,
    start: Option<SpanStart>,
    waits: &AtomicBool,
) -> Result<ReviewAttempt, RequestRefusal> {
    let answer = reviews.answer(phase, body.as_ref(), &AttendedMemory::new(&body, waits), start);
    match answer {
        None => Err(RequestRefusal::NotReady),
        Some(Ok(json)) => body.replace(json).map(ReviewAttempt::Answered).map_err(|_| RequestRefusal::Budget),
        // The caller is gone and does not read this refusal.
        Some(Err(ReviewError::Exhausted(_))) if !waits.load(Ordering::Relaxed) => Err(RequestRefusal::Deadline),
        Some(Err(ReviewError::Exhausted(_))) => match body.never_fits() {
            Some(most) => Err(RequestRefusal::NeverFits(most)),
            None => Ok(ReviewAttempt::NoRoom(body)),
        },
        Some(Err(error)) => Err(RequestRefusal::BadRequest(with_causes(&error))),
    }
}

/// Returns true for `?verbose`, with or without a value, as the API server does.
fn asks_for_details(query: &str) -> bool {
    query.split('&').any(|it| it.split('=').next() == Some("verbose"))
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> HttpAnswer {
    let mut response = HttpAnswer::new(Full::new(body.into()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
