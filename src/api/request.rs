//! Single requests to the API server, for commands that run once.
//!
//! Knows nothing of watches and retries.

use crate::causes::with_causes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Timeout of a request. It exceeds the longest webhook call that the API server may wait for.
pub(crate) const LIMIT: Duration = Duration::from_secs(35);

/// Media types of patches.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// The reason why the API server did not carry out a request.
#[derive(Debug, Clone)]
pub(crate) enum Refused {
    /// It answered with an error.
    Status(Box<Status>),
    /// It did not answer, or the answer is malformed.
    Unanswered(String),
}

impl Refused {
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
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) if status.message.is_empty() => write!(out, "HTTP status {}", status.code),
            Self::Status(status) => out.write_str(status.message.trim()),
            Self::Unanswered(reason) => write!(out, "the API server does not answer: {reason}"),
        }
    }
}

/// Sends a request without a body.
pub(crate) async fn send(client: &Client, method: Method, path: &str) -> Result<Value, Refused> {
    request(client, Request::builder().method(method).uri(path).body(Vec::new())).await
}

/// Sends a request with a body of this media type.
pub(crate) async fn write(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<Value, Refused> {
    let body = body.to_string().into_bytes();
    request(client, Request::builder().method(method).uri(path).header(CONTENT_TYPE, media_type).body(body)).await
}

async fn request(client: &Client, request: Result<Request<Vec<u8>>, hyper::http::Error>) -> Result<Value, Refused> {
    let request = request.map_err(|error| Refused::Unanswered(with_causes(&error)))?;
    match tokio::time::timeout(LIMIT, client.request::<Value>(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Refused::Status(status)),
        Ok(Err(error)) => Err(Refused::Unanswered(with_causes(&error))),
        Err(_) => Err(Refused::Unanswered(format!("not within {} s", LIMIT.as_secs()))),
    }
}
