//! The invariants of unions on generated schemas and objects, and on arbitrary bytes.

use fixtures::laws::admit_lawfully;
use fixtures::reviews::{
    Answer, GROUP, Verdict, Write, admit, catalog, catalog_of, declaration, declared_catalog, definition, lift_unions,
    thing, version,
};
use kube_unions_core::admission::{Phase, Ratcheting, review};
use kube_unions_core::catalog::Catalog;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A schema node.
#[derive(Debug, Clone)]
enum Node {
    Text,
    Object(Fields),
    KeyedList(Fields),
    AtomicList(Fields),
    Map(Fields),
}

/// The fields of an object, with at most one union of each form. Names tell the role of a field: members of the 2019 form
/// are `l0`, `l1`, … with the discriminator `lt`, those of the 2022 form `m0`, `m1`, … with `mt`, other fields `f0`, `f1`,
/// …
#[derive(Debug, Clone)]
struct Fields {
    plain: Vec<Node>,
    list: Option<(bool, Vec<Node>)>,
    map: Option<(Empty, bool, Vec<Node>)>,
    options: [Options; 2],
    /// The first and the last member of the 2019 form are a group, and each value of the 2022 form selects the next member as well.
    groups: bool,
}

/// The options that a `UnionDeclaration` gives a union.
#[derive(Debug, Clone, Copy)]
struct Options {
    required: bool,
    /// A bit for each member whose empty values count as not set.
    empty_is_unset: u8,
}

impl Options {
    fn put_into(self, union: &mut Value, prefix: &str, members: usize) {
        let named = (0..members).filter(|position| self.empty_is_unset >> position & 1 == 1);
        union["required"] = self.required.into();
        union["emptyIsUnset"] = named.map(|position| format!("{prefix}{position}")).collect();
    }
}

fn options() -> impl Strategy<Value = Options> {
    let required = prop_oneof![3 => Just(false), 1 => Just(true)];
    let empty_is_unset = prop_oneof![1 => Just(0), 1 => any::<u8>()];
    (required, empty_is_unset).prop_map(|(required, empty_is_unset)| Options { required, empty_is_unset })
}

/// The empty member of a union of the 2022 form.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Empty {
    Missing,
    Named,
    /// The empty value.
    None,
}

fn node(depth: u32) -> BoxedStrategy<Node> {
    if depth == 0 {
        return Just(Node::Text).boxed();
    }
    prop_oneof![
        2 => Just(Node::Text),
        2 => fields(depth - 1).prop_map(Node::Object),
        1 => fields(depth - 1).prop_map(Node::KeyedList),
        1 => fields(depth - 1).prop_map(Node::AtomicList),
        1 => fields(depth - 1).prop_map(Node::Map),
    ]
    .boxed()
}

fn fields(depth: u32) -> impl Strategy<Value = Fields> {
    let empty = prop_oneof![Just(Empty::Missing), Just(Empty::Named), Just(Empty::None)];
    (
        vec(node(depth), 0..2),
        option::of((any::<bool>(), vec(node(depth), 1..4))),
        option::of((empty, any::<bool>(), vec(node(depth), 1..3))),
        [options(), options()],
        any::<bool>(),
    )
        .prop_map(|(plain, list, map, options, groups)| Fields { plain, list, map, options, groups })
}

impl Node {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Object(fields) => fields.schema(),
            Self::Map(fields) => json!({"type": "object", "additionalProperties": fields.schema()}),
            Self::AtomicList(fields) => {
                json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": fields.schema()})
            }
            Self::KeyedList(fields) => {
                let mut items = fields.schema();
                items["properties"]["key"] = json!({"type": "string"});
                items["required"] = json!(["key"]);
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": items})
            }
        }
    }

    /// Generates values, sometimes null or of another type.
    fn value(&self) -> BoxedStrategy<Value> {
        let key = prop_oneof![Just("k0"), Just("k1"), Just("a/b~c")];
        let right = match self {
            Self::Text => prop_oneof![Just(json!("")), Just(json!("x")), Just(json!("y"))].boxed(),
            Self::Object(fields) => fields.value(),
            Self::AtomicList(fields) => vec(fields.value(), 0..3).prop_map(Value::Array).boxed(),
            Self::Map(fields) => {
                let entry = (key.prop_map(ToOwned::to_owned), fields.value());
                vec(entry, 0..3).prop_map(|entries| Value::Object(entries.into_iter().collect())).boxed()
            }
            Self::KeyedList(fields) => {
                let item = (key, fields.value()).prop_map(|(key, mut item)| {
                    item["key"] = json!(key);
                    item
                });
                vec(item, 0..3).prop_map(Value::Array).boxed()
            }
        };
        prop_oneof![80 => right, 1 => Just(Value::Null), 1 => Just(json!(7)), 1 => Just(json!([])), 1 => Just(json!({}))].boxed()
    }
}

