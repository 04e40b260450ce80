//! Generated kinds, and random objects of them: some values have another type than the schema says.

use fixtures::dice::Dice;
use fixtures::kinds::GeneratedKind;
use serde_json::{Map, Value, json};

use super::super::{anything, names_of};
use super::GROUP;

/// Names that make something else of an object than an object of its kind.
const RESERVED: [&str; 4] = ["apiVersion", "items", "kind", "metadata"];

/// A kind whose objects are written.
pub(super) struct WrittenKind {
    pub(super) kind: GeneratedKind,
    /// The schema of its only version.
    schema: Value,
    /// Names of fields that mean something.
    names: Vec<String>,
    pub(super) plural: String,
    pub(super) has_status: bool,
}

impl WrittenKind {
    /// `None`: a field of its root has a name that means something else there.
    pub(super) fn new(mut kind: GeneratedKind) -> Option<Self> {
        let version = &mut kind.definition["spec"]["versions"][0];
        add_notes(&mut version["schema"]["openAPIV3Schema"]);
        let schema = version["schema"]["openAPIV3Schema"].clone();
        let has_status = version["subresources"]["status"].is_object();
        if RESERVED.iter().any(|name| schema["properties"].get(*name).is_some()) {
            return None;
        }
        let names = names_of(&kind).into_iter().filter(|name| !RESERVED.contains(&&**name)).collect();
        let plural = kind.definition["spec"]["names"]["plural"].as_str().unwrap().to_owned();
        Some(Self { kind, schema, names, plural, has_status })
    }

    pub(super) fn collection(&self, namespace: &str) -> String {
        format!("/apis/{GROUP}/v1/namespaces/{namespace}/{}", self.plural)
    }

    /// Returns an object with fields at random.
    pub(super) fn object(&self, name: &str, dice: &mut Dice) -> Value {
        let maker = Maker { names: &self.names, wrong: dice.chance(20) };
        let mut object = maker.sample(&self.schema, 6, dice);
        if !object.is_object() {
            object = json!({});
        }
        self.identify(object, name)
    }

    fn identify(&self, mut object: Value, name: &str) -> Value {
        object["apiVersion"] = format!("{GROUP}/v1").into();
        object["kind"] = self.kind.definition["spec"]["names"]["kind"].clone();
        object["metadata"] = json!({"name": name});
        object
    }

    /// Returns a stored object with some of its fields changed.
    pub(super) fn changed(&self, stored: &Value, dice: &mut Dice) -> Value {
        let maker = Maker { names: &self.names, wrong: dice.chance(20) };
        let mut object = stored.clone();
        let metadata = object["metadata"].take();
        for name in ["apiVersion", "kind", "metadata"] {
            object.as_object_mut().unwrap().remove(name);
        }
        for _ in 0..=dice.below(2) {
            object =
                maker.changed(&object, &self.schema, 6, dice).filter(Value::is_object).unwrap_or_else(|| json!({}));
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let mut object = self.identify(object, &name);
        object["metadata"] = metadata;
        object
    }
}

/// Adds a field without a union to each object.
fn add_notes(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(add_notes);
        properties.entry("note").or_insert_with(|| json!({"type": "string"}));
    }
    for inside in ["items", "additionalProperties"] {
        if let Some(inside) = schema.get_mut(inside) {
            add_notes(inside);
        }
    }
}

/// Makes values by a schema.
struct Maker<'k> {
    names: &'k [String],
    /// Some values have another type than the schema says.
    wrong: bool,
}

impl Maker<'_> {
    fn sample(&self, schema: &Value, depth: usize, dice: &mut Dice) -> Value {
        if self.wrong && dice.chance(10) {
            return anything(dice, self.names, depth.min(3));
        }
        if schema["nullable"] == true && dice.chance(20) {
            return Value::Null;
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut fields = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    if dice.chance(55) {
                        fields.insert(name.clone(), self.sample(property, depth.saturating_sub(1), dice));
                    }
                }
                if schema["additionalProperties"].is_object() {
                    for name in ["x", "y/z", "u"].iter().take(dice.below(4)) {
                        let value = self.sample(&schema["additionalProperties"], depth.saturating_sub(1), dice);
                        fields.insert((*name).to_owned(), value);
                    }
                }
                if schema["x-kubernetes-preserve-unknown-fields"] == true {
                    for _ in 0..dice.below(5) {
                        fields.insert(dice.pick(self.names).clone(), anything(dice, self.names, depth.min(4)));
                    }
                }
                Value::Object(fields)
            }
            Some("array") => {
                (0..dice.below(4)).map(|_| self.sample(&schema["items"], depth.saturating_sub(1), dice)).collect()
            }
            Some("integer") => dice.below(3).into(),
            Some("boolean") => dice.chance(50).into(),
            Some(_) => (*dice.pick(&["A", "B", "C", "None", "", "1"])).into(),
            None => anything(dice, self.names, depth.min(4)),
        }
    }

    /// Returns a value with one part of it changed. `None`: it is removed.
    fn changed(&self, value: &Value, schema: &Value, depth: usize, dice: &mut Dice) -> Option<Value> {
        match dice.below(100) {
            0..8 => return Some(self.sample(schema, depth, dice)),
            8..14 => return None,
            14..16 => return Some(anything(dice, self.names, 2)),
            _ => {}
        }
        match value {
            Value::Object(fields) => {
                let known = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
                let mut names: Vec<String> = fields.keys().cloned().chain(known).collect();
                if names.is_empty() || schema["x-kubernetes-preserve-unknown-fields"] == true {
                    names.push(dice.pick(self.names).clone());
                }
                let name = dice.pick(&names);
                let of_field = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                let changed = match fields.get(name) {
                    Some(field) => self.changed(field, of_field, depth.saturating_sub(1), dice),
                    None => Some(self.sample(of_field, depth.saturating_sub(1), dice)),
                };
                let mut fields = fields.clone();
                match changed {
                    Some(changed) => drop(fields.insert(name.clone(), changed)),
                    None => drop(fields.shift_remove(name)),
                }
                Some(Value::Object(fields))
            }
            Value::Array(items) => {
                let mut items = items.clone();
                match dice.below(4) {
                    0 => items.push(self.sample(&schema["items"], depth.saturating_sub(1), dice)),
                    1 if !items.is_empty() => dice.shuffle(&mut items),
                    _ if items.is_empty() => items.push(self.sample(&schema["items"], depth.saturating_sub(1), dice)),
                    _ => {
                        let at = dice.below(items.len());
                        match self.changed(&items[at], &schema["items"], depth.saturating_sub(1), dice) {
                            Some(changed) => items[at] = changed,
                            None => drop(items.remove(at)),
                        }
                    }
                }
                Some(Value::Array(items))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Some(self.sample(schema, depth, dice))
            }
        }
    }
}
