//! Random schemas, objects and patches for the tests.

use fixtures::dice::Dice;
use serde_json::{Map, Value, json};

const FIELDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const WORDS: [&str; 7] = ["x", "y", "z", "10", "9", "1", "é"];

pub(super) fn strategy(schema: &Value) -> &str {
    schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default()
}

pub(super) fn merges(schema: &Value) -> bool {
    strategy(schema).contains("merge")
}

pub(super) fn key(schema: &Value) -> Option<&str> {
    schema["x-kubernetes-patch-merge-key"].as_str()
}

/// Returns the schema of a property or of a map's values, or null if the schema has neither.
pub(super) fn field<'s>(schema: &'s Value, name: &str) -> &'s Value {
    let property = &schema["properties"][name];
    if property.is_null() { &schema["additionalProperties"] } else { property }
}

/// Returns the schema of an object with several fields.
pub(super) fn schema(dice: &mut Dice, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in FIELDS.iter().take(3 + dice.below(5)) {
        properties.insert((*name).to_owned(), field_schema(dice, depth));
    }
    json!({"type": "object", "properties": properties})
}

fn field_schema(dice: &mut Dice, depth: usize) -> Value {
    let kinds = if depth == 0 { 6 } else { 12 };
    let mut field = match dice.below(kinds) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        3 => json!({"type": "array", "items": {"type": "integer"}}),
        4 | 5 => {
            let kind = *dice.pick(&["string", "integer"]);
            json!({"type": "array", "items": {"type": kind}, "x-kubernetes-patch-strategy": "merge"})
        }
        6 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        7 => json!({"type": "array", "items": schema(dice, depth - 1)}),
        8 | 9 => schema(dice, depth - 1),
        _ => {
            let mut items = schema(dice, depth - 1);
            items["properties"]["name"] = json!({"type": *dice.pick(&["string", "integer"])});
            let strategy = *dice.pick(&["merge", "merge", "merge,retainKeys", "replace"]);
            let key = if dice.odds(20) { Value::Null } else { json!("name") };
            json!({"type": "array", "items": items, "x-kubernetes-patch-strategy": strategy,
                "x-kubernetes-patch-merge-key": key})
        }
    };
    if field["type"] == "object" {
        match dice.below(8) {
            0 => field["x-kubernetes-patch-strategy"] = json!("replace"),
            1 | 2 => field["x-kubernetes-patch-strategy"] = json!("retainKeys"),
            _ => {}
        }
    }
    if field["x-kubernetes-patch-merge-key"].is_null() {
        field.as_object_mut().unwrap().remove("x-kubernetes-patch-merge-key");
    }
    field
}

fn scalar(dice: &mut Dice, schema: &Value) -> Value {
    if dice.odds(15) {
        return json!(*dice.pick(&[1.5, 2.5]));
    }
    match schema["type"].as_str() {
        Some("integer") => json!(dice.below(12)),
        _ if dice.odds(10) => json!(dice.odds(500)),
        _ => json!(*dice.pick(&WORDS)),
    }
}

/// Returns a value of a schema, and rarely null or a value of another type.
pub(super) fn value(dice: &mut Dice, schema: &Value) -> Value {
    if dice.odds(12) {
        return match dice.below(4) {
            0 | 1 => Value::Null,
            2 => json!("other"),
            _ => json!({"other": 1}),
        };
    }
    match schema["type"].as_str() {
        Some("object") => object(dice, schema),
        Some("array") => list(dice, schema),
        _ => scalar(dice, schema),
    }
}

pub(super) fn object(dice: &mut Dice, schema: &Value) -> Value {
    let mut fields = Map::new();
    let described = schema["properties"].as_object();
    for name in described.into_iter().flat_map(Map::keys).filter(|name| *name != "name") {
        if dice.odds(550) {
            fields.insert(name.clone(), value(dice, &schema["properties"][name]));
        }
    }
    if described.is_none() {
        for name in FIELDS.iter().take(dice.below(5)) {
            let open = json!({"type": *dice.pick(&["string", "integer", "array"])});
            let schema = if schema["additionalProperties"].is_null() { &open } else { &schema["additionalProperties"] };
            fields.insert((*name).to_owned(), value(dice, schema));
        }
    }
    if dice.odds(4) {
        fields.insert("unknown".to_owned(), json!({"z": dice.below(3)}));
    }
    Value::Object(fields)
}

