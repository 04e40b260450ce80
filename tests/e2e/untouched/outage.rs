//! The costs of an outage: the rows of `outage.yaml`, with all replicas dead and with all of them stopped, and with conditions and without.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::thread;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{APPLY, MERGE, STRATEGIC, entries_of_kinds, resources_of_kinds, send_all_writes};
use crate::builtin::{WITH_PRESETS, apply_presets, collection, path as path_of};
use crate::observability::AuditLog;
use crate::registration::{self, KINDS, with_rights};
use crate::support::cluster::{Cluster, say};
use crate::support::control_plane::ControlPlane;
use crate::support::kind::Kind;
use fixtures::files::parse;
use fixtures::wait::{SETTLED, eventually};

const FLAGS: [&str; 2] = ["--registration-delay=0s", "--timeout-seconds=1"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Each write with its [`Answers`], in the order in which they are made.
    answers: Map<String, Value>,
    kinds: Vec<Row>,
}

/// The answers to a write: of a custom resource and of built-in kinds, each without conditions and with them.
type Answers = [Answer; 4];

/// A kind with presets, or the custom resource.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    kind: Value,
    /// The other fields of an object.
    object: Value,
    /// The patches of writes that not every kind has.
    writes: BTreeMap<String, Value>,
    /// Writes that the API server itself refuses.
    #[serde(default)]
    refused: Vec<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "camelCase")]
enum Answer {
    /// It is stored without a call of the webhook.
    Stores,
    /// It goes on after a call without an answer.
    Waits,
    /// It is refused after a call without an answer.
    Fails,
}

/// The state of the only replica.
#[derive(Clone, Copy, Debug)]
enum Outage {
    Dead,
    Stopped,
}

/// A write, and the object that it is about.
struct Write {
    method: &'static str,
    path: String,
    content_type: &'static str,
    body: Value,
    name: String,
}

#[test]
fn while_no_replica_answers_writes_that_touch_no_union_are_stored() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &FLAGS) else { return };
    let group = cluster.install("rollout").group().to_owned();
    let text = include_str!("outage.yaml").replace("GROUP", &group);
    let table: Table = parse("tests/e2e/untouched/outage.yaml", &text);
    apply_presets(&cluster);
    table.has_each_kind_with_presets();
    let mut wrong = Vec::new();
    for with_conditions in [true, false] {
        if !with_conditions {
            send_all_writes(&mut cluster, &FLAGS);
        }
        for outage in [Outage::Dead, Outage::Stopped] {
            wait_until_in_force(&cluster, &group, with_conditions);
            let name = format!("{outage:?}-{with_conditions}").to_lowercase();
            table.kinds.iter().for_each(|row| row.store(&cluster.control_plane, &name));
            let log = cluster.control_plane.audit_log();
            match outage {
                Outage::Dead => cluster.webhook.stop(),
                Outage::Stopped => cluster.webhook.process().pause(),
            }
            let differences = thread::scope(|scope| {
                let play = |row| table.play(row, &cluster.control_plane, &log, &name, with_conditions);
                let running: Vec<_> = table.kinds.iter().map(|row| scope.spawn(move || play(row))).collect();
                running.into_iter().flat_map(|played| played.join().expect("no row fails")).collect::<Vec<_>>()
            });
            wrong.extend(differences);
            match outage {
                Outage::Dead => cluster.webhook.resume().unwrap(),
                Outage::Stopped => cluster.webhook.process().go_on(),
            }
        }
    }
    assert!(wrong.is_empty(), "{} writes:\n{}\n{}", wrong.len(), wrong.join("\n"), cluster.webhook.log());
}

/// Waits until the configurations name a built-in kind, and the unions of the custom resource are in force by them.
pub(super) fn wait_until_in_force(cluster: &Cluster, group: &str, with_conditions: bool) {
    let is_registered = || {
        KINDS.iter().all(|plural| {
            let stored = cluster.client().get(&registration::path(plural)).unwrap().body;
            let resources = resources_of_kinds(&stored);
            let is_skipping = entries_of_kinds(&stored).any(|entry| entry["matchConditions"].is_array());
            [(group, "rollouts"), ("apps", "deployments"), ("", "services")].iter().all(|it| resources.contains(it))
                && is_skipping == with_conditions
        })
    };
    assert!(eventually(SETTLED, is_registered), "{}", cluster.webhook.log());
    let rollouts = Kind::in_group(cluster, "rollout", group.to_owned());
    let bad = rollouts.object("bad", &json!({"strategy": {"type": "Canary"}}));
    assert!(eventually(SETTLED, || rollouts.post_dry(&bad).is_ok_and(|answer| answer.status == 422)));
}

impl Table {
    /// Fails unless there is a row for each kind with presets.
    fn has_each_kind_with_presets(&self) {
        let name = |version: &str, kind: &str| format!("{version} {kind}");
        let told = |row: &Row| name(row.kind["apiVersion"].as_str().unwrap(), row.kind["kind"].as_str().unwrap());
        let told: BTreeSet<String> = self.kinds.iter().map(told).collect();
        let all = WITH_PRESETS.iter().flat_map(|(version, kinds)| kinds.iter().map(move |kind| name(version, kind)));
        // Two versions of a kind have one declaration.
        let missing: Vec<String> = all.filter(|it| !it.starts_with("autoscaling/v1 ") && !told.contains(it)).collect();
        assert_eq!(missing, [] as [String; 0]);
    }

