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
use serde_json::Value;
use std::convert::Infallible;
use tower::BoxError;

/// The body of an answer. That of a watch ends with the watch.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    pub(crate) fn ok() -> Self {
        Self { code: StatusCode::OK, body: Value::Null, warnings: Vec::new() }
    }

    pub(crate) fn created() -> Self {
        Self { code: StatusCode::CREATED, ..Self::ok() }
    }

    pub(crate) fn of(body: Value) -> Self {
        Self { body, ..Self::ok() }
    }

    pub(crate) fn respond(self, clock: &Clock) -> Response<ResponseBody> {
        let mut response = text(self.code, "application/json", self.body.to_string(), clock);
        for (index, warning) in self.warnings.iter().enumerate() {
            if self.warnings.iter().take(index).any(|earlier| earlier == warning) {
                continue;
            }
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::try_from(format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }
}

pub(crate) fn failure(error: &ApiError, clock: &Clock) -> Response<ResponseBody> {
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