fn list(dice: &mut Dice, schema: &Value) -> Value {
    let size = dice.below(6);
    let mut items: Vec<Value> = (0..size).map(|_| item(dice, &schema["items"])).collect();
    if dice.odds(4) {
        items.push(Value::Null);
    }
    if !dice.odds(30) && merges(schema) {
        distinct(&mut items, key(schema));
    }
    // Go's package sorts sets, so unsorted ones would hide most other differences.
    if merges(schema) && schema["items"]["type"] != "object" && !dice.odds(60) {
        items.sort_by_key(text);
    }
    Value::Array(items)
}

/// Returns the text by which Go sorts a value.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn item(dice: &mut Dice, schema: &Value) -> Value {
    if schema["type"] != "object" {
        return scalar(dice, schema);
    }
    let mut item = object(dice, schema);
    let name = &schema["properties"]["name"];
    if !name.is_null() && !dice.odds(6) {
        let value = if dice.odds(4) { json!({"k": 1}) } else { scalar(dice, name) };
        item.as_object_mut().unwrap().insert("name".to_owned(), value);
    }
    item
}

/// Keeps the first of the items with the same key, or of equal items.
pub(super) fn distinct(items: &mut Vec<Value>, key: Option<&str>) {
    let mut seen = Vec::new();
    items.retain(|item| {
        let id = key.map_or_else(|| item.clone(), |key| item[key].clone());
        let new = !seen.contains(&id);
        seen.push(id);
        new
    });
}

/// Returns the object after some changes.
pub(super) fn changed(dice: &mut Dice, schema: &Value, before: &Value) -> Value {
    let mut after = before.clone();
    let Some(fields) = after.as_object_mut() else { return after };
    let names: Vec<String> = fields.keys().cloned().collect();
    for name in names {
        let field = field(schema, &name);
        match dice.below(10) {
            0 if name != "name" => {
                fields.shift_remove(&name);
            }
            1 if name != "name" => {
                fields.insert(name, value(dice, field));
            }
            2..=5 => {
                let inner = match &fields[&name] {
                    Value::Object(_) => changed(dice, field, &fields[&name]),
                    Value::Array(items) => changed_list(dice, field, items),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
                };
                fields.insert(name, inner);
            }
            _ => {}
        }
    }
    if dice.odds(300) {
        let Value::Object(more) = object(dice, schema) else { return after };
        for (name, value) in more.into_iter().take(2) {
            fields.entry(name).or_insert(value);
        }
    }
    after
}

fn changed_list(dice: &mut Dice, schema: &Value, before: &[Value]) -> Value {
    let mut items: Vec<Value> = before.iter().filter(|_| !dice.odds(150)).cloned().collect::<Vec<_>>();
    for item in &mut items {
        if dice.odds(300) && item.is_object() {
            *item = changed(dice, &schema["items"], item);
        }
    }
    for _ in 0..dice.below(3) {
        let at = dice.below(items.len() + 1);
        items.insert(at, item(dice, &schema["items"]));
    }
    if dice.odds(150) {
        dice.shuffle(&mut items);
    } else if merges(schema) && schema["items"]["type"] != "object" && !dice.odds(60) {
        items.sort_by_key(text);
    }
    if !dice.odds(30) && merges(schema) {
        distinct(&mut items, key(schema));
    }
    Value::Array(items)
}

