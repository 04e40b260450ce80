//! Writes that touch no union are not sent: an outage of the webhook does not stop them, and an API server judges conditions as the tests
//! of the crates do.

mod compiled;
mod controllers;
mod outage;
mod random;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::faults::{Effect, Proxy, Requests};
use crate::registration::{self, ALL_WRITES, KINDS, with_rights};
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::control_plane::ControlPlane;
use crate::support::http::Answer;
use crate::support::kind::apply;
use crate::support::webhook::Webhook;
use fixtures::crds::{crd, version};
use fixtures::dice::Dice;
use fixtures::kinds::GeneratedKind;
use fixtures::skips::{condition_of, is_sent};
use fixtures::wait::{SETTLED, eventually};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The API server cannot compile a condition, and refuses the configuration for it.
#[test]
fn a_condition_that_the_api_server_refuses_costs_the_condition_and_nothing_else() {
    let mut proxy = None;
    let through = |plane: &ControlPlane| {
        let started = proxy.insert(Proxy::start(plane));
        started.inject(Requests::Writes("kube-unions"), Effect::Misspelt("request.operation", "request.oparetion"));
        started.kubeconfig()
    };
    let Some(cluster) = Cluster::registering_by(&with_rights(), &["--registration-delay=0s"], through) else { return };
    let rollouts = cluster.install("rollout");
    let kinds = |condition: &str| {
        cluster.webhook.metric(&format!("kube_unions_registration_kinds{{condition=\"{condition}\"}}"))
    };
    assert!(eventually(SETTLED, || kinds("refused") == 1), "{}", cluster.webhook.log());
    assert_eq!([kinds("unions"), kinds("fields"), cluster.webhook.metric("kube_unions_registered")], [0, 0, 1]);
    for plural in KINDS {
        let stored = cluster.client().get(&registration::path(plural)).unwrap().body;
        let own =
            stored["webhooks"].as_array().unwrap().iter().find(|it| !it["name"].as_str().unwrap().starts_with("de"));
        assert_eq!(own.unwrap()["matchConditions"], Value::Null, "{stored}");
    }
    let log = cluster.webhook.log();
    let told = log.lines().filter(|line| line.contains("the API server refuses the condition of an entry"));
    let told: Vec<&str> = told.collect();
    assert_eq!(told.len(), 1, "{log}");
    say(told[0]);
    assert!(told[0].contains("oparetion") && told[0].contains("mutate.rollouts."), "{log}");
    let bad = rollouts.object("bad", &json!({"strategy": {"type": "Canary"}}));
    assert_eq!(rollouts.post_dry(&bad).unwrap().status, 422);
}

/// Returns the entries of a configuration for kinds. Those for declarations and definitions have conditions of their own.
fn entries_of_kinds(configuration: &Value) -> impl Iterator<Item = &Value> + Clone {
    let entries = configuration["webhooks"].as_array().into_iter().flatten();
    entries.filter(|entry| !entry["name"].as_str().unwrap().starts_with("de"))
}

/// Returns each group and resource that entries for kinds name.
fn resources_of_kinds(configuration: &Value) -> BTreeSet<(&str, &str)> {
    fn texts<'r>(rule: &'r Value, field: &str) -> impl Iterator<Item = &'r str> + Clone {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str)
    }
    let rules = entries_of_kinds(configuration).flat_map(|entry| entry["rules"].as_array().into_iter().flatten());
    let of_rule =
        |rule| texts(rule, "apiGroups").flat_map(move |group| texts(rule, "resources").map(move |it| (group, it)));
    rules.flat_map(of_rule).collect()
}

/// Starts the webhook of a cluster again, to register entries without conditions.
fn send_all_writes(cluster: &mut Cluster, flags: &[&str]) {
    cluster.webhook.stop();
    let kubeconfig = cluster.control_plane.webhook_kubeconfig();
    cluster.webhook = Webhook::registering(&kubeconfig, &[flags, &[ALL_WRITES]].concat()).unwrap();
}

#[track_caller]
fn sent(plane: &ControlPlane, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    plane.client().send(method, path, content_type, body.to_string().as_bytes()).expect("the API server answers")
}

