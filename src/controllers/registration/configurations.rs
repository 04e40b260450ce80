//! The two configurations on the API server: read, created, replaced, and watched.
//!
//! It knows nothing of their content; see [`super::desired`].

use super::wanted::{ConfigurationKind, NAME};
use crate::api::{self, APPLY, ObjectSelection, RequestError, list_and_watch};
use futures::StreamExt;
use futures::stream::{BoxStream, select};
use hyper::Method;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// Field manager of every write.
const MANAGER: &str = "kube-unions";

/// First Kubernetes 1 minor version with `matchConditions` enabled by default.
const FIRST_WITH_CONDITIONS: u32 = 28;

/// An error of reading or writing a configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigurationError {
    #[error("cannot read {}/{NAME}", .0.kind())]
    Read(ConfigurationKind, #[source] RequestError),
    #[error("cannot write {}/{NAME}", .0.kind())]
    Write(ConfigurationKind, #[source] RequestError),
    #[error("cannot read the API server's version")]
    Version(#[source] RequestError),
    #[error("cannot read the ClusterRole `{0}`, the owner of the configurations")]
    Owner(String, #[source] RequestError),
    #[error(
        "cannot create {kind}/{NAME}: its owner, the ClusterRole `{1}`, cannot be read; apply the chart or the manifests again, \
         or name another owner with --owner-cluster-role",
        kind = .0.kind()
    )]
    NoOwner(ConfigurationKind, String),
    #[error("{}/{NAME} was stored with changes: {}; find the admission webhook or policy that changes it", .0.kind(), .1)]
    NotKept(ConfigurationKind, String),
    #[error("cannot register: the CA bundle holds no certificate")]
    NoCa,
}

impl ConfigurationError {
    /// Returns true if the API server has answered and is healthy itself.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            // etcd does not take the object, for example because it is too large.
            Self::Write(_, error) if error.code() == Some(500) => true,
            Self::Read(_, error) | Self::Write(_, error) | Self::Version(error) | Self::Owner(_, error) => {
                error.is_final()
            }
            Self::NotKept(..) | Self::NoOwner(..) | Self::NoCa => true,
        }
    }

    /// Returns true if the configuration has changed since it was read.
    pub(super) fn is_conflict(&self) -> bool {
        // The object of a PUT may have been deleted, and the object of an apply may have been created.
        matches!(self, Self::Write(_, error) if matches!(error.code(), Some(404 | 409)))
    }

    /// Returns true if the API server refuses the owner because this user may not delete the object (admission plugin
    /// `OwnerReferencesPermissionEnforcement`).
    pub(super) fn is_owner_refused(&self) -> bool {
        matches!(self, Self::Write(_, RequestError::Status(status)) if status.code == 403 && status.message.contains("ownerRef"))
    }
}

/// A reason to reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigurationEvent {
    /// A configuration has changed.
    Changed,
    /// The Service's namespace is being deleted.
    NamespaceEnds,
}

/// Reads and writes the configurations.
#[derive(Clone)]
pub(super) struct Configurations {
    client: Client,
}

impl Configurations {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns a stored configuration, `None` if it does not exist.
    pub(super) async fn read(&self, phase: ConfigurationKind) -> Result<Option<Value>, ConfigurationError> {
        match api::send(&self.client, Method::GET, &path(phase)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(ConfigurationError::Read(phase, error)),
        }
    }

    /// Creates a configuration by server-side apply and returns the stored object.
    ///
    /// An apply names the object, so the right to create it by name is enough. Conflicts are not forced: another replica may
    /// have been faster.
    pub(super) async fn create(&self, phase: ConfigurationKind, object: &Value) -> Result<Value, ConfigurationError> {
        self.write(phase, Method::PATCH, APPLY, object).await
    }

    /// Replaces a configuration whose `resourceVersion` is still that of `object`, and returns the stored object.
    pub(super) async fn replace(&self, phase: ConfigurationKind, object: &Value) -> Result<Value, ConfigurationError> {
        self.write(phase, Method::PUT, "application/json", object).await
    }

