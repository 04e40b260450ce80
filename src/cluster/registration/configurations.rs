//! The two configurations on the API server: read, written, and watched for a reason to read them again.

use super::entries::{NAME, Phase};
use crate::cluster::schemas::is_not_found;
use crate::cluster::watch::persistent;
use futures::StreamExt;
use futures::stream::{BoxStream, select};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// The one field manager.
const MANAGER: &str = "kube-unions";

/// Minor version of the first Kubernetes 1 that has `matchConditions` without a feature gate.
const FIRST_WITH_CONDITIONS: u32 = 28;

/// A watch is asked for anew after so long.
const WATCH_SECONDS: u32 = 120;

/// For one request. The API server answers these at once or not at all.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigurationError {
    #[error("cannot read {}/{NAME}", .0.kind())]
    Read(Phase, #[source] kube::Error),
    #[error("cannot write {}/{NAME}", .0.kind())]
    Write(Phase, #[source] kube::Error),
    #[error("cannot reach the API server: no answer within {LIMIT:?}")]
    TimedOut,
    #[error("cannot read the API server's version")]
    Version(#[source] kube::Error),
    #[error("cannot read the ClusterRole `{0}`, which is to own the configurations")]
    Owner(String, #[source] kube::Error),
    #[error(
        "{kind}/{NAME} is not there and is not created: the ClusterRole `{1}`, with which it is to go, cannot be read; apply the \
         chart or the manifests again, or name another by --owner-cluster-role",
        kind = .0.kind()
    )]
    NoOwner(Phase, String),
    #[error("{}/{NAME} is not kept as it was written: {}; another admission webhook or policy may change it", .0.kind(), .1)]
    NotKept(Phase, String),
    #[error("the CA that is to be registered holds no certificate; nothing is registered before it does")]
    NoCa,
}

impl ConfigurationError {
    /// Returns whether the API server has answered, and not that it is itself in trouble.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::Read(_, error) | Self::Write(_, error) | Self::Version(error) | Self::Owner(_, error) => {
                matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
            }
            Self::NotKept(..) | Self::NoOwner(..) | Self::NoCa => true,
            Self::TimedOut => false,
        }
    }

    /// Returns whether the configuration has changed since it was read.
    pub(super) fn is_conflict(&self) -> bool {
        // The object of a PUT may be gone, and that of an apply may be there already.
        matches!(self, Self::Write(_, kube::Error::Api(status)) if matches!(status.code, 404 | 409))
    }

    /// Returns whether the API server lets nobody set an owner who may not delete the object (admission plugin
    /// `OwnerReferencesPermissionEnforcement`).
    pub(super) fn is_owner_refused(&self) -> bool {
        matches!(self, Self::Write(_, kube::Error::Api(status)) if status.code == 403 && status.message.contains("ownerRef"))
    }
}