const GROUP: &str = "untouched.example";

/// Names that mean something at the root of an object: with `items` it is a list.
const RESERVED: [&str; 3] = ["apiVersion", "items", "metadata"];

/// Nothing listens on this port of loopback: a write that is sent is refused with 500.
const NOWHERE: &str = "https://127.0.0.1:1/mutate";

/// Rows of generated kinds: their conditions on one kind whose schema is open, so that a value of any type can be stored. Entries choose
/// objects by a label.
#[test]
fn an_api_server_judges_conditions_of_generated_kinds_as_the_tests_of_the_crates_do() {
    let Some(plane) = Cluster::control_plane_alone() else { return };
    let (count, writes) = (some_or_all(60, 400), some_or_all(8, 20));
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    apply(plane.client(), &crd(GROUP, "Thing", &[version("v1", &open)]));
    let mut dice = Dice(11);
    let mut cases = Vec::new();
    for (number, kind) in GeneratedKind::all(GROUP, 5).take(count).enumerate() {
        let kind_name = kind.definition["spec"]["names"]["kind"].clone();
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind_name});
        let Some(condition) = condition_of(&kind.catalog(), &object) else { continue };
        let names: Vec<String> = names_of(&kind).into_iter().filter(|name| !RESERVED.contains(&&**name)).collect();
        let thing = |name: String, dice: &mut Dice| {
            let mut thing = Value::Object(
                names.iter().filter(|_| dice.chance(80)).map(|name| (name.clone(), Value::Null)).collect(),
            );
            for field in thing.as_object_mut().unwrap().values_mut() {
                *field = anything(dice, &names, 4);
            }
            thing["apiVersion"] = format!("{GROUP}/v1").into();
            thing["kind"] = "Thing".into();
            thing["metadata"] = json!({"name": name, "namespace": "default", "labels": {"case": number.to_string()}});
            thing
        };
        for write in 0..writes {
            let old = thing(format!("thing-{number}-{write}"), &mut dice);
            let mut new =
                if dice.chance(30) { old.clone() } else { thing(format!("thing-{number}-{write}"), &mut dice) };
            if new == old {
                new["metadata"]["annotations"] = json!({"a": "b"});
            } else if dice.chance(50) {
                // One field of many differs.
                let mut changed = old.clone();
                let name = dice.pick(&names);
                changed[name] = new[name].clone();
                new = changed;
            }
            cases.push((kind.description.clone(), number, condition.expression().to_owned(), old, new));
        }
    }
    let path = format!("/apis/{GROUP}/v1/namespaces/default/things");
    assert!(eventually(SETTLED, || plane.client().get(&path).is_ok_and(|answer| answer.is_success())));
    for (description, _, _, old, _) in &cases {
        let created = plane.client().post(&path, old).unwrap();
        assert_eq!(created.status, 201, "{description}: {created:?}\n{old}");
    }
    let mut numbers: Vec<_> = cases.iter().map(|(_, number, condition, ..)| (*number, condition.clone())).collect();
    numbers.dedup();
    let entries: Vec<Value> = numbers.iter().map(|(number, condition)| entry(number, condition)).collect();
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "untouched"}, "webhooks": entries});
    apply(plane.client(), &configuration);
    let probe = |number: &usize| {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing",
            "metadata": {"name": "probe", "namespace": "default", "labels": {"case": number.to_string()}}});
        plane.client().post(&format!("{path}?dryRun=All"), &object).is_ok_and(|answer| answer.status == 500)
    };
    assert!(eventually(SETTLED, || numbers.iter().all(|(number, _)| probe(number))), "a create is sent");
    let (mut skipped, mut wrong) = (0, Vec::new());
    for (description, _, condition, old, new) in &cases {
        let object = format!("{path}/{}", old["metadata"]["name"].as_str().unwrap());
        let stored = plane.client().get(&object).unwrap().body;
        let mut new = new.clone();
        new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let answer = sent(&plane, "PUT", &format!("{object}?dryRun=All"), "application/json", &new);
        let message = answer.body["message"].as_str().unwrap_or_default();
        let want = is_sent(condition, "UPDATE", &new, &stored);
        skipped += usize::from(!want);
        let is_called = answer.status == 500 && message.contains("failed calling webhook");
        if (is_called, answer.is_success()) != (want, !want) {
            wrong.push(format!(
                "{description}: {} {message}, sent: {want}\n{condition}\nold: {old}\nnew: {new}",
                answer.status
            ));
        }
    }
    say(&format!("{} conditions, {} writes, {skipped} not sent", numbers.len(), cases.len()));
    assert!(skipped > 0 && skipped < cases.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n")
    );
    costs(&plane, &path);
}

