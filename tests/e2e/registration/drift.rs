//! Replicas repair configurations that others change, unless flags say otherwise.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    KINDS, SETTLED, applied, both, change, configurations, delete, get, post_bad, rule, say, wait_for, with_rights,
};
use crate::cluster::{Cluster, some_or_all};
use crate::kind::Kind;
use fixtures::wait::eventually;

const MORE: [&str; 1] = ["--exclude-namespace=left-alone"];

/// A change of both configurations: a JSON Patch of the mutating one and a JSON Patch of the validating one.
/// `{entry}` stands for the position of the entry for custom resources. The unit tests of the registration change every field, so that the
/// first three are enough here.
const CHANGES: [(&str, &str, &str); 7] = [
    (
        "rules edited; rules removed",
        r#"{"op": "replace", "path": "/webhooks/{entry}/rules/0/resources", "value": ["*"]}"#,
        r#"{"op": "remove", "path": "/webhooks/{entry}/rules"}"#,
    ),
    (
        "failurePolicy changed; caBundle removed",
        r#"{"op": "replace", "path": "/webhooks/{entry}/failurePolicy", "value": "Ignore"}"#,
        r#"{"op": "remove", "path": "/webhooks/{entry}/clientConfig/caBundle"}"#,
    ),
    (
        "timeout changed; an entry removed",
        r#"{"op": "replace", "path": "/webhooks/{entry}/timeoutSeconds", "value": 30}"#,
        r#"{"op": "remove", "path": "/webhooks/{entry}"}"#,
    ),
    (
        "matchConditions added",
        r#"{"op": "add", "path": "/webhooks/{entry}/matchConditions", "value": [{"name": "never", "expression": "false"}]}"#,
        r#"{"op": "add", "path": "/webhooks/{entry}/matchConditions", "value": [{"name": "never", "expression": "false"}]}"#,
    ),
    (
        "namespaceSelector narrowed; objectSelector narrowed",
        r#"{"op": "add", "path": "/webhooks/{entry}/namespaceSelector/matchLabels", "value": {"a": "b"}}"#,
        r#"{"op": "add", "path": "/webhooks/{entry}/objectSelector", "value": {"matchLabels": {"a": "b"}}}"#,
    ),
    (
        "led elsewhere; wrong port",
        r#"{"op": "replace", "path": "/webhooks/{entry}/clientConfig", "value": {"url": "https://127.0.0.1:1/mutate"}}"#,
        r#"{"op": "replace", "path": "/webhooks/{entry}/clientConfig/service/port", "value": 1}"#,
    ),
    (
        "labels removed; cert-manager's annotation added",
        r#"{"op": "remove", "path": "/metadata/labels"}"#,
        r#"{"op": "add", "path": "/metadata/annotations", "value": {"cert-manager.io/inject-ca-from": "a/b"}}"#,
    ),
];

#[test]
fn what_others_change_is_put_right_also_after_a_restart_of_the_api_server_unless_flags_say_otherwise() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &MORE) else { return };
    let (group, rules) = {
        let rollouts = Kind::new(&cluster, "rollout");
        rollouts.apply_definition();
        (rollouts.group().to_owned(), [rule(rollouts.group(), "v1", &["rollouts"], "Namespaced")])
    };
    let wanted = both(&cluster, &rules, &[]);
    wait_for(&cluster, &wanted);
    let put_right = |cluster: &Cluster, what: &str| {
        say(&format!("put right after {:>5} ms: {what}", wait_for(cluster, &wanted).as_millis()));
    };
    // Repeated drift is repaired with an increasing back-off, up to a maximum.
    for (what, mutating, validating) in &CHANGES[..some_or_all(3, CHANGES.len())] {
        let changed =
            [(KINDS[0], mutating), (KINDS[1], validating)].map(|(kind, how)| Some(patch(&cluster, kind, how)));
        assert!(changed.iter().zip(&wanted).all(|(changed, wanted)| changed != wanted), "{what}");
        put_right(&cluster, what);
    }
    applied_by_hand(&cluster, &rules, &wanted);
    cluster.control_plane.stop_api_server();
    cluster.control_plane.start_api_server();
    delete(&cluster, &KINDS);
    put_right(&cluster, "both deleted after a restart of the API server");
    let rollouts = Kind::in_group(&cluster, "rollout", group);
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 422));
    flags(&mut cluster, &wanted);
}

fn patch(cluster: &Cluster, plural: &str, how: &str) -> Value {
    let webhooks = get(cluster, plural).body["webhooks"].as_array().unwrap().clone();
    let is_custom =
        |name: &Value| ["mutate.kube-unions.dev", "validate.kube-unions.dev"].map(Value::from).contains(name);
    let position = webhooks.iter().position(|webhook| is_custom(&webhook["name"])).unwrap();
    let operation = how.replace("{entry}", &position.to_string());
    change(cluster, plural, &json!([serde_json::from_str::<Value>(&operation).unwrap()]))
}

/// The webhook takes over entries that somebody else applied under its names, and removes the unwanted ones.
fn applied_by_hand(cluster: &Cluster, rules: &[Value], wanted: &[Option<Value>; 2]) {
    let kubectl = cluster.control_plane.kubectl("registration");
    let mut by_hand = both(cluster, rules, &[rule("apps", "v1", &["deployments"], "*")])[0].clone().unwrap();
    for webhook in by_hand["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        webhook["timeoutSeconds"] = json!(10);
    }
    kubectl.run(&["delete", KINDS[0], "kube-unions"]).accepted();
    // The webhook may register first; then this apply is a change.
    let args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    kubectl.run_with(&args, &by_hand.to_string()).accepted();
    let took = wait_for(cluster, wanted);
    say(&format!("put right after {:>5} ms: applied by hand, with an entry too many", took.as_millis()));
    kubectl.run(&["delete", KINDS[0], "kube-unions"]).accepted();
    wait_for(cluster, wanted);
}

fn flags(cluster: &mut Cluster, wanted: &[Option<Value>; 2]) {
    // A replica that does not register repairs nothing.
    cluster.webhook.stop();
    delete(cluster, &KINDS);
    let unregistered = cluster.webhook.replica(&["--register=false"]).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert_eq!(configurations(cluster), [None, None]);
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(unregistered.metric("kube_unions_registered"), 0);
    drop(unregistered);

    // Two replicas that disagree back off instead of writing as fast as they can.
    cluster.webhook.resume().unwrap();
    wait_for(cluster, wanted);
    let mut other = cluster.webhook.replica(&["--exclude-namespace=another", "--shutdown-delay=3s"]).unwrap();
    let written = || other.metric("kube_unions_registration_writes_total{outcome=\"applied\"}") + applied(cluster);
    let (start, before) = (Instant::now(), written());
    assert!(eventually(SETTLED, || written() - before >= 12), "neither gives in: {} writes", written() - before);
    say(&format!("two replicas at odds: {} writes in {:?}", written() - before, start.elapsed()));
    let corrections = "kube_unions_registration_corrections_total";
    assert!(cluster.webhook.metric(corrections) > 0 && other.metric(corrections) > 0, "both count that");

    // A replica that was told to stop writes nothing any more, and still serves.
    cluster.webhook.stop();
    other.process().terminate();
    assert!(eventually(SETTLED, || other.ops().get("/readyz").is_ok_and(|answer| answer.status != 200)));
    delete(cluster, &KINDS);
    assert!(other.process().exit_status().is_none(), "it is still draining");
    while other.process().exit_status().is_none() {
        assert_eq!(configurations(cluster), [None, None]);
        thread::sleep(Duration::from_millis(20));
    }
}
