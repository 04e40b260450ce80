//! Writes that touch no union are not sent: an outage of the webhook does not stop them, and an API server judges conditions as the tests
//! of the crates do.

mod compiled;
mod controllers;
mod outage;
mod random;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::faults::{Effect, Proxy, Requests};
use crate::registration::{self, ALL_WRITES, KINDS, with_rights};
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::control_plane::ControlPlane;
use crate::support::http::Answer;
use crate::support::kind::apply;
use crate::support::webhook::Webhook;
use fixtures::api_server::DEFINITIONS;
use fixtures::crds::{annotated, crd, version};
use fixtures::dice::Dice;
use fixtures::kinds::GeneratedKind;
use fixtures::skips::{condition_of, is_sent};
use fixtures::wait::{SETTLED, eventually};
use kube_unions_policies::TouchCondition;

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

/// A configuration that is missing is applied, which an API server reads as YAML.
#[test]
fn names_that_yaml_does_not_take_are_in_conditions_as_they_are() {
    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let names = ["a\u{7f}b", "a\u{85}b", "a\u{2028}b", "\u{feff}\u{fffe}"];
    let members: Map<String, Value> = names.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
    let spec = json!({"type": "object", "properties": members});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let fields: Map<String, Value> =
        (0..).zip(names).map(|(number, it)| (it.to_owned(), json!(format!("V{number}")))).collect();
    let unions = json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": fields}]}});
    let crd = annotated(GROUP, "Named", &[version("v1", &schema)], &unions.to_string());
    assert_eq!(cluster.client().post(DEFINITIONS, &crd).unwrap().status, 201);
    let are_watched = || {
        KINDS.iter().all(|plural| {
            let stored = cluster.client().get(&registration::path(plural)).unwrap().body;
            let conditions = entries_of_kinds(&stored).map(|entry| entry["matchConditions"][0]["expression"].clone());
            let all: Vec<String> = conditions.map(|it| it.as_str().unwrap_or_default().to_owned()).collect();
            names.iter().all(|name| all.iter().any(|condition| condition.contains(&format!("\"{name}\""))))
        })
    };
    assert!(eventually(SETTLED, are_watched), "{}", cluster.webhook.log());
    for plural in KINDS {
        assert!(cluster.client().delete(&registration::path(plural)).unwrap().is_success());
    }
    assert!(eventually(SETTLED, are_watched), "{}", cluster.webhook.log());
    assert_eq!(cluster.webhook.metric("kube_unions_registration_kinds{condition=\"refused\"}"), 0);
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

/// A schema of an item with so many parts, and the item that has all of them.
type Shape = fn(usize) -> (Value, Value);

/// Shapes of items whose lookups cost more than others.
const SHAPES: [(&str, Shape); 5] = [
    ("members", |count| union_of(&members("m", count))),
    ("fields", |count| object_of(members("f", count).iter().map(|name| (name.clone(), union_of(&members("m", 2)))))),
    ("trees", |count| object_of(members("f", count).iter().map(|name| (name.clone(), tree(3))))),
    ("chains", |count| object_of(members("f", count).iter().map(|name| (name.clone(), chain(8, name))))),
    ("deductions", |count| {
        let (mut schema, mut item) = object_of(members("m", count).iter().map(|it| (it.clone(), text())));
        let one = |name: &String| json!({"discriminator": format!("t{name}"), "fields-to-discriminateBy": {name: "A"}});
        schema["x-kubernetes-unions"] = members("m", count).iter().map(one).collect();
        for name in members("m", count) {
            schema["properties"][format!("t{name}")] = text().0;
            item[format!("t{name}")] = "A".into();
        }
        (schema, item)
    }),
];

fn members(word: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{word}{number}")).collect()
}

fn text() -> (Value, Value) {
    (json!({"type": "string"}), json!("x"))
}

fn object_of(fields: impl Iterator<Item = (String, (Value, Value))>) -> (Value, Value) {
    let (schemas, values): (Map<String, Value>, Map<String, Value>) =
        fields.map(|(name, (schema, value))| ((name.clone(), schema), (name, value))).unzip();
    (json!({"type": "object", "properties": schemas}), values.into())
}

fn union_of(names: &[String]) -> (Value, Value) {
    let (mut schema, item) = object_of(names.iter().map(|name| (name.clone(), text())));
    let values: Map<String, Value> = names.iter().map(|name| (name.clone(), name.to_uppercase().into())).collect();
    schema["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": values}]);
    (schema, item)
}

/// Returns a tree of objects, each with the same two fields, whose leaves have a union.
fn tree(depth: usize) -> (Value, Value) {
    if depth == 0 {
        return union_of(&members("m", 2));
    }
    object_of(["l", "r"].into_iter().map(|name| (name.to_owned(), tree(depth - 1))))
}

/// Returns objects in objects, of which the innermost has a union like no other.
fn chain(depth: usize, word: &str) -> (Value, Value) {
    if depth == 0 {
        return union_of(&members(word, 2));
    }
    object_of([("next".to_owned(), chain(depth - 1, word))].into_iter())
}

/// The costliest condition that is compiled for each shape is within the budget of an API server.
fn costs(plane: &ControlPlane, path: &str) {
    for (shape, make) in SHAPES {
        let of = |count: usize| {
            let (schema, item) = make(count);
            let list = json!({"type": "array", "items": schema});
            let schema = json!({"type": "object", "properties": {"list": list}});
            let catalog = fixtures::reviews::catalog(&[&crd(GROUP, "Costly", &[version("v1", &schema)])]);
            let condition = condition_of(&catalog, &json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Costly"}));
            condition.filter(TouchCondition::looks_into_fields).map(|it| (count, it.expression().to_owned(), item))
        };
        let (count, condition, item) = (1..=128).map_while(of).last().unwrap();
        assert!(condition.contains("size() > 64"), "{condition}");
        say(&format!("{shape}: {count} parts, a condition of {} bytes", condition.len()));
        let thing = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "list": vec![item; 64],
            "metadata": {"name": shape, "namespace": "default", "labels": {"case": shape}}});
        assert_eq!(plane.client().post(path, &thing).unwrap().status, 201);
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": shape}, "webhooks": [entry(&shape, &condition)]});
        apply(plane.client(), &configuration);
        let merged = |body: Value| sent(plane, "PATCH", &format!("{path}/{shape}?dryRun=All"), MERGE, &body);
        assert!(eventually(SETTLED, || merged(json!({"list": null})).status == 500), "{shape}: it is in force");
        let answer = merged(json!({"other": 1}));
        assert!(answer.is_success(), "{shape}: {answer:?}\n{condition}");
    }
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
