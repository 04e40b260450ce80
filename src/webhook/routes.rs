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
use super::refusal::RequestRefusal;
use super::reviews::Reviews;
use super::turns::Turns;
use crate::telemetry::{METRICS_CONTENT_TYPE, Metrics, SpanStart};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use kube_unions_core::admission::{InspectionToken, Phase, ReviewError};
use kube_unions_core::causes::with_causes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use tower_http::catch_panic::{CatchPanicLayer, ResponseForPanic};

/// Length from which a body is reviewed on a blocking thread, so that it delays no other request.
const INLINE: usize = 256 * 1024;

/// Content type of the answers to probes.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Everything that the routes of the webhook port share.
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

/// Everything that the routes of the ops port share.
#[derive(Clone)]
pub(super) struct Ops {
    pub(super) readiness: Readiness,
    pub(super) exposition: Arc<Exposition>,
    pub(super) metrics: Arc<Metrics>,
}

/// Returns the routes of the webhook port.
pub(super) fn webhook(state: Arc<Webhook>) -> Router {
    let panics = panic_layer(&state.metrics);
    Router::new()
        .route("/mutate", post(|state, request| review(state, Phase::Mutate, request)))
        .route("/validate", post(|state, request| review(state, Phase::Validate, request)))
        .route(&format!("{}{{token}}", InspectionToken::PREFIX), any(inspect))
        .method_not_allowed_fallback(async |State(webhook): State<Arc<Webhook>>, request: Request| {
            webhook.refuse(request, RequestRefusal::MethodNotAllowed("POST")).await
        })
        .fallback(async |State(webhook): State<Arc<Webhook>>, request: Request| {
            webhook.refuse(request, RequestRefusal::NotFound).await
        })
        .layer(panics)
        .with_state(state)
}