/// A reason to look at the configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A configuration has changed.
    Changed,
    /// The namespace of our Service is being deleted.
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

    /// Returns a configuration as it is stored, `None` if it is not there.
    pub(super) async fn read(&self, phase: Phase) -> Result<Option<Value>, ConfigurationError> {
        match self.send(Request::get(path(phase)).body(Vec::new())).await? {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(ConfigurationError::Read(phase, error)),
        }
    }

    /// Creates a configuration and returns what is stored then. It is a server-side apply, which names the object and so
    /// needs the right to create it by name alone; nothing is forced, in case another replica was faster.
    pub(super) async fn create(&self, phase: Phase, object: &Value) -> Result<Value, ConfigurationError> {
        let request = Request::patch(format!("{}?fieldManager={MANAGER}", path(phase)));
        let request = request.header(CONTENT_TYPE, "application/apply-patch+yaml");
        let answer = self.send(request.body(object.to_string().into_bytes())).await?;
        answer.map_err(|error| ConfigurationError::Write(phase, error))
    }

    /// Replaces a configuration, if its version is still that of `object`, and returns what is stored then.
    pub(super) async fn replace(&self, phase: Phase, object: &Value) -> Result<Value, ConfigurationError> {
        let request = Request::put(format!("{}?fieldManager={MANAGER}", path(phase)));
        let request = request.header(CONTENT_TYPE, "application/json");
        let answer = self.send(request.body(object.to_string().into_bytes())).await?;
        answer.map_err(|error| ConfigurationError::Write(phase, error))
    }

    /// Returns the uid of a `ClusterRole`, `None` if it is not there.
    pub(super) async fn cluster_role(&self, name: &str) -> Result<Option<String>, ConfigurationError> {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        match self.send(Request::get(path).body(Vec::new())).await? {
            Ok(role) => Ok(role.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(ConfigurationError::Owner(name.to_owned(), error)),
        }
    }

    /// Returns whether the API server keeps `matchConditions`. One that does not tell its version is taken for a new one.
    pub(super) async fn knows_conditions(&self) -> Result<bool, ConfigurationError> {
        match self.send(Request::get("/version").body(Vec::new())).await? {
            Ok(version) => Ok(minor_version(&version).is_none_or(|minor| minor >= FIRST_WITH_CONDITIONS)),
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => Ok(true),
            Err(error) => Err(ConfigurationError::Version(error)),
        }
    }

    async fn send(
        &self,
        request: Result<Request<Vec<u8>>, hyper::http::Error>,
    ) -> Result<kube::Result<Value>, ConfigurationError> {
        let request = match request {
            Ok(request) => request,
            Err(error) => return Ok(Err(kube::Error::HttpError(error))),
        };
        let answer = tokio::time::timeout(LIMIT, self.client.request::<Value>(request));
        answer.await.map_err(|_| ConfigurationError::TimedOut)
    }

    /// An item for each reason to look again: a change of either, or (an error) that changes may go unnoticed.
    pub(super) fn changes(&self) -> BoxStream<'static, watcher::Result<Event>> {
        let mutating = changes_of(Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(self.client.clone()));
        let validating = changes_of(Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(self.client.clone()));
        select(mutating, validating).boxed()
    }

    /// Yields once the namespace is being deleted. Without the right to watch it, never.
    pub(super) fn end_of(&self, namespace: &str) -> BoxStream<'static, Event> {
        let namespaces = Api::<PartialObjectMeta<Namespace>>::all(self.client.clone());
        persistent(watcher(namespaces, by_name(namespace)))
            .filter_map(|event| async {
                let Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) = event else {
                    return None;
                };
                object.metadata.deletion_timestamp.map(|_| Event::NamespaceEnds)
            })
            .boxed()
    }
}

fn changes_of<K>(api: Api<K>) -> BoxStream<'static, watcher::Result<Event>>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    persistent(watcher(api, by_name(NAME)))
        .filter_map(|event| async {
            match event {
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => None,
                Ok(watcher::Event::InitDone | watcher::Event::Apply(_) | watcher::Event::Delete(_)) => {
                    Some(Ok(Event::Changed))
                }
                Err(error) => Some(Err(error)),
            }
        })
        .boxed()
}

/// A watch of one object. With the name in the selector a right by name is enough.
fn by_name(name: &str) -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS).fields(&format!("metadata.name={name}"))
}

/// The minor version that the API server tells; some append a `+`.
fn minor_version(version: &Value) -> Option<u32> {
    let minor = version.get("minor")?.as_str()?;
    minor.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

fn path(phase: Phase) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{}/{NAME}", phase.plural())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_minor_version_is_read_with_and_without_a_suffix() {
        for (minor, want) in [("36", Some(36)), ("27+", Some(27)), ("28-gke", Some(28)), ("", None), ("x", None)] {
            assert_eq!(minor_version(&json!({"major": "1", "minor": minor})), want, "{minor}");
        }
        assert_eq!(minor_version(&json!({})), None);
    }
}