    /// Makes the writes of a kind one after the other. Returns the answers that differ.
    fn play(&self, row: &Row, plane: &ControlPlane, log: &AuditLog, name: &str, with_conditions: bool) -> Vec<String> {
        let mut differences = Vec::new();
        let mut calls: BTreeMap<String, usize> = BTreeMap::new();
        let kind = row.kind["kind"].as_str().unwrap();
        for (title, answers) in &self.answers {
            let Some(write) = row.write(title, name) else { continue };
            let answers: Answers = serde_json::from_value(answers.clone()).unwrap();
            let want = answers[usize::from(with_conditions) + 2 * usize::from(row.is_built_in())];
            let start = Instant::now();
            let answer = plane
                .client()
                .send(write.method, &write.path, write.content_type, write.body.to_string().as_bytes())
                .expect("the API server answers");
            let seconds = start.elapsed().as_secs_f64();
            let plural = collection(&row.kind);
            let events = log.events(plural.rsplit('/').next().unwrap(), &write.name);
            let number = calls.entry(write.name.clone()).or_default();
            let event = events.get(*number).unwrap_or_else(|| panic!("no event of {kind} {title}: {answer:?}"));
            *number += 1;
            let is_called = event["annotations"]
                .as_object()
                .is_some_and(|annotations| annotations.keys().any(|key| key.starts_with("failed-open.")));
            let message = answer.body["message"].as_str().unwrap_or_default();
            let got = match answer.status {
                500 if message.contains("failed calling webhook") => Some(Answer::Fails),
                200 | 201 if !is_called => Some(Answer::Stores),
                200 | 201 => Some(Answer::Waits),
                422 if is_called && row.refused.contains(title) => Some(Answer::Waits),
                _ => None,
            };
            if env::var_os("KUBE_UNIONS_OUTAGE_SECONDS").is_some() {
                say(&format!("| {name} | {kind} | {title} | {} | {got:?} | {seconds:.1} |", answer.status));
            }
            if got != Some(want) {
                differences
                    .push(format!("{name}: {kind}, {title}: {got:?} and not {want:?}: {} {message}", answer.status));
            }
        }
        differences
    }
}

impl Row {
    fn is_built_in(&self) -> bool {
        self.kind["kind"] != "Rollout"
    }

    fn named(&self, name: &str) -> Value {
        let mut object = self.kind.clone();
        json_patch::merge(&mut object, &self.object);
        json_patch::merge(&mut object, &json!({"metadata": {"name": name, "namespace": "default"}}));
        object
    }

    /// Stores the objects that are written: one that a manifest is applied to, and one for the other writes.
    fn store(&self, plane: &ControlPlane, name: &str) {
        for (name, finalizers) in [("applied", json!([])), ("held", json!(["samples.example/hold"]))]
            .map(|(word, it)| (format!("{name}-{word}"), it))
        {
            let mut object = self.named(&name);
            object["metadata"]["finalizers"] = finalizers;
            let answer = plane.client().send("PATCH", &applied(&object), APPLY, object.to_string().as_bytes()).unwrap();
            assert!(answer.is_success(), "{answer:?}");
        }
    }

    /// Returns a write. `None`: the kind does not have it.
    fn write(&self, title: &str, name: &str) -> Option<Write> {
        let merge = if self.is_built_in() { STRATEGIC } else { MERGE };
        let [held, manifest, new] = ["held", "applied", "new"].map(|word| self.named(&format!("{name}-{word}")));
        let place = path_of(&held);
        let change =
            |suffix: &str, content_type, body| ("PATCH", format!("{place}{suffix}"), content_type, body, &held);
        let own = self.writes.get(title).cloned();
        let label = |value: &str| json!({"metadata": {"labels": {"outage": value}}});
        let (method, path, content_type, body, object) = match title {
            "a label" => change("", MERGE, label("a")),
            "a finalizer goes" => change("", MERGE, json!({"metadata": {"finalizers": null}})),
            "a dry run of a label" => change("?dryRun=All", MERGE, label("b")),
            "a status" => change("/status", merge, own?),
            "the scale" => change("/scale", MERGE, own?),
            "an apply of the same manifest" => ("PATCH", applied(&manifest), APPLY, manifest.clone(), &manifest),
            "an apply of another field" => {
                let mut changed = manifest.clone();
                json_patch::merge(&mut changed, self.writes.get("another field")?);
                ("PATCH", applied(&manifest), APPLY, changed, &manifest)
            }
            "a create" => ("POST", collection(&new), "application/json", new.clone(), &new),
            "a deletion" => ("DELETE", place, "application/json", json!({}), &held),
            _ => change("", merge, own?),
        };
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        Some(Write { method, path, content_type, body, name })
    }
}

/// Returns the path of an apply.
fn applied(object: &Value) -> String {
    format!("{}?fieldManager=it&force=true", path_of(object))
}
