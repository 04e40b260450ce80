//! Replicas repair configurations that others change, unless flags say otherwise.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    KINDS, SETTLED, applied, both, certificates, change, configurations, decoded, delete, entry, get, inject, post_bad,
    rule, say, wait_for, wait_for_some, with_rights,
};
use crate::cluster::Cluster;
use crate::kind::Kind;
use crate::kubectl::Kubectl;
use crate::webhook::base64;
use fixtures::certificates::TestAuthority;
use fixtures::wait::eventually;

const MORE: [&str; 1] = ["--exclude-namespace=left-alone"];

/// A change of both configurations: a JSON Patch of the mutating one and a JSON Patch of the validating one.
/// `{entry}` stands for the position of the entry for custom resources.
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
    (
        "timeout changed; an entry removed",
        r#"{"op": "replace", "path": "/webhooks/{entry}/timeoutSeconds", "value": 30}"#,
        r#"{"op": "remove", "path": "/webhooks/{entry}"}"#,
    ),
];

/// A cluster with one kind that has unions, and what is registered for it.
struct RegisteredCluster {
    cluster: Cluster,
    group: String,
    rules: [Value; 1],
    wanted: [Option<Value>; 2],
}

impl RegisteredCluster {
    fn start() -> Option<Self> {
        let cluster = Cluster::registering(&with_rights(), &MORE)?;
        let rollouts = Kind::new(&cluster, "rollout");
        rollouts.apply_definition();
        let group = rollouts.group().to_owned();
        let rules = [rule(&group, "v1", &["rollouts"], "Namespaced")];
        let wanted = both(&cluster, &rules, &[]);
        wait_for(&cluster, &wanted);
        Some(Self { cluster, group, rules, wanted })
    }
}

#[test]
fn what_others_change_is_put_right() {
    let Some(RegisteredCluster { cluster, wanted, .. }) = RegisteredCluster::start() else { return };
    let mut longest = Duration::ZERO;
    let mut put_right = |cluster: &Cluster, what: &str| {
        let took = wait_for(cluster, &wanted);
        say(&format!("put right after {:>5} ms: {what}", took.as_millis()));
        longest = longest.max(took);
    };
    // Repeated drift is repaired with an increasing back-off, up to a maximum.
    for (what, mutating, validating) in CHANGES {
        let changed =
            [(KINDS[0], mutating), (KINDS[1], validating)].map(|(kind, how)| Some(patch(&cluster, kind, how)));
        assert!(changed.iter().zip(&wanted).all(|(changed, wanted)| changed != wanted), "{what}");
        put_right(&cluster, what);
    }
    delete(&cluster, &KINDS);
    put_right(&cluster, "both deleted");
    say(&format!("longest: {longest:?}"));
}

#[test]
fn another_ca_and_entries_of_others_are_put_right() {
    let Some(RegisteredCluster { cluster, rules, wanted, .. }) = RegisteredCluster::start() else { return };
    let kubectl = cluster.control_plane.kubectl("registration");
    wrong_bundle(&cluster, &wanted);
    other_entries(&cluster, &kubectl, &wanted);
    applied_by_hand(&cluster, &kubectl, &rules, &wanted);
}

