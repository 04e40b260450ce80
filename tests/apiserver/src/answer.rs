//! Answers as HTTP responses.

use crate::clock::{Clock, http_date};
use crate::error::ApiError;
use futures::StreamExt;
use futures::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{CONTENT_TYPE, DATE, HeaderValue, RETRY_AFTER, WARNING};
use hyper::{Response, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use tower::BoxError;

/// The body of an answer. That of a watch ends with the watch.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Value,
}

/// The warnings of an answer, whatever becomes of the request: each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) fn extend(&self, warnings: impl IntoIterator<Item = String>) {
        let mut all = self.0.lock();
        for warning in warnings {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
    }

    /// Adds the headers to a response.
    pub(crate) fn add_to(&self, response: &mut Response<ResponseBody>) {
        for warning in self.0.lock().iter() {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
    }
}

impl Answer {
    pub(crate) fn of(body: Value) -> Self {
        Self { code: StatusCode::OK, body }
    }

    pub(crate) fn created(body: Value) -> Self {
        Self { code: StatusCode::CREATED, body }
    }

    pub(crate) fn respond(self, clock: &Clock) -> Response<ResponseBody> {
        text(self.code, "application/json", self.body.to_string(), clock)
    }
}

pub(crate) fn failure(error: &ApiError, clock: &Clock) -> Response<ResponseBody> {
    if error.is_page {
        return text(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n".to_owned(), clock);
    }
    let status = error.status();
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(code, "application/json", status.to_string(), clock);
    let retry = status.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
    if let Some(value) = retry.and_then(|seconds| HeaderValue::try_from(seconds.to_string()).ok()) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// Returns an answer whose body is text.
pub(crate) fn text(code: StatusCode, media_type: &'static str, body: String, clock: &Clock) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {}).boxed_unsync();
    with_head(Response::new(body), code, media_type, clock)
}

/// Returns an answer whose body is a stream of lines.
pub(crate) fn stream(lines: BoxStream<'static, String>, clock: &Clock) -> Response<ResponseBody> {
    let frames = lines.map(|line| Ok::<_, BoxError>(Frame::data(Bytes::from(line))));
    with_head(Response::new(StreamBody::new(frames).boxed_unsync()), StatusCode::OK, "application/json", clock)
}

fn with_head(
    mut response: Response<ResponseBody>,
    code: StatusCode,
    media_type: &'static str,
    clock: &Clock,
) -> Response<ResponseBody> {
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Ok(date) = HeaderValue::try_from(http_date(clock())) {
        headers.insert(DATE, date);
    }
    response
}
