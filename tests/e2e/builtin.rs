//! Built-in types under test: a cluster whose writes of them are sent to a webhook, and `UnionDeclaration`s to switch on and
//! off. Presets change what built-in types do: a test that switches them needs a cluster of its own, and the others share one
//! without presets, one with them in the webhook, and one with them as policies.

use std::ops::Deref;
use std::sync::OnceLock;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::presets::switch_policies_on;
use crate::support::cluster::{AnyCluster, Cluster, is_left_out};
use crate::support::http::{Answer, Client};
use crate::support::kubectl::Kubectl;
use crate::support::version::{Feature, lacks};
use fixtures::api_server::DECLARATIONS;
use fixtures::wait::{SETTLED, eventually, for_some};

/// The folder of the presets.
pub(crate) const PRESETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/presets");

/// The folder of the presets as policies.
pub(crate) const POLICIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/policies");

/// The kinds that presets are about, by version.
pub(crate) const WITH_PRESETS: [(&str, &[&str]); 7] = [
    ("v1", &["PersistentVolume", "Pod", "PodTemplate", "ReplicationController", "Service"]),
    ("apps/v1", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling/v1", &["HorizontalPodAutoscaler"]),
    ("autoscaling/v2", &["HorizontalPodAutoscaler"]),
    ("batch/v1", &["CronJob", "Job"]),
    ("networking.k8s.io/v1", &["Ingress", "NetworkPolicy"]),
    ("policy/v1", &["PodDisruptionBudget"]),
];

/// Other kinds of the corpus.
const WITHOUT_PRESETS: [(&str, &[&str]); 3] = [
    ("v1", &["ConfigMap", "PersistentVolumeClaim", "Secret", "ServiceAccount"]),
    ("coordination.k8s.io/v1", &["Lease"]),
    ("rbac.authorization.k8s.io/v1", &["Role"]),
];

/// The kinds of tests that have no namespace.
const CLUSTER_WIDE: [&str; 6] = [
    "CustomResourceDefinition",
    "FlowSchema",
    "MutatingWebhookConfiguration",
    "PersistentVolume",
    "PriorityLevelConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Objects of the kinds above on an API server.
pub(crate) struct Objects {
    client: Client,
    pub(crate) kubectl: Kubectl,
}

/// A cluster whose webhook can be sent every write of the kinds above.
pub(crate) struct BuiltIn {
    pub(crate) cluster: Cluster,
    objects: Objects,
}

/// A condition of a `UnionDeclaration` for its present generation.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl BuiltIn {
    /// A cluster for one test alone. Nothing is declared yet, and no write is sent to the webhook.
    pub(crate) fn own() -> Option<Self> {
        let cluster = Cluster::own()?;
        let objects = Objects::of(&cluster);
        Some(Self { cluster, objects })
    }

    /// Returns the cluster with the presets in the webhook, which tests share: each keeps to objects of its own. `None`: these tests
    /// are skipped.
    pub(crate) fn with_presets() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<BuiltIn>> = OnceLock::new();
        if is_left_out() {
            return None;
        }
        SHARED.get_or_init(|| Self::own().inspect(Self::switch_presets_on)).as_ref()
    }

    /// Returns the cluster with the presets as policies, which tests share in the same way. No write is sent to its webhook.
    pub(crate) fn with_policies() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<BuiltIn>> = OnceLock::new();
        if is_left_out() || lacks(Feature::MutatingPolicies) {
            return None;
        }
        SHARED.get_or_init(|| Self::own().inspect(|built_in| switch_policies_on(built_in))).as_ref()
    }

    /// Sends writes of the kinds above to the webhook, as the shipped registration does: when it is down, they pass.
    pub(crate) fn register(&self) {
        let rules = WITH_PRESETS.iter().chain(&WITHOUT_PRESETS).map(|(version, kinds)| {
            let plurals = kinds.iter().map(|kind| ApiResource::from_gvk(&kind_of(version, kind)).plural);
            let resources: Vec<String> = plurals.flat_map(|plural| [format!("{plural}/status"), plural]).collect();
            let GroupVersionKind { group, version, .. } = kind_of(version, "");
            json!({
                "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": resources,
            })
        });
        let rules: Vec<Value> = rules.collect();
        let registration = self.cluster.webhook.registration_of("built-in.tests.example", &rules, "Ignore");
        self.kubectl.apply(&registration.to_string()).accepted();
    }

    /// Applies every preset, and waits until all are accepted and the API server has been seen to ask the webhook.
    pub(crate) fn switch_presets_on(&self) {
        self.register();
        apply_presets(&self.cluster);
        let probe = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "probe"}},
                "template": {
                    "metadata": {"labels": {"app": "probe"}},
                    "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
                },
            },
        });
        let reached = eventually(SETTLED, || {
            let answer = self.send("POST", &format!("{}?dryRun=All", collection(&probe)), "application/json", &probe);
            answer.is_success()
                && ["mutate", "validate"].iter().all(|phase| self.cluster.webhook.reviews("apps", phase) > 0)
        });
        assert!(reached, "reviews of Deployments never reached the webhook:\n{}", self.cluster.webhook.log());
    }
}