/// The costliest condition that is compiled is within the budget of an API server.
fn costs(plane: &ControlPlane, path: &str) {
    let (list, member) = (|number: usize| format!("list{number}"), |number: usize| format!("member{number}"));
    let properties = (0..8).map(|at| {
        let members = (0..20).map(|number| (member(number), json!({"type": "object"})));
        let values = (0..20).map(|number| (member(number), json!(format!("V{number}"))));
        let item = json!({"type": "object", "properties": Value::Object(members.collect()),
            "x-kubernetes-unions": [{"fields-to-discriminateBy": Value::Object(values.collect())}]});
        (list(at), json!({"type": "array", "items": item}))
    });
    let schema = json!({"type": "object", "properties": Value::Object(properties.collect())});
    let catalog = fixtures::reviews::catalog(&[&crd(GROUP, "Costly", &[version("v1", &schema)])]);
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Costly"});
    let condition = condition_of(&catalog, &object).unwrap();
    assert!(condition.expression().contains("size() > 64"), "{}", condition.expression());
    let item: Value = (0..20).map(|number| (member(number), json!({"a": 1}))).collect::<serde_json::Map<_, _>>().into();
    let mut thing: Value =
        (0..8).map(|at| (list(at), json!(vec![item.clone(); 64]))).collect::<serde_json::Map<_, _>>().into();
    thing["apiVersion"] = format!("{GROUP}/v1").into();
    thing["kind"] = "Thing".into();
    thing["metadata"] = json!({"name": "costly", "namespace": "default", "labels": {"case": "costly"}});
    assert_eq!(plane.client().post(path, &thing).unwrap().status, 201);
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "costly"}, "webhooks": [entry(&"costly", condition.expression())]});
    apply(plane.client(), &configuration);
    let merged = |body: Value| sent(plane, "PATCH", &format!("{path}/costly?dryRun=All"), MERGE, &body);
    assert!(eventually(SETTLED, || merged(json!({"list0": null})).status == 500), "it is in force");
    let answer = merged(json!({"other": 1}));
    assert!(answer.is_success(), "{answer:?}");
}

fn entry(case: &impl ToString, condition: &str) -> Value {
    let case = case.to_string();
    json!({
        "name": format!("case-{case}.{GROUP}"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": NOWHERE}, "failurePolicy": "Fail", "timeoutSeconds": 2,
        "objectSelector": {"matchLabels": {"case": case}},
        "rules": [{"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["things"]}],
        "matchConditions": [{"name": "touches-a-union", "expression": condition}],
    })
}

/// Returns names of fields that mean something in a kind.
fn names_of(kind: &GeneratedKind) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    properties(&kind.definition["spec"]["versions"][0]["schema"], &mut names);
    for part in kind.declarations.iter().flat_map(|it| it["spec"]["unions"].as_array().unwrap()) {
        names.extend(part["path"].as_str().unwrap().split(['.', '[', ']', '\'', '"']).map(str::to_owned));
    }
    names.extend(["a", "b", "kind", "type"].map(str::to_owned));
    names
}

/// Collects the names of all properties of a schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                if keyword == "properties" {
                    names.extend(value.as_object().unwrap().keys().cloned());
                }
                properties(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns any value, with these names of fields.
fn anything(dice: &mut Dice, names: &[String], depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 12 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-3),
        3 => json!(0.5),
        4 => json!("A"),
        5 | 6 => (0..dice.below(4)).map(|_| anything(dice, names, depth - 1)).collect(),
        _ => {
            let fields = (0..dice.below(6)).map(|_| (dice.pick(names).clone(), anything(dice, names, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}
