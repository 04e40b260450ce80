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

use fixtures::applies::{CLIENT_SIDE_APPLY, LAST_APPLIED, field_set};
use fixtures::reviews::{GROUP, catalog_of};
use kube_unions_core::admission::{Exhausted, Meter, Phase, Ratcheting, review_within};
use kube_unions_core::catalog::Catalog;
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// A union and its place.
#[derive(Debug, Clone)]
struct MeteredKind {
    members: usize,
    map_form: bool,
    discriminated: bool,
    place: UnionPlace,
}

#[derive(Debug, Clone, Copy)]
enum UnionPlace {
    List,
    KeyedList,
    Map,
    ListInMap,
    ListInKeyedList,
}

/// Returns an item of a body for a seed.
#[derive(Debug, Clone, Copy)]
enum Item {
    Empty,
    Scalar,
    Null,
    OneMember(u8),
    AllMembers,
    Value(u8),
    EscapedValue(u8),
    UnknownValue,
    Contradiction(u8),
}

fn kinds() -> impl Strategy<Value = MeteredKind> {
    use UnionPlace::{KeyedList, List, ListInKeyedList, ListInMap, Map};
    let places = prop::sample::select(vec![List, KeyedList, Map, ListInMap, ListInKeyedList]);
    (prop_oneof![1..8_usize, 100..=128_usize], any::<bool>(), any::<bool>(), places)
        .prop_map(|(members, map_form, discriminated, place)| MeteredKind { members, map_form, discriminated, place })
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = prop_oneof![
        Just(Item::Empty),
        Just(Item::Scalar),
        Just(Item::Null),
        any::<u8>().prop_map(Item::OneMember),
        Just(Item::AllMembers),
        any::<u8>().prop_map(Item::Value),
        any::<u8>().prop_map(Item::EscapedValue),
        Just(Item::UnknownValue),
        any::<u8>().prop_map(Item::Contradiction),
    ];
    prop::collection::vec(item, 1..6)
}

impl MeteredKind {
    fn catalog(&self) -> Catalog {
        let mut properties: Map<String, Value> = (0..self.members).map(|at| (format!("m{at}"), json!({}))).collect();
        let mut union = json!({"type": "object"});
        if self.map_form {
            let choices: Map<String, Value> =
                (0..self.members).map(|at| (format!("V{at}"), json!({"name": format!("m{at}")}))).collect();
            properties
                .insert("type".into(), json!({"type": "string", "x-kubernetes-unions": {"fieldMembers": choices}}));
        } else {
            let values: Map<String, Value> =
                (0..self.members).map(|at| (format!("m{at}"), json!(format!("V{at}")))).collect();
            let mut one = json!({"fields-to-discriminateBy": values});
            if self.discriminated {
                properties.insert("type".into(), json!({"type": "string"}));
                one["discriminator"] = json!("type");
            }
            union["x-kubernetes-unions"] = json!([one]);
        }
        properties.insert("k".into(), json!({"type": "string"}));
        union["properties"] = Value::Object(properties);
        let list = |items: Value| json!({"type": "array", "items": items});
        let keyed = |mut items: Value| {
            items["required"] = json!(["k"]);
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
        };
        let map = |values: Value| json!({"type": "object", "additionalProperties": values});
        let place = match self.place {
            UnionPlace::List => list(union),
            UnionPlace::KeyedList => keyed(union),
            UnionPlace::Map => map(union),
            UnionPlace::ListInMap => map(list(union)),
            UnionPlace::ListInKeyedList => {
                keyed(json!({"type": "object", "properties": {"k": {"type": "string"}, "inner": list(union)}}))
            }
        };
        let spec = json!({"type": "object", "properties": {"at": place}});
        let catalog = catalog_of(&json!({"type": "object", "properties": {"spec": spec}}));
        assert_eq!(catalog.union_count(), 1, "{:?}", catalog.faults());
        catalog
    }

