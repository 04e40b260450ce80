//! An API server that keeps one Secret: `team/cert`.

use super::{SOON, status};
use axum::body::{Body as Answer, Bytes};
use http_body_util::BodyExt;
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tower::BoxError;

const SECRETS: &str = "/api/v1/namespaces/team/secrets";
const SECRET: &str = "/api/v1/namespaces/team/secrets/cert";

#[derive(Clone, Default)]
pub(super) struct Store(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    secret: Option<Value>,
    versions: u64,
    reads: HashMap<usize, u64>,
    clients: usize,
    forbidden: &'static str,
    away: bool,
    overwriting: Option<Value>,
}

impl Store {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Of one replica, and its number.
    pub(super) fn client(&self) -> (usize, Client) {
        let number = {
            let mut state = self.state();
            state.clients += 1;
            state.clients
        };
        let store = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let store = store.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let query = head.uri.query().unwrap_or_default().to_owned();
                // Watches never say anything: what a replica does must not depend on them.
                if query.contains("watch=true") {
                    tokio::time::sleep(SOON).await;
                }
                let (code, body) = store.answer(number, &head.method, head.uri.path(), &query, &body)?;
                Ok::<_, BoxError>(Response::builder().status(code).body(Answer::from(body))?)
            }
        });
        (number, Client::new(service, "default"))
    }

    pub(super) fn secret(&self) -> Option<Value> {
        self.state().secret.clone()
    }

    /// How often something was written.
    pub(super) fn versions(&self) -> u64 {
        self.state().versions
    }

    /// How often a replica has tried to read.
    pub(super) fn reads(&self, number: usize) -> u64 {
        self.state().reads.get(&number).copied().unwrap_or_default()
    }

    /// As somebody else would, with all rights.
    pub(super) fn put(&self, secret: Value) {
        self.state().write(secret);
    }

    pub(super) fn delete(&self) {
        self.state().secret = None;
    }

    /// One verb, or none.
    pub(super) fn forbid(&self, verb: &'static str) {
        self.state().forbidden = verb;
    }

    pub(super) fn be_away(&self, away: bool) {
        self.state().away = away;
    }

    pub(super) fn overwrite_each_write_with(&self, secret: Value) {
        self.state().overwriting = Some(secret);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn answer(
        &self,
        number: usize,
        method: &Method,
        path: &str,
        query: &str,
        body: &Bytes,
    ) -> Result<(u16, Bytes), BoxError> {
        let mut state = self.state();
        let verb = match (method, path) {
            (&Method::GET, SECRET) => "get",
            (&Method::POST, SECRETS) => "create",
            (&Method::PUT, SECRET) => "update",
            (&Method::GET, SECRETS) => "watch",
            _ => panic!("{method} {path}"),
        };
        if verb == "get" {
            *state.reads.entry(number).or_default() += 1;
        }
        if state.away {
            return Err(std::io::Error::other("connection refused").into());
        }
        if state.forbidden == verb {
            let message = format!("secrets \"cert\" is forbidden: User \"x\" cannot {verb} resource \"secrets\"");
            return Ok(status(403, "Forbidden", &message));
        }
        Ok(match verb {
            "get" => match &state.secret {
                Some(secret) => (200, secret.to_string().into()),
                None => status(404, "NotFound", "secrets \"cert\" not found"),
            },
            "watch" => {
                assert!(query.contains("metadata.name%3Dcert"), "only that Secret: {query}");
                let list = json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "1"}, "items": []});
                (200, list.to_string().into())
            }
            "create" if state.secret.is_some() => status(409, "AlreadyExists", "secrets \"cert\" already exists"),
            "create" => {
                let secret: Value = serde_json::from_slice(body)?;
                assert!(secret["metadata"]["resourceVersion"].is_null());
                (201, state.write(secret).to_string().into())
            }
            _ => {
                let secret: Value = serde_json::from_slice(body)?;
                let version = |secret: &Value| secret["metadata"]["resourceVersion"].as_str().map(str::to_owned);
                assert!(version(&secret).is_some(), "a write must say what it was decided on");
                match &state.secret {
                    None => status(404, "NotFound", "secrets \"cert\" not found"),
                    Some(stored) if version(stored) != version(&secret) => {
                        status(409, "Conflict", "the object has been modified")
                    }
                    Some(stored) if stored["type"] != secret["type"] => {
                        status(422, "Invalid", "type: field is immutable")
                    }
                    Some(_) => (200, state.write(secret).to_string().into()),
                }
            }
        })
    }
}

impl State {
    /// Returns what a writer is told.
    fn write(&mut self, mut secret: Value) -> Value {
        self.versions += 1;
        secret["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        self.secret = Some(secret.clone());
        if let Some(mut other) = self.overwriting.clone() {
            self.versions += 1;
            other["metadata"]["resourceVersion"] = json!(self.versions.to_string());
            self.secret = Some(other);
        }
        secret
    }
}
