//! What is answered where: from an HTTP request to a review's answer, or to a refusal.

use super::budget::{Budget, Exhausted, Reserved};
use super::declarations::{InspectionError, Inspections};
use super::exposition::Exposition;
use super::connections::{Eviction, PATIENCE, Place};
use super::readiness::Readiness;
use super::reviews::Reviews;
use super::refusal::Refusal;
use super::{Limits, Timeouts};
use crate::causes::with_causes;
use crate::telemetry::{Begin, METRICS_CONTENT_TYPE, Metrics};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::{any, get, post};
use futures::FutureExt;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use kube_unions_core::admission::{InspectionToken, Phase, ReviewError};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A larger body is reviewed on a thread of its own, so that it keeps no other request waiting.
const INLINE: usize = 256 * 1024;

/// How much of a body that is refused is read for politeness: a client that is cut off while it sends sees a broken
/// connection, and not the answer that says why.
const DISCARDED: usize = 32 * 1024 * 1024;

/// What the webhook port needs.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) reviews: Arc<Reviews>,
    /// `None`: nothing is inspected.
    pub(super) inspections: Option<Inspections>,
    pub(super) limits: Limits,
    pub(super) timeouts: Timeouts,
    pub(super) budget: Arc<Budget>,
    /// For reviews of large bodies: as many at a time as there are processors.
    pub(super) turns: Arc<Semaphore>,
    /// For the review that is made again for want of memory: one at a time, so that they don't wake each other.
    pub(super) again: Semaphore,
    pub(super) metrics: Arc<Metrics>,
}

/// The webhook port.
pub(super) fn webhook(state: Arc<Webhook>) -> Router {
    Router::new()
        .route("/mutate", post(|state, request| review(state, Phase::Mutate, request)))
        .route("/validate", post(|state, request| review(state, Phase::Validate, request)))
        .route(&format!("{}{{token}}", InspectionToken::PREFIX), any(inspection))
        .method_not_allowed_fallback(|state: State<Arc<Webhook>>, request| async move {
            state.refuse(request, Refusal::MethodNotAllowed("POST")).await
        })
        .fallback(|state: State<Arc<Webhook>>, request| async move { state.refuse(request, Refusal::NotFound).await })
        .with_state(state)
}

/// The ops port.
pub(super) fn ops(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    let exposition = Arc::new(Exposition::new(metrics));
    Router::new()
        .route("/livez", get(|| async { text(StatusCode::OK, "text/plain; charset=utf-8", "ok\n") }))
        .route(
            "/readyz",
            get(|request: Request<Body>| async move {
                let report = readiness.report();
                let code = if report.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                let verbose = request.uri().query().is_some_and(asks_for_more);
                let body = if report.is_ready() && !verbose { "ok\n".to_owned() } else { report.to_string() };
                text(code, "text/plain; charset=utf-8", body)
            }),
        )
        .route(
            "/metrics",
            get(|| async move {
                match exposition.text() {
                    Ok(body) => text(StatusCode::OK, METRICS_CONTENT_TYPE, Bytes::from_owner(body)),
                    Err(_) => Refusal::Internal.into_response(),
                }
            }),
        )
        .method_not_allowed_fallback(|| async { Refusal::MethodNotAllowed("GET, HEAD").into_response() })
        .fallback(|| async { Refusal::NotFoundOps.into_response() })
}

async fn review(State(webhook): State<Arc<Webhook>>, phase: Phase, request: Request<Body>) -> Response<Body> {
    webhook.respond(webhook.try_review(phase, request)).await
}

/// Without the token this path is one where nothing is, whatever is asked.
async fn inspection(State(webhook): State<Arc<Webhook>>, request: Request<Body>) -> Response<Body> {
    match webhook.inspections.as_ref().filter(|inspections| inspections.is_at(request.uri().path())) {
        Some(inspections) if request.method() == Method::POST => {
            webhook.respond(webhook.try_inspection(inspections, request)).await
        }
        Some(_) => webhook.refuse(request, Refusal::MethodNotAllowed("POST")).await,
        None => webhook.refuse(request, Refusal::NotFound).await,
    }
}

