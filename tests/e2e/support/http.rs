//! An HTTP client for tests: JSON in, status and JSON out. Every call has a time limit.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::http;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Longer than the minute after which an API server ends a request itself, whatever else the machine does. So a timeout is a failure.
const LIMIT: Duration = Duration::from_secs(75);

/// A client of one server. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    base: String,
    token: Option<String>,
}

/// An answer. A body that is not JSON is a JSON string here.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The texts of the `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl Client {
    /// A client of a plain HTTP server.
    pub(crate) fn plain(base: impl Into<String>) -> Self {
        Self { agent: agent(None, None), base: base.into(), token: None }
    }

    /// A client of a server whose certificate `ca` (PEM) signed.
    pub(crate) fn tls(base: impl Into<String>, ca: &str, token: Option<&str>) -> Self {
        Self { agent: agent(Some(ca), None), base: base.into(), token: token.map(str::to_owned) }
    }

    /// Returns a client that authenticates with a certificate and key, PEM.
    pub(crate) fn by_certificate(base: impl Into<String>, ca: &str, certificate: &str, key: &str) -> Self {
        let certificate = Certificate::from_pem(certificate.as_bytes()).expect("the client's certificate is PEM");
        let key = PrivateKey::from_pem(key.as_bytes()).expect("the client's key is PEM");
        let identity = ClientCert::new_with_certs(&[certificate], key);
        Self { agent: agent(Some(ca), Some(identity)), base: base.into(), token: None }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, String> {
        self.send("GET", path, "application/json", b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.send("POST", path, "application/json", body.to_string().as_bytes())
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, String> {
        self.send("DELETE", path, "application/json", b"")
    }

    /// Returns an error if there is no answer: no connection, a timeout, a broken transfer.
    pub(crate) fn send(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Result<Answer, String> {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let failed = |error: ureq::Error| format!("{method} {path}: {error}");
        let mut response = if body.is_empty() && method != "POST" {
            self.agent.run(request.body(()).expect("a request is well formed"))
        } else {
            self.agent.run(request.body(body).expect("a request is well formed"))
        }
        .map_err(failed)?;
        let status = response.status().as_u16();
        let headers = response.headers().get_all("warning").iter();
        let warnings = headers.map(|it| warning_text(&String::from_utf8_lossy(it.as_bytes()))).collect();
        // The metrics of an API server grow with its kinds.
        let text = response.body_mut().with_config().limit(64 << 20).read_to_string().map_err(failed)?;
        Ok(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)), warnings })
    }
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body of an answer that is text.
    pub(crate) fn text(&self) -> &str {
        self.body.as_str().unwrap_or_default()
    }
}

/// Returns the text of a header, for example `299 - "say \"when\""`.
fn warning_text(header: &str) -> String {
    let quoted = header.split_once('"').map_or(header, |(_, rest)| rest.strip_suffix('"').unwrap_or(rest));
    let mut text = String::new();
    let mut rest = quoted.chars();
    while let Some(next) = rest.next() {
        text.extend(if next == '\\' { rest.next() } else { Some(next) });
    }
    text
}

fn agent(ca: Option<&str>, identity: Option<ClientCert>) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .proxy(None)
        .timeout_global(Some(LIMIT));
    if let Some(ca) = ca {
        let ca = Certificate::from_pem(ca.as_bytes()).expect("the authority's certificate is PEM");
        let roots = RootCerts::Specific(Arc::new(vec![ca]));
        config = config.tls_config(TlsConfig::builder().root_certs(roots).client_cert(identity).build());
    }
    config.build().into()
}
