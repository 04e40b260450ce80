//! Error answers: a `Status` object, as the API server itself answers errors, that says why.

use axum::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

/// Why a request was not answered with a review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    BadRequest(String),
    #[error("there is nothing here; reviews are answered at /mutate and /validate")]
    NotFound,
    #[error("there is nothing here; try /livez, /readyz or /metrics")]
    NotFoundOps,
    #[error("only {0} is allowed here")]
    MethodNotAllowed(&'static str),
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the content type must be application/json")]
    MediaType,
    #[error("the memory for requests is used up by others; try again")]
    Budget,
    #[error(
        "this review needs more than {0} bytes of memory, which is all that one request can get; split the object, or raise --max-bytes-in-flight"
    )]
    NeverFits(usize),
    #[error("too many objects that declare unions are being checked; try again")]
    Inspections,
    #[error("a fault of this webhook, not of the request; its log says where")]
    Internal,
    #[error("the first list of definitions is not complete; try again")]
    NotReady,
    #[error("the body arrived too slowly while others waited for its room; try again")]
    TooSlow,
}

impl Refusal {
    fn code(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotFound | Self::NotFoundOps => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) | Self::NeverFits(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Budget | Self::TooSlow | Self::Inspections => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotReady => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// In the API server's own words (`metav1.StatusReason`).
    fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::NotFound | Self::NotFoundOps => "NotFound",
            Self::MethodNotAllowed(_) => "MethodNotAllowed",
            Self::BodyTimeout => "Timeout",
            Self::TooLarge(_) | Self::NeverFits(_) => "RequestEntityTooLarge",
            Self::MediaType => "UnsupportedMediaType",
            Self::Budget | Self::TooSlow | Self::Inspections => "TooManyRequests",
            Self::Internal => "InternalError",
            Self::NotReady => "ServiceUnavailable",
        }
    }

    /// The label of a refusal for want of memory.
    pub(super) fn of_memory(&self) -> Option<&'static str> {
        let is_passing = matches!(self, Self::Budget).then_some("budget");
        let never_fits = || matches!(self, Self::NeverFits(_)).then_some("never_fits");
        is_passing.or_else(never_fits).or_else(|| matches!(self, Self::TooLarge(_)).then_some("body"))
    }

    /// Whether the same request may succeed a moment later. The API server tries again only where it is told to.
    fn is_passing(&self) -> bool {
        matches!(self, Self::Budget | Self::TooSlow | Self::Inspections | Self::NotReady)
    }

    /// The answer to send.
    pub(super) fn into_response(self) -> Response<Body> {
        let code = self.code();
        let status = serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "reason": self.reason(),
            "code": code.as_u16(),
        });
        let mut response = Response::new(Body::from(status.to_string()));
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.is_passing() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self == Self::TooSlow {
            // The rest of the body is not waited for.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Self::MethodNotAllowed(allowed) = self {
            headers.insert(hyper::header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}