/// Applies the presets, and waits until the webhook of a cluster has accepted each.
pub(crate) fn apply_presets(cluster: &Cluster) {
    cluster.control_plane.kubectl("presets").run(&["apply", "-k", PRESETS]).accepted();
    for name in declarations(cluster.client()) {
        let accepted = wait_for_verdict(cluster.client(), &name);
        assert_eq!(accepted.status, "True", "{name}: {accepted:?}");
    }
}

/// Returns the names of all `UnionDeclaration`s.
fn declarations(client: &Client) -> Vec<String> {
    let list = client.get(DECLARATIONS).expect("the API server answers");
    let items = list.body["items"].as_array().expect("a list has items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("an object has a name").to_owned()).collect()
}

impl Deref for BuiltIn {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl Objects {
    pub(crate) fn of(cluster: &AnyCluster) -> Self {
        Self { client: cluster.client().clone(), kubectl: cluster.kubectl("built-in") }
    }

    /// Returns those of the cluster that tests share, which has no presets. `None`: these tests are skipped.
    pub(crate) fn without_presets() -> Option<Self> {
        Some(Self::of(Cluster::shared()?))
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        self.client.send(method, path, content_type, body.as_bytes()).expect("the API server answers")
    }

    #[track_caller]
    pub(crate) fn create(&self, object: &Value) -> Answer {
        self.send("POST", &collection(object), "application/json", object)
    }

    /// Replaces what is stored, whatever its version.
    #[track_caller]
    pub(crate) fn replace(&self, object: &Value) -> Answer {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = self.stored(&object)["metadata"]["resourceVersion"].clone();
        self.send("PUT", &path(&object), "application/json", &object)
    }

    #[track_caller]
    pub(crate) fn patch(&self, object: &Value, content_type: &str, patch: &Value) -> Answer {
        self.send("PATCH", &path(object), content_type, patch)
    }

    /// Server-side apply from the given manager, taking fields over.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value, manager: &str) -> Answer {
        let path = format!("{}?fieldManager={manager}&force=true", path(object));
        self.send("PATCH", &path, "application/apply-patch+yaml", object)
    }

    #[track_caller]
    pub(crate) fn stored(&self, object: &Value) -> Value {
        let answer = self.send("GET", &path(object), "application/json", &Value::Null);
        assert!(answer.is_success(), "cannot be read: {answer:?}");
        answer.body
    }
}

/// Returns the condition `Accepted` for the present generation. `None`: there is none yet.
pub(crate) fn verdict(client: &Client, declaration: &str) -> Option<Accepted> {
    condition(client, declaration, "Accepted")
}

/// Returns a condition for the present generation. `None`: there is none yet.
pub(crate) fn condition(client: &Client, declaration: &str, name: &str) -> Option<Accepted> {
    let answer = client.get(&format!("{DECLARATIONS}/{declaration}")).expect("the API server answers");
    assert!(answer.is_success(), "{declaration}: {answer:?}");
    let declaration = answer.body;
    let conditions = declaration["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == *name)?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let current = condition["observedGeneration"] == declaration["metadata"]["generation"];
    current.then(|| Accepted { status: text("status"), reason: text("reason"), message: text("message") })
}

/// Waits until the condition is about the present generation.
#[track_caller]
pub(crate) fn wait_for_verdict(client: &Client, declaration: &str) -> Accepted {
    for_some(SETTLED, || verdict(client, declaration))
        .unwrap_or_else(|| panic!("`{declaration}` never got a condition about its present generation"))
}

fn kind_of(api_version: &str, kind: &str) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind::gvk(group, version, kind)
}

/// The path of the collection that an object belongs to.
pub(crate) fn collection(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_else(|| panic!("an object has a field `{field}`"));
    let ApiResource { group, api_version, plural, .. } =
        ApiResource::from_gvk(&kind_of(text("apiVersion"), text("kind")));
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let namespace = if CLUSTER_WIDE.contains(&text("kind")) { "" } else { "/namespaces/default" };
    format!("{root}/{api_version}{namespace}/{plural}")
}

/// The path of an object.
pub(crate) fn path(object: &Value) -> String {
    format!("{}/{}", collection(object), object["metadata"]["name"].as_str().expect("an object has a name"))
}
