//! `APIService` objects: they tell which groups the API server serves from its own code, and which versions come from CRDs.
//!
//! The API server labels the object of each group and version that it serves. In a group of its own it serves no CRD, whatever
//! the version: its own code answers every path below `/apis/GROUP/`.
//!
//! Knows nothing of CRDs; [`state`](super::state) applies the groups to them.

use crate::api::ListProgress;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::runtime::watcher::Event;
use kube_unions_core::declaration::BuiltinGroups;
use std::collections::{BTreeMap, BTreeSet};

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

/// Group, version and server of one object.
type Served = (Box<str>, Box<str>, GroupServer);

/// The `APIService` objects of a cluster.
#[derive(Debug, Default)]
pub(super) struct Services {
    /// By the object's name.
    known: BTreeMap<Box<str>, Served>,
    list: ListProgress,
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
    /// Takes in an event of the watch.
    pub(super) fn heard(&mut self, event: Event<APIService>) {
        match event {
            Event::Init => self.list.begin(),
            Event::InitApply(service) | Event::Apply(service) => {
                let Some((name, served)) = read(&service) else { return };
                self.list.see(&name);
                self.known.insert(name, served);
            }
            Event::InitDone => {
                for name in self.list.end(self.known.keys().map(AsRef::as_ref)) {
                    self.known.remove(&name);
                }
            }
            Event::Delete(service) => {
                self.known.remove(service.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }

    /// Returns true if the first list is complete.
    pub(super) fn are_known(&self) -> bool {
        self.list.is_complete()
    }

    /// Returns true during a list. Its objects count at its end.
    pub(super) fn are_listed_now(&self) -> bool {
        self.list.is_in_progress()
    }

    /// Returns the groups that the API server serves from its own code.
    pub(super) fn builtin_groups(&self) -> BuiltinGroups {
        if !self.are_known() {
            return BuiltinGroups::Guessed;
        }
        BuiltinGroups::Listed(self.served_by(GroupServer::Own).map(|(group, ..)| group.clone()).collect())
    }

    /// Returns the groups and versions that come from CRDs.
    pub(super) fn defined(&self) -> FromDefinitions {
        let defined = self.served_by(GroupServer::Definitions).filter(|_| self.are_known());
        FromDefinitions(defined.map(|(group, version, _)| (group.clone(), version.clone())).collect())
    }

    fn served_by(&self, server: GroupServer) -> impl Iterator<Item = &Served> {
        self.known.values().filter(move |(.., it)| *it == server)
    }
}

/// Returns true if the API server serves the group and version of an object from its own code.
pub(super) fn is_own(service: &APIService) -> bool {
    read(service).is_some_and(|(_, (_, _, server))| server == GroupServer::Own)
}

fn read(service: &APIService) -> Option<(Box<str>, Served)> {
    let name = service.metadata.name.as_deref()?.into();
    let spec = service.spec.as_ref()?;
    let label = service.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED));
    let server = match (&spec.service, label.map(String::as_str)) {
        (Some(_), _) => GroupServer::Aggregated,
        (None, Some(FROM_DEFINITIONS)) => GroupServer::Definitions,
        // Without the label it was made by hand, and tells that the API server serves the group.
        (None, _) => GroupServer::Own,
    };
    let group = spec.group.as_deref().unwrap_or_default().into();
    Some((name, (group, spec.version.as_deref().unwrap_or_default().into(), server)))
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
        services.heard(Event::Init);
        services.heard(Event::Apply(service("", "v1", Some("onstart"), &Value::Null)));
        services.heard(Event::Apply(service("networking.k8s.io", "v1", Some("onstart"), &Value::Null)));
        services.heard(Event::Apply(service("networking.k8s.io", "v1foo", Some("true"), &Value::Null)));
        services.heard(Event::Apply(service("gateway.networking.k8s.io", "v1", Some("true"), &Value::Null)));
        services.heard(Event::Apply(service(
            "metrics.k8s.io",
            "v1beta1",
            None,
            &json!({"name": "metrics", "namespace": "m"}),
        )));
        services.heard(Event::Apply(service("by-hand.example", "v1", None, &Value::Null)));
        assert!(!services.are_known(), "a list that is not complete says nothing");
        services.heard(Event::InitDone);
        let own = ["", "by-hand.example", "networking.k8s.io"].map(Box::from);
        assert_eq!(services.builtin_groups(), BuiltinGroups::Listed(own.into()));
        let from_definitions = services.defined();
        assert!(from_definitions.has("networking.k8s.io", "v1foo") && !from_definitions.has("networking.k8s.io", "v1"));

        services.heard(Event::Delete(service("by-hand.example", "v1", None, &Value::Null)));
        assert!(!services.builtin_groups().has("by-hand.example"));
        // Objects that a list does not have are removed once the list is complete.
        services.heard(Event::Init);
        services.heard(Event::Apply(service("", "v1", Some("onstart"), &Value::Null)));
        assert!(services.builtin_groups().has("networking.k8s.io"));
        services.heard(Event::InitDone);
        assert!(!services.builtin_groups().has("networking.k8s.io"));
    }
}
