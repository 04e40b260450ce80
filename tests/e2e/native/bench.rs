//! Latency of a write: without unions, by policies, and by the webhook on loopback. `make bench-native` prints the factors of the guide.
//! Nothing is asserted about them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{IN_FORCE, collection};
use crate::builtin::POLICIES;
use crate::support::cluster::{Cluster, say};
use crate::support::http::Answer;
use crate::support::kind::{documents, forget_unions};
use crate::support::webhook::kube_unions;
use fixtures::crds::{annotated, crd};
use fixtures::reviews::version;
use fixtures::wait::eventually;

/// Writes of each way.
const WRITES: usize = 600;

/// A way to enforce unions: its name, and the form of its policies if it has some.
type Way = (&'static str, &'static str);

/// A change of an object, by its number.
type Change<'c> = &'c dyn Fn(usize) -> Value;

/// Sends writes of each way in turns. Returns a row of the table for each.
fn in_turns(about: &str, ways: &[Way], write: impl Fn(usize, usize) -> Answer) -> String {
    let mut measured: Vec<Vec<Duration>> = ways.iter().map(|_| Vec::new()).collect();
    for number in 0..WRITES {
        for turn in 0..ways.len() {
            let way = if number % 2 == 0 { turn } else { ways.len() - 1 - turn };
            let started = Instant::now();
            let answer = write(way, number);
            measured[way].push(started.elapsed());
            assert!(answer.is_success(), "{about}, {}: {}", ways[way].0, answer.body);
        }
    }
    let mut medians = measured.into_iter().map(|mut latencies| {
        latencies.sort();
        latencies[WRITES / 2].as_secs_f64()
    });
    let plain = medians.next().expect("the first way enforces nothing");
    let row = |(median, (way, _)): (f64, &Way)| format!("| {about} | {way} | {:.1} |\n", median / plain);
    medians.zip(&ways[1..]).map(row).collect()
}

#[test]
#[ignore = "a benchmark: run `make bench-native`"]
fn writes_by_policies_and_by_the_webhook() {
    let Some(cluster) = Cluster::own() else { return };
    let mut table = String::from("\n| write | way | factor |\n|---|---|---|\n");
    custom_resources(&cluster, &mut table);
    deployments(&cluster, &mut table);
    say(&table);
}

fn merge(cluster: &Cluster, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    cluster.client().send("PATCH", path, "application/merge-patch+json", body.as_bytes()).unwrap()
}

