//! An API server with validating policies and without mutating ones: Kubernetes 1.33.
//!
//! `make e2e-older` builds it and requires these tests. Elsewhere they are skipped if it has not been built.

use serde_json::{Value, json};

use super::agreement::{Subject, differences};
use super::{Native, rules, warning};
use kube_unions_policies::{KubernetesVersion, PolicyOptions};

const GROUP: &str = "older.example";

fn options() -> PolicyOptions {
    PolicyOptions { server: KubernetesVersion::new(1, 33), ..warning() }
}

/// Returns an object with a union of the 2022 form and one of the 2019 form.
fn unions() -> Value {
    json!({"type": "object", "x-kubernetes-unions": [{"discriminator": "kind", "fields-to-discriminateBy": {"x": "X", "y": "Y"}}],
        "properties": {
            "type": {"type": "string", "x-kubernetes-unions": {"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b", "optional": true}}}},
            "a": {"type": "string"}, "b": {"type": "string"}, "kind": {"type": "string"}, "x": {"type": "string"}, "y": {"type": "string"}}})
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "struct": unions(), "list": {"type": "array", "items": unions()},
        "map": {"type": "object", "additionalProperties": unions()}}}}})
}

#[test]
fn an_older_api_server_takes_the_validating_policies_and_denies_in_the_same_words() {
    let Some(native) = Native::start_older() else { return };
    let version = native.get("/version").body;
    assert_eq!(version["minor"], "33", "{version}");
    let mut subject = Subject::new(GROUP, "Denied", &schema());
    let within = |value: Value| json!({"spec": {"struct": value}});
    let both = || within(json!({"type": "B", "a": "v", "b": "v"}));
    for (about, old, new) in [
        ("a contradiction", None, within(json!({"type": "A", "a": "v", "b": "v"}))),
        ("a missing member", None, within(json!({"type": "A"}))),
        ("an unknown value", None, within(json!({"type": "C"}))),
        ("no discriminator", None, within(json!({"a": "v"}))),
        (
            "a switch that nothing normalises",
            Some(within(json!({"type": "A", "a": "v"}))),
            within(json!({"type": "B", "a": "v"})),
        ),
        ("two members", None, within(json!({"kind": "X", "x": "v", "y": "v"}))),
        ("a valid object", None, within(json!({"type": "A", "a": "v", "kind": "X", "x": "v"}))),
        ("an old fault", Some(both()), both()),
        ("a fault in a list is not seen", None, json!({"spec": {"list": []}})),
    ] {
        subject.write_without_mutation(about, old, new);
    }
    let found = differences(&native, &[subject], &options());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn an_older_api_server_judges_unions_in_keywords_four_lists_deep() {
    let Some(native) = Native::start_older() else { return };
    rules::keywords::are_judged_four_lists_deep(&native);
}