impl Fields {
    fn named(&self) -> Vec<(String, &Node)> {
        let list = self.list.iter().flat_map(|(_, members)| members);
        let map = self.map.iter().flat_map(|(_, _, members)| members);
        let name = |prefix: &'static str| move |(position, node)| (format!("{prefix}{position}"), node);
        let plain = self.plain.iter().enumerate().map(name("f"));
        plain.chain(list.enumerate().map(name("l"))).chain(map.enumerate().map(name("m"))).collect()
    }

    fn values(members: &[Node]) -> Vec<String> {
        (0..members.len()).map(|position| format!("V{position}")).collect()
    }

    fn schema(&self) -> Value {
        let mut properties: Map<_, _> = self.named().into_iter().map(|(name, node)| (name, node.schema())).collect();
        let mut schema = json!({"type": "object"});
        if let Some((discriminated, members)) = &self.list {
            let mut values: Map<_, _> = Self::values(members)
                .into_iter()
                .enumerate()
                .map(|(position, value)| (format!("l{position}"), json!(value)))
                .collect();
            if self.groups && members.len() > 2 {
                values.insert(format!("l{}", members.len() - 1), json!("V0"));
            }
            let mut union = json!({"fields-to-discriminateBy": values});
            if *discriminated {
                union["discriminator"] = json!("lt");
                properties.insert("lt".to_owned(), json!({"type": "string"}));
            }
            self.options[0].put_into(&mut union, "l", members.len());
            schema["x-kubernetes-unions"] = json!([union]);
        }
        if let Some((empty, optional, members)) = &self.map {
            let mut choices: Map<_, _> = Self::values(members)
                .into_iter()
                .enumerate()
                .map(|(position, value)| {
                    let (name, next) = (format!("m{position}"), format!("m{}", (position + 1) % members.len()));
                    let several = json!({"fields": {&name: {"optional": optional}, &next: {"optional": true}}});
                    let one = json!({"name": name, "optional": optional});
                    (value, if self.groups && name != next { several } else { one })
                })
                .collect();
            match empty {
                Empty::Missing => {}
                Empty::Named => drop(choices.insert("None".to_owned(), Value::Null)),
                Empty::None => drop(choices.insert(String::new(), Value::Null)),
            }
            let mut union = json!({"fieldMembers": choices});
            self.options[1].put_into(&mut union, "m", members.len());
            properties.insert("mt".to_owned(), json!({"type": "string", "x-kubernetes-unions": union}));
        }
        schema["properties"] = Value::Object(properties);
        schema
    }

    fn value(&self) -> BoxedStrategy<Value> {
        type NamedValue = (String, Option<Value>);
        let mut entries: Vec<BoxedStrategy<NamedValue>> = Vec::new();
        for (name, node) in self.named() {
            // Few members at a time. With all of them set, nearly every write would be denied.
            let often = if name.starts_with('f') { 0.8 } else { 0.35 };
            entries.push(option::weighted(often, node.value()).prop_map(move |value| (name.clone(), value)).boxed());
        }
        let discriminators =
            [("lt", self.list.as_ref().is_some_and(|(discriminated, _)| *discriminated)), ("mt", self.map.is_some())];
        for (name, _) in discriminators.into_iter().filter(|(_, there)| *there) {
            let value = prop_oneof![
                10 => proptest::sample::select(vec![json!("V0"), json!("V1"), json!("None")]),
                3 => proptest::sample::select(vec![json!("V2"), json!(""), json!("Bogus"), json!(7), Value::Null]),
            ];
            entries.push(option::of(value).prop_map(move |value| (name.to_owned(), value)).boxed());
        }
        let object =
            |entries: Vec<NamedValue>| entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        entries.prop_map(move |entries| Value::Object(object(entries))).boxed()
    }
}

