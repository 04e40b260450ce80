//! Audit annotations of a review: paths and reasons, with a limited length and without values.

use crate::things;
use fixtures::reviews::{Write, audit_annotations, thing};
use kube_unions_core::admission::{Phase, Ratcheting, review};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SECRET: &str = "s3cret";

fn annotations(phase: Phase, old: Option<&Value>, new: &Value) -> BTreeMap<String, String> {
    let of = |spec: &Value| thing(&json!({"spec": spec}));
    let write = Write::new(old.map(of), of(new));
    let body = write.review("u").to_string();
    let json = review(&things(), phase, Ratcheting::Enabled, body.as_bytes()).unwrap().to_json();
    let text = String::from_utf8(json.clone()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    let json: Value = serde_json::from_slice(&json).unwrap();
    audit_annotations(json["response"].get("auditAnnotations"))
}

/// The phase, the old and the new `spec`, and the annotations.
type Row<'r> = (Phase, Option<&'r Value>, &'r Value, &'r [(&'r str, &'r str)]);

#[test]
fn what_is_changed_denied_and_let_through_is_named_once_with_why() {
    let (a, b) = (json!({"type": "A", "a": SECRET}), json!({"type": "B", "b": SECRET}));
    let of_a = json!({"type": "A", "a": SECRET, "one": a});
    let of_none = json!({"type": "None", "a": SECRET});
    let switched = json!({"type": "B", "a": SECRET, "b": SECRET, "one": {"type": "A", "a": SECRET, "b": SECRET}});
    let normalized = json!({"type": "B", "b": SECRET, "one": b});
    // A contradiction, which mutation denies as well.
    let contradiction = json!({"type": "None", "a": SECRET, "one": {"type": "A", "b": SECRET}});
    let denied = [("denied", "spec.a: FieldValueForbidden, spec.one.b: FieldValueForbidden")];
    let untouched = json!({"type": "None", "a": SECRET, "one": {}});
    let rows: [Row<'_>; 6] = [
        (Phase::Mutate, Some(&of_a), &switched, &[("cleared", "spec.a, spec.one.a"), ("set", "spec.one.type=\"B\"")]),
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
    let items: Vec<_> = (0..10_000).map(|_| json!({"a": SECRET, "b": SECRET})).collect();
    let annotations = annotations(Phase::Validate, None, &json!({"list": items}));
    let (listed, more) = annotations["denied"].rsplit_once(", and ").unwrap();
    let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
    assert_eq!(listed.split(", ").count() + more, 10_000, "{listed}");
}