impl Webhook {
    /// The response that carries an answer. A panic is answered, too.
    async fn respond(&self, answer: impl Future<Output = Result<Reserved, Refusal>>) -> Response<Body> {
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(Ok(json)) => text(StatusCode::OK, "application/json", Bytes::from_owner(json)),
            Ok(Err(refusal)) => {
                if let Some(reason) = refusal.of_memory() {
                    self.metrics.refused().get_or_create(&[("reason", reason)]).inc();
                }
                refusal.into_response()
            }
            Err(_panic) => {
                self.metrics.panics().inc();
                Refusal::Internal.into_response()
            }
        }
    }

    /// The review that answers `request`. It holds its part of the budget until it is sent.
    ///
    /// A review that finds no room for all that is built for it is made again when slow transfers have given their bytes back,
    /// one request at a time.
    async fn try_review(&self, phase: Phase, request: Request<Body>) -> Result<Reserved, Refusal> {
        let begin = self.reviews.begin(request.headers());
        let place = place_of(&request)?;
        let (answer, mut body) = self.answer(phase, self.body(request).await?, begin.clone()).await?;
        if let Some(answer) = settled(answer, &body) {
            return body.replace(answer?).map_err(|_| Refusal::Budget);
        }
        let again = async {
            // Closed by nobody.
            let _alone = self.again.acquire().await.map_err(|_| Refusal::Internal)?;
            loop {
                let mut given_back = pin!(self.budget.given_back());
                given_back.as_mut().enable();
                let eviction = place.places().evict_slowest();
                let (answer, back) = self.answer(phase, body, begin.clone()).await?;
                if let Some(answer) = settled(answer, &back) {
                    return back.replace(answer?).map_err(|_| Refusal::Budget);
                }
                body = back;
                match eviction {
                    Eviction::NotBefore(when) => drop(tokio::time::timeout_at(when, given_back).await),
                    Eviction::Told => given_back.await,
                    Eviction::Nobody => return Err(Refusal::Budget),
                }
            }
        };
        tokio::time::timeout(2 * PATIENCE, again).await.unwrap_or(Err(Refusal::Budget))
    }

    /// Makes a review once. `Err`: there is no answer to send.
    async fn answer(
        &self,
        phase: Phase,
        body: Reserved,
        begin: Option<Begin>,
    ) -> Result<(Option<Result<Vec<u8>, ReviewError>>, Reserved), Refusal> {
        if body.len() < INLINE {
            return Ok((self.reviews.answer(phase, body.as_ref(), &body, begin), body));
        }
        // Closed by nobody.
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Refusal::Internal)?;
        let reviews = Arc::clone(&self.reviews);
        // With its part of the budget and its turn: the client may be gone long before the review is made.
        let reviewed = tokio::task::spawn_blocking(move || {
            let answer = reviews.answer(phase, body.as_ref(), &body, begin);
            drop(turn);
            (answer, body)
        });
        match reviewed.await {
            Ok(reviewed) => Ok(reviewed),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Only while the runtime shuts down.
            Err(_) => Err(Refusal::Internal),
        }
    }

    /// The review of an object that declares unions. It holds its part of the budget likewise.
    async fn try_inspection(&self, inspections: &Inspections, request: Request<Body>) -> Result<Reserved, Refusal> {
        let begin = self.reviews.begin(request.headers());
        let body = self.body(request).await?;
        if !self.reviews.has_catalog() {
            return Err(Refusal::NotReady);
        }
        match self.reviews.inspect(begin, inspections.answer(body)).await {
            (Ok(inspected), body) => body.replace(inspected.json).map_err(|_| Refusal::Budget),
            (Err(InspectionError::Busy), _) => Err(Refusal::Inspections),
            (Err(InspectionError::Request(error)), _) => Err(Refusal::BadRequest(with_causes(&error))),
        }
    }

    /// The whole body of a request, once it is known to be of a kind that is answered.
    async fn body(&self, request: Request<Body>) -> Result<Reserved, Refusal> {
        let limit = self.limits.body;
        let deadline = Instant::now() + self.timeouts.body;
        if !is_json(&request) {
            return Err(self.unread(request, deadline, Refusal::MediaType).await);
        }
        let announced = request.body().size_hint();
        if usize::try_from(announced.lower()).is_ok_and(|lower| lower > limit) {
            return Err(self.unread(request, deadline, Refusal::TooLarge(limit)).await);
        }
        // Of a body whose length is not told, the most is assumed.
        let announced = announced.exact().and_then(|it| usize::try_from(it).ok()).unwrap_or(limit);
        let place = place_of(&request)?;
        self.read(request.into_body(), &place, announced, deadline).await
    }

    /// Reads all of `body`, as long as the budget has room for what arrives and its client is not too slow while others wait.
    async fn read(
        &self,
        mut body: Body,
        place: &Place,
        announced: usize,
        deadline: Instant,
    ) -> Result<Reserved, Refusal> {
        let limit = self.limits.body;
        let whole = async {
            let mut arrived = Reserved::new(&self.budget);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| Refusal::BadRequest(format!("the body cannot be read: {error}")))?;
                // Trailers say nothing to a review.
                let Ok(data) = frame.into_data() else { continue };
                if data.len() > limit - arrived.len() {
                    return Err(Refusal::TooLarge(limit));
                }
                if arrived.extend(&data, announced).is_err() {
                    self.make_room(place, || arrived.extend(&data, announced)).await?;
                    place.body_begins();
                }
            }
            place.is_busy_now();
            Ok(arrived)
        };
        // Whoever tells a connection to leave wakes its task, of which this is a part.
        let told = std::future::poll_fn(|_| if place.is_leaving() { Poll::Ready(()) } else { Poll::Pending });
        let whole = async {
            tokio::select! {
                biased;
                whole = whole => whole,
                () = told => Err(Refusal::TooSlow),
            }
        };
        match tokio::time::timeout_at(deadline, whole).await {
            Ok(Ok(arrived)) => Ok(arrived),
            Ok(Err(Refusal::TooSlow)) => Err(Refusal::TooSlow),
            Ok(Err(refusal)) => {
                discard(body, deadline).await;
                Err(refusal)
            }
            Err(_elapsed) => Err(Refusal::BodyTimeout),
        }
    }

    /// Tries `attempt` again for as long as slow transfers give their bytes back, the slowest first. It gives up when all
    /// others keep up: they may need what this request holds.
    async fn make_room<T>(
        &self,
        place: &Place,
        mut attempt: impl FnMut() -> Result<T, Exhausted>,
    ) -> Result<T, Refusal> {
        // Its client is not slow while nobody reads what it sends.
        place.is_busy_now();
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            let mut given_back = pin!(self.budget.given_back());
            given_back.as_mut().enable();
            if let Ok(done) = attempt() {
                return Ok(done);
            }
            let next = match place.places().evict_slowest() {
                Eviction::NotBefore(when) => when.min(end),
                Eviction::Told => end,
                Eviction::Nobody => return Err(Refusal::Budget),
            };
            if tokio::time::timeout_at(next, given_back).await.is_err() && Instant::now() >= end {
                return Err(Refusal::Budget);
            }
        }
    }

    /// Refuses, after what the client still sends.
    async fn refuse(&self, request: Request<Body>, refusal: Refusal) -> Response<Body> {
        self.unread(request, Instant::now() + self.timeouts.body, refusal).await.into_response()
    }

    /// Gives `refusal` back, after what the client still sends until `deadline`.
    async fn unread(&self, request: Request<Body>, deadline: Instant, refusal: Refusal) -> Refusal {
        // One that asks first has not begun to send, and does not once it is refused.
        if !request.headers().contains_key(EXPECT) {
            discard(request.into_body(), deadline).await;
        }
        refusal
    }
}