/// Returns a new object that shares much with the old one, like most updates.
fn mixed(old: &Value, fresh: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    match (choices.next().unwrap_or(7) % 8, old, fresh) {
        (0, _, _) => old.clone(),
        (1, _, _) => fresh.clone(),
        (_, Value::Object(old), Value::Object(fresh)) => {
            let names: BTreeSet<_> = old.keys().chain(fresh.keys()).collect();
            let mut object = Map::new();
            for name in names {
                match (old.get(name), fresh.get(name)) {
                    (Some(old), Some(fresh)) => drop(object.insert(name.clone(), mixed(old, fresh, choices))),
                    // Most clients keep fields that they do not change.
                    (Some(one), None) | (None, Some(one)) if !choices.next().unwrap_or(1).is_multiple_of(4) => {
                        object.insert(name.clone(), one.clone());
                    }
                    _ => {}
                }
            }
            Value::Object(object)
        }
        (way, Value::Array(old), Value::Array(fresh)) => {
            let mut items: Vec<_> = old.iter().zip(fresh).map(|(old, fresh)| mixed(old, fresh, choices)).collect();
            items.extend(old.iter().skip(fresh.len()).chain(fresh.iter().skip(old.len())).cloned());
            if way == 2 {
                items.reverse();
            }
            Value::Array(items)
        }
        _ => fresh.clone(),
    }
}

fn schema_and_objects() -> impl Strategy<Value = (Value, Value, Value)> {
    fields(2).prop_flat_map(|fields| {
        let schema = json!({"type": "object", "properties": {"spec": fields.schema()}});
        let choices = vec(any::<u8>(), 256);
        (Just(schema), fields.value(), fields.value(), choices).prop_map(|(schema, old, fresh, choices)| {
            let new = mixed(&old, &fresh, &mut choices.into_iter());
            (schema, json!({"spec": old}), json!({"spec": new}))
        })
    })
}

fn without_regressions() -> ProptestConfig {
    // A failure becomes a row of `tests/cases` with the expected result.
    ProptestConfig { failure_persistence: None, cases: 800, ..ProptestConfig::default() }
}

/// Returns the catalog of a schema whose unions a `UnionDeclaration` declares, with their options.
fn catalog_of_lifted(mut schema: Value) -> Catalog {
    let unions = lift_unions(&mut schema);
    let definition = definition(&Map::new(), &[version("v1", &schema, false)]);
    match unions.as_array() {
        Some(all) if all.is_empty() => catalog(&[&definition]),
        _ => declared_catalog(&definition, &[declaration("lifted", GROUP, "Thing", &json!({"unions": unions}))]),
    }
}

/// Checks that only members of unions are removed, and only discriminators of the 2019 form are set.
fn touches_unions_only(answer: &Answer) {
    for operation in &answer.operations {
        let name = operation["path"].as_str().unwrap().rsplit('/').next().unwrap();
        match operation["op"].as_str().unwrap() {
            "remove" => assert!(name.starts_with(['l', 'm']) && name.ends_with(char::is_numeric), "{operation}"),
            "add" | "replace" => assert_eq!(name, "lt", "{operation}"),
            other => panic!("`{other}` is not called for"),
        }
    }
}

proptest! {
    #![proptest_config(without_regressions())]

    #[test]
    fn any_write_of_any_schema_is_answered_by_the_laws((schema, old, new) in schema_and_objects(), ratchet in any::<bool>()) {
        let catalog = catalog_of_lifted(schema);
        let ratcheting = if ratchet { Ratcheting::Enabled } else { Ratcheting::Disabled };
        for write in [Write::new(Some(thing(&old)), thing(&new)), Write::new(None, thing(&new))] {
            let answer = admit_lawfully(&catalog, &Write { ratcheting, ..write.clone() });
            touches_unions_only(&answer);
            if write.old.is_none() {
                prop_assert!(answer.operations.iter().all(|operation| operation["op"] != "remove"), "nothing is cleared on a create");
            }
        }
        // Without ratcheting, violations that ratcheting lets through are denied. Other results are equal.
        let lenient = admit(&catalog, &Write::new(Some(thing(&old)), thing(&new)));
        let strict = admit(&catalog, &Write { ratcheting: Ratcheting::Disabled, ..Write::new(Some(thing(&old)), thing(&new)) });
        let let_through = lenient.warnings.len() != lenient.changes().count();
        match (&lenient.verdict, &strict.verdict) {
            (Verdict::Allowed(_), Verdict::Allowed(_)) => prop_assert_eq!(&lenient, &strict),
            (Verdict::Allowed(_), Verdict::Denied(_)) => prop_assert!(let_through, "{:?}", lenient),
            (Verdict::Denied(some), Verdict::Denied(all)) => prop_assert!(some.iter().all(|cause| all.contains(cause))),
            (Verdict::Denied(_), Verdict::Allowed(_)) => prop_assert!(false, "ratcheting never denies: {:?}", lenient),
        }
    }

    #[test]
    fn any_review_that_was_spoilt_is_answered_without_a_panic(edits in vec((any::<proptest::sample::Index>(), spoiling()), 1..8), create in any::<bool>()) {
        let catalog = catalog_of(&small_schema());
        let old = thing(&json!({"spec": {"type": "A", "a": {"x": "1"}, "list": [{"key": "k", "p": "1"}]}}));
        let new = thing(&json!({"spec": {"type": "B", "a": {"x": "1"}, "b": "2", "list": [{"key": "k", "p": "1", "q": "2"}]}}));
        let mut bytes = Write::new((!create).then_some(old), new).review("u").to_string().into_bytes();
        for (at, edit) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            match edit {
                Spoiling::Put(text) => drop(bytes.splice(at..at, text)),
                Spoiling::Cut(length) => drop(bytes.drain(at..(at + length).min(bytes.len()))),
                Spoiling::Twice(length) => {
                    let copy = bytes[at..(at + length).min(bytes.len())].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
            if let Ok(answer) = review(&catalog, phase, Ratcheting::Enabled, &bytes) {
                let text = answer.to_json();
                prop_assert!(serde_json::from_slice::<Value>(&text).is_ok(), "{}", String::from_utf8_lossy(&text));
            }
        }
    }
}

/// A way to spoil a text.
#[derive(Debug, Clone)]
enum Spoiling {
    Put(Vec<u8>),
    Cut(usize),
    Twice(usize),
}

fn spoiling() -> impl Strategy<Value = Spoiling> {
    let token = r#"[\[\]{}":, \\\x00]|null|-1e999|\\ud800|"type":7,|"":|\[\[\[\["#;
    prop_oneof![
        token.prop_map(|token| Spoiling::Put(token.into_bytes())),
        vec(any::<u8>(), 1..4).prop_map(Spoiling::Put),
        (1_usize..40).prop_map(Spoiling::Cut),
        (1_usize..200).prop_map(Spoiling::Twice),
    ]
}

fn small_schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "type": {"type": "string", "x-kubernetes-unions": {"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}}}},
        "a": {"type": "object", "properties": {"x": {"type": "string"}}},
        "b": {"type": "string"},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": {"type": "object",
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"p": "P", "q": "Q"}}],
            "properties": {"key": {"type": "string"}, "p": {"type": "string"}, "q": {"type": "string"}}}},
    }}}})
}

