//! `preview` of server-side applies by two field managers against a real API server, without kube-unions and with its webhook.
//!
//! `preview/managers.yaml` has rows. Random sequences compare each apply from the second of a manager on: the verdict, the stored object
//! and the owners of its fields. `KUBE_UNIONS_LAW_SEED` and `KUBE_UNIONS_LAW_CASES` select other sequences and more of them.

use std::collections::BTreeMap;
use std::env;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use kube_unions::predicted_applies;
use kube_unions_core::admission::ReviewOutcome;

use super::law::{RandomKind, define, enforce};
use super::rows::Enforcement;
use super::server::Server;
use crate::native::random::Unusual;
use crate::presets::list;
use crate::support::background::in_parallel;
use crate::support::cluster::say;
use crate::support::http::Answer;
use crate::support::kind::{self, documents as list_of};
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;
use fixtures::crds::custom_resource;
use fixtures::dice::Dice;
use fixtures::wait::{SETTLED, eventually};

const MANAGERS: [&str; 2] = ["kubectl", "other"];

const KINDS: usize = 4;

/// Applies of a sequence.
const STEPS: usize = 5;
/// Fields with unions in a sequence.
const PLACES: usize = 2;

/// A sequence of applies to one object.
struct Sequence {
    kind: usize,
    places: Vec<usize>,
    name: String,
    /// The content that each manager applied last. `None`: it has applied nothing that was accepted.
    last: [Option<Value>; 2],
    live: Option<Value>,
}

/// An apply of a sequence.
struct Step {
    manager: usize,
    spec: Value,
}

/// The predictions of the command for one object.
#[derive(Default, Debug)]
struct Told {
    rules: Vec<String>,
    with_kube_unions: Vec<String>,
    /// The words of the API server that refuses a null.
    nulls: Vec<String>,
}

#[test]
fn random_applies_of_two_managers_are_predicted_without_kube_unions() {
    let Some(server) = Server::with_webhook() else { return };
    play(server, None);
}

#[test]
fn random_applies_of_two_managers_are_predicted_with_the_webhook() {
    let Some(server) = Server::with_webhook() else { return };
    play(server, Some(Enforcement::Webhook));
}

fn items<'v>(objects: impl IntoIterator<Item = &'v Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects.into_iter().collect::<Vec<_>>()}).to_string()
}

/// Plays all sequences, one step of each after the other.
fn play(server: &Server, enforcement: Option<Enforcement>) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_LAW_SEED").unwrap_or(1);
    let count = usize::try_from(number("KUBE_UNIONS_LAW_CASES").unwrap_or(300)).unwrap();
    let mut random = Dice(seed);
    let group = format!("s{seed}.{enforcement:?}.previewed.example").replace(['(', ')'], "").to_lowercase();
    let mut unusual = Unusual::default();
    let mut kinds: Vec<_> =
        (0..KINDS).map(|number| RandomKind::new(&group, number, &mut random, &mut unusual)).collect();
    match enforcement {
        None => {
            // The API server itself refuses what breaks the rules of some kinds.
            for kind in kinds.iter_mut().step_by(2) {
                kind.definition = with_rules(kind);
            }
            define(server, &kinds);
        }
        Some(enforcement) => {
            define(server, &kinds);
            enforce(server, enforcement, &group, &kinds);
        }
    }
    let mut sequences: Vec<Sequence> = (0..count).map(|number| Sequence::new(number, &kinds, &mut random)).collect();
    let (mut tally, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for step in 0..STEPS {
        let steps: Vec<Step> = sequences.iter().map(|sequence| sequence.step(step, &kinds, &mut random)).collect();
        round(server, enforcement, &kinds, &mut sequences, &steps, &mut tally, &mut wrong);
    }
    say(&format!("seed {seed}: {count} sequences, {enforcement:?}: {tally:?}"));
    let told = wrong.iter().take(6).fold(String::new(), |told, case: &String| told + "\n" + case);
    assert!(wrong.is_empty(), "seed {seed}: {} applies differ: {tally:?}\n{told}", wrong.len());
    let compared: usize = tally.values().sum();
    assert!(compared >= count, "{tally:?}");
    assert!(["stored", "refused"].iter().all(|answer| tally.contains_key(*answer)), "{tally:?}");
}

/// Returns the CRD of a kind with rules for the unions that rules can express.
fn with_rules(kind: &RandomKind) -> Value {
    let workspace = Workspace::new("previewed");
    let documents = items([&kind.definition, &kind.declaration]);
    let from = workspace.write("documents.json", &documents).to_str().unwrap().to_owned();
    let compiled = kube_unions(&["compile", "--to", "cel", "--from", &from, "--kubernetes-version", "1.36"], "");
    let list = list_of(&compiled.stdout).remove(0);
    list["items"][0].clone()
}