    async fn write(
        &self,
        phase: ConfigurationKind,
        method: Method,
        content_type: &str,
        object: &Value,
    ) -> Result<Value, ConfigurationError> {
        let path = format!("{}?fieldManager={MANAGER}", path(phase));
        let written = api::write(&self.client, method, &path, content_type, object).await;
        written.map_err(|error| ConfigurationError::Write(phase, error))
    }

    /// Returns the UID of a `ClusterRole`, `None` if it does not exist.
    pub(super) async fn cluster_role(&self, name: &str) -> Result<Option<String>, ConfigurationError> {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        match api::send(&self.client, Method::GET, &path).await {
            Ok(role) => Ok(role.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(ConfigurationError::Owner(name.to_owned(), error)),
        }
    }

    /// Returns true if the API server keeps `matchConditions`. Without a readable version it is assumed to.
    pub(super) async fn keeps_conditions(&self) -> Result<bool, ConfigurationError> {
        match api::send(&self.client, Method::GET, "/version").await {
            Ok(version) => Ok(minor_version(&version).is_none_or(|minor| minor >= FIRST_WITH_CONDITIONS)),
            Err(error) if error.is_final() => Ok(true),
            Err(error) => Err(ConfigurationError::Version(error)),
        }
    }

    /// Yields an event for each change of either configuration, and an error when the watch fails.
    pub(super) fn changes(&self) -> BoxStream<'static, watcher::Result<ConfigurationEvent>> {
        let mutating = changes_of(Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(self.client.clone()));
        let validating = changes_of(Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(self.client.clone()));
        select(mutating, validating).boxed()
    }

    /// Yields an event when the namespace is being deleted. Without the right to watch it, it never yields.
    pub(super) fn namespace_end(&self, namespace: &str) -> BoxStream<'static, ConfigurationEvent> {
        let namespaces = Api::<PartialObjectMeta<Namespace>>::all(self.client.clone());
        list_and_watch(namespaces, ObjectSelection::by_name(namespace), || {})
            .filter_map(|event| async {
                let Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) = event else {
                    return None;
                };
                object.metadata.deletion_timestamp.map(|_| ConfigurationEvent::NamespaceEnds)
            })
            .boxed()
    }
}

fn changes_of<K>(api: Api<K>) -> BoxStream<'static, watcher::Result<ConfigurationEvent>>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    list_and_watch(api, ObjectSelection::by_name(NAME), || {})
        .filter_map(|event| async {
            match event {
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
                Ok(watcher::Event::InitDone | watcher::Event::Apply(_) | watcher::Event::Delete(_)) => {
                    Some(Ok(ConfigurationEvent::Changed))
                }
                Err(error) => Some(Err(error)),
            }
        })
        .boxed()
}

/// Returns the minor version of an API server. Some append a `+`.
fn minor_version(version: &Value) -> Option<u32> {
    let minor = version.get("minor")?.as_str()?;
    minor.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

fn path(phase: ConfigurationKind) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{}/{NAME}", phase.plural())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use serde_json::json;

    #[test]
    fn a_write_that_etcd_refuses_is_an_answer_and_an_api_server_without_time_is_none() {
        let error = |code| RequestError::Status(Box::new(Status { code, ..Status::default() }));
        for (code, of_write, of_read) in
            [(422, true, true), (500, true, false), (429, false, false), (503, false, false)]
        {
            assert_eq!(
                ConfigurationError::Write(ConfigurationKind::Mutating, error(code)).is_answer(),
                of_write,
                "{code}"
            );
            assert_eq!(
                ConfigurationError::Read(ConfigurationKind::Mutating, error(code)).is_answer(),
                of_read,
                "{code}"
            );
        }
    }

    #[test]
    fn a_minor_version_is_read_with_and_without_a_suffix() {
        for (minor, want) in [("36", Some(36)), ("27+", Some(27)), ("28-gke", Some(28)), ("", None), ("x", None)] {
            assert_eq!(minor_version(&json!({"major": "1", "minor": minor})), want, "{minor}");
        }
        assert_eq!(minor_version(&json!({})), None);
    }
}
