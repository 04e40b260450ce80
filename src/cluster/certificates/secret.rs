//! The Secret on the API server: read, created, and replaced under its `resourceVersion`.
//!
//! It knows nothing of certificates; [`super::contents`] reads the data.

use super::contents::Data;
use crate::api::{ObjectSelection, list_and_watch};
use crate::authority::AuthorityError;
use crate::cluster::ServiceReference;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Type of a Secret with a certificate.
const TLS: &str = "kubernetes.io/tls";

const NAME_LABEL: &str = "app.kubernetes.io/name";
const NAME: &str = "kube-unions";

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An error of reading, deciding on or writing the Secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
    #[error("cannot {action} the Secret `{secret}`")]
    Request { action: &'static str, secret: String, source: kube::Error },
    #[error("cannot {action} the Secret `{secret}`: no answer from the API server within {TIMEOUT:?}")]
    Timeout { action: &'static str, secret: String },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the Secret `{0}` keeps changing: find the other writer by its `managedFields`")]
    Contended(String),
}

impl SecretError {
    /// Returns what to do about a refusal of the API server.
    pub(super) fn remedy(&self) -> Option<&'static str> {
        let Self::Request { source: kube::Error::Api(status), .. } = self else { return None };
        match status.code {
            403 => Some("its Role must grant get, list, watch and update on this Secret, and create on secrets"),
            422 => Some("delete the Secret while replicas run: they create it again"),
            _ => None,
        }
    }
}

/// The Secret that the replicas share. Displays as `namespace/name`.
pub(super) struct SharedSecret {
    api: Api<Secret>,
    namespace: String,
    name: String,
}

impl SharedSecret {
    pub(super) fn new(client: Client, service: &ServiceReference, name: &str) -> Self {
        let namespace = service.namespace.to_string();
        Self { api: Api::namespaced(client, &namespace), namespace, name: name.to_owned() }
    }

    /// Returns the events of this Secret alone.
    pub(super) fn watch(&self) -> BoxStream<'static, watcher::Result<Event<Secret>>> {
        list_and_watch(self.api.clone(), ObjectSelection::by_name(&self.name), || {})
    }

    /// Returns the Secret, `None` if it does not exist.
    pub(super) async fn read(&self) -> Result<Option<Secret>, SecretError> {
        self.request("read", self.api.get_opt(&self.name)).await
    }

    /// Writes `data` into the Secret as it was read, and returns the new version; `None` if another writer was faster.
    ///
    /// Other keys, labels and the type stay. The API server refuses the write if the `resourceVersion` has changed.
    pub(super) async fn write(&self, read: Option<Secret>, data: Data) -> Result<Option<Secret>, SecretError> {
        let parameters = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
        let exists = read.is_some();
        let mut secret = read.unwrap_or_else(|| Secret { type_: Some(TLS.to_owned()), ..Secret::default() });
        secret.data.get_or_insert_default().extend(data);
        secret.metadata.name = Some(self.name.clone());
        secret.metadata.namespace = Some(self.namespace.clone());
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.entry(NAME_LABEL.to_owned()).or_insert_with(|| NAME.to_owned());
        let written = if exists {
            self.request("update", self.api.replace(&self.name, &parameters, &secret)).await
        } else {
            self.request("create", self.api.create(&parameters, &secret)).await
        };
        match written {
            Ok(written) => Ok(Some(written)),
            Err(SecretError::Request { source: kube::Error::Api(status), .. })
                if status.is_conflict() || status.is_already_exists() || (exists && status.is_not_found()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn request<T>(
        &self,
        action: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, SecretError> {
        match tokio::time::timeout(TIMEOUT, request).await {
            Ok(response) => {
                response.map_err(|source| SecretError::Request { action, secret: self.to_string(), source })
            }
            Err(_elapsed) => Err(SecretError::Timeout { action, secret: self.to_string() }),
        }
    }
}

impl fmt::Display for SharedSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}
