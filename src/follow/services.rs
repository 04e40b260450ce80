//! `APIService` objects: they tell which groups the API server serves from its own code, and which versions come from CRDs.
//!
//! The API server labels the object of each group and version that it serves. In a group of its own it serves no CRD, whatever
//! the version: its own code answers every path below `/apis/GROUP/`.
//!
//! Knows nothing of CRDs; [`state`](super::state) applies the groups to them.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube_unions_core::declaration::BuiltinGroups;
use std::collections::{BTreeMap, BTreeSet};

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

/// Group, version and server of one object.
type Served = (Box<str>, Box<str>, GroupServer);

/// The `APIService` objects of a cluster.
#[derive(Debug, Default)]
pub(super) struct Services {
    /// By the object's name. `None` until the first list is complete.
    known: Option<BTreeMap<String, Served>>,
    listing: Option<BTreeMap<String, Served>>,
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
    /// Begins a list.
    pub(super) fn list(&mut self) {
        self.listing = Some(BTreeMap::new());
    }

    /// Ends a list: it replaces the objects known before.
    pub(super) fn listed(&mut self) {
        if let Some(listed) = self.listing.take() {
            self.known = Some(listed);
        }
    }

    /// Stores an object that is new or has changed.
    pub(super) fn apply(&mut self, service: &APIService) {
        let Some((name, served)) = read(service) else { return };
        self.targets().for_each(|all| {
            all.insert(name.clone(), served.clone());
        });
    }

    /// Forgets an object.
    pub(super) fn remove(&mut self, service: &APIService) {
        let Some((name, _)) = read(service) else { return };
        self.targets().for_each(|all| {
            all.remove(&name);
        });
    }

    /// Returns true if the first list is complete.
    pub(super) fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// Returns true during a list. Nothing changes before its end.
    pub(super) fn are_listed_now(&self) -> bool {
        self.listing.is_some()
    }

    /// Returns the groups that the API server serves from its own code.
    pub(super) fn builtin_groups(&self) -> BuiltinGroups {
        let Some(known) = &self.known else { return BuiltinGroups::Guessed };
        let own = known.values().filter(|(_, _, server)| *server == GroupServer::Own);
        BuiltinGroups::Listed(own.map(|(group, _, _)| group.clone()).collect())
    }

    /// Returns the groups and versions that come from CRDs.
    pub(super) fn defined(&self) -> FromDefinitions {
        let known = self.known.iter().flat_map(BTreeMap::values);
        let from_definitions = known.filter(|(_, _, server)| *server == GroupServer::Definitions);
        FromDefinitions(from_definitions.map(|(group, version, _)| (group.clone(), version.clone())).collect())
    }

    /// Returns the map that an event changes: the list in progress, else the known objects.
    fn targets(&mut self) -> impl Iterator<Item = &mut BTreeMap<String, Served>> {
        match &mut self.listing {
            Some(listing) => Some(listing),
            None => self.known.as_mut(),
        }
        .into_iter()
    }
}

/// Returns true if the API server serves the group and version of an object from its own code.
pub(super) fn is_own(service: &APIService) -> bool {
    read(service).is_some_and(|(_, (_, _, server))| server == GroupServer::Own)
}

fn read(service: &APIService) -> Option<(String, Served)> {
    let name = service.metadata.name.clone()?;
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
        services.list();
        services.apply(&service("", "v1", Some("onstart"), &Value::Null));
        services.apply(&service("networking.k8s.io", "v1", Some("onstart"), &Value::Null));
        services.apply(&service("networking.k8s.io", "v1foo", Some("true"), &Value::Null));
        services.apply(&service("gateway.networking.k8s.io", "v1", Some("true"), &Value::Null));
        services.apply(&service("metrics.k8s.io", "v1beta1", None, &json!({"name": "metrics", "namespace": "m"})));
        services.apply(&service("by-hand.example", "v1", None, &Value::Null));
        assert!(!services.are_known(), "a list that is not complete says nothing");
        services.listed();
        let own = ["", "by-hand.example", "networking.k8s.io"].map(Box::from);
        assert_eq!(services.builtin_groups(), BuiltinGroups::Listed(own.into()));
        let from_definitions = services.defined();
        assert!(from_definitions.has("networking.k8s.io", "v1foo") && !from_definitions.has("networking.k8s.io", "v1"));

        services.remove(&service("by-hand.example", "v1", None, &Value::Null));
        assert!(!services.builtin_groups().has("by-hand.example"));
        // Objects that a list does not have are removed once the list is complete.
        services.list();
        services.apply(&service("", "v1", Some("onstart"), &Value::Null));
        assert!(services.builtin_groups().has("networking.k8s.io"));
        services.listed();
        assert!(!services.builtin_groups().has("networking.k8s.io"));
    }
}
