//! Single requests, and the one error that they have.
//!
//! The layer of the client bounds each in time and size, see [`super::deadline`].

use crate::causes::with_causes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use std::fmt;

/// Media types of patches.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// The reason why the API server did not carry out a request.
#[derive(Debug, Clone)]
pub enum RequestError {
    /// It answered with an error.
    Status(Box<Status>),
    /// It did not answer, or the answer is malformed.
    Unanswered(String),
}

impl RequestError {
    /// Returns the HTTP status of the answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status.code),
            Self::Unanswered(_) => None,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if rights are missing. They may have just been granted.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Returns true if the request itself is wrong: the same one would be refused again.
    pub(crate) fn is_final(&self) -> bool {
        self.code().is_some_and(|code| (400..500).contains(&code) && code != 429)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) if status.message.is_empty() => write!(out, "HTTP status {}", status.code),
            Self::Status(status) => out.write_str(status.message.trim()),
            Self::Unanswered(reason) => write!(out, "the API server does not answer: {reason}"),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error { Self::Status(status) } else { Self::Unanswered(with_causes(&error)) }
    }
}

/// Returns the answer to a request without a body.
pub(crate) async fn send(client: &Client, method: Method, path: &str) -> Result<Value, RequestError> {
    parsed(&exchange(client, Request::builder().method(method).uri(path).body(Vec::new())).await?)
}

/// Returns the answer to a request with a body of this media type.
pub(crate) async fn write(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<Value, RequestError> {
    let body = body.to_string().into_bytes();
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media_type).body(body);
    parsed(&exchange(client, request).await?)
}

/// Returns the text at a path.
pub(crate) async fn text(client: &Client, path: &str) -> Result<String, RequestError> {
    exchange(client, Request::get(path).body(Vec::new())).await
}

async fn exchange(
    client: &Client,
    request: Result<Request<Vec<u8>>, hyper::http::Error>,
) -> Result<String, RequestError> {
    let request = request.map_err(|error| RequestError::Unanswered(with_causes(&error)))?;
    Ok(client.request_text(request).await?)
}

fn parsed(text: &str) -> Result<Value, RequestError> {
    serde_json::from_str(text).map_err(|error| RequestError::Unanswered(format!("its answer is malformed: {error}")))
}
