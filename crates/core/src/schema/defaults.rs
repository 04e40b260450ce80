//! Completes an object as the API server does after it has decoded one: prunes nulls, then adds the defaults of the schema.
//!
//! Admission sees objects with their defaults. The algorithm is that of `PruneNonNullableNullsWithoutDefaults` and `Default` of
//! the API server for custom resources. Built-in types have their defaults in Go code, so their schemas say nothing of them;
//! only schemas of CRDs may be used here. Unknown fields are not pruned: they are in no union.

use super::{DefaultValue, Schema};
use serde_json::Value;

/// Most bytes that defaults may add to an object, approximately. Objects of the API server have at most 3 MiB.
const MOST_ADDED: usize = 16 << 20;

/// The defaults would make an object too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of the schema would add more than {MOST_ADDED} bytes to the object")]
pub struct DefaultsError;

impl Schema {
    /// Prunes nulls from an object of this schema and adds its defaults, as the API server does for custom resources.
    ///
    /// A null of a field that is not nullable becomes the default, or is removed if there is none. A default is added to every
    /// object that exists: below an object that is itself a default, in the items of lists, and in the values of maps.
    ///
    /// # Errors
    /// Returns an error if the defaults add too much. The object is incomplete then.
    pub fn complete(&self, object: &mut Value) -> Result<(), DefaultsError> {
        self.prune_nulls(object);
        self.add_defaults(object, &mut 0)
    }

    /// Returns the default, if it is not null.
    fn given_default(&self) -> Option<&Value> {
        match &self.default {
            DefaultValue::Absent | DefaultValue::Zero(Value::Null) => None,
            DefaultValue::Zero(value) | DefaultValue::Given(value) => Some(value),
        }
    }

    fn replaces_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }

    /// Removes the nulls of fields that are neither nullable nor have a default.
    fn prune_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                let values = self.additional_properties.as_deref();
                let Some(schema) = self.properties.get(name.as_str()).or(values) else { return true };
                if schema.replaces_null(value) && schema.given_default().is_none() {
                    return false;
                }
                schema.prune_nulls(value);
                true
            }),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.prune_nulls(item);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add_defaults(&self, value: &mut Value, added: &mut usize) -> Result<(), DefaultsError> {
        match value {
            Value::Object(fields) => {
                for (name, property) in &self.properties {
                    let Some(default) = property.given_default() else { continue };
                    let missing = fields.get(&**name).is_none_or(|value| property.replaces_null(value));
                    if missing {
                        fields.insert(name.to_string(), counted(default, added)?);
                    }
                }
                for (name, value) in fields {
                    if let Some(property) = self.properties.get(name.as_str()) {
                        property.add_defaults(value, added)?;
                    } else if let Some(values) = &self.additional_properties {
                        values.replace_null(value, added)?;
                        values.add_defaults(value, added)?;
                    }
                }
            }
            Value::Array(list) => {
                for item in list {
                    let Some(items) = &self.items else { break };
                    items.replace_null(item, added)?;
                    items.add_defaults(item, added)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// Replaces a null item of a list or value of a map.
    fn replace_null(&self, value: &mut Value, added: &mut usize) -> Result<(), DefaultsError> {
        if self.replaces_null(value)
            && let Some(default) = self.given_default()
        {
            *value = counted(default, added)?;
        }
        Ok(())
    }
}

/// Copies a default, and adds its size to `added`.
fn counted(default: &Value, added: &mut usize) -> Result<Value, DefaultsError> {
    *added = added.saturating_add(size(default));
    if *added > MOST_ADDED { Err(DefaultsError) } else { Ok(default.clone()) }
}

/// Returns the approximate size of a value in memory, in bytes.
fn size(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len().saturating_add(size(value))).sum(),
    };
    inner.saturating_add(size_of::<Value>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn completed(schema: &Value, mut object: Value) -> Value {
        let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
        schema.complete(&mut object).unwrap();
        let once = object.clone();
        schema.complete(&mut object).unwrap();
        assert_eq!(object, once, "completing twice changes nothing");
        object
    }

    #[test]
    fn defaults_are_added_to_objects_that_exist() {
        let inner = json!({"type": "object", "properties": {"type": {"type": "string", "default": "A"}}});
        let mut with_default = inner.clone();
        with_default["default"] = json!({});
        let schema = json!({"type": "object", "properties": {
            "plain": inner, "made": with_default, "zero": {"type": "integer", "default": 0}, "none": {"type": "string", "default": null},
            "list": {"type": "array", "items": inner}, "map": {"type": "object", "additionalProperties": inner},
        }});
        for (object, want) in [
            (json!({}), json!({"made": {"type": "A"}, "zero": 0})),
            (json!({"plain": {}, "zero": 1}), json!({"plain": {"type": "A"}, "zero": 1, "made": {"type": "A"}})),
            (
                json!({"list": [{}, {"type": "B"}], "map": {"k": {}}}),
                json!({"list": [{"type": "A"}, {"type": "B"}], "map": {"k": {"type": "A"}}, "made": {"type": "A"}, "zero": 0}),
            ),
            (json!({"list": 1, "made": "x"}), json!({"list": 1, "made": "x", "zero": 0})),
        ] {
            assert_eq!(completed(&schema, object), want);
        }
    }

    #[test]
    fn nulls_become_the_default_or_go_unless_they_are_allowed() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string", "default": "B"}, "c": {"type": "string", "nullable": true},
            "d": {"type": "string", "nullable": true, "default": "D"}, "free": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true},
            "list": {"type": "array", "items": {"type": "string"}}, "filled": {"type": "array", "items": {"type": "string", "default": "F"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        let object = json!({"a": null, "b": null, "c": null, "d": null, "free": {"x": null}, "list": [null, "x"],
            "filled": [null, "x"], "map": {"k": null, "l": "x"}, "unknown": null});
        let want = json!({"b": "B", "c": null, "d": null, "free": {"x": null}, "list": [null, "x"], "filled": ["F", "x"],
            "map": {"l": "x"}, "unknown": null});
        assert_eq!(completed(&schema, object), want);
    }

    #[test]
    fn defaults_cannot_fill_the_memory() {
        let text = "x".repeat(1 << 12);
        let schema: Schema =
            serde_json::from_value(json!({"items": {"properties": {"a": {"default": text}}}})).unwrap();
        let mut object = Value::from(vec![json!({}); 1 << 13]);
        assert_eq!(schema.complete(&mut object), Err(DefaultsError));
        let mut object = Value::from(vec![json!({}); 1 << 8]);
        schema.complete(&mut object).unwrap();
    }
}
