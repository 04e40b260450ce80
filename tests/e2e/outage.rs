//! One side goes away and comes back.

use std::time::Duration;

use serde_json::json;

use crate::registration::{self, KINDS, with_rights};
use crate::support::cluster::Cluster;
use crate::support::kind::{self, Kind};
use crate::support::webhook::Webhook;
use fixtures::reviews::review_text;
use fixtures::wait::{SETTLED, eventually};

/// The deadline of a watch that backs off after it broke.
const RECONNECTED: Duration = Duration::from_secs(90);
/// The promise: so soon after the recovery of the API server, the catalog is right.
const RECOVERED: Duration = Duration::from_mins(1);
/// More than what an API server writes when it starts, so that new objects stay behind the `resourceVersion` of before.
const REVISIONS: u32 = 1000;

#[test]
fn when_the_api_server_was_away_or_is_restored_the_webhook_serves_on_and_follows_again() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let group = cluster.install("rollout").group().to_owned();
    let pid = cluster.webhook.pid();
    let connected = |webhook: &Webhook| webhook.metric("kube_unions_watch_connected") == 1;
    assert!(eventually(SETTLED, || connected(&cluster.webhook)));

    let webhook = &cluster.webhook;
    cluster.control_plane.save(|| {
        assert!(eventually(RECONNECTED, || !connected(webhook)), "a broken watch shows in the metrics");
        assert_eq!(webhook.ops().get("/readyz").unwrap().status, 200, "the last catalog is served on");
    });
    assert!(eventually(RECONNECTED, || connected(webhook)), "the watch comes back:\n{}", webhook.log());
    follows_again(&cluster, &group);
    assert_eq!(cluster.webhook.pid(), pid, "it was never restarted");

    // After the snapshot one CRD comes, one has changed, and then goes.
    let refuses = |cluster: &Cluster, kind: &str, spec: &str| {
        let object = format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#);
        let review = review_text([&group, "v1", kind], "CREATE", &object, "null");
        let answer = cluster.webhook.client().send("POST", "/validate", "application/json", review.as_bytes()).unwrap();
        answer.body["response"]["allowed"] == false
    };
    let knows_backups = |cluster: &Cluster| refuses(cluster, "Backup", r#"{"destination":{"s3":{},"gcs":{}}}"#);
    let knows_rollouts = |cluster: &Cluster| refuses(cluster, "Rollout", r#"{"strategy":{"type":"BlueGreen"}}"#);
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

/// The unions of before are in force, the webhook follows new changes, and registers itself again.
fn follows_again(cluster: &Cluster, group: &str) {
    let rollouts = Kind::in_group(cluster, "rollout", group.to_owned());
    let newly_valid = rollouts.object("x", &json!({"strategy": {"type": "Canary"}}));
    assert_eq!(rollouts.post_dry(&newly_valid).unwrap().status, 422);
    rollouts.apply_definition_with(|crd| {
        kind::spec(crd)["properties"]["strategy"]["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"]["Canary"]
            ["optional"] = json!(true);
    });
    assert!(eventually(SETTLED, || rollouts.post_dry(&newly_valid).unwrap().status == 201), "a change is followed");
    for plural in KINDS {
        assert!(cluster.client().delete(&registration::path(plural)).unwrap().is_success());
    }
    let invalid = rollouts.object("x", &json!({"strategy": {"type": "BlueGreen"}}));
    let is_back = || KINDS.iter().all(|plural| cluster.client().get(&registration::path(plural)).unwrap().is_success());
    assert!(eventually(SETTLED, is_back), "{}", cluster.webhook.log());
    assert!(eventually(SETTLED, || rollouts.post_dry(&invalid).unwrap().status == 422));
    // A restarted server has forgotten the resourceVersions of the watches.
    let log = cluster.webhook.log();
    assert!(!log.contains("too old resource version"), "what was forgotten is listed anew, and is no trouble:\n{log}");
}
