//! Audit annotations of a review: paths and reasons, with a limited length and without values.

use fixtures::reviews::{Write, audit_annotations, catalog_of, thing};
use kube_unions_core::admission::{Phase, Ratcheting, review};
use kube_unions_core::catalog::Catalog;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SECRET: &str = "s3cret";

/// A catalog of a kind with two unions in `spec`, one of each form, and one in the items of a list.
fn catalog() -> Catalog {
    let list = json!({"type": "object", "properties": {"kind": {"type": "string"}, "x": {"type": "string"}, "y": {"type": "string"}},
        "x-kubernetes-unions": [{"discriminator": "kind", "fields-to-discriminateBy": {"x": "X", "y": "Y"}}]});
    let items = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"x": "X", "y": "Y"}}]});
    catalog_of(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "type": {"type": "string", "enum": ["A", "B", "None"], "x-kubernetes-unions": {
            "fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}, "None": null}}},
        "a": {"type": "string"}, "b": {"type": "string"},
        "list": list,
        "items": {"type": "array", "items": items},
    }}}}))
}

fn annotations(phase: Phase, old: Option<&Value>, new: &Value) -> BTreeMap<String, String> {
    let of = |spec: &Value| thing(&json!({"spec": spec}));
    let write = Write::new(old.map(of), of(new));
    let body = write.review("u").to_string();
    let json = review(&catalog(), phase, Ratcheting::Enabled, body.as_bytes()).unwrap().to_json();
    let text = String::from_utf8(json.clone()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    let json: Value = serde_json::from_slice(&json).unwrap();
    audit_annotations(json["response"].get("auditAnnotations"))
}

/// The phase, the old and the new `spec`, and the annotations.
type Row<'r> = (Phase, Option<&'r Value>, &'r Value, &'r [(&'r str, &'r str)]);

#[test]
fn what_is_changed_denied_and_let_through_is_named_once_with_why() {
    let (x, y) = (json!({"kind": "X", "x": SECRET}), json!({"kind": "Y", "y": SECRET}));
    let of_a = json!({"type": "A", "a": SECRET, "list": x});
    let of_none = json!({"type": "None", "a": SECRET});
    let switched = json!({"type": "B", "a": SECRET, "b": SECRET, "list": {"kind": "X", "x": SECRET, "y": SECRET}});
    let normalized = json!({"type": "B", "b": SECRET, "list": y});
    // A contradiction, which mutation denies as well.
    let contradiction = json!({"type": "None", "a": SECRET, "list": {"kind": "X", "y": SECRET}});
    let denied = [("denied", "spec.a: FieldValueForbidden, spec.list.y: FieldValueForbidden")];
    let untouched = json!({"type": "None", "a": SECRET, "list": {}});
    let rows: [Row<'_>; 6] = [
        (Phase::Mutate, Some(&of_a), &switched, &[("cleared", "spec.a, spec.list.x"), ("set", "spec.list.kind=\"Y\"")]),
        (Phase::Validate, Some(&of_a), &normalized, &[]),
        (Phase::Validate, None, &contradiction, &denied),
        (Phase::Mutate, None, &contradiction, &denied),
        (
            Phase::Validate,
            Some(&of_none),
            &untouched,
            &[("warned", "spec.a: FieldValueForbidden (the union did not change)")],
        ),
        (Phase::Mutate, Some(&of_none), &untouched, &[]),
    ];
    for (phase, old, new, said) in rows {
        let said = said.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        assert_eq!(annotations(phase, old, new), said.collect(), "{phase:?} {new}");
    }
}

#[test]
fn ten_thousand_paths_are_counted_and_not_listed() {
    let items: Vec<_> = (0..10_000).map(|_| json!({"x": SECRET, "y": SECRET})).collect();
    let annotations = annotations(Phase::Validate, None, &json!({"items": items}));
    let (listed, more) = annotations["denied"].rsplit_once(", and ").unwrap();
    let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
    assert_eq!(listed.split(", ").count() + more, 10_000, "{listed}");
}
