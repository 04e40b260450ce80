//! Random writes with conditions and without: both store the same objects and refuse the same writes.
//!
//! The same writes of the same generated kinds go to two namespaces: to one while entries have conditions, to the other while every write is
//! sent. `KUBE_UNIONS_UNTOUCHED_SEED` and `KUBE_UNIONS_UNTOUCHED_WRITES` select other writes and more of them, as `make untouched` does.

mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Mutex;

use serde_json::{Value, json};
use strategic_merge_patch::json_merge::two_way;

use super::{APPLY, MERGE, resources_of_kinds, send_all_writes};
use crate::builtin::verdict;
use crate::registration::{self, KINDS as CONFIGURATIONS, with_rights};
use crate::support::background::in_parallel;
use crate::support::client_side::{MANAGER, annotated};
use crate::support::cluster::{Cluster, say};
use crate::support::http::{Answer, Client};
use crate::support::kind::apply;
use fixtures::dice::Dice;
use fixtures::kinds::GeneratedKind;
use fixtures::wait::{SETTLED, eventually_none_left};
use written::WrittenKind;

const GROUP: &str = "random.untouched.example";

/// The namespaces of the writes with conditions, and without.
const NAMESPACES: [&str; 2] = ["with-conditions", "without-conditions"];

const WRITES_OF_AN_OBJECT: usize = 10;
const OBJECTS_OF_A_KIND: usize = 4;
const MOST_KINDS: usize = 200;

const DELAY: &str = "--registration-delay=0s";

/// The writes of one object.
struct Life<'k> {
    kind: &'k WrittenKind,
    name: String,
    seed: u64,
    /// The object that is stored before its unions are in force.
    first: Option<Value>,
}

/// The answer to a write, without what differs by time and namespace.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    request: String,
    status: u16,
    /// The stored object, or the causes of a refusal.
    content: Value,
    warnings: Vec<String>,
}

#[test]
fn random_writes_have_the_same_answers_with_conditions_and_without() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_UNTOUCHED_SEED").unwrap_or(1);
    let writes = usize::try_from(number("KUBE_UNIONS_UNTOUCHED_WRITES").unwrap_or(400)).unwrap();
    let objects = writes.div_ceil(WRITES_OF_AN_OBJECT);
    let Some(mut cluster) = Cluster::registering(&with_rights(), &[DELAY]) else { return };
    let count = objects.div_ceil(OBJECTS_OF_A_KIND).min(MOST_KINDS);
    let kinds: Vec<WrittenKind> = GeneratedKind::all(GROUP, seed).filter_map(WrittenKind::new).take(count).collect();
    let lives: Vec<Life<'_>> = (0..objects).map(|number| Life::new(&kinds[number % count], number, seed)).collect();
    store_before(&cluster, &kinds, &lives);
    enforce(&cluster, &kinds);
    let mut errors = Vec::new();
    let [with, without] = [0, 1].map(|phase: usize| {
        if phase == 1 {
            send_all_writes(&mut cluster, &[DELAY]);
        }
        wait_until_in_force(&cluster, phase == 0);
        let outcomes = play(&cluster, &lives, NAMESPACES[phase]);
        let metrics = cluster.client().get("/metrics").unwrap();
        let sum = |name: &str| -> u64 {
            let of_ours =
                metrics.text().lines().filter(|line| line.starts_with(name) && line.contains("kube-unions.dev"));
            of_ours.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().expect("a count")).sum()
        };
        errors.push(sum("apiserver_admission_match_condition_evaluation_errors_total"));
        say(&format!(
            "{}: {} conditions were false, {} failed",
            NAMESPACES[phase],
            sum("apiserver_admission_match_condition_exclusions_total"),
            errors[phase]
        ));
        outcomes
    });
    compare(seed, &lives, &with, &without);
    assert_eq!(errors, [0, 0], "no condition fails");
}

