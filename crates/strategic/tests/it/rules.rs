//! The merge rules of a custom resource as a list.

use serde_json::{Value, json};
use strategic_merge_patch::{MergeStrategy, Patcher, Schema, SchemaError};

/// Returns each rule as a line, without the rules of the object's own `metadata`.
fn rules(schema: &Value) -> Vec<String> {
    let all = all_rules(schema);
    let of_metadata = ["metadata.finalizers: set", "metadata.ownerReferences: keys uid"];
    for line in of_metadata {
        assert_eq!(all.iter().filter(|rule| *rule == line).count(), 1, "{all:#?}");
    }
    all.into_iter().filter(|line| !of_metadata.contains(&&**line)).collect()
}

fn all_rules(schema: &Value) -> Vec<String> {
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    let rules = Patcher::resource_rules("Thing", &schema).unwrap();
    assert!(rules.is_sorted_by_key(|rule| rule.place.clone()));
    let line = |rule: &strategic_merge_patch::MergeRule| {
        let strategy = match &rule.strategy {
            MergeStrategy::Keys(keys) => format!("keys {}", keys.join(" ")),
            MergeStrategy::Set => "set".to_owned(),
            MergeStrategy::Replace => "replace".to_owned(),
            MergeStrategy::Fields => "fields".to_owned(),
            other => panic!("{other:?}"),
        };
        format!("{}: {strategy}{}", rule.place, if rule.retain_keys { ", retain keys" } else { "" })
    };
    rules.iter().map(line).collect()
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn keyed(keys: &[&str], properties: &Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": object(properties)})
}

#[test]
fn each_list_or_object_with_a_rule_is_listed_unless_something_around_it_is_replaced() {
    let text = || json!({"type": "string"});
    let env = keyed(&["name"], &json!({"name": text()}));
    let with_env = object(&json!({"env": env}));
    let mut union = object(&json!({"type": text(), "a": text(), "b": text()}));
    union["x-kubernetes-unions"] = json!([{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let mut items = union.clone();
    items["properties"]["name"] = text();
    let mut many = keyed(&["name"], &json!({}));
    many["items"] = items;
    let mut embedded = object(&json!({"spec": with_env}));
    embedded["x-kubernetes-embedded-resource"] = json!(true);
    let rows = [
        (
            keyed(&["port", "protocol"], &json!({"port": {"type": "integer"}, "protocol": text()})),
            &["a: keys port protocol"][..],
        ),
        (keyed(&["name"], &json!({"name": text(), "env": env})), &["a: keys name", "a[*].env: keys name"]),
        (json!({"type": "object", "additionalProperties": with_env}), &["a.*.env: keys name"]),
        (json!({"type": "array", "x-kubernetes-list-type": "set", "items": text()}), &["a: set"]),
        (json!({"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text()}), &["a: replace"]),
        (json!({"type": "integer"}), &[]),
        // A list or object that is replaced has no rules inside.
        (json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": with_env}), &[]),
        (json!({"type": "array", "items": with_env}), &[]),
        (json!({"type": "array", "x-kubernetes-list-type": "set", "items": with_env}), &[]),
        (json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"env": env}}), &["a: replace"]),
        (union.clone(), &["a: fields, retain keys"]),
        (many, &["a: keys name, retain keys"]),
        // An embedded resource has only the rules of its own schema.
        (embedded, &["a.spec.env: keys name"]),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            &[],
        ),
    ];
    for (schema, wanted) in rows {
        assert_eq!(rules(&object(&json!({"a": schema}))), wanted, "{schema}");
    }
    assert_eq!(rules(&union), [": fields, retain keys"]);
}

#[test]
fn a_schema_that_contradicts_itself_has_no_rules() {
    let schema: Schema =
        serde_json::from_value(object(&json!({"a": {"x-kubernetes-patch-strategy": "both"}}))).unwrap();
    let error = Patcher::resource_rules("Thing", &schema).unwrap_err();
    assert!(matches!(error, SchemaError::Strategy { .. }), "{error}");
}