    fn spec(&self, items: &[Item], count: usize) -> String {
        let text = |at: usize| self.item(at, items[at % items.len()]);
        let join = |open: &str, close: &str, each: &dyn Fn(usize) -> String| {
            format!("{open}{}{close}", (0..count).map(each).collect::<Vec<_>>().join(","))
        };
        let place = match self.place {
            UnionPlace::List | UnionPlace::KeyedList => join("[", "]", &text),
            UnionPlace::Map => join("{", "}", &|at| format!(r#""{at}":{}"#, text(at))),
            UnionPlace::ListInMap => {
                join("{", "}", &|at| format!(r#""\u0041{}":[{},{}]"#, at / 2, text(at), text(at + 1)))
            }
            UnionPlace::ListInKeyedList => {
                join("[", "]", &|at| format!(r#"{{"k":"{at}","inner":[{},{}]}}"#, text(at), text(at + 1)))
            }
        };
        format!(r#"{{"at":{place}}}"#)
    }

    fn item(&self, at: usize, item: Item) -> String {
        let mut fields = Vec::new();
        if matches!(self.place, UnionPlace::KeyedList) {
            fields.push(format!(r#""k":"{at}""#));
        }
        let member = |index: u8| format!(r#""m{}":1"#, usize::from(index) % self.members);
        match item {
            Item::Scalar => return "0".to_owned(),
            Item::Null => return "null".to_owned(),
            Item::Empty => {}
            Item::OneMember(index) => fields.push(member(index)),
            Item::AllMembers => fields.extend((0..self.members).map(|at| format!(r#""m{at}":1"#))),
            Item::Value(index) => fields.push(format!(r#""type":"V{index}""#)),
            Item::EscapedValue(index) => fields.push(format!(r#""type":"\u0056{index}""#)),
            Item::UnknownValue => fields.extend([r#""type":"unknown""#.to_owned(), member(0)]),
            Item::Contradiction(index) => {
                fields.extend([r#""type":"V0""#.to_owned(), member(index), member(index.wrapping_add(1))]);
            }
        }
        format!("{{{}}}", fields.join(","))
    }
}

/// The evidence of an apply whose manifest is the new object.
#[derive(Debug, Clone, Copy)]
enum Evidence {
    None,
    Annotation,
    FieldSet,
    /// Field sets of several field managers, too.
    FieldSets,
}

impl Evidence {
    /// Returns the metadata of the new object.
    fn metadata(self, new: &str) -> Value {
        let mut metadata = json!({"name": "x"});
        if matches!(self, Self::None) {
            return metadata;
        }
        let api_version = format!("{GROUP}/v1");
        let spec: Value = serde_json::from_str(new).unwrap();
        let manifest = json!({"apiVersion": api_version, "kind": "Thing", "spec": spec});
        if matches!(self, Self::Annotation) {
            metadata["annotations"] = json!({ LAST_APPLIED: manifest.to_string() });
            return metadata;
        }
        let others = if matches!(self, Self::FieldSets) { &["other-0", "other-1", "other-2"][..] } else { &[] };
        let entry = json!({"operation": "Apply", "apiVersion": api_version, "fieldsV1": field_set(&manifest)});
        let managers = others.iter().chain([&CLIENT_SIDE_APPLY]);
        let entries = managers.map(|manager| {
            let mut entry = entry.clone();
            entry["manager"] = json!(manager);
            entry
        });
        metadata["managedFields"] = entries.collect();
        metadata
    }
}

fn review(new: &str, old: Option<&str>, evidence: Evidence) -> String {
    let metadata = evidence.metadata(new);
    let (operation, old) = match old {
        Some(old) => ("UPDATE", format!(r#"{{"metadata":{{"name":"x"}},"spec":{old}}}"#)),
        None => ("CREATE", "null".to_owned()),
    };
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u","kind":{{"group":"{GROUP}","version":"v1","kind":"Thing"}},"operation":"{operation}","object":{{"metadata":{metadata},"spec":{new}}},"oldObject":{old},"options":{{"fieldManager":"{CLIENT_SIDE_APPLY}"}}}}}}"#
    )
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
    let kind = MeteredKind { members: 2, map_form: false, discriminated: true, place: UnionPlace::List };
    let catalog = kind.catalog();
    for value in [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)),
        format!(r#"{{"{}":1}}"#, "k".repeat(1 << 20)),
        "7".repeat(1_000_000),
        format!("[{}]", vec!["{}"; 1_000_000].join(",")),
    ] {
        let spec = format!(r#"{{"x":{value},"at":[{{"m0":{value},"y":{value}}}]}}"#);
        let other = format!(r#"{{"at":[{{"m0": {value}}}],"x":{value} }}"#);
        for old in [None, Some(&spec), Some(&other)] {
            let body = review(&spec, old.map(String::as_str), Evidence::None);
            let (charged, given) = memory_of(&catalog, Phase::Both, &body);
            assert!(charged <= MOST && given <= MOST, "{charged} charged, {given} given: {body:.300}");
        }
    }
}

#[test]
fn the_charge_is_never_less_than_half_of_what_the_allocator_gave() {
    let _turn = turn();
    let mut runner = TestRunner::new(Config { cases: 192, failure_persistence: None, ..Config::default() });
    let least = Cell::new(f64::INFINITY);
    let evidence = vec![Evidence::None, Evidence::Annotation, Evidence::FieldSet, Evidence::FieldSets];
    let evidence = prop::sample::select(evidence);
    let cases = (kinds(), items(), prop::option::of(items()), prop_oneof![1..40_usize, 200..1_000_usize], evidence);
    runner
        .run(&cases, |(kind, new, old, count, evidence)| {
            let catalog = kind.catalog();
            let new = kind.spec(&new, count);
            let old = old.map(|old| kind.spec(&old, count));
            let body = review(&new, old.as_deref(), evidence);
            for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
                let (charged, given) = memory_of(&catalog, phase, &body);
                prop_assert!(2 * charged >= given, "{charged} charged, {given} given: {phase:?} {kind:?} {body:.300}");
                #[allow(clippy::cast_precision_loss, reason = "printed")]
                least.set(least.get().min(charged as f64 / given as f64));
            }
            Ok(())
        })
        .unwrap();
    eprintln!("the least charge for a byte given: {:.2}", least.get());
}
