//! Answers that do not come from the API server.

use std::io;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use hyper::Response;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};

use super::Shared;
use fixtures::api_server::status;

/// The bytes of an answer that nobody should read to its end.
const ENDLESS: usize = 512 * MIB;
const MIB: usize = 1024 * 1024;
/// The seconds after which a client is to try again.
const RETRY_SECONDS: u16 = 300;

/// Returns an error that says when to try again.
pub(super) fn failure(code: u16) -> Response<Body> {
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "ServiceUnavailable",
    };
    let response = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    let body = Body::from(status(code, reason, "injected").to_string());
    response.header(RETRY_AFTER, RETRY_SECONDS).body(body).expect("an answer is well formed")
}

/// Returns what a proxy with a login shows.
pub(super) fn page() -> Response<Body> {
    let response = Response::builder().header(CONTENT_TYPE, "text/html");
    response.body(Body::from("<html><body>Sign in</body></html>\n")).expect("an answer is well formed")
}

/// Returns a list, or the event of a watch, that counts when it was read to its end.
pub(super) fn endless(shared: Arc<Shared>) -> Response<Body> {
    let head = Bytes::from_static(br#"{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"spec":""#);
    let piece = Bytes::from(vec![b'a'; MIB]);
    let pieces = stream::iter(iter::repeat_n(piece, ENDLESS / MIB));
    let end = stream::once(async move {
        shared.swallowed.fetch_add(1, Ordering::Relaxed);
        Bytes::from_static(br#""}]}"#)
    });
    let body = stream::iter([head]).chain(pieces).chain(end);
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    response.body(Body::from_stream(body.map(io::Result::Ok))).expect("an answer is well formed")
}
