//! The Secret on the API server: read, created, and replaced under its `resourceVersion`.
//!
//! It knows nothing of certificates; [`super::contents`] reads the data.

use super::contents::Data;
use crate::controllers::ServiceReference;
use crate::controllers::reconciler::{StepError, StepRequest};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube_unions_api::{ObjectPath, RequestError};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;

/// Type of a Secret with a certificate.
const TLS: &str = "kubernetes.io/tls";

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
    pub(super) async fn read(&self) -> Result<Option<Secret>, StepError> {
        let read = self.path.read(&self.client).await;
        let read = read.and_then(|secret| Ok(secret.map(serde_json::from_value).transpose()?));
        read.map_err(|error| self.failed(StepRequest::Read, &error))
    }

    /// Writes `data` into the Secret as it was read, and returns it as it is stored.
    ///
    /// Other keys, labels and the type stay. The API server refuses the write if the `resourceVersion` has changed.
    pub(super) async fn write(&self, read: Option<Secret>, data: Data) -> Result<Secret, StepError> {
        let request = if read.is_some() { StepRequest::Replace } else { StepRequest::Create };
        let mut secret = read.unwrap_or_else(|| Secret { type_: Some(TLS.to_owned()), ..Secret::default() });
        secret.data.get_or_insert_default().extend(data);
        secret.metadata.name = Some(self.name.clone());
        secret.metadata.namespace = Some(self.namespace.clone());
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.entry("app.kubernetes.io/name".to_owned()).or_insert_with(|| "kube-unions".to_owned());
        let written = if request == StepRequest::Replace {
            self.path.replace(&self.client, &json!(secret)).await
        } else {
            self.path.create(&self.client, &json!(secret)).await
        };
        let written = written.and_then(|secret| Ok(serde_json::from_value(secret)?));
        written.map_err(|error| self.failed(request, &error))
    }

    fn failed(&self, request: StepRequest, error: &RequestError) -> StepError {
        let action = match request {
            StepRequest::Read => "read",
            StepRequest::Create => "create",
            StepRequest::Replace => "update",
        };
        let mut failed = StepError::of(request, &format!("{action} the Secret `{self}`"), error);
        failed.reason.push_str(match error.code() {
            Some(403) => "; its Role must grant get, list, watch and update on this Secret, and create on secrets",
            Some(422) => "; delete the Secret while replicas run: they create it again",
            Some(_) | None => "",
        });
        failed
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
