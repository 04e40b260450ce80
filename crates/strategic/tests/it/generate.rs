//! Random schemas, objects and patches for the tests.

use fixtures::dice::Dice;
use serde_json::{Map, Value, json};

pub(super) const FIELDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
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

/// Returns the keys by which the items of a list must differ: none if the whole items must, and `None` if they may be equal.
fn unique(schema: &Value) -> Option<Vec<&str>> {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => {
            Some(schema["x-kubernetes-list-map-keys"].as_array()?.iter().filter_map(Value::as_str).collect())
        }
        Some("set") => Some(Vec::new()),
        _ => merges(schema).then(|| key(schema).into_iter().collect()),
    }
}

/// Returns the schema of a property or of a map's values, or null if the schema has neither.
pub(super) fn field<'s>(schema: &'s Value, name: &str) -> &'s Value {
    let property = &schema["properties"][name];
    if property.is_null() { &schema["additionalProperties"] } else { property }
}

/// Returns the text by which Go sorts a value.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Keeps the first of the items with the same keys, or of equal items. Keys have the defaults of their properties.
pub(super) fn distinct(items: &mut Vec<Value>, keys: &[&str], properties: &Value) {
    let mut seen = Vec::new();
    items.retain(|item| {
        let key = |key: &&str| item.get(*key).unwrap_or(&properties[*key]["default"]).clone();
        let whole = || item.as_f64().map_or_else(|| item.clone(), Value::from);
        let id = if keys.is_empty() { whole() } else { keys.iter().map(key).collect() };
        let new = !seen.contains(&id);
        seen.push(id);
        new
    });
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

/// Makes random values of a schema.
pub(super) struct Random {
    pub(super) dice: Dice,
    pub(super) words: &'static [&'static str],
    /// Some values are null.
    pub(super) nulls: bool,
    /// Some values do not fit the schema.
    pub(super) misfits: bool,
    /// The number of lists in a thousand that may have duplicate items.
    pub(super) duplicates: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice(seed), words: &WORDS, nulls: true, misfits: true, duplicates: 30 }
    }

    /// Makes only values that a patch can express.
    pub(super) fn plain(seed: u64) -> Self {
        Self { nulls: false, misfits: false, duplicates: 0, ..Self::new(seed) }
    }

    fn scalar(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return self.dice.pick(values).clone();
        } else if self.misfits && self.dice.odds(15) {
            return json!(*self.dice.pick(&[1.5, 2.5]));
        }
        match schema["type"].as_str() {
            Some("integer") => json!(self.dice.below(12)),
            Some("number") => self.dice.pick(&[json!(1), json!(1.0), json!(1.5), json!(2)]).clone(),
            Some("boolean") => json!(self.dice.odds(500)),
            None if schema["x-kubernetes-int-or-string"] == true && self.dice.odds(500) => json!(self.dice.below(3)),
            _ if self.misfits && self.dice.odds(10) => json!(self.dice.odds(500)),
            _ => json!(*self.dice.pick(self.words)),
        }
    }

    /// Returns a value of a schema, and rarely null or a value of another type.
    pub(super) fn value(&mut self, schema: &Value) -> Value {
        if (self.nulls || self.misfits) && self.dice.odds(12) {
            match self.dice.below(4) {
                0 | 1 if self.nulls => return Value::Null,
                2 if self.misfits => return json!("other"),
                3 if self.misfits => return json!({"other": 1}),
                _ => {}
            }
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => self.list(schema),
            None if schema.is_object() && schema["x-kubernetes-int-or-string"].is_null() => {
                let open = json!({"type": "object"});
                let all = [
                    json!({"type": "integer"}),
                    json!({"type": "array", "items": open}),
                    open.clone(),
                    json!({"type": "object", "additionalProperties": open}),
                ];
                let schema = self.dice.pick(&all);
                self.value(schema)
            }
            _ => self.scalar(schema),
        }
    }

    pub(super) fn object(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        let described = schema["properties"].as_object();
        for name in described.into_iter().flat_map(Map::keys).filter(|name| *name != "name") {
            let is_required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
            if is_required || self.dice.odds(550) {
                fields.insert(name.clone(), self.value(&schema["properties"][name]));
            }
        }
        if described.is_none() {
            for name in FIELDS.iter().take(self.dice.below(5)) {
                let open = json!({"type": *self.dice.pick(&["string", "integer", "array"])});
                let schema =
                    if schema["additionalProperties"].is_null() { &open } else { &schema["additionalProperties"] };
                fields.insert((*name).to_owned(), self.value(schema));
            }
        }
        if described.is_some() && schema["x-kubernetes-preserve-unknown-fields"] == true && self.dice.odds(500) {
            fields.insert("more".to_owned(), self.value(&json!({})));
        }
        if self.misfits && self.dice.odds(4) {
            fields.insert("unknown".to_owned(), json!({"z": self.dice.below(3)}));
        }
        Value::Object(fields)
    }

    fn list(&mut self, schema: &Value) -> Value {
        let size = self.dice.below(6);
        let mut items: Vec<Value> = (0..size).map(|_| self.item(&schema["items"])).collect();
        if self.misfits && self.dice.odds(4) {
            items.push(Value::Null);
        }
        self.make_unique(schema, &mut items);
        // Go's package sorts sets, so unsorted ones would hide most other differences.
        if merges(schema) && schema["items"]["type"] != "object" && !self.dice.odds(60) {
            items.sort_by_key(text);
        }
        Value::Array(items)
    }

    fn item(&mut self, schema: &Value) -> Value {
        if schema["type"] != "object" {
            return self.scalar(schema);
        }
        let mut item = self.object(schema);
        let name = &schema["properties"]["name"];
        if !(name.is_null() || self.misfits && self.dice.odds(6)) {
            let value = if self.misfits && self.dice.odds(4) { json!({"k": 1}) } else { self.scalar(name) };
            item.as_object_mut().unwrap().insert("name".to_owned(), value);
        }
        item
    }

    /// Returns the object after some changes.
    pub(super) fn changed(&mut self, schema: &Value, before: &Value) -> Value {
        let mut after = before.clone();
        let Some(fields) = after.as_object_mut() else { return after };
        let names: Vec<String> = fields.keys().cloned().collect();
        for name in names {
            let field = field(schema, &name);
            match self.dice.below(10) {
                0 if name != "name" => {
                    fields.shift_remove(&name);
                }
                1 if name != "name" => {
                    fields.insert(name, self.value(field));
                }
                2..=5 => {
                    let inner = match &fields[&name] {
                        Value::Object(_) => self.changed(field, &fields[&name]),
                        Value::Array(items) => self.changed_list(field, items),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
                    };
                    fields.insert(name, inner);
                }
                _ => {}
            }
        }
        if self.dice.odds(300) {
            let Value::Object(more) = self.object(schema) else { return after };
            for (name, value) in more.into_iter().take(2) {
                fields.entry(name).or_insert(value);
            }
        }
        after
    }

    fn changed_list(&mut self, schema: &Value, before: &[Value]) -> Value {
        let mut items: Vec<Value> = before.iter().filter(|_| !self.dice.odds(150)).cloned().collect::<Vec<_>>();
        for item in &mut items {
            if self.dice.odds(300) && item.is_object() {
                *item = self.changed(&schema["items"], item);
            }
        }
        for _ in 0..self.dice.below(3) {
            let at = self.dice.below(items.len() + 1);
            items.insert(at, self.item(&schema["items"]));
        }
        if self.dice.odds(150) {
            self.dice.shuffle(&mut items);
        } else if merges(schema) && schema["items"]["type"] != "object" && !self.dice.odds(60) {
            items.sort_by_key(text);
        }
        self.make_unique(schema, &mut items);
        Value::Array(items)
    }

    fn make_unique(&mut self, schema: &Value, items: &mut Vec<Value>) {
        // No patch can express an item of a merging list of objects without a key.
        if !self.misfits && merges(schema) && key(schema).is_none() && schema["items"]["type"] == "object" {
            items.clear();
        }
        if !self.dice.odds(self.duplicates)
            && let Some(keys) = unique(schema)
        {
            distinct(items, &keys, &schema["items"]["properties"]);
        }
    }

    /// Returns a patch for an object, with directives.
    pub(super) fn patch(&mut self, schema: &Value, live: &Value) -> Value {
        let mut fields = Map::new();
        if self.dice.odds(12) {
            fields.insert("$patch".to_owned(), json!(*self.dice.pick(&["replace", "delete", "merge", "odd"])));
        }
        let names: Vec<String> = match schema["properties"].as_object() {
            Some(properties) => properties.keys().filter(|name| *name != "name").cloned().collect(),
            None => FIELDS.iter().take(3).map(|name| (*name).to_owned()).collect(),
        };
        for name in names {
            let field = field(schema, &name);
            if !self.dice.odds(450) {
                continue;
            }
            let live = &live[&name];
            if self.dice.odds(60) {
                fields.insert(name, Value::Null);
            } else if live.is_null() && self.dice.odds(800) {
                fields.insert(name, self.value(field));
            } else if field["type"] == "object" && self.dice.odds(950) {
                fields.insert(name, self.patch(field, live));
            } else if field["type"] == "array" {
                self.list_patch(field, live, &name, &mut fields);
            } else {
                fields.insert(name, self.value(field));
            }
        }
        if self.dice.odds(70) {
            let all = fields.keys().filter(|key| !key.starts_with('$')).cloned().collect::<Vec<_>>();
            let mut keys: Vec<Value> = all.into_iter().filter(|_| !self.dice.odds(30)).map(Value::from).collect();
            if !schema["properties"]["name"].is_null() {
                keys.push(json!("name"));
            }
            keys.push(json!(*self.dice.pick(&FIELDS)));
            if self.dice.odds(40) {
                keys.push(self.dice.pick(&[json!(1), Value::Null, json!({})]).clone());
            }
            fields.insert("$retainKeys".to_owned(), Value::Array(keys));
        }
        if self.dice.odds(3) {
            fields.insert("$odd".to_owned(), json!(1));
        }
        Value::Object(fields)
    }

    fn list_patch(&mut self, schema: &Value, live: &Value, name: &str, fields: &mut Map<String, Value>) {
        let there = live.as_array().map(Vec::as_slice).unwrap_or_default();
        let key = key(schema);
        let mut items = Vec::new();
        for old in there {
            match (self.dice.below(5), key) {
                (0, Some(key)) => items.push(json!({key: old[key].clone(), "$patch": "delete"})),
                (1 | 2, Some(key)) => {
                    let mut item = self.patch(&schema["items"], old);
                    item[key] = old[key].clone();
                    items.push(item);
                }
                (0, None) if !merges(schema) => items.push(old.clone()),
                _ => {}
            }
        }
        for _ in 0..self.dice.below(3) {
            let new = if schema["items"]["type"] == "object" && self.dice.odds(100) {
                let mut new = self.patch(&schema["items"], &Value::Null);
                if key.is_some() {
                    new["name"] = self.scalar(&schema["items"]["properties"]["name"]);
                }
                new
            } else {
                self.item(&schema["items"])
            };
            items.push(new);
        }
        if self.dice.odds(200) {
            self.dice.shuffle(&mut items);
        }
        if self.dice.odds(15) && key.is_some() {
            items.push(json!({"$patch": *self.dice.pick(&["replace", "replace", "merge"])}));
        }
        let id = |item: &Value| key.map_or_else(|| item.clone(), |key| item[key].clone());
        if self.dice.odds(250) {
            let kept = items.iter().filter(|item| item["$patch"].is_null());
            let mut order: Vec<Value> = kept.chain(there.iter().filter(|_| self.dice.odds(500))).map(id).collect();
            distinct(&mut order, &[], &Value::Null);
            if self.dice.odds(60) {
                self.dice.shuffle(&mut order);
            }
            if self.dice.odds(20) {
                order.clear();
            }
            let order = order.into_iter().map(|id| key.map_or_else(|| id.clone(), |key| json!({key: id})));
            fields.insert(format!("$setElementOrder/{name}"), order.collect());
        }
        if schema["items"]["type"] != "object" && self.dice.odds(300) {
            let mut gone: Vec<Value> = there.iter().filter(|_| self.dice.odds(400)).cloned().collect();
            if self.dice.odds(200) {
                gone.push(self.scalar(&schema["items"]));
            }
            let gone = if self.dice.odds(15) { Value::Null } else { Value::Array(gone) };
            fields.insert(format!("$deleteFromPrimitiveList/{name}"), gone);
        }
        if self.dice.odds(850) {
            fields.insert(name.to_owned(), Value::Array(items));
        }
    }
}
