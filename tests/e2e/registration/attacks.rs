//! Attacks on the configurations: they never freeze, no entry fails writes that no replica can answer, they do not
//! outlive the webhook, and two installations do not take turns.

use serde_json::{Value, json};

use super::{
    ALL_WRITES, KINDS, SETTLED, applied, both, configurations, delete, deployment_strategy, get, inject, patch_json,
    rule, versions, wait_for, with_rights,
};
use crate::support::cluster::Cluster;
use crate::support::kind::Kind;
use fixtures::wait::eventually;

const MORE: [&str; 2] = ["--exclude-namespace=left-alone", ALL_WRITES];

const OWNER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kube-unions-owner}
rules: []
";

/// Returns every version of the configurations since these, in order.
fn history(cluster: &Cluster, since: &[Value; 2]) -> Vec<Value> {
    let mut all = Vec::new();
    for (plural, since) in KINDS.into_iter().zip(since) {
        let since = since.as_str().unwrap();
        let query =
            format!("watch=true&fieldSelector=metadata.name%3Dkube-unions&resourceVersion={since}&timeoutSeconds=3");
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}?{query}");
        let answer = cluster.control_plane.client().get(&path).unwrap();
        assert!(answer.is_success(), "{answer:?}");
        // One event is a JSON document, several events are lines.
        let events: Vec<Value> = match &answer.body {
            Value::String(lines) => lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            event @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                vec![event.clone()]
            }
        };
        all.extend(events.into_iter().map(|event| event["object"].clone()));
    }
    all
}

fn entries(configuration: &Value) -> Vec<Value> {
    configuration["webhooks"].as_array().cloned().unwrap_or_default()
}

fn is_registered(cluster: &Cluster) -> bool {
    cluster.webhook.metric("kube_unions_registered") == 1
}

#[test]
fn the_entries_are_of_one_installation_fail_only_with_a_bundle_and_go_with_the_namespace() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &MORE) else { return };
    let (rules, wanted) = {
        let rollouts = Kind::new(&cluster, "rollout");
        rollouts.apply_definition();
        let rules = [rule(rollouts.group(), "v1", &["rollouts"], "Namespaced")];
        let wanted = both(&cluster, &rules, &[]);
        (rules, wanted)
    };
    wait_for(&cluster, &wanted);
    let service = format!("--service=elsewhere/unions:{}", cluster.webhook.port());
    let second = ["--registration-delay=0s", &service];
    a_second_installation_is_refused(&cluster, &second, &wanted);
    cert_manager_takes_over_and_back(&mut cluster, &rules);
    the_namespace_is_deleted(&cluster);

    // Once the configurations of the first installation are gone, the second one registers.
    cluster.webhook.stop();
    let second = cluster.webhook.replica(&second).unwrap();
    assert!(eventually(SETTLED, || second.metric("kube_unions_registered") == 1), "{}", second.log());
    let named = get(&cluster, KINDS[0]).body["metadata"]["annotations"]["kube-unions.dev/installation"].clone();
    assert_eq!(named, "elsewhere/unions");
    assert_eq!(second.metric("kube_unions_other_installation"), 0);
}

fn a_second_installation_is_refused(cluster: &Cluster, arguments: &[&str], wanted: &[Option<Value>; 2]) {
    let (before, written) = (versions(cluster), applied(cluster));
    let second = cluster.webhook.replica(arguments).unwrap();
    let complaint = "another installation keeps the webhook configurations `kube-unions`";
    assert!(eventually(SETTLED, || second.log().contains(complaint)), "{}", second.log());
    assert!(second.log().contains("\"other\":\"kube-unions/kube-unions\""), "{}", second.log());
    assert_eq!(second.metric("kube_unions_registered"), 0);
    assert_eq!(second.metric("kube_unions_other_installation"), 1);
    assert_eq!(second.ops().get("/readyz").unwrap().status, 200, "it serves all the same");
    // A changed Service in our own entries is drift.
    let operation =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/service/namespace", "value": "elsewhere"}]);
    for plural in KINDS {
        assert!(patch_json(&cluster.control_plane, plural, &operation).is_success());
    }
    wait_for(cluster, wanted);
    assert!(eventually(SETTLED, || is_registered(cluster)));
    assert_eq!(cluster.webhook.metric("kube_unions_other_installation"), 0);
    let writes = |name: &str| format!("kube_unions_registration_writes_total{{outcome=\"{name}\"}}");
    assert_eq!(second.metric(&writes("applied")) + second.metric(&writes("failed")), 0);
    assert_eq!(second.log().matches(complaint).count(), 1, "once, not at each look");
    assert!(applied(cluster) > written && versions(cluster) != before, "the first one has put that right");
}

