//! Refusals: answers with a `Status` object, in the form of the API server's own errors.
//!
//! `docs/reference/messages.md` lists each message and what to do about it.

use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};

/// The reason for answering a request with an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestRefusal {
    #[error("{0}")]
    BadRequest(String),
    #[error("nothing is served at this path: use /mutate or /validate")]
    NotFound,
    #[error("nothing is served at this path: use /livez, /readyz or /metrics")]
    NotFoundOps,
    #[error("method not allowed: use {0}")]
    MethodNotAllowed(&'static str),
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("the content type must be application/json")]
    MediaType,
    #[error("other requests use all the memory for requests: try again")]
    Budget,
    #[error(
        "this review needs more than {0} bytes of memory, which is the most that one request can get: split the object, or raise --max-bytes-in-flight"
    )]
    NeverFits(usize),
    #[error("too many objects that declare unions are being checked: try again")]
    Inspections,
    #[error("internal error of the webhook: see its log")]
    Internal,
    #[error("the reviews ahead take longer than the API server waits for this one: try again")]
    Late,
    #[error("the review was not done within the timeout of the request")]
    Deadline,
    #[error("the first list of definitions is not complete: try again")]
    NotReady,
    #[error("the body arrived too slowly while other requests waited for memory: try again")]
    TooSlow,
}

impl RequestRefusal {
    /// Returns the code of the answer, and the API server's own word for the reason (`metav1.StatusReason`).
    fn code_and_reason(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            Self::NotFound | Self::NotFoundOps => (StatusCode::NOT_FOUND, "NotFound"),
            Self::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Self::TooLarge(_) | Self::NeverFits(_) => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType"),
            Self::Budget | Self::Late | Self::TooSlow | Self::Inspections => {
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")
            }
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
            Self::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Self::Deadline => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
        }
    }

    /// Returns the label `reason` of a refusal for lack of memory or time; `None` for other refusals.
    pub(super) fn pressure_label(&self) -> Option<&'static str> {
        let labels = [
            (matches!(self, Self::Budget), "budget"),
            (matches!(self, Self::NeverFits(_)), "never_fits"),
            (matches!(self, Self::TooLarge(_)), "body"),
            (matches!(self, Self::Late), "late"),
        ];
        labels.into_iter().find_map(|(applies, label)| applies.then_some(label))
    }
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let (code, reason) = self.code_and_reason();
        let status = serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "reason": reason,
            "code": code.as_u16(),
        });
        let mut response = (code, status.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // The same request may succeed a moment later. The API server retries only after this header.
        if matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self == Self::TooSlow {
            // The server does not read the rest of the body.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Self::MethodNotAllowed(allowed) = self {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}
