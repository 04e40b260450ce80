//! The four resources of policies on the API server: which are served, their paths and their watches.
//!
//! It knows nothing of their content; see [`super::desired`] and [`super::stored`].

use super::stored::SELECTOR;
use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use hyper::Method;
use kube::Client;
use kube::api::ListParams;
use kube_unions_api::{self as api, ObjectPath, RequestError, Watched, found, list_and_watch};
use kube_unions_policies::{KubernetesVersion, PolicyObject};
use serde_json::Value;
use std::fmt;

/// The API group of policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// One of the four resources, in the order in which the objects of a kind are created: a policy that normalises comes before
/// the policy that rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyResource {
    MutatingPolicy,
    MutatingBinding,
    ValidatingPolicy,
    ValidatingBinding,
}

/// The name of an object of one of the resources. Displays as its kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PolicyKey {
    pub(super) resource: PolicyResource,
    pub(super) name: Box<str>,
}

/// The version and the policy APIs of an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServedPolicies {
    pub(super) version: KubernetesVersion,
    /// The version at which mutating policies are served, for example `v1beta1`.
    pub(super) mutating: Option<&'static str>,
    /// The version at which validating policies are served.
    pub(super) validating: Option<&'static str>,
}

/// An event of one of the watches.
pub(super) type PolicyEvent = (PolicyResource, Watched);

impl PolicyResource {
    pub const ALL: [Self; 4] =
        [Self::MutatingPolicy, Self::MutatingBinding, Self::ValidatingPolicy, Self::ValidatingBinding];

    pub(super) fn of(object: &PolicyObject) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.kind() == object.kind())
    }

    /// Returns the kind, and its name in paths.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::MutatingPolicy => ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
            Self::MutatingBinding => ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
            Self::ValidatingPolicy => ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            Self::ValidatingBinding => ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        }
    }

    pub fn kind(self) -> &'static str {
        self.names().0
    }

    pub fn plural(self) -> &'static str {
        self.names().1
    }

    pub(super) fn is_binding(self) -> bool {
        matches!(self, Self::MutatingBinding | Self::ValidatingBinding)
    }

    /// Returns the path of the collection at a version.
    pub(crate) fn path(self, version: &str) -> String {
        format!("/apis/{GROUP}/{version}/{}", self.plural())
    }
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} `{}`", self.resource.kind(), self.name)
    }
}

impl ServedPolicies {
    /// Asks an API server.
    pub(super) async fn read(client: &Client) -> Result<Self, RequestError> {
        let version = api::send(client, Method::GET, "/version").await?;
        let text = |field: &str| version.get(field).and_then(Value::as_str).unwrap_or_default();
        let numbers = format!("{}.{}", text("major"), text("minor"));
        let version = text("gitVersion").parse::<KubernetesVersion>().or_else(|_| numbers.parse());
        let version = version.map_err(|error| RequestError::Unanswered(error.to_string()))?;
        let (mut mutating, mut validating) = (None, None);
        for api in ["v1", "v1beta1"] {
            let resources = api::send(client, Method::GET, &format!("/apis/{GROUP}/{api}")).await;
            let Some(resources) = found(resources)? else { continue };
            let has = |resource: PolicyResource| {
                let all = resources.get("resources").and_then(Value::as_array);
                all.into_iter().flatten().any(|it| it.get("name").and_then(Value::as_str) == Some(resource.plural()))
            };
            mutating = mutating.or_else(|| has(PolicyResource::MutatingPolicy).then_some(api));
            validating = validating.or_else(|| has(PolicyResource::ValidatingPolicy).then_some(api));
        }
        // The compiled expressions of validating policies need the stable version.
        Ok(Self { version, mutating, validating: validating.filter(|api| *api == "v1") })
    }

    /// Returns the version at which a resource is served.
    pub(super) fn version_of(&self, resource: PolicyResource) -> Option<&'static str> {
        match resource {
            PolicyResource::MutatingPolicy | PolicyResource::MutatingBinding => self.mutating,
            PolicyResource::ValidatingPolicy | PolicyResource::ValidatingBinding => self.validating,
        }
    }

    /// Returns the resources that are served.
    pub(super) fn resources(&self) -> impl Iterator<Item = PolicyResource> {
        PolicyResource::ALL.into_iter().filter(|resource| self.version_of(*resource).is_some())
    }

    /// Yields the events of all objects that have our label.
    pub(super) fn watch(&self, client: &Client) -> BoxStream<'static, PolicyEvent> {
        let watches = PolicyResource::ALL.into_iter().filter_map(|resource| {
            let version = self.version_of(resource)?;
            let selection = ListParams::default().labels(SELECTOR);
            let events = list_and_watch(client, resource.path(version), selection, || {});
            Some(events.map(move |event| (resource, event)).boxed())
        });
        select_all(watches).boxed()
    }

    /// Returns the paths of an object at the version at which it is served.
    pub(super) fn path(&self, key: &PolicyKey) -> Result<ObjectPath, RequestError> {
        let version = self.version_of(key.resource);
        let version =
            version.ok_or_else(|| RequestError::Unanswered(format!("{} is not served", key.resource.kind())))?;
        Ok(ObjectPath::new(key.resource.path(version), &key.name))
    }
}
