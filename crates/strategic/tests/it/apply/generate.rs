//! Random schemas, objects and configurations for server-side apply.

use fixtures::dice::Dice;
use serde_json::{Map, Value, json};

const FIELDS: [&str; 5] = ["a", "b", "c", "d", "e"];
const WORDS: [&str; 4] = ["x", "y", "<z>", "é\"1"];

/// The number of values in a thousand that are null.
const NULLS: u64 = 12;

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
        items["properties"]["protocol"] = json!({"type": "string"});
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

/// Returns the schema that a field refers to, or the schema itself.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["allOf"][0]["$ref"].as_str() {
        Some(reference) => root.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Makes and changes objects of a schema.
pub(super) struct Objects<'s> {
    pub(super) root: &'s Value,
    /// The number of values in a thousand that do not fit the schema.
    pub(super) odd: u64,
    /// The number of lists in a thousand that have duplicate items.
    pub(super) duplicates: u64,
}

impl Objects<'_> {
    /// Returns an object with some of the fields of the schema.
    pub(super) fn object(&self, dice: &mut Dice) -> Value {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
        for name in ["spec", "status"] {
            if dice.odds(850) {
                object[name] = self.value(dice, &self.root["properties"][name], 0);
            }
        }
        if dice.odds(600) {
            object["metadata"] = self.metadata(dice);
        }
        object
    }

    fn metadata(&self, dice: &mut Dice) -> Value {
        let mut metadata = json!({"name": "it"});
        for name in ["labels", "annotations"] {
            if dice.odds(300) {
                metadata[name] = json!({*dice.pick(&FIELDS): *dice.pick(&WORDS)});
            }
        }
        if dice.odds(200) {
            metadata["finalizers"] = self.value(
                dice,
                &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
                0,
            );
        }
        if dice.odds(200) {
            metadata["ownerReferences"] = json!([{"uid": *dice.pick(&WORDS), "kind": *dice.pick(&WORDS)}]);
        }
        metadata
    }

    /// Returns an object after some changes. Its fields, items and types may be others.
    pub(super) fn changed(&self, dice: &mut Dice, before: &Value) -> Value {
        let mut after = before.clone();
        for name in ["spec", "status"] {
            let schema = &self.root["properties"][name];
            match (dice.below(6), before.get(name)) {
                (0, Some(_)) => {
                    after.as_object_mut().unwrap().shift_remove(name);
                }
                (1..=4, Some(value)) => after[name] = self.change(dice, schema, value, 0),
                (1, None) => after[name] = self.value(dice, schema, 0),
                _ => {}
            }
        }
        if dice.odds(150) {
            after["metadata"] = self.metadata(dice);
        }
        after
    }

    fn value(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        let schema = resolved(self.root, schema);
        if dice.odds(self.odd) {
            return dice.pick(&[json!("odd"), json!(7), json!({"odd": 1}), json!([1]), json!([{}])]).clone();
        } else if dice.odds(NULLS) {
            return Value::Null;
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut fields = Map::new();
                self.set_fields(dice, schema, depth, 450, &mut fields);
                Value::Object(fields)
            }
            Some("array") => {
                let size = dice.below(4);
                let mut items: Vec<Value> = (0..size).map(|_| self.item(dice, &schema["items"], depth + 1)).collect();
                self.without_duplicates(dice, schema, &mut items);
                Value::Array(items)
            }
            Some(name) => scalar(dice, name),
            None if schema["x-kubernetes-int-or-string"] == true => {
                let name = *dice.pick(&["string", "integer"]);
                scalar(dice, name)
            }
            None => match dice.below(if depth > 4 { 2 } else { 4 }) {
                0 => json!({*dice.pick(&FIELDS): scalar(dice, "integer")}),
                1 => scalar(dice, "string"),
                2 => json!([scalar(dice, "integer"), {"a": scalar(dice, "string")}]),
                _ => json!({*dice.pick(&FIELDS): self.value(dice, &json!({}), depth + 1)}),
            },
        }
    }

    fn set_fields(&self, dice: &mut Dice, schema: &Value, depth: usize, odds: u64, fields: &mut Map<String, Value>) {
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                if depth < 6 && dice.odds(odds) {
                    fields.insert(name.clone(), self.value(dice, property, depth + 1));
                }
            }
        }
        let open = schema["properties"].is_null() || schema["x-kubernetes-preserve-unknown-fields"] == true;
        let values =
            if schema["additionalProperties"].is_object() { &schema["additionalProperties"] } else { &Value::Null };
        if open && depth < 6 {
            for _ in 0..dice.below(3) {
                let name =
                    format!("{}{}", dice.pick(&FIELDS), if schema["properties"].is_null() { "" } else { "-more" });
                fields.insert(name, self.value(dice, values, depth + 1));
            }
        } else if dice.odds(self.odd) {
            fields.insert("undeclared".to_owned(), json!(1));
        }
    }

    fn item(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        let mut item = self.value(dice, schema, depth);
        let properties = &resolved(self.root, schema)["properties"];
        if let Some(fields) = item.as_object_mut()
            && !properties["name"].is_null()
            && !dice.odds(NULLS)
        {
            fields.insert("name".to_owned(), scalar(dice, properties["name"]["type"].as_str().unwrap()));
            if !properties["protocol"].is_null() && dice.odds(500) {
                fields.insert("protocol".to_owned(), json!(*dice.pick(&["TCP", "UDP"])));
            }
        }
        item
    }

    fn without_duplicates(&self, dice: &mut Dice, schema: &Value, items: &mut Vec<Value>) {
        if dice.odds(self.duplicates) {
            return;
        }
        let mut seen = Vec::new();
        let keys: &[&str] = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => &[],
            Some("map") if schema["x-kubernetes-list-map-keys"].as_array().unwrap().len() > 1 => &["name", "protocol"],
            Some("map") => &["name"],
            _ if schema["x-kubernetes-patch-merge-key"].is_string() => &["name"],
            _ => return,
        };
        let default = resolved(self.root, &schema["items"])["properties"]["protocol"]["default"].clone();
        items.retain(|item| {
            let key = |key: &&str| {
                let value = item.get(*key).cloned().unwrap_or_default();
                if *key == "protocol" && item.get("protocol").is_none() { default.clone() } else { value }
            };
            let number = || item.as_f64().map_or_else(|| item.clone(), Value::from);
            let id = if keys.is_empty() { number() } else { keys.iter().map(key).collect() };
            let new = !seen.contains(&id);
            seen.push(id);
            new
        });
    }

    fn change(&self, dice: &mut Dice, schema: &Value, before: &Value, depth: usize) -> Value {
        let schema = resolved(self.root, schema);
        if dice.odds(100) {
            return self.value(dice, schema, depth);
        }
        match before {
            Value::Object(fields) => {
                let mut after = Map::new();
                for (name, value) in fields {
                    let mut inner = &schema["properties"][name];
                    if inner.is_null() && schema["additionalProperties"].is_object() {
                        inner = &schema["additionalProperties"];
                    }
                    match dice.below(10) {
                        0 | 1 => {}
                        2..=5 => {
                            after.insert(name.clone(), self.change(dice, inner, value, depth + 1));
                        }
                        _ => {
                            after.insert(name.clone(), value.clone());
                        }
                    }
                }
                if dice.odds(400) {
                    let mut more = Map::new();
                    self.set_fields(dice, schema, depth, 200, &mut more);
                    for (name, value) in more {
                        after.entry(name).or_insert(value);
                    }
                }
                Value::Object(after)
            }
            Value::Array(items) => {
                let mut after = Vec::new();
                for item in items {
                    match dice.below(8) {
                        0 => {}
                        1 | 2 => {
                            let mut changed = self.change(dice, &schema["items"], item, depth + 1);
                            for key in ["name", "protocol"] {
                                if let (Some(value), Some(fields)) = (item.get(key), changed.as_object_mut())
                                    && !dice.odds(NULLS)
                                {
                                    fields.insert(key.to_owned(), value.clone());
                                }
                            }
                            after.push(changed);
                        }
                        _ => after.push(item.clone()),
                    }
                }
                for _ in 0..dice.below(3) {
                    let at = dice.below(after.len() + 1);
                    let item = self.item(dice, &schema["items"], depth + 1);
                    after.insert(at, item);
                }
                if dice.odds(self.duplicates) && !after.is_empty() {
                    let copy = dice.pick(&after).clone();
                    after.push(copy);
                }
                if dice.odds(250) {
                    dice.shuffle(&mut after);
                }
                self.without_duplicates(dice, schema, &mut after);
                Value::Array(after)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.value(dice, schema, depth),
        }
    }
}

fn scalar(dice: &mut Dice, name: &str) -> Value {
    match name {
        "integer" => json!(dice.below(4)),
        "number" => dice.pick(&[json!(1), json!(1.0), json!(1.5), json!(2)]).clone(),
        "boolean" => json!(dice.odds(500)),
        _ => json!(*dice.pick(&WORDS)),
    }
}
