//! Go's package applies the patches that the engine creates, and comes to the same objects.

use super::super::generate::{self, Random, distinct, merges, text};
use super::{EngineAnswer, PatchOperation, Reference, seeded, wanted};
use crate::differential::Case;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use strategic_merge_patch::{BrokenRule, Conflicts, PatchError, Patcher, ThreeWay};

/// Number of patches in a run with the fixed seed. `make fuzz-differential` compares more, from a random seed.
const PATCHES: usize = 6_000;

/// What became of a pair of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Understood,
    /// The patch has `$patch: replace` for a list with one key twice.
    Replaced,
    /// No patch has this result, and an error says so.
    Refused,
}

/// Gives some lists a second key, as the ports of a Service have it: the API server merges by the first one alone.
fn add_second_keys(random: &mut Random, schema: &mut Value) {
    let keyed = schema["x-kubernetes-patch-merge-key"] == "name" && merges(schema);
    if keyed && random.dice.odds(500) {
        schema["x-kubernetes-list-type"] = json!("map");
        schema["x-kubernetes-list-map-keys"] = json!(["name", "second"]);
        let second = json!({"type": "string", "enum": ["x", "y", "z"], "default": "x"});
        schema["items"]["properties"]["second"] = second;
    }
    for inner in schema.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        add_second_keys(random, inner);
    }
}

/// Puts items with one key next to each other, in one of two lists.
fn gather(random: &mut Random, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for value in fields.values_mut() {
                gather(random, value);
            }
        }
        Value::Array(items) => {
            for item in &mut *items {
                gather(random, item);
            }
            if items.iter().any(|item| item.get("name").is_some()) && random.dice.odds(500) {
                let mut names: Vec<Value> = items.iter().map(|item| item["name"].clone()).collect();
                distinct(&mut names, &[], &Value::Null);
                items.sort_by_key(|item| names.iter().position(|name| *name == item["name"]));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sorts the lists that merge.
fn sort_merged(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                sort_merged(generate::field(schema, name), value);
            }
        }
        Value::Array(items) => {
            for item in &mut *items {
                sort_merged(&schema["items"], item);
            }
            if merges(schema) {
                items.sort_by_key(|item| text(item.get("name").unwrap_or(item)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn applies_the_patches_that_are_created_to_the_same_objects() {
    let Some(mut reference) = Reference::start() else { return };
    let (seed, wanted) = wanted("KUBE_UNIONS_DIFFERENTIAL_PATCHES", PATCHES);
    let (mut fates, mut faults) = (BTreeMap::<(PatchOperation, Fate), usize>::new(), Vec::new());
    let mut seeds = seeded(seed);
    while fates.values().sum::<usize>() < wanted && faults.len() < 5 {
        let mut random = Random { duplicates: 300, ..Random::plain(seeds()) };
        let depth = random.dice.below(3);
        let mut schema = generate::schema(&mut random.dice, depth);
        add_second_keys(&mut random, &mut schema);
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        let mut cases = Vec::new();
        for _ in 0..100 {
            let mut case = Case::random(&mut random, &schema);
            gather(&mut random, &mut case.modified);
            case.overwrite = true;
            let created: Result<Value, PatchError> = match case.op {
                PatchOperation::Apply => continue,
                PatchOperation::TwoWay => {
                    case.current.clone_from(&case.original);
                    patcher.create_two_way(&case.original, &case.modified)
                }
                PatchOperation::ThreeWay => patcher.create_three_way(&ThreeWay {
                    original: &case.original,
                    modified: &case.modified,
                    current: &case.current,
                    conflicts: Conflicts::Overwrite,
                }),
            };
            match created {
                Ok(patch) => {
                    let original = case.current.clone();
                    cases.push((case.clone(), Case { op: PatchOperation::Apply, original, patch, ..case }));
                }
                Err(PatchError::Refused {
                    rule: BrokenRule::Duplicate | BrokenRule::Apart(_) | BrokenRule::RepeatedValue,
                    ..
                }) => *fates.entry((case.op, Fate::Refused)).or_default() += 1,
                Err(error) => panic!("{error}: {case:#?}"),
            }
        }
        let applied: Vec<Case> = cases.iter().map(|(_, applied)| applied.clone()).collect();
        for ((case, applied), theirs) in cases.iter().zip(reference.ask(&schema, &applied)) {
            let (mut ours, mut theirs) = (applied.ours(&patcher), theirs);
            let is_wanted = case.op != PatchOperation::TwoWay || ours == EngineAnswer::Result(case.modified.clone());
            if case.op == PatchOperation::ThreeWay {
                // Go's package moves what only the current list has if something is deleted, or is twice in a set.
                for answer in [&mut ours, &mut theirs] {
                    if let EngineAnswer::Result(object) = answer {
                        sort_merged(&schema, object);
                    }
                }
            }
            let patch = applied.patch.to_string();
            if ours != theirs || !is_wanted {
                faults.push(format!(
                    "{}\nbefore {}\nwanted {}\n patch {patch}\n  ours {ours:?}\ntheirs {theirs:?}\n",
                    schema, applied.original, case.modified
                ));
            } else if patch.contains(r#"{"$patch":"replace"}"#) {
                *fates.entry((case.op, Fate::Replaced)).or_default() += 1;
            } else {
                *fates.entry((case.op, Fate::Understood)).or_default() += 1;
            }
        }
    }
    println!("seed {seed}: {} patches: {fates:?}", fates.values().sum::<usize>());
    assert!(faults.is_empty(), "{} patches are understood otherwise:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(fates.len(), 6, "each fate of each operation: {fates:?}");
}
