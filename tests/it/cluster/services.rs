//! The groups that the API server serves from its own code, on a server that does not say so, or says something else later.

use super::{Followed, definition, faulty, kinds, until_kinds};
use fixtures::api_server::{Call, DECLARATIONS, DEFINITIONS, SERVICES, Stream};
use fixtures::wait::until;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The answers about `APIService`s.
#[derive(Default)]
struct Services {
    /// `None`: they may not be read.
    all: Option<Vec<Value>>,
    streams: Vec<Stream>,
}

fn service(group: &str, version: &str, label: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}"), "resourceVersion": "100",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": label}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
    })
}

/// A CRD of a group of the project, and one of another.
fn definitions() -> Vec<String> {
    vec![definition("Gateway", 1).replace("watch.example", "gateway.networking.k8s.io"), definition("Apple", 2)]
}

fn follow(services: &Arc<Mutex<Services>>) -> Followed {
    let services = Arc::clone(services);
    let watches = Mutex::new(Vec::new());
    Followed::served_by(move |call| match call.path.as_str() {
        DECLARATIONS => call.not_found(),
        DEFINITIONS if call.is_watch() => watches.lock().unwrap().push(call.stream()),
        DEFINITIONS => call.page(&definitions(), ""),
        SERVICES => services.lock().unwrap().answer(call),
        path => panic!("{path}"),
    })
}

impl Services {
    fn answer(&mut self, call: Call) {
        match &self.all {
            None => call.fail(403, "Forbidden", "apiservices is forbidden"),
            Some(_) if call.is_watch() => self.streams.push(call.stream()),
            Some(all) => call.page(&all.iter().map(ToString::to_string).collect::<Vec<_>>(), ""),
        }
    }

    fn tell(&self, service: &Value) {
        for stream in &self.streams {
            stream.event("ADDED", &service.to_string());
        }
    }
}

#[tokio::test]
async fn a_crd_of_the_projects_groups_counts_only_while_the_server_says_that_the_group_is_not_its_own() {
    let services = Arc::<Mutex<Services>>::default();
    let mut followed = follow(&services);
    // They may not be read: nothing is taken for a CRD's that might be the server's own, and the rest is in force.
    let catalog = until_kinds(&mut followed, &["Apple"]).await;
    assert_eq!(faulty(&catalog), ["gateways.gateway.networking.k8s.io"]);
    assert!(catalog.faults()[0].message.contains("apiservices"), "{}", catalog.faults()[0]);

    // The right is granted.
    services.lock().unwrap().all =
        Some(vec![service("apps", "v1", "onstart"), service("gateway.networking.k8s.io", "v1", "true")]);
    let catalog = until_kinds(&mut followed, &["Gateway", "Apple"]).await;
    assert!(faulty(&catalog).is_empty());

    // A new version of the server brings the group itself.
    until("the services are watched", async || !services.lock().unwrap().streams.is_empty()).await;
    services.lock().unwrap().tell(&service("gateway.networking.k8s.io", "v2", "onstart"));
    let catalog = until_kinds(&mut followed, &["Apple"]).await;
    assert_eq!(kinds(&catalog), ["Apple"]);
    assert!(catalog.faults()[0].message.contains("serves this group from its own code"), "{}", catalog.faults()[0]);
}
