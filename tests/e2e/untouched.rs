//! Writes that touch no union are not sent: an outage of the webhook does not stop them, and an API server judges conditions as the tests
//! of the crates do.

mod random;

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};

use crate::builtin::{PRESETS, collection, path as object_path, wait_for_verdict};
use crate::faults::{Effect, Proxy, Requests};
use crate::registration::{self, KINDS, with_rights};
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::control_plane::ControlPlane;
use crate::support::http::Answer;
use crate::support::kind::{Kind, apply};
use fixtures::api_server::DECLARATIONS;
use fixtures::crds::{crd, version};
use fixtures::dice::Dice;
use fixtures::kinds::GeneratedKind;
use fixtures::skips::{condition_of, is_sent};
use fixtures::wait::{SETTLED, eventually};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A write during an outage.
struct Row {
    title: &'static str,
    method: &'static str,
    /// What follows the path of the object.
    suffix: &'static str,
    content_type: &'static str,
    body: Value,
    /// The answer for a custom resource, and that for a Deployment, if the kind has such a write.
    want: [Option<u16>; 2],
}

fn row(
    title: &'static str,
    (method, suffix): (&'static str, &'static str),
    content_type: &'static str,
    body: Value,
    want: [Option<u16>; 2],
) -> Row {
    Row { title, method, suffix, content_type, body, want }
}

/// The writes of one object, in this order. A write that needs the webhook is refused with 500 if it may not be stored without.
fn rows() -> Vec<Row> {
    let both = [Some(200), Some(200)];
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/app:2"}]}}}});
    let bad = json!({"spec": {"strategy": {"type": "Recreate"}}});
    vec![
        row("a label", ("PATCH", ""), MERGE, json!({"metadata": {"labels": {"a": "b"}}}), both),
        row("a finalizer goes", ("PATCH", ""), MERGE, json!({"metadata": {"finalizers": null}}), both),
        row("a status", ("PATCH", "/status"), MERGE, json!({"status": {"observedGeneration": 7}}), both),
        row("replicas", ("PATCH", ""), MERGE, json!({"spec": {"replicas": 2}}), both),
        row("the scale", ("PATCH", "/scale"), MERGE, json!({"spec": {"replicas": 3}}), [None, Some(200)]),
        row("an image", ("PATCH", ""), STRATEGIC, image, [None, Some(200)]),
        row("a dry run of a label", ("PATCH", "?dryRun=All"), MERGE, json!({"metadata": {"labels": {"a": "c"}}}), both),
        // A Deployment whose strategy is switched has members that the API server itself refuses.
        row("a switch", ("PATCH", ""), MERGE, bad, [Some(500), Some(422)]),
        row("a deletion", ("DELETE", ""), "application/json", json!({}), both),
    ]
}

/// Returns the manifests of a custom resource and of a Deployment.
fn manifests(rollouts: &Kind<'_>, name: &str) -> [Value; 2] {
    let labels = json!({"app": name});
    let containers = json!([{"name": "main", "image": "example.com/app:1",
        "env": [{"name": "A", "value": "b"}], "readinessProbe": {"httpGet": {"port": 80}}}]);
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"strategy": strategy, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": containers, "volumes": [{"name": "v", "emptyDir": {}}]}}},
    });
    [rollouts.object(name, &json!({"replicas": 1, "strategy": strategy})), deployment]
}

