//! What is answered where: from an HTTP request to a review's answer, or to a refusal.

use super::readiness::Readiness;
use super::reviews::{Answered, Reviews};
use super::status::Refusal;
use super::{Limits, Timeouts};
use crate::admission::Phase;
use crate::telemetry::{METRICS_CONTENT_TYPE, Metrics, with_causes};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::{any, get, post};
use futures::FutureExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A larger body is reviewed on a thread of its own, so that it keeps no other request waiting.
const INLINE: usize = 256 * 1024;

/// How much of a body that is refused is read for politeness: a client that is cut off while it sends sees a broken
/// connection, and not the answer that says why.
const DISCARDED: usize = 32 * 1024 * 1024;

/// What the webhook port needs.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) reviews: Arc<Reviews>,
    pub(super) limits: Limits,
    pub(super) timeouts: Timeouts,
    /// One permit a byte.
    pub(super) budget: Arc<Semaphore>,
    pub(super) metrics: Arc<Metrics>,
}

/// The webhook port.
pub(super) fn webhook(state: Arc<Webhook>) -> Router {
    Router::new()
        .route("/mutate", post(|state, request| review(state, Phase::Mutate, request)))
        .route("/validate", post(|state, request| review(state, Phase::Validate, request)))
        .method_not_allowed_fallback(|state: State<Arc<Webhook>>, request| async move {
            state.refuse(request, Refusal::MethodNotAllowed("POST")).await
        })
        .fallback(|state: State<Arc<Webhook>>, request| async move { state.refuse(request, Refusal::NotFound).await })
        .with_state(state)
}

/// The webhook port, for a connection that is one too many.
pub(super) fn overflow(state: Arc<Webhook>) -> Router {
    Router::new()
        .fallback(any(|state: State<Arc<Webhook>>, request| async move {
            state.refuse(request, Refusal::Connections).await
        }))
        .with_state(state)
}

/// The ops port.
pub(super) fn ops(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
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
                match metrics.encode() {
                    Ok(body) => text(StatusCode::OK, METRICS_CONTENT_TYPE, body),
                    Err(_) => Refusal::Internal.into_response(),
                }
            }),
        )
        .method_not_allowed_fallback(|| async { Refusal::MethodNotAllowed("GET, HEAD").into_response() })
        .fallback(|| async { Refusal::NotFoundOps.into_response() })
}

async fn review(State(webhook): State<Arc<Webhook>>, phase: Phase, request: Request<Body>) -> Response<Body> {
    match AssertUnwindSafe(webhook.try_review(phase, request)).catch_unwind().await {
        Ok(Ok(json)) => text(StatusCode::OK, "application/json", json),
        Ok(Err((request, refusal))) => match request {
            Some(request) => webhook.refuse(request, refusal).await,
            None => refusal.into_response(),
        },
        Err(_panic) => {
            webhook.metrics.panics().inc();
            Refusal::Internal.into_response()
        }
    }
}

/// Why there is no review, with the request as far as its body has not been read yet.
type Unread = (Option<Request<Body>>, Refusal);

impl Webhook {
    async fn try_review(&self, phase: Phase, request: Request<Body>) -> Result<Vec<u8>, Unread> {
        let limit = self.limits.body;
        let begin = self.reviews.begin(request.headers());
        if !is_json(&request) {
            return Err((Some(request), Refusal::MediaType));
        }
        let size = request.body().size_hint();
        if usize::try_from(size.lower()).is_ok_and(|lower| lower > limit) {
            return Err((Some(request), Refusal::TooLarge(limit)));
        }
        // Of a body whose length is not told, the most is assumed.
        let reserved = size.exact().and_then(|it| usize::try_from(it).ok()).unwrap_or(limit).min(limit);
        let Some(budget) =
            u32::try_from(reserved).ok().and_then(|it| Arc::clone(&self.budget).try_acquire_many_owned(it).ok())
        else {
            return Err((Some(request), Refusal::Budget));
        };
        let body = self.read(request.into_body()).await.map_err(|refusal| (None, refusal))?;
        let answer = if body.len() < INLINE {
            self.reviews.answer(phase, &body, begin)
        } else {
            let (reviews, body) = (Arc::clone(&self.reviews), body.clone());
            match tokio::task::spawn_blocking(move || reviews.answer(phase, &body, begin)).await {
                Ok(answer) => answer,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // Only while the runtime shuts down.
                Err(_) => return Err((None, Refusal::Internal)),
            }
        };
        let answer = match answer {
            Some(Ok(Answered::Unknown(review, begin))) => Ok(self.reviews.answer_unknown(&body, &review, begin).await),
            Some(Ok(Answered::Whole(json))) => Ok(json),
            Some(Err(error)) => Err((None, Refusal::BadRequest(with_causes(&error)))),
            None => Err((None, Refusal::NotReady)),
        };
        drop(budget);
        answer
    }

    async fn read(&self, body: Body) -> Result<Bytes, Refusal> {
        let limit = self.limits.body;
        let whole = tokio::time::timeout(self.timeouts.body, Limited::new(body, limit).collect());
        match whole.await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge(limit)),
            Ok(Err(error)) => Err(Refusal::BadRequest(format!("the body cannot be read: {error}"))),
            Err(_elapsed) => Err(Refusal::BodyTimeout),
        }
    }

    /// Refuses, after what the client still sends.
    async fn refuse(&self, request: Request<Body>, refusal: Refusal) -> Response<Body> {
        // One that asks first has not begun to send, and does not once it is refused.
        let asks_first = request.headers().contains_key(EXPECT);
        let length = request.body().size_hint().lower();
        if !asks_first && usize::try_from(length).is_ok_and(|length| length <= DISCARDED) {
            let mut body = Limited::new(request.into_body(), DISCARDED);
            let drained = async { while let Some(Ok(_)) = body.frame().await {} };
            // Late or broken, the answer is the same.
            tokio::time::timeout(self.timeouts.body, drained).await.ok();
        }
        refusal.into_response()
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
