//! Without the rights, with them, and under many changes at once.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{KINDS, RIGHTS, SERVICE, SETTLED, applied, both, configurations, get, post_bad, rule, say, wait_for};
use crate::cluster::Cluster;
use crate::kind::{Kind, parse};
use fixtures::wait::eventually;

/// Ten a second.
const CHANGES: usize = 20;
const EVERY: Duration = Duration::from_millis(100);

#[test]
fn without_rights_it_says_so_once_and_serves_on_and_with_them_it_registers() {
    let Some(mut cluster) = Cluster::registering(SERVICE, &["--exclude-namespace=left-alone"]) else { return };
    let kubectl = cluster.control_plane.kubectl("registration");
    let replica = cluster.webhook.replica(&[]).unwrap();
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let complaint = "cannot get resource \\\"mutatingwebhookconfigurations\\\"";
    assert!(eventually(SETTLED, || cluster.webhook.log().contains(complaint)), "{}", cluster.webhook.log());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert_eq!(cluster.webhook.ops().get("/readyz").unwrap().status, 200);
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(cluster.webhook.log().matches(complaint).count(), 1, "{}", cluster.webhook.log());
    assert_eq!(configurations(&cluster), [None, None]);
    assert_eq!(cluster.webhook.metric("kube_unions_registered"), 0);

    // A right to create that is bound to the name is enough. Both replicas notice it at about the same time.
    kubectl.apply(RIGHTS).accepted();
    let rules = [rule(rollouts.group(), "v1", &["rollouts"], "Namespaced")];
    let took = wait_for(&cluster, &both(&cluster, &rules, &[]));
    say(&format!("registered {took:?} after the rights were given"));
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 422));
    // The other replica may have written first.
    let recovered = || cluster.webhook.log().contains("are reconciled again");
    assert!(eventually(SETTLED, recovered), "{}", cluster.webhook.log());

    for one in [&cluster.webhook, &replica] {
        assert!(eventually(SETTLED, || one.metric("kube_unions_registered") == 1), "{}", one.log());
        assert_eq!(one.metric("kube_unions_registration_writes_total{outcome=\"failed\"}"), 0);
    }
    drop(replica);

    let wanted = many_changes(&cluster, &rollouts);
    thousands_of_kinds(&cluster);

    // Without the right to watch it resyncs more often, and logs that once.
    kubectl.apply(&RIGHTS.replace("get, list, watch, create, patch, update", "get, create, patch, update")).accepted();
    for plural in KINDS {
        let may = ["auth", "can-i", "watch", &format!("{plural}/kube-unions"), "--as=kube-unions"];
        assert!(eventually(SETTLED, || kubectl.run(&may).stdout.starts_with("no")), "the right is gone");
    }
    let said = |cluster: &Cluster| cluster.webhook.log().matches("may not be watched").count();
    let before = said(&cluster);
    cluster.webhook.stop();
    cluster.webhook.resume().unwrap();
    assert!(eventually(SETTLED, || said(&cluster) > before), "{}", cluster.webhook.log());
    kubectl.run(&["delete", &KINDS.join(","), "kube-unions"]).accepted();
    let took = wait_for(&cluster, &wanted);
    say(&format!("put right after {took:?} without the right to watch"));
    assert!((1..=2).contains(&(said(&cluster) - before)), "once a configuration at the most");
}

/// Creates and deletes kinds ten times a second. Returns the groups whose kinds are left.
fn many_changes(cluster: &Cluster, rollouts: &Kind<'_>) -> [Option<Value>; 2] {
    let client = cluster.control_plane.client();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let groups: Vec<String> = (0..CHANGES).map(|number| format!("g{number:02}.churn.example")).collect();
    let annotated = rollouts.annotated();
    let (before, start) = (applied(cluster), Instant::now());
    for (number, group) in groups.iter().enumerate() {
        let crd: Value = parse(&annotated.replace(rollouts.group(), group));
        let answer = client.post(path, &crd).unwrap();
        assert!(answer.is_success(), "{answer:?}");
        // Some are deleted at once.
        if number % 5 == 4 {
            let gone = client.delete(&format!("{path}/rollouts.{group}")).unwrap();
            assert!(gone.is_success(), "{gone:?}");
        }
        thread::sleep(EVERY.saturating_mul(u32::try_from(number + 1).unwrap()).saturating_sub(start.elapsed()));
    }
    let stay = groups.iter().enumerate().filter(|(number, _)| number % 5 != 4).map(|(_, group)| group.as_str());
    let mut rules: Vec<Value> = stay.map(|group| rule(group, "v1", &["rollouts"], "Namespaced")).collect();
    rules.push(rule(rollouts.group(), "v1", &["rollouts"], "Namespaced"));
    let wanted = both(cluster, &rules, &[]);
    wait_for(cluster, &wanted);
    let (writes, took) = (applied(cluster) - before, start.elapsed());
    say(&format!("{CHANGES} changes in {took:?}: {writes} writes"));
    // Two configurations at each change at most. The rate of writes is tested with `Pace`.
    let changes = i64::try_from(CHANGES + CHANGES / 5).unwrap();
    assert!(writes <= 2 * (changes + 1), "{writes} writes for {changes} changes");
    wanted
}

/// The API server accepts the largest registration that a cluster is likely to need, in the same request.
fn thousands_of_kinds(cluster: &Cluster) {
    let rules: Vec<Value> = (0..2_000)
        .map(|number| {
            let group = format!("group-{number:04}.of-a-vendor.example.com");
            rule(&group, "v1", &["somecustomthings", "somecustomthings/status"], "Namespaced")
        })
        .collect();
    for (plural, mut wanted) in KINDS.into_iter().zip(both(cluster, &rules, &[]).map(Option::unwrap)) {
        for webhook in wanted["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        }
        wanted["metadata"] = json!({"name": "as-large-as-it-gets"});
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/{plural}/as-large-as-it-gets?fieldManager=it&force=true");
        let body = wanted.to_string();
        let client = cluster.control_plane.client();
        let answer = client.send("PATCH", &path, "application/apply-patch+yaml", body.as_bytes()).unwrap();
        assert!(answer.is_success(), "{}", answer.body["message"]);
        say(&format!("2,000 rules in 2,000 groups: {} bytes applied", body.len()));
        assert_eq!(answer.body["webhooks"][0]["rules"].as_array().unwrap().len(), 2_000);
        client.delete(&path).unwrap();
    }
    assert!(get(cluster, KINDS[0]).is_success());
}
