//! The API servers of the matrix: one with the webhook, and one with compiled policies and with rules in a CRD.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::place::Place;
use super::rows::{Enforcement, group, schema};
use crate::builtin::{BuiltIn, PRESETS, wait_for_verdict};
use crate::contrib::definitions_of;
use crate::http::{Answer, Client};
use crate::kind::{self, annotate, documents};
use crate::kubectl::Kubectl;
use crate::process::Workspace;
use crate::webhook::kube_unions;
use fixtures::crds::crd;
use fixtures::reviews::version;
use fixtures::wait::eventually;

/// The deadline of work that the API server does in the background, far above the usual time.
const IN_FORCE: Duration = Duration::from_mins(1);

/// The contributed presets of the matrix: their file, group, kind and plural.
const CONTRIBUTED: [(&str, &str, &str, &str); 2] = [
    ("flux", "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "kustomizations"),
    ("keda", "eventing.keda.sh/v1alpha1", "CloudEventSource", "cloudeventsources"),
];

/// An API server on which unions are enforced, with the presets.
pub(super) struct Server {
    built_in: &'static BuiltIn,
}

impl Server {
    /// Returns the API server that asks the webhook, which the first test starts. `None`: these tests are skipped.
    pub(super) fn with_webhook() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        let start = || {
            let server = Self { built_in: BuiltIn::with_presets()? };
            server.enforce_by_webhook();
            Some(server)
        };
        SHARED.get_or_init(start).as_ref()
    }

    /// Returns the API server with policies and rules, which the first test starts. `None`: these tests are skipped.
    pub(super) fn with_policies() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        let start = || {
            let server = Self { built_in: BuiltIn::with_policies()? };
            server.enforce_by_policies();
            Some(server)
        };
        SHARED.get_or_init(start).as_ref()
    }

    /// Calls the function with the API server of the webhook and with that of policies.
    pub(super) fn for_each(test: impl Fn(&'static Self, Enforcement)) {
        let servers = [(Enforcement::Webhook, Self::with_webhook()), (Enforcement::Policies, Self::with_policies())];
        for (enforcement, server) in servers {
            if let Some(server) = server {
                test(server, enforcement);
            }
        }
    }

    pub(super) fn client(&self) -> &Client {
        self.built_in.cluster.client()
    }

    /// Returns a kubectl with a cache of its own for each `name`.
    pub(super) fn kubectl(&self, name: &str) -> Kubectl {
        self.built_in.cluster.kubectl(name)
    }

    /// Returns the kubeconfig of a user with all rights.
    pub(super) fn kubeconfig(&self) -> std::path::PathBuf {
        self.built_in.cluster.control_plane.admin_kubeconfig()
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

    /// Sends the objects of these groups to the webhook.
    pub(super) fn register(&self, name: &str, groups: &[&str]) {
        let rule = json!({"apiGroups": groups, "apiVersions": ["*"], "resources": ["*", "*/status"],
            "operations": ["CREATE", "UPDATE"]});
        let registration = self.built_in.cluster.webhook.registration_of(name, &[rule], "Fail");
        self.apply(&registration);
    }

    fn enforce_by_webhook(&self) {
        let groups = CONTRIBUTED.map(|(_, version, ..)| version.split_once('/').expect("a group").0);
        self.register("contributed.applied.example", &groups);
        self.install_contributed_kinds();
        for preset in contributed_presets() {
            self.apply(&preset);
            let verdict = wait_for_verdict(self.client(), preset["metadata"]["name"].as_str().unwrap());
            assert_eq!(verdict.status, "True", "{verdict:?}");
        }
        self.register("own.applied.example", &[group(Enforcement::Webhook)]);
        self.apply(&definition(Enforcement::Webhook));
        self.wait_for_contributed_presets();
        self.wait_for_own_kind(Enforcement::Webhook);
    }

    fn enforce_by_policies(&self) {
        let kubectl = &self.built_in.kubectl;
        self.install_contributed_kinds();
        let kinds = CONTRIBUTED.iter().flat_map(|(_, version, ..)| definitions_of(version.split_once('/').unwrap().0));
        let contributed: Vec<Value> = kinds.chain(contributed_presets()).collect();
        kubectl.apply(&compile("map", &contributed)).accepted();
        let own = definition(Enforcement::Policies);
        self.apply(&own);
        kubectl.apply(&compile("policies", &[own])).accepted();
        kubectl.apply(&compile("cel", &[definition(Enforcement::Rules)])).accepted();
        self.wait_for_contributed_presets();
        self.wait_for_own_kind(Enforcement::Policies);
        self.wait_for_own_kind(Enforcement::Rules);
    }

    fn apply(&self, object: &Value) {
        kind::apply(self.client(), object);
    }

    fn install_contributed_kinds(&self) {
        for (_, version, _, plural) in CONTRIBUTED {
            for definition in definitions_of(version.split_once('/').expect("a group").0) {
                self.apply(&definition);
            }
            self.wait_until_served(&format!("/apis/{version}/namespaces/default/{plural}"));
        }
    }

    pub(super) fn wait_until_served(&self, collection: &str) {
        let served = || self.client().get(collection).is_ok_and(|answer| answer.is_success());
        assert!(eventually(IN_FORCE, served), "{collection} is not served");
    }

    fn wait_for_contributed_presets(&self) {
        let probes = [
            ("spec.kubeConfig", json!({"secretRef": {"name": "x"}}), json!({"configMapRef": {"name": "x"}})),
            ("spec.eventSubscription", json!({"includedEventTypes": ["x"]}), json!({"excludedEventTypes": ["x"]})),
        ];
        for ((_, version, kind, plural), (at, one, other)) in CONTRIBUTED.into_iter().zip(probes) {
            let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "probe"},
                "spec": {"destination": {"http": {"uri": "x"}}}});
            if kind == "Kustomization" {
                object["spec"] = json!({});
            }
            let collection = format!("/apis/{version}/namespaces/default/{plural}");
            self.wait_until_cleared(&collection, "", &object, &Place::from(at.to_owned()), [&one, &other]);
        }
    }

    fn wait_for_own_kind(&self, enforcement: Enforcement) {
        let group = group(enforcement);
        let collection = format!("/apis/{group}/v1/namespaces/default/things");
        self.wait_until_served(&collection);
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "probe"}});
        if enforcement != Enforcement::Rules {
            for (part, subresource) in [("spec.plain", ""), ("status.plain", "/status")] {
                let members = [&json!({"a": "x"}), &json!({"b": "x"})];
                self.wait_until_cleared(&collection, subresource, &object, &Place::from(part.to_owned()), members);
            }
        }
        let mut both = object;
        both["metadata"]["name"] = "probe-both".into();
        both["spec"]["plain"] = json!({"a": "x", "b": "x"});
        self.wait_until_refused(&collection, &both);
    }

    /// Waits until an object is refused as invalid.
    pub(super) fn wait_until_refused(&self, collection: &str, object: &Value) {
        let path = format!("{collection}?dryRun=All");
        let refused = || self.send("POST", &path, "application/json", object).status == 422;
        assert!(eventually(IN_FORCE, refused), "not refused: {object}");
    }

    /// Stores one member, and waits until a request that adds the other leaves that alone.
    pub(super) fn wait_until_cleared(
        &self,
        collection: &str,
        subresource: &str,
        object: &Value,
        place: &Place,
        [one, other]: [&Value; 2],
    ) {
        let (mut stored, mut patch) = (object.clone(), json!({}));
        place.merge(&mut stored, one);
        place.merge(&mut patch, other);
        let url = format!("{collection}/{}{subresource}", object["metadata"]["name"].as_str().expect("a name"));
        // The second probe of a kind finds the object of the first.
        let is_stored = || {
            let created = self.send("POST", collection, "application/json", &stored).is_success();
            self.send("PATCH", &url, "application/merge-patch+json", &stored).is_success() || created
        };
        assert!(eventually(IN_FORCE, is_stored), "not stored: {stored}");
        let url = format!("{url}?dryRun=All");
        let mut last = Value::Null;
        let cleared = eventually(IN_FORCE, || {
            let answer = self.send("PATCH", &url, "application/merge-patch+json", &patch);
            let is_cleared = place.content(&answer.body).as_ref() == Some(other);
            last = answer.body;
            is_cleared
        });
        assert!(cleared, "not in force at {place}: {last}");
    }
}

/// Returns our own kind, annotated.
fn definition(enforcement: Enforcement) -> Value {
    let definition = crd(group(enforcement), "Thing", &[version("v1", &schema(), true)]);
    documents(&annotate(&definition.to_string())).remove(0)
}

/// Returns the contributed presets of the matrix.
fn contributed_presets() -> Vec<Value> {
    let of_file = |(file, _, kind, _): (&str, &str, &str, &str)| {
        let text = fs::read_to_string(format!("{PRESETS}/contrib/{file}.yaml")).expect("a preset");
        let preset = documents(&text).into_iter().find(|preset| preset["spec"]["target"]["kind"] == kind);
        preset.unwrap_or_else(|| panic!("no preset for {kind}"))
    };
    CONTRIBUTED.into_iter().map(of_file).collect()
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