/// Short lists may be scanned and long ones indexed. The pairs of items must not depend on it.
#[test]
fn lists_with_keys_are_paired_the_same_way_at_any_length() {
    let schema = json!({"type": "object", "properties": {"list": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
        "items": {"type": "object", "required": ["key"],
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
            "properties": {"key": {"type": "string"}, "a": {"type": "integer"}, "b": {"type": "integer"}}}}}});
    let catalog = catalog_of(&schema);
    let item = |key: usize, fields: Value| {
        let mut item = json!({"key": format!("k{key}")});
        item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        item
    };
    let list = |items: Vec<Value>| thing(&json!({"list": items}));
    for length in [1, 2, 15, 16, 17, 18, 60] {
        let old = list((0..length).map(|key| item(key, json!({"a": 1}))).collect());
        // In reverse order. Every second item gets another member.
        let added = |key: usize| if key.is_multiple_of(2) { json!({"a": 1, "b": 2}) } else { json!({"a": 1}) };
        let kept = |key: usize| if key.is_multiple_of(2) { json!({"b": 2}) } else { json!({"a": 1}) };
        let new = list((0..length).rev().map(|key| item(key, added(key))).collect());
        let want = list((0..length).rev().map(|key| item(key, kept(key))).collect());
        assert_eq!(admit_lawfully(&catalog, &Write::new(Some(old.clone()), new)).object(), &want, "{length} items");

        // A new item, and two items with the same key. None of them has a known counterpart.
        for extra in [length, 0] {
            let items = (0..length).map(|key| item(key, json!({"a": 1}))).chain([item(extra, json!({"a": 1, "b": 2}))]);
            let answer = admit(&catalog, &Write::new(Some(old.clone()), list(items.collect())));
            let Verdict::Denied(causes) = &answer.verdict else { panic!("{length} items and {extra}: {answer:?}") };
            let fields: Vec<_> = causes.iter().map(|cause| cause.field.clone()).collect();
            assert_eq!(fields, [format!("list[{length}].b")]);
            assert!(answer.operations.is_empty(), "{answer:?}");
        }

        // Two items with the same key in the old list. Either may be the counterpart.
        let twice = list((0..length).chain([0]).map(|key| item(key, json!({"a": 1}))).collect());
        let new = list(
            (0..length)
                .map(|key| item(key, if key == 0 { json!({"a": 1, "b": 2}) } else { json!({"a": 1}) }))
                .collect(),
        );
        let answer = admit(&catalog, &Write::new(Some(twice), new));
        assert!(matches!(answer.verdict, Verdict::Denied(_)), "{length} items: {answer:?}");
    }
}