/// Applies a manifest to each object, and compares the answers with the predictions.
fn round(
    server: &Server,
    enforcement: Option<Enforcement>,
    kinds: &[RandomKind],
    sequences: &mut [Sequence],
    steps: &[Step],
    tally: &mut BTreeMap<String, usize>,
    wrong: &mut Vec<String>,
) {
    let predictions = predict(kinds, sequences, steps);
    let answers: Mutex<BTreeMap<usize, Answer>> = Mutex::default();
    let work: Vec<usize> = (0..sequences.len()).collect();
    in_parallel(&work, |&position| {
        let (sequence, step) = (&sequences[position], &steps[position]);
        let kind = &kinds[sequence.kind];
        let path = format!("{}/{}", kind.collection(), sequence.name);
        let answer = server.apply_as(MANAGERS[step.manager], &path, &sequence.object(kind, &step.spec));
        answers.lock().unwrap().insert(position, answer);
    });
    for (position, answer) in answers.into_inner().unwrap() {
        let (sequence, step) = (&mut sequences[position], &steps[position]);
        if let Some((predicted, told)) = predictions.get(&sequence.name) {
            let compared = compare(enforcement, predicted, told, &answer);
            match compared {
                Ok(sort) => *tally.entry(sort.to_owned()).or_default() += 1,
                Err(difference) => wrong.push(sequence.tell(&kinds[sequence.kind], step, &answer, told, &difference)),
            }
        }
        if answer.is_success() {
            sequence.last[step.manager] = Some(step.spec.clone());
            sequence.live = Some(answer.body);
        }
    }
}

type Predicted = anyhow::Result<(Value, kube_unions_core::admission::Review)>;

/// Predicts the applies of managers that have applied before, by name.
fn predict(kinds: &[RandomKind], sequences: &[Sequence], steps: &[Step]) -> BTreeMap<String, (Predicted, Told)> {
    let from = items(kinds.iter().flat_map(|kind| [&kind.definition, &kind.declaration]));
    let mut all = BTreeMap::new();
    for (manager, name) in MANAGERS.iter().enumerate() {
        let (mut old, mut new, mut live) = (Vec::new(), Vec::new(), Vec::new());
        for (sequence, step) in sequences.iter().zip(steps).filter(|(_, step)| step.manager == manager) {
            let (Some(last), Some(stored)) = (&sequence.last[manager], &sequence.live) else { continue };
            let kind = &kinds[sequence.kind];
            old.push(sequence.object(kind, last));
            new.push(sequence.object(kind, &step.spec));
            live.push(stored.clone());
        }
        if new.is_empty() {
            continue;
        }
        let texts = [&old, &new, &live].map(items);
        let (mut told, problems) = tell(&from, &texts, name);
        let predicted = predicted_applies(&from, texts.each_ref().map(String::as_str), name).unwrap();
        assert_eq!(predicted.len(), new.len());
        assert_eq!(problems, 0);
        all.extend(predicted.into_iter().map(|(name, predicted)| {
            let told = told.remove(&name).unwrap_or_default();
            (name, (predicted, told))
        }));
    }
    all
}

/// Returns what the command says about each object, and the number of objects that it cannot predict.
fn tell(from: &str, [old, new, live]: &[String; 3], manager: &str) -> (BTreeMap<String, Told>, usize) {
    let workspace = Workspace::new("previewed");
    let files = [("old", old), ("new", new), ("live", live), ("from", &from.to_owned())]
        .map(|(name, text)| workspace.write(&format!("{name}.json"), text).to_str().unwrap().to_owned());
    let [old, new, live, from] = files.each_ref().map(String::as_str);
    let arguments =
        ["preview", "--old", old, "--new", new, "--live", live, "--from", from, "--as", "ssa", "-o", "json"];
    let report = kube_unions(&[&arguments[..], &["--field-manager", manager]].concat(), "").json();
    let problems = report["summary"]["problems"].as_array().unwrap();
    assert!(problems.iter().all(|problem| problem.as_str().unwrap().contains("cannot be predicted")), "{problems:?}");
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        let told = told.entry(text("name")).or_default();
        told.rules.push(text("rule"));
        told.with_kube_unions.push(text("withKubeUnions"));
        if finding["rule"] == "null-refused" {
            told.nulls.push(format!("{}: {}", text("field"), text("message")));
        }
    }
    (told, problems.len())
}

