//! Compares the charged memory of a review with the memory that the allocator handed out.
//!
//! These tests have a binary of their own, and take turns, because the allocator counts for the whole process.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

#[path = "../it/unions.rs"]
mod unions;

use fixtures::applies::{CLIENT_SIDE_APPLY, LAST_APPLIED, field_set};
use fixtures::reviews::{GROUP, review_text};
use kube_unions_core::admission::{Exhausted, Meter, Phase, Ratcheting, review_within};
use kube_unions_core::catalog::Catalog;
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use unions::{catalog_of_lifted, fields};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Returns the turn of a test.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A meter that counts charges.
#[derive(Debug, Default)]
struct Counting {
    now: Cell<usize>,
    most: Cell<usize>,
}

impl Meter for Counting {
    fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
        self.now.set(self.now.get() + bytes);
        self.most.set(self.most.get().max(self.now.get()));
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.now.set(self.now.get().checked_sub(bytes).expect("no more is released than was charged"));
    }
}

/// The place of the objects with unions.
#[derive(Debug, Clone, Copy)]
enum Place {
    List,
    KeyedList,
    Map,
}

impl Place {
    /// Returns the catalog of a kind with objects of this schema in `spec`.
    fn catalog(self, mut object: Value) -> Catalog {
        let place = match self {
            Self::List => json!({"type": "array", "items": object}),
            Self::Map => json!({"type": "object", "additionalProperties": object}),
            Self::KeyedList => {
                object["properties"]["k"] = json!({"type": "string"});
                object["required"] = json!(["k"]);
                json!({"type": "array", "items": object, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
            }
        };
        catalog_of_lifted(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"at": place}}}}),
        )
    }

    /// Returns so many values in turn at this place.
    fn spec(self, values: &[Value], count: usize) -> Value {
        let values = values.iter().cycle().take(count).cloned();
        match self {
            Self::List => values.collect(),
            Self::Map => (0..).zip(values).map(|(number, value): (usize, _)| (number.to_string(), value)).collect(),
            Self::KeyedList => (0..).zip(values).map(|(number, value)| with_key(value, number)).collect(),
        }
    }
}

fn with_key(mut value: Value, key: usize) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.insert("k".to_owned(), json!(key.to_string()));
    }
    value
}

/// Returns the schema of an object with few or with many members, a few values of it for the new `spec`, and for the old one.
fn kinds() -> impl Strategy<Value = (Value, Vec<Value>, Option<Vec<Value>>)> {
    prop_oneof![3 => fields(1, 1..4), 1 => fields(0, 100..129)].prop_flat_map(|fields| {
        let odd = prop::sample::select(vec![json!({}), json!(0), Value::Null]);
        let values = prop::collection::vec(prop_oneof![4 => fields.value(true), 1 => odd], 1..6);
        (Just(fields.schema()), values.clone(), prop::option::of(values))
    })
}

/// Applies of the new object, of which it has the evidence: each by a field manager, or client-side.
type Applies = &'static [Option<&'static str>];

/// The last apply is that of the request. Field sets of others come before its own.
const APPLIES: [Applies; 4] = [
    &[],
    &[None],
    &[Some(CLIENT_SIDE_APPLY)],
    &[Some("other-0"), Some("other-1"), Some("other-2"), Some(CLIENT_SIDE_APPLY)],
];

/// Returns the metadata of the new object.
fn metadata(new: &str, applies: Applies) -> Value {
    if applies.is_empty() {
        return json!({"name": "x"});
    }
    let spec: Value = serde_json::from_str(new).unwrap();
    let api_version = format!("{GROUP}/v1");
    let manifest = json!({"apiVersion": api_version, "kind": "Thing", "spec": spec});
    if applies.contains(&None) {
        return json!({"name": "x", "annotations": {LAST_APPLIED: manifest.to_string()}});
    }
    let entry =
        json!({"operation": "Apply", "apiVersion": api_version, "fieldsV1": field_set(&Value::Null, &manifest)});
    let entries = applies.iter().map(|manager| {
        let mut entry = entry.clone();
        entry["manager"] = json!(manager);
        entry
    });
    json!({"name": "x", "managedFields": entries.collect::<Vec<_>>()})
}

