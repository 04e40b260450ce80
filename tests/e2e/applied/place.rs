//! The place of a union in an object.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A JSON pointer, and the fields of the object there that are no part of its content: the keys of an item. A null is a key that the API
/// server sets.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    pub(super) pointer: String,
    #[serde(default)]
    keys: Map<String, Value>,
}

impl Place {
    pub(super) fn new(pointer: &str, keys: &Value) -> Self {
        Self { pointer: pointer.to_owned(), keys: keys.as_object().expect("keys by name").clone() }
    }

    /// Returns the first field.
    pub(super) fn root(&self) -> &str {
        self.pointer.split('/').nth(1).unwrap_or_default()
    }

    /// Returns true if fields alone lead to the place: no items of a list, and no values of a map.
    pub(super) fn is_of_fields(&self) -> bool {
        self.pointer.split('/').all(|token| token != "0" && !token.ends_with("Values"))
    }

    /// Returns the content of the place. `None`: the object does not have the place.
    pub(super) fn content(&self, object: &Value) -> Option<Value> {
        let mut content = object.pointer(&self.pointer)?.clone();
        if let Some(fields) = content.as_object_mut() {
            fields.retain(|name, _| !self.keys.contains_key(name));
        }
        Some(content)
    }

    /// Merges fields into the content of the place, which is made if it is missing.
    pub(super) fn merge(&self, object: &mut Value, content: &Value) {
        json_patch::merge(self.make(object), content);
    }

    /// Writes the content of the place, with its nulls.
    pub(super) fn fill(&self, object: &mut Value, content: &Value) {
        match (self.make(object), content) {
            (Value::Object(fields), Value::Object(content)) => fields.extend(content.clone()),
            (at, content) => *at = content.clone(),
        }
    }

    /// Returns the place, which is made if it is missing. A number is the first item of a list.
    fn make<'o>(&self, object: &'o mut Value) -> &'o mut Value {
        let mut at = object;
        for token in self.pointer.split('/').skip(1) {
            if token == "0" {
                if at.is_null() {
                    *at = json!([{}]);
                }
                at = &mut at[0];
            } else {
                at = &mut at[token];
            }
        }
        json_patch::merge(at, &Value::Object(self.keys.clone()));
        at
    }
}