/// The place of the connection that a request came on.
fn place_of(request: &Request<Body>) -> Result<Arc<Place>, Refusal> {
    // Every connection has one.
    request.extensions().get::<Arc<Place>>().cloned().ok_or(Refusal::Internal)
}

/// The result of a review. `None`: others hold the bytes that it needs.
fn settled(answer: Option<Result<Vec<u8>, ReviewError>>, body: &Reserved) -> Option<Result<Vec<u8>, Refusal>> {
    match answer {
        Some(Ok(json)) => Some(Ok(json)),
        Some(Err(ReviewError::Exhausted(_))) => body.never_fits().map(|needed| Err(Refusal::NeverFits(needed))),
        Some(Err(error)) => Some(Err(Refusal::BadRequest(with_causes(&error)))),
        None => Some(Err(Refusal::NotReady)),
    }
}

/// Reads what is left of a body that is refused, unless it is too much.
async fn discard(body: Body, deadline: Instant) {
    if usize::try_from(body.size_hint().lower()).is_ok_and(|length| length <= DISCARDED) {
        let mut body = Limited::new(body, DISCARDED);
        let drained = async { while let Some(Ok(_)) = body.frame().await {} };
        // Late or broken, the answer is the same.
        tokio::time::timeout_at(deadline, drained).await.ok();
    }
}

/// `application/json`, with parameters or without.
fn is_json(request: &Request<Body>) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// `?verbose`, as the API server takes it: with any value, or none.
fn asks_for_more(query: &str) -> bool {
    query.split('&').any(|it| it.split('=').next() == Some("verbose"))
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
