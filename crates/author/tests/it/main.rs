//! Tests of the public API: the extension of each call, the faults, and that the rest of a CRD is as kube derives it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing test panics"
)]

mod enums;
mod faults;
mod kinds;
mod versions;

use kube::CustomResourceExt;
use kube_unions_author::{ANNOTATION, AtMostOne, CrdError, DiscriminatedUnion, Fault, Severity, Unions};
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use schemars::transform::Transform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the annotation of the only version of a kind, by schema node.
fn declared<T: JsonSchema>() -> BTreeMap<String, Value> {
    content(&Unions::new().version::<T>("v1"))
}

fn content(unions: &Unions) -> BTreeMap<String, Value> {
    let (key, value) = unions.annotation().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(key, ANNOTATION);
    let mut versions: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(&value).unwrap();
    assert!(versions.keys().all(|version| version == "v1"), "{value}");
    versions.remove("v1").unwrap_or_default()
}

/// Returns the unions of an object that has these fields and transforms in `spec`.
fn spec(fields: &Value, transforms: Vec<Box<dyn Transform>>) -> Unions {
    let mut spec = schemars::json_schema!({"type": "object", "properties": fields});
    for mut transform in transforms {
        transform.transform(&mut spec);
    }
    let schema = schemars::json_schema!({"type": "object", "properties": {"spec": spec}});
    Unions::new().version_of("v1", &schema)
}

/// Returns the lines of an error, without the first.
fn lines(result: Result<impl std::fmt::Debug, CrdError>) -> Vec<String> {
    let error = result.expect_err("a fault");
    assert!(matches!(error, CrdError::Faulty { .. }), "{error:?}");
    error.to_string().lines().skip(1).map(|line| line.trim_start().to_owned()).collect()
}

fn fields() -> Value {
    let object = json!({"type": "object"});
    json!({"type": {"type": "string"}, "a": object, "b": object, "c": object, "d": object, "other": {"type": "string"}})
}

#[test]
fn each_call_adds_its_part_of_the_extension() {
    let by_type = || DiscriminatedUnion::by("type");
    let at_type = "/properties/spec/properties/type";
    let rows: Vec<(Box<dyn Transform>, &str, Value)> = vec![
        (Box::new(by_type().member("A", "a")), at_type, json!({"fieldMembers": {"A": {"name": "a"}}})),
        (
            Box::new(by_type().optional("A", "a")),
            at_type,
            json!({"fieldMembers": {"A": {"name": "a", "optional": true}}}),
        ),
        (
            Box::new(by_type().member("A", "a").member("Also", "a").optional("B", "b").empty("None").empty("")),
            at_type,
            json!({"fieldMembers": {"A": {"name": "a"}, "Also": {"name": "a"}, "B": {"name": "b", "optional": true},
                "None": null, "": null}}),
        ),
        (
            Box::new(by_type().member("A", "a").optional("A", "b").empty("None").member("B", "b")),
            at_type,
            json!({"fieldMembers": {"A": {"fields": {"a": {}, "b": {"optional": true}}}, "None": null, "B": {"name": "b"}}}),
        ),
        (
            Box::new(AtMostOne::new().member("A", "a").member("B", "b")),
            "/properties/spec",
            json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]),
        ),
        (
            Box::new(AtMostOne::new().discriminator("type").member("A", "a")),
            "/properties/spec",
            json!([{"discriminator": "type", "fields-to-discriminateBy": {"a": "A"}}]),
        ),
    ];
    for (transform, pointer, extension) in rows {
        let want = BTreeMap::from([(pointer.to_owned(), extension)]);
        assert_eq!(content(&spec(&fields(), vec![transform])), want);
    }
}

#[test]
fn each_transform_adds_a_union() {
    let unions: Vec<Box<dyn Transform>> = vec![
        Box::new(DiscriminatedUnion::by("type").member("A", "a")),
        Box::new(AtMostOne::new().member("B", "b")),
        Box::new(AtMostOne::new().discriminator("other").member("C", "c").member("D", "d")),
    ];
    let all = content(&spec(&fields(), unions));
    assert_eq!(all["/properties/spec/properties/type"], json!({"fieldMembers": {"A": {"name": "a"}}}));
    let mut list = all["/properties/spec"].as_array().unwrap().clone();
    list.sort_by_key(ToString::to_string);
    assert_eq!(
        list,
        [
            json!({"discriminator": "other", "fields-to-discriminateBy": {"c": "C", "d": "D"}}),
            json!({"fields-to-discriminateBy": {"b": "B"}}),
        ]
    );
}

#[test]
fn an_extension_written_by_hand_is_kept() {
    let mut fields = fields();
    let by_type = json!({"fieldMembers": {"A": {"name": "a"}}});
    fields["type"]["x-kubernetes-unions"] = by_type.clone();
    // Two equal declarations are one union.
    let unions = spec(&fields, vec![Box::new(DiscriminatedUnion::by("type").member("A", "a"))]);
    assert_eq!(content(&unions), BTreeMap::from([("/properties/spec/properties/type".to_owned(), by_type)]));
}

#[test]
fn names_are_escaped_in_pointers() {
    let fields = json!({"a/b": {"type": "string"}, "m~n": {"type": "object"}});
    let unions = spec(&fields, vec![Box::new(DiscriminatedUnion::by("a/b").member("M", "m~n"))]);
    let want = BTreeMap::from([(
        "/properties/spec/properties/a~1b".to_owned(),
        json!({"fieldMembers": {"M": {"name": "m~n"}}}),
    )]);
    assert_eq!(content(&unions), want);
}

#[test]
fn a_transform_never_panics() {
    for text in ["true", "false", "{}", r#"{"type": "array"}"#, r#"{"properties": 7, "items": [true]}"#] {
        let mut schema: Schema = serde_json::from_str(text).unwrap();
        DiscriminatedUnion::by("").member("", "").empty("").transform(&mut schema);
        AtMostOne::new().transform(&mut schema);
        let error = Unions::new().version_of("v1", &schema).annotation().unwrap_err();
        assert!(!error.to_string().is_empty(), "{text}");
    }
}
