//! The way between a replica and the API server, which loses, delays and breaks requests, and at which a replica may end.

use crate::schedule::NetworkFault;
use crate::trace::Trace;
use fixtures::dice::Dice;
use futures::future::{BoxFuture, pending};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use simulated_apiserver::ResponseBody;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Service};

/// The client's side of a connection between a replica and an API server.
#[derive(Clone)]
pub struct Network<S> {
    /// The API server.
    pub inner: S,
    /// The state of the way.
    pub link: Arc<Link>,
}

/// The state of the way of one replica. It outlives the replica's restarts.
pub struct Link {
    replica: usize,
    trace: Arc<Trace>,
    state: Mutex<LinkState>,
    /// The replica ends now.
    pub ends: Notify,
}

struct LinkState {
    dice: Dice,
    fault: Option<(NetworkFault, usize, Instant)>,
    /// No request is answered before this time.
    outage: Option<Instant>,
    /// Writes before the one at which the replica ends, and true if that one arrives.
    end_at: Option<(usize, bool)>,
    writes: Vec<Instant>,
}

/// The fate of a request.
enum Fate {
    Passes,
    Fails(NetworkFault, Duration),
    Refused,
    Ends { arrives: bool },
}

impl Link {
    /// Returns a way without faults.
    pub fn new(replica: usize, seed: u64, trace: Arc<Trace>) -> Arc<Self> {
        let dice = Dice(seed ^ (replica as u64 + 1) << 32);
        let state = LinkState { dice, fault: None, outage: None, end_at: None, writes: Vec::new() };
        Arc::new(Self { replica, trace, state: Mutex::new(state), ends: Notify::new() })
    }

    /// Makes requests fail until a time.
    pub fn fail(&self, fault: NetworkFault, percent: usize, until: Instant) {
        self.state.lock().fault = Some((fault, percent, until));
    }

    /// Refuses every request until a time.
    pub fn refuse(&self, until: Instant) {
        self.state.lock().outage = Some(until);
    }

    /// Ends the replica at one of its next writes.
    pub fn end_at_write(&self, writes: usize, arrives: bool) {
        self.state.lock().end_at = Some((writes, arrives));
    }

    /// Ends all faults.
    pub fn mend(&self) {
        let mut state = self.state.lock();
        (state.fault, state.outage, state.end_at) = (None, None, None);
    }

    /// Returns the times of the writes that the replica has sent.
    pub fn writes(&self) -> Vec<Instant> {
        self.state.lock().writes.clone()
    }

    fn fate(&self, is_write: bool) -> Fate {
        let now = Instant::now();
        let state = &mut *self.state.lock();
        if state.outage.is_some_and(|until| now < until) {
            return Fate::Refused;
        }
        if is_write {
            state.writes.push(now);
            match &mut state.end_at {
                Some((0, arrives)) => {
                    let arrives = *arrives;
                    state.end_at = None;
                    return Fate::Ends { arrives };
                }
                Some((writes, _)) => *writes -= 1,
                None => {}
            }
        }
        match state.fault {
            Some((fault, percent, until)) if now < until && state.dice.chance(percent) => {
                Fate::Fails(fault, Duration::from_millis(1_000 + state.dice.below(20_000) as u64))
            }
            _ => Fate::Passes,
        }
    }
}

impl<S> Service<Request<Body>> for Network<S>
where
    S: Service<Request<Body>, Response = Response<ResponseBody>, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut inner, link) = (self.inner.clone(), Arc::clone(&self.link));
        Box::pin(async move {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let watches = uri.query().is_some_and(|query| query.contains("watch=true"));
            let what = format!("{} {method} {}{}", link.replica, uri.path(), if watches { " watch" } else { "" });
            let fate = link.fate(method != Method::GET);
            // Each way takes a moment, or tasks would go round without time.
            sleep(Duration::from_millis(1)).await;
            let refused = |why: &str| -> BoxError { why.to_owned().into() };
            let answer = match fate {
                Fate::Refused => Err(refused("connection refused")),
                Fate::Ends { arrives } => {
                    if arrives {
                        drop(inner.call(request).await);
                    }
                    link.trace.note(format!("{what} ends, arrives: {arrives}"));
                    link.ends.notify_one();
                    pending().await
                }
                Fate::Passes => inner.call(request).await.map_err(Into::into),
                Fate::Fails(NetworkFault::Lost, _) => pending().await,
                Fate::Fails(NetworkFault::AnswerLost, _) => {
                    drop(inner.call(request).await);
                    pending().await
                }
                Fate::Fails(NetworkFault::Late, late) => {
                    sleep(late).await;
                    inner.call(request).await.map_err(Into::into)
                }
                Fate::Fails(NetworkFault::AnswerCut, _) => {
                    cut(inner.call(request).await.map_err(Into::into)?, watches).await
                }
                Fate::Fails(NetworkFault::TooMany, _) => Ok(status(429)),
                Fate::Fails(NetworkFault::Broken, _) => Ok(status(500)),
            };
            let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            link.trace.note(format!("{what} {code}"));
            answer
        })
    }
}

/// Cuts the body of an answer in half, and a watch before its first event.
async fn cut(answer: Response<ResponseBody>, watches: bool) -> Result<Response<ResponseBody>, BoxError> {
    let (head, body) = answer.into_parts();
    if watches {
        return Ok(Response::from_parts(head, full(Bytes::new())));
    }
    let bytes = body.collect().await?.to_bytes();
    let half = bytes.slice(..bytes.len() / 2);
    Ok(Response::from_parts(head, full(half)))
}

fn status(code: u16) -> Response<ResponseBody> {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "a fault"});
    let mut answer = Response::new(full(status.to_string().into()));
    *answer.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or_default();
    answer
}

fn full(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
