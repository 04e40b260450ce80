//! `APIService` objects: they tell which groups the API server serves from its own code, and which versions come from CRDs.
//!
//! The API server labels the object of each group and version that it serves. In a group of its own it serves no CRD, whatever
//! the version: its own code answers every path below `/apis/GROUP/`.
//!
//! Knows nothing of CRDs; [`state`](super::state) applies the groups to them.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube_unions_core::declaration::BuiltinGroups;
use std::collections::BTreeSet;

/// The path of the objects.
pub(super) const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// The label of objects that the API server maintains.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The value of the label for versions that come from CRDs. It is `onstart` for those of the API server's own code.
const FROM_DEFINITIONS: &str = "true";

/// The server of a group and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupServer {
    /// The API server, from its own code.
    Own,
    /// The API server, from CRDs.
    Definitions,
    /// Another server, to which requests are passed on.
    Aggregated,
}

/// The `APIService` objects of a cluster. A list takes effect when it is complete.
#[derive(Debug, Default)]
pub(super) struct Services {
    objects: Writer<APIService>,
    listed: bool,
}

/// The groups and versions that come from CRDs. Their OpenAPI documents repeat the schemas of the CRDs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FromDefinitions(BTreeSet<(Box<str>, Box<str>)>);

impl FromDefinitions {
    /// Returns true if a group and version comes from CRDs.
    pub(super) fn has(&self, group: &str, version: &str) -> bool {
        self.0.contains(&(group.into(), version.into()))
    }
}

impl Services {
    /// Takes in an event of a watch.
    pub(super) fn apply(&mut self, event: &Event<APIService>) {
        self.objects.apply_watcher_event(event);
        self.listed |= matches!(event, Event::InitDone);
    }

    /// Returns true if the first list is complete.
    pub(super) fn are_known(&self) -> bool {
        self.listed
    }

    /// Returns the groups that the API server serves from its own code.
    pub(super) fn builtin_groups(&self) -> BuiltinGroups {
        if !self.listed {
            return BuiltinGroups::Guessed;
        }
        BuiltinGroups::Listed(self.served_by(GroupServer::Own).map(|(group, _)| group).collect())
    }

    /// Returns the groups and versions that come from CRDs.
    pub(super) fn defined(&self) -> FromDefinitions {
        FromDefinitions(self.served_by(GroupServer::Definitions).collect())
    }

    /// Returns the groups and versions of a server.
    fn served_by(&self, server: GroupServer) -> impl Iterator<Item = (Box<str>, Box<str>)> {
        let objects = self.objects.as_reader().state();
        objects.into_iter().filter_map(move |service| served(&service, server))
    }
}

/// Returns true if the API server serves the group and version of an object from its own code.
pub(super) fn is_own(service: &APIService) -> bool {
    served(service, GroupServer::Own).is_some()
}

/// Returns group and version of an object if this server serves them.
fn served(service: &APIService, wanted: GroupServer) -> Option<(Box<str>, Box<str>)> {
    let spec = service.spec.as_ref()?;
    let label = service.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED));
    let server = match (&spec.service, label.map(String::as_str)) {
        (Some(_), _) => GroupServer::Aggregated,
        (None, Some(FROM_DEFINITIONS)) => GroupServer::Definitions,
        // Without the label it was made by hand, and tells that the API server serves the group.
        (None, _) => GroupServer::Own,
    };
    let name = |name: &Option<String>| name.as_deref().unwrap_or_default().into();
    (server == wanted).then(|| (name(&spec.group), name(&spec.version)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn service(group: &str, version: &str, label: Option<&str>, service: &Value) -> APIService {
        let labels = label.map_or(json!({}), |label| json!({ MANAGED: label }));
        serde_json::from_value(json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}"), "labels": labels},
            "spec": {"group": group, "version": version, "service": service,
                     "groupPriorityMinimum": 1000, "versionPriority": 100},
        }))
        .unwrap()
    }

    #[test]
    fn a_group_is_the_servers_own_if_any_version_of_it_is() {
        let mut services = Services::default();
        assert_eq!(services.builtin_groups(), BuiltinGroups::Guessed);
        services.apply(&Event::Init);
        services.apply(&Event::InitApply(service("", "v1", Some("onstart"), &Value::Null)));
        services.apply(&Event::InitApply(service("networking.k8s.io", "v1", Some("onstart"), &Value::Null)));
        services.apply(&Event::InitApply(service("networking.k8s.io", "v1foo", Some("true"), &Value::Null)));
        services.apply(&Event::InitApply(service("gateway.networking.k8s.io", "v1", Some("true"), &Value::Null)));
        services.apply(&Event::InitApply(service(
            "metrics.k8s.io",
            "v1beta1",
            None,
            &json!({"name": "metrics", "namespace": "m"}),
        )));
        services.apply(&Event::InitApply(service("by-hand.example", "v1", None, &Value::Null)));
        assert!(!services.are_known(), "a list that is not complete says nothing");
        services.apply(&Event::InitDone);
        let own = ["", "by-hand.example", "networking.k8s.io"].map(Box::from);
        assert_eq!(services.builtin_groups(), BuiltinGroups::Listed(own.into()));
        let from_definitions = services.defined();
        assert!(from_definitions.has("networking.k8s.io", "v1foo") && !from_definitions.has("networking.k8s.io", "v1"));

        services.apply(&Event::Delete(service("by-hand.example", "v1", None, &Value::Null)));
        assert!(!services.builtin_groups().has("by-hand.example"));
        // Objects that a list does not have are removed once the list is complete.
        services.apply(&Event::Init);
        services.apply(&Event::InitApply(service("", "v1", Some("onstart"), &Value::Null)));
        assert!(services.builtin_groups().has("networking.k8s.io"));
        services.apply(&Event::InitDone);
        assert!(!services.builtin_groups().has("networking.k8s.io"));
    }
}