#[test]
fn while_no_replica_answers_writes_that_touch_no_union_are_stored() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let group = cluster.install("rollout").group().to_owned();
    let kubectl = cluster.control_plane.kubectl("untouched");
    kubectl.run(&["apply", "-k", PRESETS]).accepted();
    let list = cluster.client().get(DECLARATIONS).unwrap();
    for declaration in list.body["items"].as_array().unwrap() {
        let name = declaration["metadata"]["name"].as_str().unwrap();
        assert_eq!(wait_for_verdict(cluster.client(), name).status, "True", "{name}");
    }
    let names = || {
        let stored = cluster.control_plane.client().get(&registration::path(KINDS[0])).unwrap().body;
        let names = stored["webhooks"].as_array().into_iter().flatten().map(|entry| entry["name"].to_string());
        names.collect::<BTreeSet<String>>()
    };
    let rollouts_entry = format!("\"mutate.rollouts.{group}.kube-unions.dev\"");
    let is_registered =
        || names().contains(&rollouts_entry) && names().iter().any(|it| it.contains("deployments.apps"));
    assert!(eventually(SETTLED, is_registered), "{:?}\n{}", names(), cluster.webhook.log());

    for outage in ["dead", "stopped"] {
        for name in ["held", "plain"] {
            let rollouts = Kind::in_group(&cluster, "rollout", group.clone());
            for mut manifest in manifests(&rollouts, &format!("{outage}-{name}")) {
                if name == "held" {
                    manifest["metadata"]["finalizers"] = json!(["samples.example/hold"]);
                }
                let applied = sent(&cluster.control_plane, "PATCH", &apply_path(&manifest), APPLY, &manifest);
                assert!(applied.is_success(), "{applied:?}");
            }
        }
        if outage == "dead" {
            cluster.webhook.stop();
        } else {
            cluster.webhook.process().pause();
        }
        play(&cluster, &group, outage);
        if outage == "dead" {
            cluster.webhook.resume().unwrap();
        } else {
            cluster.webhook.process().go_on();
        }
        let rollouts = Kind::in_group(&cluster, "rollout", group.clone());
        let bad = rollouts.object("bad", &json!({"strategy": {"type": "Canary"}}));
        assert!(eventually(SETTLED, || rollouts.post_dry(&bad).is_ok_and(|answer| answer.status == 422)));
    }
}

/// Plays the rows for an object of each kind, and applies and creates others.
fn play(cluster: &Cluster, group: &str, outage: &str) {
    let rollouts = Kind::in_group(cluster, "rollout", group.to_owned());
    let plane = &cluster.control_plane;
    let mut wrong = Vec::new();
    let mut tell = |title: &str, kind: usize, want: u16, (answer, seconds): (Answer, f64)| {
        let line =
            format!("{outage}: {} {title}: {} in {seconds:.1} s", ["Rollout", "Deployment"][kind], answer.status);
        say(&line);
        if answer.status != want {
            wrong.push(format!("{line}, and not {want}: {}", answer.body["message"]));
        }
    };
    for (kind, manifest) in manifests(&rollouts, &format!("{outage}-plain")).into_iter().enumerate() {
        // Applies: the same manifest, another field, another member.
        let mut apply = |title: &str, manifest: &Value, want: u16| {
            tell(title, kind, want, timed(plane, "PATCH", &apply_path(manifest), APPLY, manifest));
        };
        apply("an apply of the same manifest", &manifest, 200);
        let mut other = manifest.clone();
        other["spec"]["replicas"] = json!(4);
        apply("an apply of another field", &other, 200);
        let mut touches = other.clone();
        touches["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 2});
        // An API server does without the webhook for a built-in type.
        apply("an apply that changes a member", &touches, [500, 200][kind]);
        let mut new = manifest.clone();
        new["metadata"]["name"] = json!(format!("{outage}-new"));
        let created = timed(plane, "POST", &collection(&new), "application/json", &new);
        tell("a create", kind, [500, 201][kind], created);
    }
    for (kind, manifest) in manifests(&rollouts, &format!("{outage}-held")).into_iter().enumerate() {
        let path = object_path(&manifest);
        for row in rows() {
            let Some(want) = row.want[kind] else { continue };
            let path = format!("{path}{}", row.suffix);
            // Custom resources have no strategic merge patch.
            tell(row.title, kind, want, timed(plane, row.method, &path, row.content_type, &row.body));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), cluster.webhook.log());
}

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

fn apply_path(object: &Value) -> String {
    format!("{}?fieldManager=it&force=true", object_path(object))
}

#[track_caller]
fn sent(plane: &ControlPlane, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    plane.client().send(method, path, content_type, body.to_string().as_bytes()).expect("the API server answers")
}

#[track_caller]
fn timed(plane: &ControlPlane, method: &str, path: &str, content_type: &str, body: &Value) -> (Answer, f64) {
    let start = Instant::now();
    (sent(plane, method, path, content_type, body), start.elapsed().as_secs_f64())
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
