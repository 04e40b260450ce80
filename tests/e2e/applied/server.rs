//! The API servers of the matrix: one with the webhook, and one with compiled policies and with rules in a CRD.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::rows::{Enforcement, group, schema};
use crate::builtin::BuiltIn;
use crate::support::cluster::Cluster;
use crate::support::http::Answer;
use crate::support::kind::{self, annotate, documents};
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;
use fixtures::crds::crd;
use fixtures::reviews::version;
use fixtures::wait::eventually;

/// The deadline of work that the API server does in the background, far above the usual time.
const IN_FORCE: Duration = Duration::from_mins(1);

/// An API server on which unions are enforced, with the presets.
pub(super) struct Server(&'static Cluster);

impl Deref for Server {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.0
    }
}

impl Server {
    /// Returns the API server that asks the webhook, which the first test starts. `None`: these tests are skipped.
    pub(super) fn with_webhook() -> Option<&'static Self> {
        static SHARED: OnceLock<Server> = OnceLock::new();
        let built_in = BuiltIn::with_presets()?;
        Some(SHARED.get_or_init(|| {
            let server = Self(&built_in.cluster);
            server.register(group(Enforcement::Webhook));
            kind::apply(server.client(), &definition(Enforcement::Webhook));
            server.wait_for_own_kind(Enforcement::Webhook);
            server
        }))
    }

    /// Returns the API server with policies and rules, which the first test starts. `None`: these tests are skipped.
    pub(super) fn with_policies() -> Option<&'static Self> {
        static SHARED: OnceLock<Server> = OnceLock::new();
        let built_in = BuiltIn::with_policies()?;
        Some(SHARED.get_or_init(|| {
            let (server, own) = (Self(&built_in.cluster), definition(Enforcement::Policies));
            kind::apply(server.client(), &own);
            built_in.kubectl.apply(&compile("policies", &[own])).accepted();
            built_in.kubectl.apply(&compile("cel", &[definition(Enforcement::Rules)])).accepted();
            server.wait_for_own_kind(Enforcement::Policies);
            server.wait_for_own_kind(Enforcement::Rules);
            server
        }))
    }

    /// Sends an object, which is not needed for a `GET`.
    pub(super) fn send(&self, method: &str, path: &str, content_type: &str, object: &Value) -> Answer {
        let body = if object.is_null() { String::new() } else { object.to_string() };
        self.client().send(method, path, content_type, body.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a server-side apply that takes fields over.
    pub(super) fn apply_as(&self, manager: &str, path: &str, object: &Value) -> Answer {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send("PATCH", &path, "application/apply-patch+yaml", object)
    }

    /// Returns the object of a path. `None`: there is none.
    pub(super) fn stored(&self, path: &str) -> Option<Value> {
        let answer = self.send("GET", path, "application/json", &Value::Null);
        assert!(answer.is_success() || answer.status == 404, "{path}: {answer:?}");
        answer.is_success().then_some(answer.body)
    }

    /// Returns the objects of a collection by name.
    pub(super) fn all(&self, collection: &str) -> BTreeMap<String, Value> {
        let list = self.stored(collection).unwrap_or_else(|| panic!("{collection} is not served"));
        let items = list["items"].as_array().expect("a list has items").iter();
        items.map(|item| (item["metadata"]["name"].as_str().expect("a name").to_owned(), item.clone())).collect()
    }

    /// Sends the objects of a group to the webhook.
    pub(super) fn register(&self, group: &str) {
        kind::apply(self.client(), &self.webhook.registration(group));
    }

    fn wait_for_own_kind(&self, enforcement: Enforcement) {
        let parts: &[&str] = if enforcement == Enforcement::Rules { &[] } else { &["spec", "status"] };
        self.wait_until_in_force(&format!("{}/v1", group(enforcement)), "Thing", "plain", parts);
    }

    pub(super) fn wait_until_served(&self, collection: &str) {
        let served = || self.client().get(collection).is_ok_and(|answer| answer.is_success());
        assert!(eventually(IN_FORCE, served), "{collection} is not served");
    }

    /// Waits until a request that adds `b` to the union `field` clears `a` in each part, and until both are refused in `spec`.
    pub(super) fn wait_until_in_force(&self, api_version: &str, kind: &str, field: &str, parts: &[&str]) {
        let collection = format!("/apis/{api_version}/namespaces/default/{}s", kind.to_lowercase());
        let of = |part: &str, members: Value| {
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": format!("probe-{part}")},
                part: {field: members}})
        };
        self.wait_until_served(&collection);
        for part in parts {
            let (old, new) = (of(part, json!({"a": "x"})), of(part, json!({"b": "x"})));
            let path = format!("{collection}/probe-{part}{}", if *part == "status" { "/status" } else { "" });
            let merge = |query: &str, object: &Value| {
                self.send("PATCH", &format!("{path}{query}"), "application/merge-patch+json", object)
            };
            let is_stored = || {
                self.send("POST", &collection, "application/json", &old);
                merge("", &old).is_success()
            };
            assert!(eventually(IN_FORCE, is_stored), "not stored: {old}");
            let is_cleared = || merge("?dryRun=All", &new).body[part][field] == json!({"b": "x"});
            assert!(eventually(IN_FORCE, is_cleared), "not in force: {new}");
        }
        let both = of("spec", json!({"a": "x", "b": "x"}));
        let path = format!("{collection}?dryRun=All");
        let is_refused = || self.send("POST", &path, "application/json", &both).status == 422;
        assert!(eventually(IN_FORCE, is_refused), "not refused: {both}");
    }
}

/// Returns our own kind, annotated.
fn definition(enforcement: Enforcement) -> Value {
    let definition = crd(group(enforcement), "Thing", &[version("v1", &schema(), true)]);
    documents(&annotate(&definition.to_string())).remove(0)
}

/// Runs `kube-unions compile`.
pub(super) fn compile(to: &str, objects: &[Value]) -> String {
    let workspace = Workspace::new("applied");
    for (number, object) in objects.iter().enumerate() {
        workspace.write(&format!("{number}.json"), &object.to_string());
    }
    let (to, from) = (format!("--to={to}"), format!("--from={}", workspace.path().display()));
    kube_unions(&["compile", &to, &from, "--kubernetes-version=1.36"], "").accepted().stdout
}
