//! API servers that tests have for themselves, one after the other, because the start of one takes longer than most tests.
//!
//! A test that ends gives its API server back. If it answers, all that the test left could be removed, and nothing else has changed,
//! the next test gets it. One that was started with flags, or that its test stopped for good, ends with the test.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::http::{Answer, Client};
use fixtures::wait::eventually;

/// The deadline of removing what a test left. Without it the API server would only end.
const EMPTIED: Duration = Duration::from_secs(20);

/// The resources that go before all others: those that could guard these, and declarations before their CRD, whose successor could
/// still list them.
const FIRST: [&str; 8] = [
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "kube-unions.dev/v1alpha1/uniondeclarations",
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "apiextensions.k8s.io/v1/customresourcedefinitions",
];

/// Objects that the API server writes all the time.
const RESTLESS: [&str; 4] = ["apiservices", "configmaps", "events", "leases"];

/// The API servers that no test has at the moment.
static FREE: Mutex<Vec<(ControlPlane, Inventory)>> = Mutex::new(Vec::new());

/// An API server of one test.
pub(crate) struct Lent {
    control_plane: Option<ControlPlane>,
    /// The objects at the start. `None`: it ends with its test.
    start: Option<Inventory>,
}

/// The objects of an API server.
struct Inventory {
    /// The paths of the built-in resources, with true for those in namespaces.
    collections: Vec<(String, bool)>,
    /// By path, without what changes by itself.
    objects: BTreeMap<String, Value>,
}

impl Lent {
    /// Returns an API server that ends with its test.
    pub(crate) fn once(control_plane: ControlPlane) -> Self {
        Self { control_plane: Some(control_plane), start: None }
    }

    /// Returns an API server that is free, or the one that `start` starts.
    pub(crate) fn again(start: impl FnOnce() -> Result<ControlPlane, String>) -> Result<Self, String> {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some((control_plane, start)) = free {
            return Ok(Self { control_plane: Some(control_plane), start: Some(start) });
        }
        let control_plane = start()?;
        let start = Inventory::of_start(control_plane.client());
        Ok(Self { control_plane: Some(control_plane), start })
    }
}

impl Deref for Lent {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.control_plane.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut ControlPlane {
        self.control_plane.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(control_plane), Some(start)) = (self.control_plane.take(), self.start.take()) else { return };
        if !thread::panicking() && start.is_restored(control_plane.client()) {
            control_plane.forget_kubectl();
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push((control_plane, start));
        }
    }
}

impl Inventory {
    /// Returns the objects that the API server makes for itself. `None`: it does not make them in time.
    fn of_start(client: &Client) -> Option<Self> {
        let made = [
            "/api/v1/namespaces/kube-node-lease",
            "/api/v1/namespaces/kube-public",
            "/api/v1/namespaces/kube-system",
            "/api/v1/namespaces/default/services/kubernetes",
        ];
        let is_made = || made.iter().all(|path| client.get(path).is_ok_and(|answer| answer.is_success()));
        if !eventually(EMPTIED, is_made) {
            return None;
        }
        let groups = client.get("/apis").ok()?.body["groups"].take();
        let preferred = |group: &Value| Some(format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str()?));
        let mut collections = Vec::new();
        for version in groups.as_array()?.iter().filter_map(preferred).chain(["/api/v1".to_owned()]) {
            for resource in client.get(&version).ok()?.body["resources"].as_array()? {
                let (name, verbs) = (resource["name"].as_str()?, resource["verbs"].as_array()?);
                let can = |verb: &str| verbs.iter().any(|it| it == verb);
                if can("list") && can("delete") && !name.contains('/') && !RESTLESS.contains(&name) {
                    collections.push((format!("{version}/{name}"), resource["namespaced"] == true));
                }
            }
        }
        // Those of `kube-system` are the API server's own.
        collections.push(("/api/v1/namespaces/default/configmaps".to_owned(), false));
        let objects = objects(client, &collections)?;
        Some(Self { collections, objects: objects.into_iter().map(|(path, object)| (path, settled(object))).collect() })
    }

    /// Removes all objects that were not there at the start. Returns false if not all of them go, if others have changed, or if policies
    /// are about built-in types: they stay in force for a second.
    fn is_restored(&self, client: &Client) -> bool {
        let Some(left) = objects(client, &self.collections) else { return false };
        if left.iter().any(|(path, object)| path.contains("admissionpolicies/") && is_about_builtin(object)) {
            return false;
        }
        for path in FIRST {
            if client.delete(&format!("/apis/{path}")).is_err() {
                return false;
            }
        }
        let mut last = BTreeMap::new();
        let is_empty = eventually(EMPTIED, || {
            last = objects(client, &self.collections).unwrap_or_default();
            let left: Vec<_> = last.iter().filter(|(path, _)| !self.objects.contains_key(*path)).collect();
            for (path, object) in &left {
                remove(client, path, object);
            }
            left.is_empty() && !last.is_empty()
        });
        is_empty && last.into_iter().map(|(path, object)| (path, settled(object))).eq(self.objects.clone())
    }
}

/// Returns true if a policy is about resources that no CRD defines.
fn is_about_builtin(policy: &Value) -> bool {
    let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array();
    let groups = rules.into_iter().flatten().flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten());
    groups.filter_map(Value::as_str).any(|group| !group.contains('.') || group.ends_with(".k8s.io"))
}

/// Returns the objects of these resources by path. `None`: the API server does not answer.
fn objects(client: &Client, collections: &[(String, bool)]) -> Option<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for (collection, is_namespaced) in collections {
        let mut list = client.get(collection).ok().filter(Answer::is_success)?.body;
        for object in list["items"].as_array_mut()?.iter_mut().map(Value::take) {
            let (folder, plural) = collection.rsplit_once('/')?;
            // A name of RBAC may have any character.
            let name = utf8_percent_encode(object["metadata"]["name"].as_str()?, NON_ALPHANUMERIC);
            let path = match object["metadata"]["namespace"].as_str().filter(|_| *is_namespaced) {
                Some(namespace) => format!("{folder}/namespaces/{namespace}/{plural}/{name}"),
                None => format!("{collection}/{name}"),
            };
            all.insert(path, object);
        }
    }
    Some(all)
}

/// Returns an object without what changes by itself.
fn settled(mut object: Value) -> Value {
    object["status"] = Value::Null;
    for field in ["resourceVersion", "managedFields", "generation"] {
        object["metadata"][field] = Value::Null;
    }
    object
}

/// Deletes an object. No controller finalises it.
fn remove(client: &Client, path: &str, object: &Value) {
    let _ = client.delete(&format!("{path}?gracePeriodSeconds=0"));
    if path.starts_with("/api/v1/namespaces/") && object["status"]["phase"] == "Terminating" {
        let mut namespace = object.clone();
        namespace["spec"]["finalizers"] = json!([]);
        let body = namespace.to_string();
        let _ = client.send("PUT", &format!("{path}/finalize"), "application/json", body.as_bytes());
    } else if object["metadata"]["deletionTimestamp"].is_string() && !path.contains("customresourcedefinitions") {
        let none = br#"{"metadata": {"finalizers": null}}"#;
        let _ = client.send("PATCH", path, "application/merge-patch+json", none);
    }
}