/// Returns the routes of the ops port.
pub(super) fn ops(state: Ops) -> Router {
    let panics = panic_layer(&state.metrics);
    Router::new()
        .route("/livez", get(|| async { text(StatusCode::OK, PLAIN, "ok\n") }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(|| async { RequestRefusal::MethodNotAllowed("GET, HEAD") })
        .fallback(|| async { RequestRefusal::NotFoundOps })
        .layer(panics)
        .with_state(state)
}

/// Answers a request whose handler panics with 500, and counts it.
fn panic_layer(metrics: &Arc<Metrics>) -> CatchPanicLayer<impl ResponseForPanic<ResponseBody = Body> + use<>> {
    let metrics = Arc::clone(metrics);
    CatchPanicLayer::custom(move |_panic| {
        metrics.panics.inc();
        RequestRefusal::Internal.into_response()
    })
}

async fn review(State(webhook): State<Arc<Webhook>>, phase: Phase, request: Request) -> Response {
    webhook.respond(webhook.review(phase, request).await)
}

/// Inspects at the token's path. With any other token it answers as at an unknown path, for every method.
async fn inspect(State(webhook): State<Arc<Webhook>>, request: Request) -> Response {
    match webhook.inspections.as_ref().filter(|inspections| inspections.is_at(request.uri().path())) {
        Some(inspections) if request.method() == Method::POST => {
            webhook.respond(webhook.inspect(inspections, request).await)
        }
        Some(_) => webhook.refuse(request, RequestRefusal::MethodNotAllowed("POST")).await,
        None => webhook.refuse(request, RequestRefusal::NotFound).await,
    }
}

async fn ready(State(ops): State<Ops>, uri: Uri) -> Response {
    let report = ops.readiness.report();
    let code = if report.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let verbose = uri.query().is_some_and(asks_for_details);
    let body = if report.is_ready() && !verbose { "ok\n".to_owned() } else { report.to_string() };
    text(code, PLAIN, body)
}

async fn metrics(State(ops): State<Ops>) -> Result<Response, RequestRefusal> {
    let body = ops.exposition.text().map_err(|_| RequestRefusal::Internal)?;
    Ok(text(StatusCode::OK, METRICS_CONTENT_TYPE, Bytes::from_owner(body)))
}

/// A review that is to be answered, for a caller that waits for it.
struct ReviewJob<'c> {
    phase: Phase,
    start: Option<SpanStart>,
    caller: &'c Caller,
    waits: Waits,
}

/// The result of one attempt to answer a review.
enum ReviewAttempt {
    /// The answer, which holds its bytes of the budget until it is sent.
    Answered(Reserved),
    /// Other requests hold the memory that the review needs. Returns the body.
    NoRoom(Reserved),
}

impl Webhook {
    fn respond(&self, answer: Result<Reserved, RequestRefusal>) -> Response {
        match answer {
            Ok(json) => text(StatusCode::OK, "application/json", Bytes::from_owner(json)),
            Err(refusal) => {
                if let Some(reason) = refusal.pressure_label() {
                    self.metrics.refused.get_or_create(&[("reason", reason)]).inc();
                }
                refusal.into_response()
            }
        }
    }

    /// Answers the review in `request`, as long as its caller waits.
    async fn review(&self, phase: Phase, request: Request) -> Result<Reserved, RequestRefusal> {
        let start = self.reviews.start_span(request.headers());
        let caller = Caller::new(request.uri().query(), &self.metrics.given_up);
        let connection = connection_of(&request)?;
        let announced = request.body().size_hint().exact().and_then(|exact| usize::try_from(exact).ok());
        if let Some(length) = announced.filter(|length| *length >= INLINE)
            && let Err(refusal) = self.turns.check(length, caller.deadline)
        {
            return Err(self.bodies.refuse(request, refusal).await);
        }
        let body =
            caller.wait(self.bodies.read(request, &connection)).await.unwrap_or(Err(RequestRefusal::BodyTimeout))?;
        caller
            .attend(|waits| self.review_body(ReviewJob { phase, start, caller: &caller, waits }, body, &connection))
            .await
    }

    /// Answers a review. One that runs out of memory is repeated when other requests have freed some.
    async fn review_body(
        &self,
        job: ReviewJob<'_>,
        body: Reserved,
        connection: &Connection,
    ) -> Result<Reserved, RequestRefusal> {
        let mut body = match self.attempt(&job, body).await? {
            ReviewAttempt::Answered(answer) => return Ok(answer),
            ReviewAttempt::NoRoom(body) => body,
        };
        let repeated = async {
            // The semaphore is never closed.
            let _retry = self.retries.acquire().await.map_err(|_| RequestRefusal::Internal)?;
            loop {
                body = match self.attempt(&job, body).await? {
                    ReviewAttempt::Answered(answer) => return Ok(answer),
                    ReviewAttempt::NoRoom(body) => body,
                };
                self.bodies.until_room(connection, body.lacks()).await?;
            }
        };
        // Bodies that are being read give up sooner, which frees memory for a review whose caller still waits.
        match job.caller.deadline {
            Some(_) => repeated.await,
            None => self.bodies.for_memory(repeated).await,
        }
    }

    /// Answers a review once: a small one in place, a large one in its turn on a blocking thread.
    async fn attempt(&self, job: &ReviewJob<'_>, body: Reserved) -> Result<ReviewAttempt, RequestRefusal> {
        let (phase, start) = (job.phase, job.start.clone());
        if body.len() < INLINE {
            return attempt(&self.reviews, phase, body, start, &job.waits);
        }
        let turn = self.turns.take(body.len(), job.caller.deadline).await?;
        let (reviews, waits) = (Arc::clone(&self.reviews), Arc::clone(&job.waits));
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
    async fn inspect(&self, inspections: &Inspections, request: Request) -> Result<Reserved, RequestRefusal> {
        let start = self.reviews.start_span(request.headers());
        let caller = Caller::new(request.uri().query(), &self.metrics.given_up);
        let connection = connection_of(&request)?;
        let body =
            caller.wait(self.bodies.read(request, &connection)).await.unwrap_or(Err(RequestRefusal::BodyTimeout))?;
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

    async fn refuse(&self, request: Request, refusal: RequestRefusal) -> Response {
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

/// Returns the connection on which a request arrived.
fn connection_of(request: &Request) -> Result<Arc<Connection>, RequestRefusal> {
    // The accept loop sets it for every request.
    request.extensions().get().cloned().ok_or(RequestRefusal::Internal)
}

/// Returns true for `?verbose`, with or without a value, as the API server does.
fn asks_for_details(query: &str) -> bool {
    query.split('&').any(|it| it.split('=').next() == Some("verbose"))
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    (code, [(CONTENT_TYPE, HeaderValue::from_static(content_type))], body.into()).into_response()
}