/// Measures writes of a kind of its own for each way.
fn custom_resources(cluster: &Cluster, table: &mut String) {
    let ways = [
        ("nothing", ""),
        ("validating policies", "vap"),
        ("mutating policy", "map"),
        ("both", "policies"),
        ("webhook", ""),
    ];
    let union = json!({"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}}});
    let text = json!({"type": "string"});
    let mut fields = json!({"type": text, "a": text, "b": text, "note": text});
    fields["type"]["x-kubernetes-unions"] = union.clone();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let group = |way: usize| format!("bench{way}.example");
    let path = |way: usize| format!("/apis/{}/v1/namespaces/default/things/x", group(way));
    for (way, (name, form)) in ways.into_iter().enumerate() {
        let whole = crd(&group(way), "Thing", &[version("v1", &schema, false)]);
        let mut plain = whole.clone();
        if name == "webhook" {
            let declared = json!({"v1": {"/properties/spec/properties/type": union}}).to_string();
            plain = annotated(&group(way), "Thing", &[version("v1", &schema, false)], &declared);
            crate::support::kind::apply(cluster.client(), &cluster.webhook.registration(&group(way)));
        }
        forget_unions(&mut plain["spec"]);
        crate::support::kind::apply(cluster.client(), &plain);
        let object = json!({"apiVersion": format!("{}/v1", group(way)), "kind": "Thing",
            "metadata": {"name": "x", "namespace": "default"}, "spec": {"type": "A", "a": "0"}});
        let things = path(way).replace("/x", "");
        assert!(eventually(IN_FORCE, || cluster.client().post(&things, &object).unwrap().is_success()));
        if !form.is_empty() {
            let arguments = ["compile", "--to", form, "--from=-", "--ratcheting=warn"];
            for policy in documents(&kube_unions(&arguments, &whole.to_string()).accepted().stdout) {
                assert!(cluster.client().post(&collection(&policy), &policy).unwrap().is_success());
            }
        }
        let dry = format!("{}?dryRun=All", path(way));
        let switches = || merge(cluster, &dry, &json!({"spec": {"type": "B", "b": "0"}})).body["spec"]["a"].is_null();
        let denies = || merge(cluster, &dry, &json!({"spec": {"b": "0"}})).status == 422;
        let in_force =
            || (!mutates(ways[way]) || switches()) && (matches!(name, "nothing" | "mutating policy") || denies());
        assert!(eventually(IN_FORCE, in_force), "{name}");
    }
    let switch = |number: usize| match number % 2 {
        0 => json!({"type": "B", "b": "v", "a": null}),
        _ => json!({"type": "A", "a": "v", "b": null}),
    };
    let changes: [(&str, Change<'_>); 2] = [
        ("custom resource, the choice is switched", &switch),
        ("custom resource, another field changes", &|number| json!({"note": number.to_string()})),
    ];
    for (about, change) in changes {
        let rows = in_turns(about, &ways, |way, number| {
            let mut change = change(number);
            // Without mutation a client has to clear the member itself.
            if mutates(ways[way]) {
                change.as_object_mut().expect("fields").retain(|_, value| !value.is_null());
            }
            merge(cluster, &path(way), &json!({"spec": change}))
        });
        table.push_str(&rows);
    }
}

fn mutates((name, form): Way) -> bool {
    name == "webhook" || matches!(form, "map" | "policies")
}

/// Measures writes of a Deployment in a namespace that no policy is about, and in one for the policies of the presets.
fn deployments(cluster: &Cluster, table: &mut String) {
    let ways = [("nothing", "left-alone"), ("policies of the presets", "default")];
    let kubectl = cluster.kubectl("bench");
    kubectl.run(&["create", "namespace", "left-alone"]).accepted();
    kubectl.run(&["label", "namespace", "left-alone", "kube-unions.dev/enforcement=disabled"]).accepted();
    kubectl.run(&["apply", "-f", POLICIES]).accepted();
    let env: Vec<_> = (0..35).map(|number| json!({"name": format!("E{number}"), "value": "v"})).collect();
    let pods = json!({"containers": [{"name": "c", "image": "i", "env": env}]});
    let path = |way: usize| format!("/apis/apps/v1/namespaces/{}/deployments/x", ways[way].1);
    let send = |path: &str, spec: &Value| {
        let body = json!({"spec": spec}).to_string();
        cluster.client().send("PATCH", path, "application/strategic-merge-patch+json", body.as_bytes()).unwrap()
    };
    for way in 0..ways.len() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": pods}}});
        let created = cluster.client().post(&path(way).replace("/x", ""), &deployment).unwrap();
        assert!(created.is_success(), "{}", created.body);
    }
    let recreate = json!({"strategy": {"type": "Recreate"}});
    let dry = format!("{}?dryRun=All", path(1));
    assert!(eventually(IN_FORCE, || send(&dry, &recreate).is_success()), "the policies of the presets");
    let switch = |number: usize| match number % 2 {
        0 => json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
        _ => json!({"strategy": {"type": "RollingUpdate"}}),
    };
    let image =
        |number: usize| json!({"template": {"spec": {"containers": [{"name": "c", "image": format!("i:{number}")}]}}});
    let changes: [(&str, Change<'_>); 2] =
        [("Deployment, the strategy is switched", &switch), ("Deployment, the image changes", &image)];
    for (about, change) in changes {
        let rows = in_turns(about, &ways, |way, number| {
            let mut change = change(number);
            if way == 1
                && let Some(strategy) = change.pointer_mut("/strategy")
            {
                strategy.as_object_mut().expect("fields").remove("rollingUpdate");
            }
            send(&path(way), &change)
        });
        table.push_str(&rows);
    }
}
