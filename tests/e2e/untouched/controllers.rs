//! kube-controller-manager under the presets: its writes over a rollout, and the reviews that are sent for them, with conditions of entries and
//! without.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::outage::wait_until_in_force;
use super::{STRATEGIC, send_all_writes};
use crate::builtin::apply_presets;
use crate::registration::with_rights;
use crate::support::background::in_parallel;
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::http::Answer;
use fixtures::wait::eventually_none_left;

const CONTROLLERS: &str = "deployment-controller,replicaset-controller";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICAS: u64 = 2;
/// The deadline of the next Deployment or `ReplicaSet`. A controller backs off after conflicts, which a loaded machine has many of.
const NEXT: Duration = Duration::from_mins(3);
const DELAY: &str = "--registration-delay=0s";

/// The writes of kinds with presets over a rollout.
struct Rollout {
    /// The number of writes of kube-controller-manager, by verb and resource.
    by_controllers: BTreeMap<String, usize>,
    /// The number of objects that were created, and that of other writes, whoever wrote them. Deletions and statuses are never reviewed.
    created: u64,
    changed: u64,
    reviews: u64,
}

#[test]
fn of_the_writes_of_a_rollout_only_those_that_create_are_sent() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &[DELAY]) else { return };
    let Some(_controllers) = cluster.control_plane.start_controllers(CONTROLLERS) else {
        say("no kube-controller-manager beside the API server: its writes ARE NOT COUNTED; \
             `tests/controlplane/assets.sh controller-manager` builds it");
        return;
    };
    let group = cluster.install("rollout").group().to_owned();
    apply_presets(&cluster);
    let [with, without] = [true, false].map(|with_conditions| {
        if !with_conditions {
            send_all_writes(&mut cluster, &[DELAY]);
        }
        wait_until_in_force(&cluster, &group, with_conditions);
        let rollout = Rollout::play(&cluster, if with_conditions { "with" } else { "without" });
        let Rollout { by_controllers, created, changed, reviews } = &rollout;
        let all: usize = by_controllers.values().sum();
        say(&format!(
            "conditions: {with_conditions}: {all} writes of kube-controller-manager {by_controllers:?}; of all writes, \
             {created} create and {changed} change; {reviews} reviews"
        ));
        rollout
    });
    assert!(with.created > 0 && with.changed > 0 && without.changed > 0);
    assert_eq!(with.reviews, 2 * with.created, "what creates is sent, in both phases, and nothing else");
    assert!(without.reviews >= 2 * (without.created + without.changed), "without conditions, every write is sent");
}

impl Rollout {
    /// Changes the image of Deployments, and waits until all are rolled out.
    fn play(cluster: &Cluster, name: &str) -> Self {
        let names: Vec<String> = (0..some_or_all(10, 50)).map(|number| format!("{name}-{number}")).collect();
        in_parallel(&names, |name| {
            let labels = json!({"app": name});
            let containers =
                json!([{"name": "main", "image": "example.com/app:1", "env": [{"name": "A", "value": "b"}]}]);
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {
                    "replicas": REPLICAS, "selector": {"matchLabels": labels},
                    // No pod is ever ready.
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
                    "template": {"metadata": {"labels": labels},
                                 "spec": {"containers": containers, "volumes": [{"name": "v", "emptyDir": {}}]}}},
            });
            let created = cluster.client().post(DEPLOYMENTS, &deployment).unwrap();
            assert_eq!(created.status, 201, "{created:?}");
        });
        wait_until_rolled_out(cluster, &names);
        let (before, log) = (reviews(cluster), cluster.control_plane.audit_log());
        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/app:2"}]}}}});
        in_parallel(&names, |name| {
            let answer = patch(cluster, &format!("{DEPLOYMENTS}/{name}"), STRATEGIC, &image);
            assert!(answer.is_success(), "{answer:?}");
        });
        wait_until_rolled_out(cluster, &names);
        let reviews = reviews(cluster) - before;

        let mut rollout = Self { by_controllers: BTreeMap::new(), created: 0, changed: 0, reviews };
        let text = log.text();
        for event in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let event: Value = serde_json::from_str(event).unwrap();
            let of = |field: &str| event["objectRef"][field].as_str().unwrap_or_default();
            let (verb, resource) = (event["verb"].as_str().unwrap(), of("resource"));
            let is_stored = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
            if !["deployments", "replicasets", "pods"].contains(&resource) || !is_stored {
                continue;
            }
            if event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("kube-controller-manager")) {
                *rollout.by_controllers.entry(format!("{verb} {resource} {}", of("subresource"))).or_default() += 1;
            }
            match (verb, of("subresource")) {
                ("create", "") => rollout.created += 1,
                ("update" | "patch", "") => rollout.changed += 1,
                _ => {}
            }
        }
        rollout
    }
}

/// Returns the number of reviews of built-in kinds.
fn reviews(cluster: &Cluster) -> u64 {
    let of = |group| ["mutate", "validate"].map(|phase| cluster.webhook.reviews(group, phase)).iter().sum::<u64>();
    of("apps") + of("")
}

/// Waits until each Deployment and each of its `ReplicaSets` has the pods of its last template, and says so in its status.
fn wait_until_rolled_out(cluster: &Cluster, names: &[String]) {
    let is_observed = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let has = |object: &Value, field: &str, count: &Value| {
        object["status"][field].as_u64().unwrap_or(0) == count.as_u64().unwrap()
    };
    let items = |path: &str| cluster.client().get(path).unwrap().body["items"].as_array().unwrap().clone();
    let is_ours = |object: &Value| {
        names.iter().any(|name| object["metadata"]["labels"]["app"] == **name || object["metadata"]["name"] == **name)
    };
    let all_are = eventually_none_left(NEXT, || {
        let deployments = items(DEPLOYMENTS).into_iter().filter(is_ours);
        let rolled_out = |it: &Value| {
            is_observed(it) && ["replicas", "updatedReplicas"].iter().all(|field| has(it, field, &json!(REPLICAS)))
        };
        let deployments: Vec<Value> = deployments.collect();
        assert_eq!(deployments.len(), names.len());
        let sets = items("/apis/apps/v1/namespaces/default/replicasets").into_iter().filter(is_ours);
        let of_sets = sets.filter(|it| !(is_observed(it) && has(it, "replicas", &it["spec"]["replicas"]))).count();
        deployments.iter().filter(|it| !rolled_out(it)).count() + of_sets
    });
    assert!(
        all_are,
        "not rolled out: {:?}",
        names
            .iter()
            .map(|name| cluster.client().get(&format!("{DEPLOYMENTS}/{name}")).unwrap().body["status"].to_string())
            .collect::<Vec<_>>()
    );
}

fn patch(cluster: &Cluster, path: &str, content_type: &str, body: &Value) -> Answer {
    cluster.client().send("PATCH", path, content_type, body.to_string().as_bytes()).unwrap()
}
