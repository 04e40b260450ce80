//! A fake API server that keeps one Secret, `team/cert`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fixtures::api_server::{Call, in_process};
use hyper::Method;
use kube::Client;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

const SECRETS: &str = "/api/v1/namespaces/team/secrets";
const SECRET: &str = "/api/v1/namespaces/team/secrets/cert";

/// Most bytes of data in a Secret, and what the real API server answers.
pub(super) const LONGEST: usize = 1_048_576;
pub(super) const TOO_LONG: &str = "Secret \"cert\" is invalid: data: Too long: may not be more than 1048576 bytes";
pub(super) const IMMUTABLE: &str =
    "Secret \"cert\" is invalid: data: Forbidden: field is immutable when `immutable` is set";

#[derive(Clone, Default)]
pub(super) struct Store(Arc<Mutex<StoredSecret>>);

#[derive(Default)]
struct StoredSecret {
    secret: Option<Value>,
    versions: u64,
    attempts: u64,
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

    /// Returns a client for one replica, and the replica's number.
    pub(super) fn client(&self) -> (usize, Client) {
        let number = {
            let mut state = self.state();
            state.clients += 1;
            state.clients
        };
        let store = self.clone();
        let service = in_process(move |call: Call| {
            // Watches stay silent: a replica must not depend on them.
            if call.is_watch() { call.ignore() } else { store.answer(number, call) }
        });
        (number, Client::new(service, "default"))
    }

    pub(super) fn secret(&self) -> Option<Value> {
        self.state().secret.clone()
    }

    /// Returns the number of writes.
    pub(super) fn versions(&self) -> u64 {
        self.state().versions
    }

    /// Returns how often replicas have tried to write, with success or without.
    pub(super) fn attempts(&self) -> u64 {
        self.state().attempts
    }

    /// Returns how often a replica has tried to read the Secret.
    pub(super) fn reads(&self, number: usize) -> u64 {
        self.state().reads.get(&number).copied().unwrap_or_default()
    }

    /// Writes the Secret as another user with all rights.
    pub(super) fn put(&self, secret: Value) {
        self.state().write(secret);
    }

    pub(super) fn delete(&self) {
        self.state().secret = None;
    }

    /// Forbids a verb. An empty one forbids nothing.
    pub(super) fn forbid(&self, verb: &'static str) {
        self.state().forbidden = verb;
    }

    pub(super) fn set_unreachable(&self, away: bool) {
        self.state().away = away;
    }

    pub(super) fn overwrite_each_write_with(&self, secret: impl Into<Option<Value>>) {
        self.state().overwriting = secret.into();
    }

    fn state(&self) -> MutexGuard<'_, StoredSecret> {
        self.0.lock().unwrap()
    }

    fn answer(&self, number: usize, call: Call) {
        let mut state = self.state();
        let verb = match (&call.method, call.path.as_str()) {
            (&Method::GET, SECRET) => "get",
            (&Method::POST, SECRETS) => "create",
            (&Method::PUT, SECRET) => "update",
            (&Method::GET, SECRETS) => "list",
            (method, path) => panic!("{method} {path}"),
        };
        match verb {
            "get" => *state.reads.entry(number).or_default() += 1,
            "create" | "update" => state.attempts += 1,
            _ => {}
        }
        if state.away {
            return call.refuse_connection();
        }
        if state.forbidden == verb {
            let message = format!("secrets \"cert\" is forbidden: User \"x\" cannot {verb} resource \"secrets\"");
            return call.fail(403, "Forbidden", &message);
        }
        let version = |secret: &Value| secret["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        match (verb, state.secret.clone()) {
            ("list", _) => {
                assert!(call.query.contains("metadata.name%3Dcert"), "only that Secret: {}", call.query);
                call.page(&[], "");
            }
            ("get", Some(stored)) => call.answer(200, &stored),
            ("create", Some(_)) => call.fail(409, "AlreadyExists", "secrets \"cert\" already exists"),
            ("create", None) => {
                let secret: Value = serde_json::from_slice(&call.body).unwrap();
                assert_eq!(version(&secret), None);
                call.answer(201, &state.write(secret));
            }
            ("get" | "update", None) => call.fail(404, "NotFound", "secrets \"cert\" not found"),
            (_, Some(stored)) => {
                let secret: Value = serde_json::from_slice(&call.body).unwrap();
                assert!(version(&secret).is_some(), "a write names the version that it was decided on");
                if version(&stored) != version(&secret) {
                    call.fail(409, "Conflict", "the object has been modified");
                } else if stored["type"] != secret["type"] {
                    call.fail(422, "Invalid", "type: field is immutable");
                } else if stored["immutable"] == true && stored["data"] != secret["data"] {
                    call.fail(422, "Invalid", IMMUTABLE);
                } else if length(&secret) > LONGEST {
                    call.fail(422, "Invalid", TOO_LONG);
                } else {
                    call.answer(200, &state.write(secret));
                }
            }
            (verb, None) => panic!("{verb}"),
        }
    }
}

/// Returns the bytes of a Secret's data.
fn length(secret: &Value) -> usize {
    let values = secret["data"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    values.map(|it| STANDARD.decode(it).unwrap().len()).sum()
}

impl StoredSecret {
    /// Writes the Secret and returns the object for the writer.
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