/// Returns a patch for an object, with directives.
pub(super) fn patch(dice: &mut Dice, schema: &Value, live: &Value) -> Value {
    let mut fields = Map::new();
    if dice.odds(12) {
        fields.insert("$patch".to_owned(), json!(*dice.pick(&["replace", "delete", "merge", "odd"])));
    }
    let names: Vec<String> = match schema["properties"].as_object() {
        Some(properties) => properties.keys().filter(|name| *name != "name").cloned().collect(),
        None => FIELDS.iter().take(3).map(|name| (*name).to_owned()).collect(),
    };
    for name in names {
        let field = field(schema, &name);
        if !dice.odds(450) {
            continue;
        }
        let live = &live[&name];
        if dice.odds(60) {
            fields.insert(name, Value::Null);
        } else if live.is_null() && dice.odds(800) {
            fields.insert(name, value(dice, field));
        } else if field["type"] == "object" && dice.odds(950) {
            fields.insert(name, patch(dice, field, live));
        } else if field["type"] == "array" {
            list_patch(dice, field, live, &name, &mut fields);
        } else {
            fields.insert(name, value(dice, field));
        }
    }
    if dice.odds(70) {
        let all = fields.keys().filter(|key| !key.starts_with('$')).cloned().collect::<Vec<_>>();
        let mut keys: Vec<Value> = all.into_iter().filter(|_| !dice.odds(30)).map(Value::from).collect();
        if !schema["properties"]["name"].is_null() {
            keys.push(json!("name"));
        }
        keys.push(json!(*dice.pick(&FIELDS)));
        if dice.odds(40) {
            keys.push(dice.pick(&[json!(1), Value::Null, json!({})]).clone());
        }
        fields.insert("$retainKeys".to_owned(), Value::Array(keys));
    }
    if dice.odds(3) {
        fields.insert("$odd".to_owned(), json!(1));
    }
    Value::Object(fields)
}

fn list_patch(dice: &mut Dice, schema: &Value, live: &Value, name: &str, fields: &mut Map<String, Value>) {
    let there = live.as_array().map(Vec::as_slice).unwrap_or_default();
    let key = key(schema);
    let mut items = Vec::new();
    for old in there {
        match (dice.below(5), key) {
            (0, Some(key)) => items.push(json!({key: old[key].clone(), "$patch": "delete"})),
            (1 | 2, Some(key)) => {
                let mut item = patch(dice, &schema["items"], old);
                item[key] = old[key].clone();
                items.push(item);
            }
            (0, None) if !merges(schema) => items.push(old.clone()),
            _ => {}
        }
    }
    for _ in 0..dice.below(3) {
        let new = if schema["items"]["type"] == "object" && dice.odds(100) {
            let mut new = patch(dice, &schema["items"], &Value::Null);
            if key.is_some() {
                new["name"] = scalar(dice, &schema["items"]["properties"]["name"]);
            }
            new
        } else {
            item(dice, &schema["items"])
        };
        items.push(new);
    }
    if dice.odds(200) {
        dice.shuffle(&mut items);
    }
    if dice.odds(15) && key.is_some() {
        items.push(json!({"$patch": *dice.pick(&["replace", "replace", "merge"])}));
    }
    let id = |item: &Value| key.map_or_else(|| item.clone(), |key| item[key].clone());
    if dice.odds(250) {
        let kept = items.iter().filter(|item| item["$patch"].is_null());
        let mut order: Vec<Value> = kept.chain(there.iter().filter(|_| dice.odds(500))).map(id).collect();
        distinct(&mut order, None);
        if dice.odds(60) {
            dice.shuffle(&mut order);
        }
        if dice.odds(20) {
            order.clear();
        }
        let order = order.into_iter().map(|id| key.map_or_else(|| id.clone(), |key| json!({key: id})));
        fields.insert(format!("$setElementOrder/{name}"), order.collect());
    }
    if schema["items"]["type"] != "object" && dice.odds(300) {
        let mut gone: Vec<Value> = there.iter().filter(|_| dice.odds(400)).cloned().collect();
        if dice.odds(200) {
            gone.push(scalar(dice, &schema["items"]));
        }
        let gone = if dice.odds(15) { Value::Null } else { Value::Array(gone) };
        fields.insert(format!("$deleteFromPrimitiveList/{name}"), gone);
    }
    if dice.odds(850) {
        fields.insert(name.to_owned(), Value::Array(items));
    }
}
