//! Replicas repair configurations that others change, unless flags say otherwise.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    ALL_WRITES, KINDS, SETTLED, both, change, configurations, delete, get, post_bad, rule, say, wait_for, with_rights,
};
use crate::support::cluster::{Cluster, some_or_all};
use crate::support::kind::Kind;
use crate::support::webhook::Webhook;
use fixtures::wait::eventually;

const SETTINGS: [&str; 7] = [
    ALL_WRITES,
    "--exclude-namespace=left-alone",
    "--failure-policy=Ignore",
    "--timeout-seconds=7",
    r#"--match-conditions=[{"name": "not-nobody", "expression": "request.userInfo.username != 'nobody'"}]"#,
    r#"--object-selector={"matchExpressions": [{"key": "unions", "operator": "NotIn", "values": ["off"]}]}"#,
    r#"--namespace-selector={"matchLabels": {}, "matchExpressions": [{"key": "unions", "operator": "NotIn", "values": ["off"]}]}"#,
];

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
        r#"{"op": "replace", "path": "/webhooks/{entry}/failurePolicy", "value": "Fail"}"#,
        r#"{"op": "remove", "path": "/webhooks/{entry}/clientConfig/caBundle"}"#,
    ),
    (
        "namespaceSelector narrowed; objectSelector narrowed",
        r#"{"op": "add", "path": "/webhooks/{entry}/namespaceSelector/matchLabels", "value": {"a": "b"}}"#,
        r#"{"op": "add", "path": "/webhooks/{entry}/objectSelector", "value": {"matchLabels": {"a": "b"}}}"#,
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
fn settings_are_registered_and_what_others_change_is_put_right_unless_flags_say_otherwise() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &SETTINGS) else { return };
    let (group, rules) = {
        let rollouts = Kind::new(&cluster, "rollout");
        rollouts.apply_definition();
        (rollouts.group().to_owned(), [rule(rollouts.group(), "v1", &["rollouts"], "Namespaced")])
    };
    let wanted = with_settings(both(&cluster, &rules, &[]));
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
    let rollouts = Kind::in_group(&cluster, "rollout", group);
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 422));
    cluster.control_plane.kubectl("drift").run(&["label", "namespace", "default", "unions=off"]).accepted();
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 201), "the namespace is left alone");
    drop(rollouts);
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
}

/// Returns configurations whose entries for objects have the [`SETTINGS`].
fn with_settings(mut wanted: [Option<Value>; 2]) -> [Option<Value>; 2] {
    let off = json!({"key": "unions", "operator": "NotIn", "values": ["off"]});
    for configuration in wanted.iter_mut().flatten() {
        let entry = &mut configuration["webhooks"][0];
        entry["failurePolicy"] = json!("Ignore");
        entry["timeoutSeconds"] = json!(7);
        entry["matchConditions"] =
            json!([{"name": "not-nobody", "expression": "request.userInfo.username != 'nobody'"}]);
        entry["objectSelector"] = json!({"matchExpressions": [off]});
        entry["namespaceSelector"]["matchExpressions"].as_array_mut().unwrap().push(off.clone());
    }
    wanted
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

    // Two replicas that disagree. Their back-off is tested with `Pace`.
    cluster.webhook.resume().unwrap();
    wait_for(cluster, wanted);
    let mut other = cluster.webhook.replica(&["--exclude-namespace=another", "--shutdown-delay=3s"]).unwrap();
    let corrections = |webhook: &Webhook| webhook.metric("kube_unions_registration_corrections_total");
    let before = corrections(&cluster.webhook);
    let both_count = || corrections(&cluster.webhook) > before && corrections(&other) > 0;
    assert!(eventually(SETTLED, both_count), "both count that");

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
