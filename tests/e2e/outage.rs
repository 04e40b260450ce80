//! One side goes away and comes back.

use std::time::Duration;

use serde_json::json;

use crate::cluster::Cluster;
use crate::kind::{self, Kind, annotate, parse};
use fixtures::reviews::review_text;
use fixtures::wait::{SETTLED, eventually};

/// The deadline of a watch that backs off after it broke.
const RECONNECTED: Duration = Duration::from_secs(90);
/// The promise: so soon after the recovery of the API server, the catalog is right.
const RECOVERED: Duration = Duration::from_mins(1);
/// More than what an API server writes when it starts, so that new objects stay behind the `resourceVersion` of before.
const REVISIONS: u32 = 5000;

#[test]
fn when_the_api_server_is_restarted_the_webhook_serves_on_and_follows_again() {
    let Some(mut cluster) = Cluster::own() else { return };
    let group = {
        let rollouts = cluster.install("rollout");
        rollouts.group().to_owned()
    };
    let pid = cluster.webhook.pid();
    let connected = |cluster: &Cluster| cluster.webhook.metric("kube_unions_watch_connected") == 1;
    assert!(eventually(SETTLED, || connected(&cluster)));

    cluster.control_plane.stop_api_server();
    assert!(eventually(RECONNECTED, || !connected(&cluster)), "a broken watch shows in the metrics");
    assert_eq!(cluster.webhook.ops().get("/readyz").unwrap().status, 200, "the last catalog is served on");
    cluster.control_plane.start_api_server();
    assert!(eventually(RECONNECTED, || connected(&cluster)), "the watch comes back:\n{}", cluster.webhook.log());

    // The unions of before are still in force, and the webhook follows new changes.
    let rollouts = Kind::in_group(&cluster, "rollout", group.clone());
    let newly_valid = rollouts.object("x", &json!({"strategy": {"type": "Canary"}}));
    assert_eq!(rollouts.post_dry(&newly_valid).unwrap().status, 422);
    let mut crd = parse(&rollouts.authored());
    kind::spec(&mut crd)["properties"]["strategy"]["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"]["Canary"]
        ["optional"] = json!(true);
    rollouts.kubectl().apply(&annotate(&crd.to_string())).accepted();
    assert!(eventually(SETTLED, || rollouts.post_dry(&newly_valid).unwrap().status == 201), "a change is followed");

    let sources = Kind::in_group(&cluster, "source", group);
    sources.apply_definition();
    let contradiction =
        sources.object("x", &json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}}));
    assert!(eventually(SETTLED, || sources.post_dry(&contradiction).unwrap().status == 422), "a new CRD is followed");
    // A restarted server has forgotten the resourceVersions of the watches.
    let log = cluster.webhook.log();
    assert!(!log.contains("too old resource version"), "what was forgotten is listed anew, and is no trouble:\n{log}");
    assert_eq!(cluster.webhook.pid(), pid, "it was never restarted");
    cluster.webhook.process().assert_running();
}

#[test]
fn after_a_restore_of_etcd_the_unions_are_those_of_the_restored_cluster() {
    let Some(mut cluster) = Cluster::own() else { return };
    let group = cluster.install("rollout").group().to_owned();
    cluster.control_plane.save();
    assert!(eventually(RECONNECTED, || cluster.webhook.metric("kube_unions_watch_connected") == 1));

    // After the snapshot one CRD comes and one goes.
    let refuses = |cluster: &Cluster, kind: &str, spec: &str| {
        let object = format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#);
        let review = review_text([&group, "v1", kind], "CREATE", &object, "null");
        let answer = cluster.webhook.client().send("POST", "/validate", "application/json", review.as_bytes()).unwrap();
        answer.body["response"]["allowed"] == false
    };
    let knows_backups = |cluster: &Cluster| refuses(cluster, "Backup", r#"{"destination":{"s3":{},"gcs":{}}}"#);
    let knows_rollouts = |cluster: &Cluster| refuses(cluster, "Rollout", r#"{"strategy":{"type":"Canary"}}"#);
    Kind::in_group(&cluster, "backup", group.clone()).apply_definition();
    Kind::in_group(&cluster, "rollout", group.clone()).delete_definition();
    let followed = eventually(SETTLED, || knows_backups(&cluster) && !knows_rollouts(&cluster));
    assert!(followed, "{}", cluster.webhook.log());
    cluster.control_plane.raise_revision(REVISIONS);

    cluster.control_plane.restore();
    let sources = Kind::in_group(&cluster, "source", group.clone());
    sources.apply_definition();
    let contradiction = json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}});
    let is_refused = |kind: &Kind<'_>, spec| kind.post_dry(&kind.object("x", &spec)).unwrap().status == 422;
    let is_new_in_force = eventually(RECOVERED, || is_refused(&sources, contradiction.clone()));
    assert!(is_new_in_force, "a new CRD is followed:\n{}", cluster.webhook.log());
    let rollouts = Kind::in_group(&cluster, "rollout", group.clone());
    assert!(
        is_refused(&rollouts, json!({"strategy": {"type": "Canary"}})),
        "the CRD of the snapshot is in force again"
    );
    assert!(!knows_backups(&cluster), "the CRD of after the snapshot is gone");
    assert!(knows_rollouts(&cluster));
    cluster.webhook.process().assert_running();
}
