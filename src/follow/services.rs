//! `APIService` objects: they tell which groups the API server serves from its own code, and which versions come from CRDs.
//!
//! The API server labels the object of each group and version that it serves. In a group of its own it serves no CRD, whatever
//! the version: its own code answers every path below `/apis/GROUP/`.
//!
//! Knows nothing of CRDs; [`state`](super::state) applies the groups to them.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::ResourceExt;
use kube_unions_api::{ListProgress, WatchChange};
use kube_unions_core::declaration::BuiltinGroups;
use std::collections::{BTreeMap, BTreeSet};

/// The label of objects that the API server maintains.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The value of the label for versions that come from CRDs. It is `onstart` for those of the API server's own code.
const FROM_DEFINITIONS: &str = "true";

/// A group and version that the API server itself serves: from CRDs, or from its own code.
#[derive(Debug)]
struct ServedVersion {
    group: Box<str>,
    version: Box<str>,
    from_definitions: bool,
}

/// The `APIService` objects of a cluster. Those of other servers, to which requests are passed on, do not matter.
#[derive(Debug, Default)]
pub(super) struct Services {
    /// By the object's name.
    known: BTreeMap<Box<str>, ServedVersion>,
    pub(super) list: ListProgress,
}

pub(super) type GroupVersions = BTreeSet<(Box<str>, Box<str>)>;

impl Services {
    /// Takes in an event of the watch.
    pub(super) fn observe(&mut self, change: WatchChange) {
        self.list.observe(&change);
        let (name, served) = match change {
            WatchChange::Set { name, text } => (name, serde_json::from_str(&text).ok().and_then(|it| read(&it))),
            WatchChange::Gone(name) => (name, None),
            WatchChange::Listing | WatchChange::Listed => return,
        };
        match served {
            Some(served) => drop(self.known.insert(name, served)),
            None => drop(self.known.remove(&name)),
        }
    }

    /// Returns true if the first list is complete.
    pub(super) fn are_known(&self) -> bool {
        self.list.is_complete
    }

    /// Returns the groups that the API server serves from its own code.
    pub(super) fn builtin_groups(&self) -> BuiltinGroups {
        if !self.are_known() {
            return BuiltinGroups::Guessed;
        }
        let own = self.known.values().filter(|served| !served.from_definitions);
        BuiltinGroups::Listed(own.map(|served| served.group.clone()).collect())
    }

    /// Returns the groups and versions that come from CRDs. Their OpenAPI documents repeat the schemas of the CRDs.
    pub(super) fn defined(&self) -> GroupVersions {
        let defined = self.known.values().filter(|served| served.from_definitions && self.are_known());
        defined.map(|served| (served.group.clone(), served.version.clone())).collect()
    }
}

/// Returns true if the API server serves the group and version of an object from its own code.
pub(super) fn is_own(service: &APIService) -> bool {
    read(service).is_some_and(|served| !served.from_definitions)
}

/// Returns the group and version of an object, `None` if another server serves them.
fn read(service: &APIService) -> Option<ServedVersion> {
    let spec = service.spec.as_ref().filter(|spec| spec.service.is_none())?;
    Some(ServedVersion {
        group: spec.group.as_deref().unwrap_or_default().into(),
        version: spec.version.as_deref().unwrap_or_default().into(),
        // Without the label it was made by hand, and tells that the API server serves the group.
        from_definitions: service.labels().get(MANAGED).is_some_and(|label| label == FROM_DEFINITIONS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn service(group: &str, version: &str, label: Option<&str>, service: &Value) -> WatchChange {
        let labels = label.map_or(json!({}), |label| json!({ MANAGED: label }));
        let name = format!("{version}.{group}");
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name, "labels": labels},
            "spec": {"group": group, "version": version, "service": service,
                     "groupPriorityMinimum": 1000, "versionPriority": 100},
        });
        WatchChange::Set { name: name.into(), text: service.to_string().into() }
    }

    #[test]
    fn a_group_is_the_servers_own_if_any_version_of_it_is() {
        let mut services = Services::default();
        assert_eq!(services.builtin_groups(), BuiltinGroups::Guessed);
        services.observe(WatchChange::Listing);
        services.observe(service("", "v1", Some("onstart"), &Value::Null));
        services.observe(service("networking.k8s.io", "v1", Some("onstart"), &Value::Null));
        services.observe(service("networking.k8s.io", "v1foo", Some("true"), &Value::Null));
        services.observe(service("gateway.networking.k8s.io", "v1", Some("true"), &Value::Null));
        services.observe(service("metrics.k8s.io", "v1beta1", None, &json!({"name": "metrics", "namespace": "m"})));
        services.observe(service("by-hand.example", "v1", None, &Value::Null));
        assert!(!services.are_known(), "a list that is not complete says nothing");
        services.observe(WatchChange::Listed);
        let own = ["", "by-hand.example", "networking.k8s.io"].map(Box::from);
        assert_eq!(services.builtin_groups(), BuiltinGroups::Listed(own.into()));
        let from_definitions = [("gateway.networking.k8s.io", "v1"), ("networking.k8s.io", "v1foo")]
            .map(|(group, version)| (group.into(), version.into()));
        assert_eq!(services.defined(), from_definitions.into());

        services.observe(WatchChange::Gone("v1.by-hand.example".into()));
        assert!(!services.builtin_groups().has("by-hand.example"));
        // Objects that a list does not have are removed once the list is complete.
        services.observe(WatchChange::Listing);
        services.observe(service("", "v1", Some("onstart"), &Value::Null));
        assert!(services.builtin_groups().has("networking.k8s.io"));
        for name in ["v1.networking.k8s.io", "v1foo.networking.k8s.io", "v1.gateway.networking.k8s.io"] {
            services.observe(WatchChange::Gone(name.into()));
        }
        services.observe(WatchChange::Listed);
        assert!(!services.builtin_groups().has("networking.k8s.io"));
    }
}