/// Compares the prediction for an apply with its answer. Returns the sort of the answer, or the difference.
fn compare(
    enforcement: Option<Enforcement>,
    predicted: &Predicted,
    told: &Told,
    answer: &Answer,
) -> Result<&'static str, String> {
    let message = answer.body["message"].as_str().unwrap_or_default();
    let (mut object, review) = match predicted {
        Ok((object, review)) => (object.clone(), review),
        Err(_) if !told.nulls.is_empty() => {
            let is_mended = enforcement.is_some() && told.with_kube_unions.iter().all(|it| it == "mended");
            let is_said = told.nulls.iter().all(|words| message.contains(words));
            return match (answer.is_success(), is_mended) {
                (true, true) => Ok("a null, and changed by kube-unions"),
                (false, false) if is_said || enforcement.is_some() => Ok("refused for a null"),
                _ => Err(format!("a null: {:?}", told.nulls)),
            };
        }
        Err(error) => return Err(format!("not predicted: {error:#}")),
    };
    let is_denied = review.outcome() == ReviewOutcome::Denied;
    let (may_refuse, must_refuse) = if enforcement.is_some() {
        let is_told = told.with_kube_unions.iter().any(|it| it == "refused");
        if is_told != is_denied {
            return Err(format!("kube-unions denies: {is_denied}, and the command says: {is_told}"));
        }
        (is_denied, is_denied)
    } else {
        let has = |rule: &str| told.rules.iter().any(|it| it == rule);
        (has("union-refused") || has("union-undecided"), has("union-refused"))
    };
    if !answer.is_success() {
        // No other fault is predicted.
        let by_schema = message.contains("some validation rules were not checked because the object was invalid");
        return if may_refuse {
            Ok("refused")
        } else if by_schema {
            Ok("refused by the schema")
        } else {
            Err("accepted".to_owned())
        };
    }
    if must_refuse {
        return Err("refused".to_owned());
    }
    if enforcement.is_some() {
        let operations: Vec<Value> = review.changes().map(|change| operation(&change)).collect();
        json_patch::patch(&mut object, &serde_json::from_value::<json_patch::Patch>(json!(operations)).unwrap())
            .unwrap();
    }
    for (part, predicted, stored) in
        [("spec", &object["spec"], &answer.body["spec"]), ("managers", &owners(&object), &owners(&answer.body))]
    {
        if predicted != stored {
            return Err(format!("{part} {predicted}"));
        }
    }
    Ok(if told.rules.is_empty() { "stored" } else { "stored, invalid without kube-unions" })
}

fn operation(change: &kube_unions_core::union::Change) -> Value {
    use kube_unions_core::json_patch::PatchOperation;
    match change.operation() {
        PatchOperation::Set(path, value) => json!({"op": "add", "path": path.to_pointer(), "value": value}),
        PatchOperation::Remove(path) => json!({"op": "remove", "path": path.to_pointer()}),
    }
}

/// Returns the fields of each manager.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let entry = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        (format!("{} {}", text("manager"), text("operation")), entry["fieldsV1"].clone())
    };
    Value::Object(entries.map(entry).collect())
}

impl Sequence {
    fn new(number: usize, kinds: &[RandomKind], random: &mut Dice) -> Self {
        let kind = random.below(KINDS);
        let mut places: Vec<usize> = (0..kinds[kind].places.len()).collect();
        random.shuffle(&mut places);
        places.truncate(PLACES);
        Self { kind, places, name: format!("object{number}"), last: [None, None], live: None }
    }

    fn object(&self, kind: &RandomKind, spec: &Value) -> Value {
        let fields = if spec.is_null() { json!({}) } else { json!({"spec": spec}) };
        custom_resource(&kind.group, &kind.name, &self.name, &fields)
    }

    /// Returns the next apply: the managers begin in turn.
    fn step(&self, step: usize, kinds: &[RandomKind], random: &mut Dice) -> Step {
        let manager = if step < 2 { step } else { random.below(2) };
        if random.chance(5) {
            return Step { manager, spec: Value::Null };
        }
        let kind = &kinds[self.kind];
        let stored = self.live.as_ref().map(|live| &live["spec"]);
        let mut spec = Map::new();
        for &place in &self.places {
            let name = format!("p{place}");
            // A manager changes what it applied, copies what is stored, or begins anew.
            let before = match random.below(4) {
                0 => stored.and_then(|spec| spec.get(&name)),
                1 => None,
                _ => self.last[manager].as_ref().and_then(|spec| spec.get(&name)),
            };
            if random.chance(25) {
                continue;
            }
            if let Some(mut value) = kind.places[place].changed(before, random) {
                let schema = &kind.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                write_nulls(&mut value, &schema["properties"]["spec"]["properties"][&name], random);
                spec.insert(name, value);
            }
        }
        let mut some = |make: &dyn Fn(Vec<&str>) -> Value, name: &str| {
            if random.chance(40) {
                spec.insert(name.to_owned(), make(["x", "y", "z"].into_iter().filter(|_| random.chance(50)).collect()));
            }
        };
        let map = |names: Vec<&str>| names.into_iter().map(|name| (name.to_owned(), json!("v"))).collect::<Value>();
        some(&|names| json!(names), "tags");
        some(&map, "labels");
        some(&map, "whole");
        Step { manager, spec: Value::Object(spec) }
    }

