//! Compares server-side apply with the API server's own field manager, on random sequences of writes by several managers.

#![allow(clippy::print_stdout, reason = "the counts show how much the test compared")]

use super::generate;
use crate::differential::{Reference, wanted};
use crate::generate::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use strategic_merge_patch::{ApplyError, Conflicts, Managers, Schema, ServerSideApply};

/// Number of sequences that must agree in a run with the fixed seed.
const SEQUENCES: usize = 700;

/// Number of sequences that are asked for together.
const TOGETHER: usize = 25;

/// Number of writes of a sequence.
const WRITES: usize = 8;

const APPLIERS: [&str; 3] = ["a", "b", "c"];
const WRITERS: [&str; 3] = ["a", "u", "v"];

/// An object, its managers, and what each manager applied last.
struct Sequence {
    live: Value,
    managers: Managers,
    applied: BTreeMap<&'static str, Value>,
}

/// One write to an object.
#[derive(Debug)]
struct Write {
    apply: bool,
    manager: &'static str,
    object: Value,
    conflicts: Conflicts,
}

/// The answer to a write. Errors without conflicts are all alike.
#[derive(Debug, PartialEq)]
enum WriteAnswer {
    Stored(Value, Vec<Value>),
    Conflicts(String, Vec<(String, String)>),
    Error,
}

impl Sequence {
    fn next(&self, random: &mut Random, schema: &Value) -> Write {
        let dice = &mut random.dice;
        let conflicts = if dice.odds(500) { Conflicts::Overwrite } else { Conflicts::Refuse };
        let apply = dice.odds(600);
        let manager = if apply { *dice.pick(&APPLIERS) } else { *dice.pick(&WRITERS) };
        let object = match (apply, self.applied.get(manager)) {
            // The same again, and nothing any more.
            (true, Some(before)) if dice.odds(150) => before.clone(),
            (true, Some(_)) if dice.odds(100) => json!({"apiVersion": "example.com/v1", "kind": "Thing"}),
            (false, _) if self.live != json!({}) && dice.odds(150) => self.live.clone(),
            (true, Some(before)) if dice.odds(700) => generate::changed(random, schema, before),
            (true, _) if self.live != json!({}) && dice.odds(500) => generate::changed(random, schema, &self.live),
            (true, _) => generate::object(random, schema),
            (false, _) if self.live == json!({}) || dice.odds(50) => generate::object(random, schema),
            (false, _) => generate::changed(random, schema, &self.live),
        };
        Write { apply, manager, object, conflicts }
    }

    fn request(&self, write: &Write) -> Value {
        let mut live = self.live.clone();
        live["apiVersion"] = json!("example.com/v1");
        live["kind"] = json!("Thing");
        if !self.managers.is_empty() {
            live["metadata"]["managedFields"] = self.managers.to_managed_fields();
        }
        json!({"op": if write.apply { "server-side-apply" } else { "server-side-update" }, "manager": write.manager, "current": live,
            "modified": write.object, "overwrite": write.conflicts == Conflicts::Overwrite})
    }

    fn ours(&self, kind: &ServerSideApply, write: &Write) -> (WriteAnswer, Option<(Value, Managers)>) {
        let answer = if write.apply {
            let applied = kind.apply(&self.live, &self.managers, write.manager, &write.object, write.conflicts);
            let (live, config) = (self.live.to_string(), write.object.to_string());
            let of_text = kind.apply(&*live, &self.managers, write.manager, &*config, write.conflicts);
            let of_text = of_text.map(|text| (serde_json::from_str(&text.object).unwrap(), text.managers));
            let applied = applied.map(|applied| (applied.object, applied.managers));
            assert_eq!(of_text.as_ref().ok(), applied.as_ref().ok(), "text gives the same result");
            applied
        } else {
            kind.update(&self.live, &self.managers, write.manager, &write.object)
                .map(|managers| (write.object.clone(), managers))
        };
        match answer {
            Ok((object, managers)) => {
                let entries = managers.to_managed_fields();
                assert_eq!(Managers::from_managed_fields(&entries).unwrap(), managers);
                (stored(object.clone(), entries), Some((object, managers)))
            }
            Err(error @ ApplyError::Conflicts(_)) => {
                let message = error.to_string();
                let ApplyError::Conflicts(found) = error else { unreachable!() };
                let found = found.into_iter().map(|found| (format!("conflict with {}", found.manager), found.path));
                (WriteAnswer::Conflicts(message, sorted(found.collect())), None)
            }
            Err(_) => (WriteAnswer::Error, None),
        }
    }
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Returns an answer in a form that does not depend on times, on the order of entries and on the texts of numbers.
fn stored(mut object: Value, entries: Value) -> WriteAnswer {
    numbers(&mut object);
    let Value::Array(mut entries) = entries else { return WriteAnswer::Stored(object, Vec::new()) };
    for entry in &mut entries {
        entry.as_object_mut().unwrap().shift_remove("time");
    }
    entries.sort_by_key(|entry| format!("{}{}{}", entry["operation"], entry["manager"], entry["apiVersion"]));
    WriteAnswer::Stored(object, entries)
}

fn numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(numbers),
        Value::Object(fields) => fields.values_mut().for_each(numbers),
        Value::Number(number) if number.as_f64() == Some(1.0) => *value = json!(1),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn theirs(mut answer: Value) -> WriteAnswer {
    assert!(answer["panic"].is_null(), "{answer}");
    if let Some(conflicts) = answer["conflicts"].as_array() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let found = conflicts.iter().map(|found| (text(&found["message"]), text(&found["field"]))).collect();
        return WriteAnswer::Conflicts(text(&answer["error"]), sorted(found));
    }
    if answer["error"].is_string() {
        return WriteAnswer::Error;
    }
    let mut object = answer["result"].take();
    let metadata = object["metadata"].as_object_mut();
    let entries = metadata.and_then(|metadata| metadata.shift_remove("managedFields")).unwrap_or_default();
    stored(object, entries)
}