#[test]
fn after_a_restart_of_the_api_server_and_with_other_flags_the_right_replicas_put_right() {
    let Some(RegisteredCluster { mut cluster, group, wanted, .. }) = RegisteredCluster::start() else { return };
    cluster.control_plane.stop_api_server();
    cluster.control_plane.start_api_server();
    delete(&cluster, &KINDS);
    let took = wait_for(&cluster, &wanted);
    say(&format!("put right after {:>5} ms: both deleted after a restart of the API server", took.as_millis()));
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

/// Another CA replaces ours: ours is back at once, and the other one stays for a while.
fn wrong_bundle(cluster: &Cluster, wanted: &[Option<Value>; 2]) {
    let other = TestAuthority::new("somebody else");
    let bundle = base64(other.pem().as_bytes());
    let start = Instant::now();
    let how = json!({"op": "replace", "path": "/webhooks/{entry}/clientConfig/caBundle", "value": bundle});
    patch(cluster, KINDS[0], &how.to_string());
    let all = certificates(&format!("{}{}", other.pem(), cluster.webhook.ca()));
    let held = |plural: &str| -> Vec<Vec<String>> {
        let webhooks = get(cluster, plural).body["webhooks"].as_array().unwrap().clone();
        webhooks.iter().map(|webhook| certificates(&decoded(&webhook["clientConfig"]["caBundle"]))).collect()
    };
    let is_back = || KINDS.iter().all(|plural| held(plural).iter().all(|held| *held == all));
    assert!(eventually(SETTLED, is_back), "{}", cluster.webhook.log());
    say(&format!("put right after {:>5} ms: another CA", start.elapsed().as_millis()));
    // Nothing removes it before that; a fresh pair of configurations has ours alone.
    delete(cluster, &KINDS);
    wait_for(cluster, wanted);
}

/// Entries with other names that lead here are removed; entries that lead elsewhere stay.
fn other_entries(cluster: &Cluster, kubectl: &Kubectl, wanted: &[Option<Value>; 2]) {
    let add = |name: &str, service: &str| {
        let mut webhook = entry(cluster, "mutate.else.example", &[rule("", "v1", &["nothings"], "*")], "Ignore");
        webhook["name"] = json!(name);
        webhook["clientConfig"]["service"]["name"] = json!(service);
        webhook["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        change(cluster, KINDS[0], &json!([{"op": "add", "path": "/webhooks/-", "value": webhook}]));
    };
    add("of-others.else.example", "somebody-else");
    add("to-us.else.example", "kube-unions");
    let names = || -> Vec<String> {
        let webhooks = get(cluster, KINDS[0]).body["webhooks"].as_array().unwrap().clone();
        webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
    };
    let start = Instant::now();
    let is_gone = eventually(SETTLED, || names() == ["mutate.kube-unions.dev", "of-others.else.example"]);
    assert!(is_gone, "{:?}\n{}", names(), cluster.webhook.log());
    say(&format!("put right after {:>5} ms: an entry that leads here under another name", start.elapsed().as_millis()));
    kubectl.run(&["delete", KINDS[0], "kube-unions"]).accepted();
    wait_for(cluster, wanted);
}

/// The webhook takes over entries that somebody else applied under its names, and removes the unwanted ones.
fn applied_by_hand(cluster: &Cluster, kubectl: &Kubectl, rules: &[Value], wanted: &[Option<Value>; 2]) {
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
    // Off: every entry goes, except the entry of declarations.
    cluster.webhook.stop();
    let [mutating, validating] = both(cluster, &[], &[]);
    let off = cluster.webhook.replica(&["--enforcement=off"]).unwrap();
    wait_for(cluster, &[mutating.clone(), validating.clone()]);
    assert!(off.log().contains("enforcement is off"), "{}", off.log());
    drop(off);

    // A replica that does not register repairs nothing.
    delete(cluster, &KINDS);
    let unregistered = cluster.webhook.replica(&["--register=false"]).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert_eq!(configurations(cluster), [None, None]);
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(unregistered.metric("kube_unions_registered"), 0);
    drop(unregistered);

    // With cert-manager: no write fails while there is no bundle, and the injector owns the bundle.
    let injected =
        cluster.webhook.replica(&["--inject-ca-from=kube-unions/serving", "--registration-delay=0s"]).unwrap();
    let policy = || {
        let stored = get(cluster, KINDS[0]).body;
        let entry = stored["webhooks"].as_array()?.first()?.clone();
        Some((stored["metadata"]["annotations"].clone(), entry["failurePolicy"].as_str()?.to_owned()))
    };
    let (annotations, before) = wait_for_some("it registers", policy);
    assert_eq!((&annotations["cert-manager.io/inject-ca-from"], &*before), (&json!("kube-unions/serving"), "Ignore"));
    // It writes one configuration after the other.
    wait_for_some("it registers both", || get(cluster, KINDS[1]).body["webhooks"].as_array().map(drop));
    inject(cluster);
    assert!(eventually(SETTLED, || policy().is_some_and(|(_, policy)| policy == "Fail")), "{}", injected.log());
    drop(injected);

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