    fn tell(&self, kind: &RandomKind, step: &Step, answer: &Answer, told: &Told, difference: &str) -> String {
        let schema = &kind.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let places: Vec<Value> =
            self.places.iter().map(|place| schema["properties"][format!("p{place}")].clone()).collect();
        let live = self.live.as_ref().unwrap_or(&Value::Null);
        let said = if answer.is_success() { &answer.body["spec"] } else { &answer.body["message"] };
        let (applied, owned) = (MANAGERS[step.manager], owners(&answer_or(live, answer)));
        format!(
            "{}: {applied} applied {}\n  places {:?} {}\n  kubectl had {}\n  other had {}\n  live {}\n  owned by {}\n  predicted: \
             {difference} {told:?}\n  answer: {} {said}\n  owned by {owned}",
            self.name,
            step.spec,
            self.places,
            json!(places),
            json!(self.last[0]),
            json!(self.last[1]),
            live["spec"],
            owners(live),
            answer.status
        )
    }
}

fn answer_or(live: &Value, answer: &Answer) -> Value {
    if answer.is_success() { answer.body.clone() } else { live.clone() }
}

/// Writes nulls in place of some fields that are not required.
fn write_nulls(value: &mut Value, schema: &Value, random: &mut Dice) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let property = &schema["properties"][name];
                let is_required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
                if property.is_object() && !is_required && random.chance(3) {
                    *value = Value::Null;
                } else {
                    write_nulls(
                        value,
                        if property.is_null() { &schema["additionalProperties"] } else { property },
                        random,
                    );
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| write_nulls(item, &schema["items"], random)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the manifest of a row.
fn shared(number: usize, fields: &Value) -> Value {
    custom_resource("managers.example.com", "Shared", &format!("row{number}"), fields)
}

#[test]
fn every_row_of_two_managers_is_predicted() {
    const COLLECTION: &str = "/apis/managers.example.com/v1/namespaces/default/shareds";
    let Some(server) = Server::with_webhook() else { return };
    let rows = list(include_str!("../preview/managers.yaml"));
    let (crd, rows) = rows.split_first().unwrap();
    let crd = &crd["crd"];
    kind::apply(server.client(), crd);
    server.wait_until_served(COLLECTION);
    let apply = |number: usize, manager: &str, fields: &Value, query: &str| {
        let path = format!("{COLLECTION}/row{number}?fieldManager={manager}&force=true{query}");
        server.send("PATCH", &path, "application/apply-patch+yaml", &shared(number, fields))
    };
    let mut told = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut old = Value::Null;
        for step in row["applies"].as_array().unwrap() {
            let (manager, fields) = step.as_object().unwrap().iter().next().unwrap();
            let answer = apply(number, manager, fields, "");
            assert!(answer.is_success(), "{row} {answer:?}");
            if manager == "kubectl" {
                old = shared(number, fields);
            }
        }
        let live = server.stored(&format!("{COLLECTION}/row{number}")).unwrap();
        let texts = [old, shared(number, &row["new"]), live].map(|object| object.to_string());
        let (mut said, problems) = tell(&crd.to_string(), &texts, "kubectl");
        assert_eq!(problems, 0, "{row}");
        let said = said.remove(&format!("row{number}")).unwrap_or_default();
        let expected = row["unions"].as_object().unwrap().values();
        let column =
            |at: usize| expected.clone().map(|union| union[at].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!((&said.rules, &said.with_kube_unions), (&column(0), &column(1)), "{row}");
        let is_refused = said.rules.iter().any(|rule| rule == "union-refused" || rule == "null-refused");
        assert_eq!(!apply(number, "kubectl", &row["new"], "&dryRun=All").is_success(), is_refused, "{row}");
        if let Some(fields) = row.get("withNull") {
            let answer = apply(number, "kubectl", fields, "&dryRun=All");
            assert!(answer.is_success(), "{row} {answer:?}");
        }
        told.push(said);
    }
    server.register("managers.example.com");
    let probe = custom_resource("managers.example.com", "Shared", "probe", &json!({"spec": {"b": "x"}}));
    let in_force =
        || server.send("POST", &format!("{COLLECTION}?dryRun=All"), "application/json", &probe).status == 422;
    assert!(eventually(SETTLED, in_force), "the unions of the rows are not in force");
    for ((number, row), said) in rows.iter().enumerate().zip(told) {
        let answer = apply(number, "kubectl", &row["new"], "&dryRun=All");
        let is_refused = said.with_kube_unions.iter().any(|it| it == "refused");
        assert_eq!(!answer.is_success(), is_refused, "{row} {answer:?}");
    }
}