fn review(new: &str, old: Option<&str>, applies: Applies) -> String {
    let metadata = metadata(new, applies);
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let old = old.map_or("null".to_owned(), |old| format!(r#"{{"metadata":{{"name":"x"}},"spec":{old}}}"#));
    let new = format!(r#"{{"metadata":{metadata},"spec":{new}}}"#);
    let options = format!(r#""options":{{"fieldManager":"{CLIENT_SIDE_APPLY}"}}"#);
    review_text([GROUP, "v1", "Thing"], operation, &new, &old).replace(r#""options":null"#, &options)
}

/// Reviews a body. Returns the most bytes that were charged, and the most that the allocator gave.
fn memory_of(catalog: &Catalog, phase: Phase, body: &str) -> (usize, usize) {
    let meter = Counting::default();
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let answer = review_within(catalog, phase, Ratcheting::Enabled, body.as_bytes(), &meter)
        .and_then(|review| Ok((review.write(&meter)?, review)));
    let given = ALLOCATOR.peak_usage().saturating_sub(before);
    answer.unwrap_or_else(|error| panic!("{error}: {body:.300}"));
    (meter.most.get(), given)
}

#[test]
fn what_is_skipped_needs_no_memory_however_long_or_deep_it_is() {
    const MOST: usize = 16 * 1024;
    let _turn = turn();
    let object = json!({"type": "object", "properties": {"lt": {"type": "string"}, "l0": {}, "l1": {}},
        "x-kubernetes-unions": [{"discriminator": "lt", "fields-to-discriminateBy": {"l0": "V0", "l1": "V1"}}]});
    let catalog = Place::List.catalog(object);
    for value in [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)),
        format!(r#"{{"{}":1}}"#, "k".repeat(1 << 20)),
        "7".repeat(1_000_000),
        format!("[{}]", vec!["{}"; 1_000_000].join(",")),
    ] {
        let spec = format!(r#"{{"x":{value},"at":[{{"l0":{value},"y":{value}}}]}}"#);
        let other = format!(r#"{{"at":[{{"l0": {value}}}],"x":{value} }}"#);
        for old in [None, Some(&spec), Some(&other)] {
            let body = review(&spec, old.map(String::as_str), &[]);
            let (charged, given) = memory_of(&catalog, Phase::Both, &body);
            assert!(charged <= MOST && given <= MOST, "{charged} charged, {given} given: {body:.300}");
        }
    }
}

#[test]
fn the_charge_is_never_less_than_half_of_what_the_allocator_gave() {
    let _turn = turn();
    let mut runner = TestRunner::new(Config { cases: 192, failure_persistence: None, ..Config::default() });
    let places = prop::sample::select(&[Place::List, Place::KeyedList, Place::Map]);
    let counts = prop_oneof![1..40_usize, 200..1_000_usize];
    let cases = (kinds(), places, counts, prop::sample::select(&APPLIES), any::<bool>());
    runner
        .run(&cases, |((schema, new, old), place, count, applies, escaped)| {
            let catalog = place.catalog(schema);
            let spec = |values: &Vec<Value>| {
                let text = json!({"at": place.spec(values, count)}).to_string();
                if escaped { text.replace(r#""V"#, r#""\u0056"#).replace(r#""l"#, r#""\u006c"#) } else { text }
            };
            let (new, old) = (spec(&new), old.as_ref().map(spec));
            let body = review(&new, old.as_deref(), applies);
            for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
                let (charged, given) = memory_of(&catalog, phase, &body);
                prop_assert!(2 * charged >= given, "{charged} charged, {given} given: {phase:?} {place:?} {body:.300}");
            }
            Ok(())
        })
        .unwrap();
}