/// Replays each version of the configurations by a watch that starts before the switch.
fn cert_manager_takes_over_and_back(cluster: &mut Cluster, rules: &[Value]) {
    let before = versions(cluster);
    cluster.webhook.stop();

    let injected = cluster.webhook.replica(&["--inject-ca-from=kube-unions/serving"]).unwrap();
    assert!(eventually(SETTLED, || injected.metric("kube_unions_registered") == 1), "{}", injected.log());
    inject(cluster);
    let fails = || entries(&get(cluster, KINDS[0]).body).iter().all(|entry| entry["failurePolicy"] == "Fail");
    assert!(eventually(SETTLED, fails), "{}", injected.log());
    // A new entry has no bundle until cert-manager has written one.
    let strategy = deployment_strategy("deployment-strategy").to_string();
    cluster.control_plane.kubectl("attacks").apply(&strategy).accepted();
    let has_builtin = || entries(&get(cluster, KINDS[0]).body).len() == 2;
    assert!(eventually(SETTLED, has_builtin), "{}", injected.log());
    inject(cluster);
    assert!(eventually(SETTLED, || injected.metric("kube_unions_registered") == 1), "{}", injected.log());
    drop(injected);

    // And back.
    cluster.webhook.resume().unwrap();
    wait_for(cluster, &both(cluster, rules, &[rule("apps", "v1", &["deployments"], "Namespaced")]));
    let all = history(cluster, &before);
    assert!(all.len() >= 6, "both were switched there and back, and injected: {} versions", all.len());
    for version in &all {
        for entry in entries(version) {
            let bundle = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
            assert!(
                entry["failurePolicy"] == "Ignore" || !bundle.is_empty(),
                "{} fails and holds nothing",
                entry["name"]
            );
        }
    }
    let annotated = |it: &&Value| it["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].is_string();
    assert!(all.iter().filter(annotated).count() >= 2, "both configurations were cert-manager's in between");
}

/// Only the entries of others stay, and no configuration is created again.
fn the_namespace_is_deleted(cluster: &Cluster) {
    let stranger = json!({
        "name": "of.others.example", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": ["g.example"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}],
    });
    let add = json!([{"op": "add", "path": "/webhooks/-", "value": stranger}]);
    assert!(patch_json(&cluster.control_plane, KINDS[0], &add).is_success());

    // No controller empties the namespace here, so it stays in the phase Terminating.
    let kubectl = cluster.control_plane.kubectl("attacks");
    kubectl.run(&["delete", "namespace", "kube-unions", "--wait=false"]).accepted();
    let names = || {
        KINDS.map(|plural| entries(&get(cluster, plural).body).iter().map(|it| it["name"].clone()).collect::<Vec<_>>())
    };
    assert!(
        eventually(SETTLED, || names() == [vec![json!("of.others.example")], vec![]]),
        "{:?}\n{}",
        names(),
        cluster.webhook.log()
    );
    delete(cluster, &KINDS);
    assert!(eventually(SETTLED, || is_registered(cluster)), "{}", cluster.webhook.log());
    assert_eq!(configurations(cluster), [None, None]);
}

#[test]
fn the_configurations_are_owned_by_the_cluster_role_and_do_not_come_back_without_it() {
    let setup = format!("{}---{OWNER}", with_rights());
    let more = [MORE[0], MORE[1], "--owner-cluster-role=kube-unions-owner", "--registration-delay=0s"];
    let Some(cluster) = Cluster::registering(&setup, &more) else { return };
    let kubectl = cluster.control_plane.kubectl("attacks");
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let uid = || -> String {
        kubectl.run(&["get", "clusterrole", "kube-unions-owner", "-o", "jsonpath={.metadata.uid}"]).accepted().stdout
    };
    let owners = || KINDS.map(|plural| get(&cluster, plural).body["metadata"]["ownerReferences"].clone());
    let owned_by = |uid: &str| {
        let reference = json!([{
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "kube-unions-owner", "uid": uid,
        }]);
        [reference.clone(), reference]
    };
    let first = uid();
    assert!(eventually(SETTLED, || owners() == owned_by(&first)), "{:?}\n{}", owners(), cluster.webhook.log());

    // An ownerReference that somebody removed is restored.
    for plural in KINDS {
        assert!(
            patch_json(&cluster.control_plane, plural, &json!([{"op": "remove", "path": "/metadata/ownerReferences"}]))
                .is_success()
        );
    }
    assert!(eventually(SETTLED, || owners() == owned_by(&first)), "{:?}\n{}", owners(), cluster.webhook.log());

    // Without the ClusterRole the registration is kept, and a configuration that the garbage collector removes is not created again.
    kubectl.run(&["delete", "clusterrole", "kube-unions-owner"]).accepted();
    delete(&cluster, &KINDS);
    let refused = || cluster.webhook.log().contains("its owner, the ClusterRole `kube-unions-owner`, cannot be read");
    assert!(eventually(SETTLED, refused), "{}", cluster.webhook.log());
    assert!(!is_registered(&cluster));
    assert_eq!(configurations(&cluster), [None, None]);
    assert_eq!(cluster.webhook.ops().get("/readyz").unwrap().status, 200);

    // A new ClusterRole has another UID.
    kubectl.apply(OWNER).accepted();
    let second = uid();
    assert_ne!(first, second);
    assert!(eventually(SETTLED, || owners() == owned_by(&second)), "{:?}\n{}", owners(), cluster.webhook.log());
    kubectl.run(&["delete", "clusterrole", "kube-unions-owner"]).accepted();
    kubectl.apply(OWNER).accepted();
    let third = uid();
    assert!(eventually(SETTLED, || owners() == owned_by(&third)), "{:?}\n{}", owners(), cluster.webhook.log());
    assert!(eventually(SETTLED, || is_registered(&cluster)));
}
