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
fn lists_and_objects_with_a_rule_are_listed_at_every_depth() {
    let env = keyed(&["name"], &json!({"name": {"type": "string"}}));
    let schema = object(&json!({"spec": object(&json!({
        "ports": keyed(&["port", "protocol"], &json!({"port": {"type": "integer"}, "protocol": {"type": "string"}})),
        "containers": keyed(&["name"], &json!({"name": {"type": "string"}, "env": env})),
        "pools": {"type": "object", "additionalProperties": object(&json!({"env": env}))},
        "hosts": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "replicas": {"type": "integer"},
    }))}));
    assert_eq!(
        rules(&schema),
        [
            "spec.containers: keys name",
            "spec.containers[*].env: keys name",
            "spec.hosts: set",
            "spec.pools.*.env: keys name",
            "spec.ports: keys port protocol",
            "spec.selector: replace",
        ]
    );
}

#[test]
fn nothing_is_listed_in_a_list_or_object_that_is_replaced() {
    let env = keyed(&["name"], &json!({"name": {"type": "string"}}));
    let schema = object(&json!({
        "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": object(&json!({"env": env}))},
        "untold": {"type": "array", "items": object(&json!({"env": env}))},
        "sets": {"type": "array", "x-kubernetes-list-type": "set", "items": object(&json!({"env": env}))},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"env": env}},
    }));
    assert_eq!(rules(&schema), ["whole: replace"]);
}

#[test]
fn a_union_retains_keys_of_an_object_or_of_items() {
    let members = json!({"type": {"type": "string"}, "a": {"type": "string"}, "b": {"type": "string"}});
    let unions = json!([{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let mut union = object(&members);
    union["x-kubernetes-unions"] = unions.clone();
    let mut items = members;
    items["name"] = json!({"type": "string"});
    let mut list = keyed(&["name"], &items);
    list["items"]["x-kubernetes-unions"] = unions;
    let schema = object(&json!({"spec": object(&json!({"one": union.clone(), "many": list}))}));
    assert_eq!(rules(&schema), ["spec.many: keys name, retain keys", "spec.one: fields, retain keys"]);
    assert_eq!(rules(&union), [": fields, retain keys"]);
}

#[test]
fn an_embedded_resource_has_only_the_rules_of_its_own_schema() {
    let env = keyed(&["name"], &json!({"name": {"type": "string"}}));
    let mut typed = object(&json!({"spec": object(&json!({"env": env}))}));
    typed["x-kubernetes-embedded-resource"] = json!(true);
    let open =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let schema = object(&json!({"a": typed, "b": open}));
    assert_eq!(rules(&schema), ["a.spec.env: keys name"]);
}

#[test]
fn a_schema_that_contradicts_itself_has_no_rules() {
    let schema: Schema =
        serde_json::from_value(object(&json!({"a": {"x-kubernetes-patch-strategy": "both"}}))).unwrap();
    let error = Patcher::resource_rules("Thing", &schema).unwrap_err();
    assert!(matches!(error, SchemaError::Strategy { .. }), "{error}");
}
