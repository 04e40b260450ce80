//! Single requests, and the one error that they have.
//!
//! The layer of the client bounds each in time and size, see `deadline`.

use super::endless::EndlessList;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use kube_unions_core::causes::with_causes;
use serde_json::Value;
use std::fmt;

/// Media type of objects.
pub const JSON: &str = "application/json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";
/// Media type of merge patches (RFC 7386).
pub const MERGE: &str = "application/merge-patch+json";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";

/// The reason why the API server did not carry out a request.
#[derive(Debug, Clone)]
pub enum RequestError {
    /// It answered with an error.
    Status(Box<Status>),
    /// It did not answer, or the answer is malformed.
    Unanswered(String),
    /// It answers a list page after page without an end.
    Endless(EndlessList),
}

/// A successful answer.
#[derive(Debug)]
pub struct ApiAnswer {
    /// The body.
    pub text: String,
    /// The API server's warnings, each once.
    pub warnings: Vec<String>,
}

impl RequestError {
    /// Reads the body of an answer that is no success. It is not a `Status` if a proxy answered.
    pub(super) fn read(code: u16, body: &str) -> Self {
        let status = serde_json::from_str::<Status>(body).ok().filter(Status::is_failure);
        Self::Status(Box::new(status.unwrap_or_else(|| Status::failure(body.trim(), "").with_code(code))))
    }

    /// Returns the HTTP status of the answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status.code),
            Self::Unanswered(_) | Self::Endless(_) => None,
        }
    }

    /// Returns true if the object or the path does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if rights are missing. They may have just been granted.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Returns true if the request itself is wrong: the same one would be refused again.
    pub fn is_final(&self) -> bool {
        self.code().is_some_and(|code| (400..500).contains(&code) && code != 429)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) if status.message.is_empty() => write!(out, "HTTP status {}", status.code),
            Self::Status(status) => out.write_str(status.message.trim()),
            Self::Unanswered(reason) => write!(out, "the API server does not answer: {reason}"),
            Self::Endless(reason) => reason.fmt(out),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error { Self::Status(status) } else { Self::Unanswered(with_causes(&error)) }
    }
}

impl From<serde_json::Error> for RequestError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unanswered(format!("its answer is malformed: {error}"))
    }
}

impl From<EndlessList> for RequestError {
    fn from(reason: EndlessList) -> Self {
        Self::Endless(reason)
    }
}

/// Returns the answer to a request without a body.
pub async fn send(client: &Client, method: Method, path: &str) -> Result<Value, RequestError> {
    Ok(serde_json::from_str(&exchange(client, method, path, None).await?.text)?)
}

/// Returns the answer to a request with a body of this media type.
pub async fn write(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> Result<Value, RequestError> {
    let text = if media_type == APPLY { as_yaml(body) } else { body.to_string() };
    let answer = exchange(client, method, path, Some((media_type, text))).await?;
    Ok(serde_json::from_str(&answer.text)?)
}

/// Returns JSON that is YAML as well: without the characters that YAML refuses, or takes for the end of a line (YAML 1.1, sections 5.1 and 5.4).
fn as_yaml(body: &Value) -> String {
    let is_special =
        |it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let escaped = |it: char| if is_special(it) { format!("\\u{:04x}", u32::from(it)) } else { it.to_string() };
    body.to_string().chars().map(escaped).collect()
}

/// Returns the text at a path.
pub async fn text(client: &Client, path: &str) -> Result<String, RequestError> {
    Ok(exchange(client, Method::GET, path, None).await?.text)
}

/// Returns the text at a path; `None` if it has more than `longest` bytes.
pub(super) async fn bounded_text(client: &Client, path: &str, longest: usize) -> Result<Option<String>, RequestError> {
    Ok(answer(client, Method::GET, path, None, longest).await?.map(|answer| answer.text))
}

/// Returns the answer to a request. A body comes with its media type.
pub(super) async fn exchange(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<(&str, String)>,
) -> Result<ApiAnswer, RequestError> {
    let answer = answer(client, method, path, body, usize::MAX).await?;
    answer.ok_or_else(|| RequestError::Unanswered("its answer is too long".to_owned()))
}

async fn answer(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<(&str, String)>,
    longest: usize,
) -> Result<Option<ApiAnswer>, RequestError> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some((media_type, _)) = &body {
        request = request.header(CONTENT_TYPE, *media_type);
    }
    let body = body.map(|(_, text)| text.into_bytes()).unwrap_or_default();
    let request = request.body(Body::from(body)).map_err(|error| RequestError::Unanswered(with_causes(&error)))?;
    let (head, mut body) = client.send(request).await?.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if bytes.len().saturating_add(data.len()) > longest {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
    }
    let text = String::from_utf8(bytes).map_err(kube::Error::FromUtf8)?;
    if !head.status.is_success() {
        return Err(RequestError::read(head.status.as_u16(), &text));
    }
    Ok(Some(ApiAnswer { text, warnings: warnings(&head.headers) }))
}

/// Returns the API server's warnings, each once: `299 - "text"` (RFC 7234, section 5.5).
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let mut warnings = Vec::new();
    for value in headers.get_all("warning").iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()) {
        let Some((_, quoted)) = value.split_once('"') else { continue };
        let mut text = String::new();
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => text.extend(characters.next()),
                other => text.push(other),
            }
        }
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_that_is_applied_has_no_character_that_yaml_does_not_take() {
        for (name, want) in [
            ("a\u{7f}", r"a\u007f"),
            ("\u{85}b", r"\u0085b"),
            ("\u{2028}\u{2029}", r"\u2028\u2029"),
            ("\u{feff}é\u{fffe}\u{ffff}", r"\ufeffé\ufffe\uffff"),
            ("\n\"😀", r#"\n\"😀"#),
        ] {
            let body = json!({name: [name]});
            let text = as_yaml(&body);
            assert_eq!(text, format!(r#"{{"{want}":["{want}"]}}"#));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), body);
        }
    }

    #[test]
    fn warnings_are_unquoted_and_listed_once() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "unknown field \"spec.x\"""#, r#"299 - "b""#, r#"299 - "b""#, "299"] {
            headers.append("warning", value.parse().unwrap());
        }
        assert_eq!(warnings(&headers), [r#"unknown field "spec.x""#, "b"]);
    }
}
