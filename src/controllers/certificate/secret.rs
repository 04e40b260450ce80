//! The Secret on the API server: read, created, and replaced under its `resourceVersion`.
//!
//! It knows nothing of certificates; [`super::contents`] reads the data.

use super::contents::Data;
use crate::api::{ObjectPath, RequestError};
use crate::authority::AuthorityError;
use crate::controllers::ServiceReference;
use crate::controllers::object::MANAGER;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;

/// Type of a Secret with a certificate.
const TLS: &str = "kubernetes.io/tls";

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

    /// Returns true if another writer changed, created or deleted the Secret.
    pub(super) fn is_conflict(&self) -> bool {
        let Self::Request { action, source, .. } = self else { return false };
        matches!((*action, source.code()), (_, Some(409)) | ("update", Some(404)))
    }
}

/// The Secret that the replicas share. Displays as `namespace/name`.
pub(super) struct SharedSecret {
    client: Client,
    namespace: String,
    name: String,
    path: ObjectPath,
}

impl SharedSecret {
    pub(super) fn new(client: Client, service: &ServiceReference, name: &str) -> Self {
        let namespace = service.namespace.to_string();
        let path = ObjectPath::new(collection(service), name);
        Self { client, namespace, name: name.to_owned(), path }
    }

    /// Returns the Secret, `None` if it does not exist.
    pub(super) async fn read(&self) -> Result<Option<Secret>, SecretError> {
        let read = self.path.read(&self.client).await;
        let read = read.and_then(|secret| Ok(secret.map(serde_json::from_value).transpose()?));
        read.map_err(self.failed_to("read"))
    }

    /// Writes `data` into the Secret as it was read, and returns it as it is stored.
    ///
    /// Other keys, labels and the type stay. The API server refuses the write if the `resourceVersion` has changed.
    pub(super) async fn write(&self, read: Option<Secret>, data: Data) -> Result<Secret, SecretError> {
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| Secret { type_: Some(TLS.to_owned()), ..Secret::default() });
        secret.data.get_or_insert_default().extend(data);
        secret.metadata.name = Some(self.name.clone());
        secret.metadata.namespace = Some(self.namespace.clone());
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.entry("app.kubernetes.io/name".to_owned()).or_insert_with(|| "kube-unions".to_owned());
        let (action, written) = if exists {
            ("update", self.path.replace(&self.client, &json!(secret), MANAGER).await)
        } else {
            ("create", self.path.create(&self.client, &json!(secret), MANAGER).await)
        };
        written.and_then(|secret| Ok(serde_json::from_value(secret)?)).map_err(self.failed_to(action))
    }

    fn failed_to(&self, action: &'static str) -> impl Fn(RequestError) -> SecretError {
        move |source| SecretError::Request { action, secret: self.to_string(), source }
    }
}

/// Returns the path of the Secrets in the namespace of a Service.
pub(super) fn collection(service: &ServiceReference) -> String {
    format!("/api/v1/namespaces/{}/secrets", service.namespace)
}

impl fmt::Display for SharedSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}