/// Removes what the two engines write differently: the answer of the API server has metadata because of `managedFields`.
fn alike(answer: WriteAnswer) -> WriteAnswer {
    let WriteAnswer::Stored(mut object, entries) = answer else { return answer };
    if let Some(fields) = object.as_object_mut() {
        for name in ["apiVersion", "kind"] {
            fields.shift_remove(name);
        }
        if fields.get("metadata").is_some_and(|metadata| metadata.is_null() || *metadata == json!({})) {
            fields.shift_remove("metadata");
        }
    }
    WriteAnswer::Stored(object, entries)
}

#[test]
fn agrees_with_the_api_server_in_every_sequence_of_writes() {
    let Some(mut reference) = Reference::start() else { return };
    let (seed, wanted) = wanted("KUBE_UNIONS_DIFFERENTIAL_SEQUENCES", SEQUENCES);
    let mut random = Random { words: &generate::WORDS, ..Random::new(seed) };
    let mut counts = BTreeMap::<(&str, &str), usize>::new();
    for _ in 0..wanted.div_ceil(TOGETHER) {
        let resource = random.dice.odds(500);
        let mut schema = generate::kind(&mut random.dice, !resource);
        (random.misfits, random.duplicates) = (random.dice.odds(333), *random.dice.pick(&[0, 20, 400]));
        let new = || Sequence { live: json!({}), managers: Managers::default(), applied: BTreeMap::new() };
        let mut sequences: Vec<Sequence> = (0..TOGETHER).map(|_| new()).collect();
        for write in 0..WRITES {
            if write == WRITES / 2 && random.dice.odds(500) {
                generate::evolve(&mut random.dice, &mut schema);
            }
            let kind = kind(&schema, resource);
            let resolved = generate::resolved(&schema, &schema, 2);
            let writes: Vec<Write> = sequences.iter().map(|sequence| sequence.next(&mut random, &resolved)).collect();
            let requests: Vec<String> =
                sequences.iter().zip(&writes).map(|(sequence, write)| sequence.request(write).to_string()).collect();
            let answers = reference.answers(&schema, &requests);
            for ((sequence, write), (answer, request)) in
                sequences.iter_mut().zip(writes).zip(answers.into_iter().zip(requests))
            {
                let (ours, after) = sequence.ours(&kind, &write);
                let what = match &ours {
                    WriteAnswer::Stored(..) => "stored",
                    WriteAnswer::Conflicts(..) => "conflicts",
                    WriteAnswer::Error => "error",
                };
                *counts.entry((if write.apply { "apply" } else { "update" }, what)).or_default() += 1;
                let raw = answer.to_string();
                let (ours, theirs) = (alike(ours), alike(theirs(answer)));
                assert_eq!(ours, theirs, "seed {seed}, {write:#?}\nschema {schema}\nrequest {request}\nanswer {raw}");
                if let Some((object, managers)) = after {
                    if write.apply {
                        sequence.applied.insert(write.manager, write.object);
                    }
                    sequence.live = object;
                    sequence.managers = managers;
                }
            }
        }
    }
    println!("seed {seed}: {wanted} sequences agree: {counts:?}");
}

fn kind(schema: &Value, resource: bool) -> ServerSideApply {
    if resource {
        let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
        return ServerSideApply::for_resource("Thing", &schema).unwrap();
    }
    let mut whole = schema.clone();
    whole["properties"]["apiVersion"] = json!({"type": "string"});
    whole["properties"]["kind"] = json!({"type": "string"});
    whole["properties"]["metadata"] = metadata();
    ServerSideApply::from_json_schema("Thing", &whole.to_string()).unwrap()
}

/// Returns the schema of `metadata` in an OpenAPI document.
fn metadata() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {"name": {"type": "string"}, "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"uid": {"type": "string"}, "kind": {"type": "string"}}}}}})
}
