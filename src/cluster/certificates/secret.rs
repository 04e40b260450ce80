//! The Secret on the API server: read, created, and replaced under its `resourceVersion`.
//!
//! It knows nothing of certificates; [`super::contents`] reads the data.

use super::contents::Data;
use crate::api::{self, ObjectSelection, RequestError, list_and_watch};
use crate::authority::AuthorityError;
use crate::controllers::ServiceReference;
use futures::stream::BoxStream;
use hyper::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Type of a Secret with a certificate.
const TLS: &str = "kubernetes.io/tls";

const NAME_LABEL: &str = "app.kubernetes.io/name";
const NAME: &str = "kube-unions";

/// An error of reading, deciding on or writing the Secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
    #[error("cannot {action} the Secret `{secret}`")]
    Request { action: &'static str, secret: String, source: RequestError },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the Secret `{0}` keeps changing: find the other writer by its `managedFields`")]
    Contended(String),
}

impl SecretError {
    /// Returns what to do about a refusal of the API server.
    pub(super) fn remedy(&self) -> Option<&'static str> {
        let Self::Request { source, .. } = self else { return None };
        match source.code()? {
            403 => Some("its Role must grant get, list, watch and update on this Secret, and create on secrets"),
            422 => Some("delete the Secret while replicas run: they create it again"),
            _ => None,
        }
    }
}

/// The Secret that the replicas share. Displays as `namespace/name`.
pub(super) struct SharedSecret {
    client: Client,
    namespace: String,
    name: String,
}

impl SharedSecret {
    pub(super) fn new(client: Client, service: &ServiceReference, name: &str) -> Self {
        let namespace = service.namespace.to_string();
        Self { client, namespace, name: name.to_owned() }
    }

    /// Returns the events of this Secret alone.
    pub(super) fn watch(&self) -> BoxStream<'static, watcher::Result<Event<Secret>>> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        list_and_watch(secrets, ObjectSelection::by_name(&self.name), || {})
    }

    /// Returns the Secret, `None` if it does not exist.
    pub(super) async fn read(&self) -> Result<Option<Secret>, SecretError> {
        match api::send(&self.client, Method::GET, &self.path()).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => self.read_answer("read", answer).map(Some),
        }
    }

    /// Writes `data` into the Secret as it was read, and returns the new version; `None` if another writer was faster.
    ///
    /// Other keys, labels and the type stay. The API server refuses the write if the `resourceVersion` has changed.
    pub(super) async fn write(&self, read: Option<Secret>, data: Data) -> Result<Option<Secret>, SecretError> {
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| Secret { type_: Some(TLS.to_owned()), ..Secret::default() });
        secret.data.get_or_insert_default().extend(data);
        secret.metadata.name = Some(self.name.clone());
        secret.metadata.namespace = Some(self.namespace.clone());
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.entry(NAME_LABEL.to_owned()).or_insert_with(|| NAME.to_owned());
        let (action, method, path) = if exists {
            ("update", Method::PUT, self.path())
        } else {
            ("create", Method::POST, secrets(&self.namespace))
        };
        let path = format!("{path}?fieldManager={NAME}");
        match api::write(&self.client, method, &path, "application/json", &json!(secret)).await {
            // Another writer changed or created it, or deleted it.
            Err(error) if error.code() == Some(409) || (exists && error.is_not_found()) => Ok(None),
            answer => self.read_answer(action, answer).map(Some),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", secrets(&self.namespace), self.name)
    }

    fn read_answer(&self, action: &'static str, answer: Result<Value, RequestError>) -> Result<Secret, SecretError> {
        let malformed =
            |error: serde_json::Error| RequestError::Unanswered(format!("its answer is malformed: {error}"));
        let secret = answer.and_then(|secret| serde_json::from_value(secret).map_err(malformed));
        secret.map_err(|source| SecretError::Request { action, secret: self.to_string(), source })
    }
}

/// Returns the path of all Secrets of a namespace.
fn secrets(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets")
}

impl fmt::Display for SharedSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}
