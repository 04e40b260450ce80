//! Random schemas, objects and configurations for server-side apply.

use crate::generate::{FIELDS, Random};
use fixtures::dice::Dice;
use serde_json::{Value, json};

pub(super) const WORDS: [&str; 4] = ["x", "y", "<z>", "é\"1"];

/// Returns the schema of a kind: fields beside `apiVersion`, `kind` and `metadata`, and types that refer to themselves.
pub(super) fn kind(dice: &mut Dice, with_definitions: bool) -> Value {
    let mut schema = json!({"type": "object", "properties": {"spec": structure(dice, 3, with_definitions),
        "status": structure(dice, 1, false)}});
    if with_definitions {
        schema["definitions"] = json!({"Node": structure(dice, 2, true), "Leaf": structure(dice, 0, false)});
    }
    schema
}

fn structure(dice: &mut Dice, depth: usize, refers: bool) -> Value {
    let mut schema = json!({"type": "object"});
    for name in FIELDS.iter().take(1 + dice.below(5)) {
        schema["properties"][name] = field(dice, depth, refers);
    }
    if dice.odds(150) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    map_type(dice, &mut schema);
    schema
}

fn map_type(dice: &mut Dice, schema: &mut Value) {
    match dice.below(8) {
        0 => schema["x-kubernetes-map-type"] = json!("atomic"),
        1 => schema["x-kubernetes-map-type"] = json!("granular"),
        _ => {}
    }
}

/// Changes who can own parts of lists and objects, as a new version of a CRD does.
pub(super) fn evolve(dice: &mut Dice, schema: &mut Value) {
    match schema["type"].as_str() {
        Some("object") if dice.odds(250) => {
            schema["x-kubernetes-map-type"] = json!(*dice.pick(&["atomic", "granular"]));
        }
        Some("array") if dice.odds(250) => {
            let part = if schema["x-kubernetes-list-map-keys"].is_array() { "map" } else { "set" };
            let scalars = schema["items"]["properties"].is_null() && schema["items"]["type"].is_string();
            let granular =
                part == "map" || scalars && schema["items"]["type"] != "object" && schema["items"]["type"] != "array";
            schema["x-kubernetes-list-type"] = json!(if granular && dice.odds(500) { part } else { "atomic" });
        }
        _ => {}
    }
    let fields = ["properties", "definitions"]
        .map(|name| schema[name].as_object().map(|all| (name, all.keys().cloned().collect::<Vec<_>>())));
    for (name, keys) in fields.into_iter().flatten() {
        for key in keys {
            evolve(dice, &mut schema[name][key]);
        }
    }
    for name in ["items", "additionalProperties"] {
        if schema[name].is_object() {
            evolve(dice, &mut schema[name]);
        }
    }
}

fn scalar_schema(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"x-kubernetes-int-or-string": true}),
    ])
    .clone()
}

fn field(dice: &mut Dice, depth: usize, refers: bool) -> Value {
    if refers && dice.odds(200) {
        let mut schema =
            json!({"allOf": [{"$ref": dice.pick(&["#/definitions/Node", "#/definitions/Leaf"])}], "default": {}});
        map_type(dice, &mut schema);
        return schema;
    }
    let mut schema = match dice.below(if depth == 0 { 7 } else { 16 }) {
        0 | 1 => scalar_schema(dice),
        2 => json!({"type": "object", "additionalProperties": scalar_schema(dice)}),
        3 => json!({"type": "array", "items": scalar_schema(dice)}),
        4 | 5 => json!({"type": "array", "items": scalar_schema(dice), "x-kubernetes-list-type": "set"}),
        6 => match dice.below(4) {
            0 => json!({}),
            1 => json!({"x-kubernetes-preserve-unknown-fields": true}),
            2 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            _ => json!({"type": "object"}),
        },
        7 | 8 => structure(dice, depth - 1, refers),
        9 => json!({"type": "object", "additionalProperties": field(dice, depth - 1, refers)}),
        10 => json!({"type": "array", "items": structure(dice, depth - 1, refers), "x-kubernetes-list-type": "atomic"}),
        _ => keyed(dice, depth - 1, refers),
    };
    if schema["type"] == "object" && schema["additionalProperties"].is_object() {
        map_type(dice, &mut schema);
    }
    schema
}

fn keyed(dice: &mut Dice, depth: usize, refers: bool) -> Value {
    let mut items = structure(dice, depth, refers);
    items["properties"]["name"] = json!({"type": *dice.pick(&["string", "integer"])});
    let mut keys = vec!["name"];
    if dice.odds(500) {
        items["properties"]["protocol"] = json!({"type": "string", "enum": ["TCP", "UDP"]});
        keys.push("protocol");
        if dice.odds(700) {
            items["properties"]["protocol"]["default"] = json!("TCP");
        }
    }
    if dice.odds(100) {
        return json!({"type": "array", "items": items, "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-patch-merge-key": "name"});
    }
    json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

/// Returns a schema with the types themselves in the place of references to them, as deep as objects are made.
pub(super) fn resolved(root: &Value, schema: &Value, depth: usize) -> Value {
    match (schema, schema["allOf"][0]["$ref"].as_str()) {
        (_, Some(_)) if depth == 0 => json!({"type": "object", "properties": {}}),
        (_, Some(reference)) => resolved(root, root.pointer(&reference[1..]).unwrap(), depth - 1),
        (Value::Object(fields), None) => {
            fields.iter().map(|(name, value)| (name.clone(), resolved(root, value, depth))).collect()
        }
        (other, None) => other.clone(),
    }
}

/// Returns an object with some of the fields of a resolved schema.
pub(super) fn object(random: &mut Random, schema: &Value) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
    for name in ["spec", "status"] {
        if random.dice.odds(850) {
            object[name] = random.value(&schema["properties"][name]);
        }
    }
    if random.dice.odds(600) {
        object["metadata"] = metadata(random);
    }
    object
}

fn metadata(random: &mut Random) -> Value {
    let mut metadata = json!({"name": "it"});
    for name in ["labels", "annotations"] {
        if random.dice.odds(300) {
            metadata[name] = json!({*random.dice.pick(&FIELDS): *random.dice.pick(random.words)});
        }
    }
    if random.dice.odds(200) {
        let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
        metadata["finalizers"] = random.value(&set);
    }
    if random.dice.odds(200) {
        let owner = json!({"uid": *random.dice.pick(random.words), "kind": *random.dice.pick(random.words)});
        metadata["ownerReferences"] = json!([owner]);
    }
    metadata
}

/// Returns an object after some changes. Its fields, items and types may be others.
pub(super) fn changed(random: &mut Random, schema: &Value, before: &Value) -> Value {
    let mut after = before.clone();
    for name in ["spec", "status"] {
        let field = &schema["properties"][name];
        match (random.dice.below(6), before.get(name)) {
            (0, Some(_)) => {
                after.as_object_mut().unwrap().shift_remove(name);
            }
            (1..=4, Some(value)) => after[name] = random.changed(field, value),
            (1, None) => after[name] = random.value(field),
            _ => {}
        }
    }
    if random.dice.odds(150) {
        after["metadata"] = metadata(random);
    }
    after
}
