//! Admission: webhooks, as the stored configurations name them.

use crate::error::ApiError;
use crate::instance::Instance;
use crate::resource::BuiltinKind;
use crate::webhooks::AdmittedWrite;
use crate::write::{Target, WriteOptions};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::time::Duration;

/// Calls webhooks in place of the network.
pub trait Webhooks: Send + Sync {
    /// Returns the answer to a call: an `AdmissionReview` as JSON. The server drops the future when the time of the call is over.
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Value, CallError>>;
}

/// A call of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookCall {
    /// The name of the configuration.
    pub configuration: String,
    /// True for an entry of a `MutatingWebhookConfiguration`.
    pub is_mutating: bool,
    /// The name of the entry.
    pub entry: String,
    /// The address of the webhook, and the CAs by which it is trusted.
    pub client_config: WebhookAddress,
    /// The time for the answer.
    pub timeout: Duration,
    /// The `AdmissionReview`.
    pub review: Value,
}

/// The address of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookAddress {
    /// A Service of the cluster.
    pub service: Option<WebhookService>,
    /// A URL, if it is no Service.
    pub url: Option<String>,
    /// The CAs that may sign its certificate, PEM. Without any, those of the machine count.
    pub ca_bundle: Vec<u8>,
}

/// A Service of the cluster that serves a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of the URL; may be empty.
    pub path: String,
    /// Its port.
    pub port: u16,
}

/// The reason why a webhook did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// There is no connection, or it broke, in the words of Go's HTTP client: `dial tcp 10.0.0.1:443: connect: connection refused`.
    Connection(String),
    /// It answered with an HTTP status that is no success.
    Status(u16, String),
}

/// The operation of a write, as reviews name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// Returns the kind of its options.
    pub(crate) fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

impl Instance {
    /// Runs the admission that may change an object, and returns the object.
    pub(crate) async fn admit(
        &self,
        target: &Target,
        operation: Operation,
        objects: (Value, Option<&Value>),
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        self.check_lifecycle(target, operation)?;
        let (object, old) = objects;
        let write = AdmittedWrite { target, operation, old, options };
        self.mutate(&write, object).await
    }

    /// Runs the admission that may only refuse an object.
    pub(crate) async fn validate(
        &self,
        target: &Target,
        operation: Operation,
        objects: (&Value, Option<&Value>),
        options: &WriteOptions,
    ) -> Result<(), ApiError> {
        let (object, old) = objects;
        self.call_validating(&AdmittedWrite { target, operation, old, options }, object).await
    }

    /// A namespace that does not exist or ends takes no new objects.
    fn check_lifecycle(&self, target: &Target, operation: Operation) -> Result<(), ApiError> {
        let is_namespace = target.resource.builtin == Some(BuiltinKind::Namespace);
        if target.namespace.is_empty() || is_namespace || operation == Operation::Delete {
            return Ok(());
        }
        let state = self.shared.state();
        let name = &target.namespace;
        let Some(namespace) = state.namespace(name) else {
            let namespaces = crate::resource::builtin("", "v1", "namespaces").ok_or_else(ApiError::no_path)?;
            return Err(ApiError::not_found(&namespaces, name));
        };
        let phase = crate::write::text_at(&namespace.object, "/status/phase");
        if operation == Operation::Create && phase == "Terminating" {
            let why = format!("unable to create new content in namespace {name} because it is being terminated");
            let cause = json!({
                "reason": "NamespaceTerminating", "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace",
            });
            return Err(ApiError::forbidden(&target.resource, &target.name, &why).with_cause(cause));
        }
        Ok(())
    }
}