/// Fails unless all answers are the same, but for warnings of faults that were there before.
fn compare(seed: u64, lives: &[Life<'_>], with: &[Vec<Outcome>], without: &[Vec<Outcome>]) {
    let (mut counts, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for ((life, with), without) in lives.iter().zip(with).zip(without) {
        for (with, without) in with.iter().zip(without) {
            *counts.entry(with.status.to_string()).or_default() += 1;
            let (lost, kept): (Vec<&String>, Vec<&String>) =
                without.warnings.iter().partition(|warning| warning.ends_with(" the union did not change"));
            let is_lost = !lost.is_empty() && with.warnings.iter().eq(kept.iter().copied());
            *counts.entry("a warning less".to_owned()).or_default() += usize::from(is_lost);
            let same = (with.status, &with.content) == (without.status, &without.content);
            if !same || !(is_lost || with.warnings == without.warnings) {
                let told = [with, without].map(|it| format!("{} {} {:?}", it.status, it.content, it.warnings));
                wrong.push(format!(
                    "{} {}\n{}\nwith conditions:    {}\nwithout conditions: {}",
                    life.name, life.kind.kind.description, with.request, told[0], told[1]
                ));
                break;
            }
        }
    }
    let writes: usize = with.iter().map(Vec::len).sum();
    say(&format!("seed {seed}: {writes} writes of {} objects, by status: {counts:?}", lives.len()));
    let told: Vec<&str> = wrong.iter().take(5).map(String::as_str).collect();
    assert!(wrong.is_empty(), "seed {seed}: {} objects differ:\n{}", wrong.len(), told.join("\n\n"));
    let stored = counts.get("200").copied().unwrap_or_default() + counts.get("201").copied().unwrap_or_default();
    assert!((writes / 10..writes * 9 / 10).contains(&stored), "some are stored, and others refused: {counts:?}");
}

/// Stores the first objects in both namespaces while no union is in force.
fn store_before(cluster: &Cluster, kinds: &[WrittenKind], lives: &[Life<'_>]) {
    for namespace in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        assert_eq!(cluster.client().post("/api/v1/namespaces", &namespace).unwrap().status, 201);
    }
    in_parallel(kinds, |kind| {
        let mut definition = kind.kind.definition.clone();
        definition["metadata"].as_object_mut().unwrap().remove("annotations");
        apply(cluster.client(), &definition);
    });
    let mut unserved: Vec<String> = kinds.iter().map(|kind| kind.collection(NAMESPACES[0])).collect();
    let all_are_served = eventually_none_left(SETTLED, || {
        unserved.retain(|path| !cluster.client().get(path).is_ok_and(|answer| answer.is_success()));
        unserved.len()
    });
    assert!(all_are_served, "not served: {unserved:?}");
    in_parallel(lives, |life| {
        for namespace in NAMESPACES {
            if let Some(first) = &life.first {
                cluster.client().post(&life.kind.collection(namespace), first).unwrap();
            }
        }
    });
}

/// Declares the unions, and waits until the entries name every kind.
fn enforce(cluster: &Cluster, kinds: &[WrittenKind]) {
    let name_of = |kind: &WrittenKind| format!("{}.{GROUP}", kind.plural);
    in_parallel(kinds, |kind| {
        apply(cluster.client(), &kind.kind.definition);
        for declaration in &kind.kind.declarations {
            let mut declaration = declaration.clone();
            declaration["metadata"]["name"] = json!(name_of(kind));
            apply(cluster.client(), &declaration);
        }
    });
    let declared = kinds.iter().filter(|kind| !kind.kind.declarations.is_empty());
    let mut unjudged: Vec<String> = declared.map(name_of).collect();
    let all_are_judged = eventually_none_left(SETTLED, || {
        unjudged.retain(|name| {
            let verdict = verdict(cluster.client(), name);
            verdict.inspect(|verdict| assert_eq!(verdict.status, "True", "{name}: {verdict:?}")).is_none()
        });
        unjudged.len()
    });
    assert!(all_are_judged, "without a verdict: {unjudged:?}\n{}", cluster.webhook.log());
    let mut unregistered: Vec<&str> = kinds.iter().map(|kind| &*kind.plural).collect();
    let all_are_registered = eventually_none_left(SETTLED, || {
        let of = |plural: &&str| -> BTreeSet<String> {
            let stored = cluster.client().get(&registration::path(plural)).unwrap().body;
            let of_group = resources_of_kinds(&stored).into_iter().filter(|(group, _)| *group == GROUP);
            of_group.map(|(_, name)| name.split('/').next().unwrap().to_owned()).collect()
        };
        let registered = CONFIGURATIONS.iter().map(of).reduce(|one, other| &one & &other).unwrap();
        unregistered.retain(|plural| !registered.contains(*plural));
        unregistered.len()
    });
    assert!(all_are_registered, "not registered: {unregistered:?}\n{}", cluster.webhook.log());
}

/// Waits until the API server knows the last configuration: it begins to enforce another kind, which is in it.
fn wait_until_in_force(cluster: &Cluster, has_conditions: bool) {
    let rollouts = cluster.install("rollout");
    let stored = cluster.client().get(&registration::path(CONFIGURATIONS[0])).unwrap().body;
    let entries = stored["webhooks"].as_array().unwrap().iter();
    let conditions = entries.filter(|entry| entry["matchConditions"].is_array()).count();
    assert_eq!(conditions > 0, has_conditions, "{}", rollouts.group());
    let kinds = cluster.webhook.series("kube_unions_registration_kinds");
    say(&format!("{conditions} conditions, {kinds:?}"));
}

/// Makes the writes of every object in a namespace. Returns the answers.
fn play(cluster: &Cluster, lives: &[Life<'_>], namespace: &str) -> Vec<Vec<Outcome>> {
    let outcomes = Mutex::new(BTreeMap::new());
    let numbers: Vec<usize> = (0..lives.len()).collect();
    in_parallel(&numbers, |number| {
        let played = lives[*number].play(cluster.client(), namespace);
        outcomes.lock().unwrap().insert(*number, played);
    });
    outcomes.into_inner().unwrap().into_values().collect()
}

impl<'k> Life<'k> {
    fn new(kind: &'k WrittenKind, number: usize, seed: u64) -> Self {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::try_from(number).unwrap());
        let (name, mut dice) = (format!("object-{number}"), Dice(seed));
        let first = dice.chance(75).then(|| kind.object(&name, &mut dice));
        Self { kind, name, seed: !seed, first }
    }

    /// Makes the writes in a namespace, one after the other.
    fn play(&self, client: &Client, namespace: &str) -> Vec<Outcome> {
        let mut dice = Dice(self.seed);
        let (collection, mut manifest) = (self.kind.collection(namespace), None);
        let path = format!("{collection}/{}", self.name);
        let write = |_| {
            let stored = client.get(&path).unwrap();
            let stored = stored.is_success().then_some(stored.body);
            let (method, url, content_type, body) =
                self.write(stored.as_ref(), &path, &collection, &mut manifest, &mut dice);
            let answer = client.send(method, &url, content_type, body.to_string().as_bytes()).unwrap();
            let request =
                format!("{method} {url} {content_type} {body}\nover {}", comparable(stored.unwrap_or_default()));
            Outcome::of(answer, &request.replace(namespace, "NAMESPACE"))
        };
        (0..WRITES_OF_AN_OBJECT).map(write).collect()
    }

    /// Returns the next write: method, path, media type and body. `manifest` is what was applied last.
    fn write(
        &self,
        stored: Option<&Value>,
        path: &str,
        collection: &str,
        manifest: &mut Option<Value>,
        dice: &mut Dice,
    ) -> (&'static str, String, &'static str, Value) {
        let query = if dice.chance(5) { "?dryRun=All" } else { "" };
        let path = format!("{path}{}", if self.kind.has_status && dice.chance(40) { "/status" } else { "" });
        let Some(stored) = stored else {
            return ("POST", format!("{collection}{query}"), "application/json", self.kind.object(&self.name, dice));
        };
        let bare = |mut object: Value| {
            object["metadata"] = json!({"name": self.name});
            object
        };
        match dice.below(100) {
            0..15 => {
                let label = json!({"metadata": {"labels": {"turn": dice.below(5).to_string()}}});
                ("PATCH", format!("{path}{query}"), MERGE, label)
            }
            15..45 => ("PUT", format!("{path}{query}"), "application/json", self.kind.changed(stored, dice)),
            45..60 => {
                let changes = two_way(stored, &self.kind.changed(stored, dice));
                ("PATCH", format!("{path}{query}"), MERGE, changes)
            }
            60..68 => {
                let changed = self.kind.changed(stored, dice);
                let fields: Vec<&String> = changed.as_object().unwrap().keys().collect();
                let name = (*dice.pick(&fields)).clone();
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                let operation = json!([{"op": "add", "path": pointer, "value": changed[&name]}]);
                ("PATCH", format!("{path}{query}"), "application/json-patch+json", operation)
            }
            68..88 => {
                let again = manifest.clone().filter(|_| dice.chance(40));
                let next = again.unwrap_or_else(|| match dice.below(3) {
                    0 => self.kind.object(&self.name, dice),
                    1 => bare(stored.clone()),
                    _ => bare(self.kind.changed(stored, dice)),
                });
                *manifest = Some(next.clone());
                let manager = dice.pick(&["one", "other"]);
                ("PATCH", format!("{path}?fieldManager={manager}&force=true"), APPLY, next)
            }
            _ => {
                let changed = annotated(&bare(self.kind.changed(stored, dice)));
                ("PATCH", format!("{path}?{MANAGER}"), MERGE, two_way(&bare(stored.clone()), &changed))
            }
        }
    }
}

/// The first words of the refusal of a server-side apply that does not fit the schema.
const UNTYPED_PATCH: &str = "failed to create typed patch object";

impl Outcome {
    fn of(answer: Answer, request: &str) -> Self {
        let Answer { status, body, warnings } = answer;
        let content = if (200..300).contains(&status) {
            comparable(body)
        } else {
            // The API server lists the errors of a schema in another order each time. An entry with a condition has another name.
            let message = body["message"].as_str().unwrap_or_default();
            let message = message.split_once("\" denied the request").map_or(message, |(_, rest)| rest);
            // The API server names the wrong fields of a typed patch that it met first, and meets them in no order.
            let message = if message.starts_with(UNTYPED_PATCH) { UNTYPED_PATCH } else { message };
            let mut causes: Vec<String> =
                body["details"]["causes"].as_array().into_iter().flatten().map(Value::to_string).collect();
            if causes.is_empty() {
                causes = message.lines().map(str::to_owned).collect();
            }
            causes.sort();
            causes.into()
        };
        let content = NAMESPACES.iter().fold(content.to_string(), |text, name| text.replace(name, "NAMESPACE"));
        Self { request: request.to_owned(), status, content: serde_json::from_str(&content).unwrap(), warnings }
    }
}

/// Returns an object without what differs by time and namespace.
fn comparable(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "namespace"] {
            metadata.remove(field);
        }
        if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut() {
                entry.as_object_mut().unwrap().remove("time");
            }
            // Those of the same second are in another order.
            entries.sort_by_key(Value::to_string);
        }
    }
    object
}
