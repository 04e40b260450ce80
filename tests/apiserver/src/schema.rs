//! Structural schemas of CRDs: which fields they keep, and their defaults.

use serde_json::{Map, Value};

/// Removes the fields of a custom resource that its schema does not have, and notes their paths.
pub(crate) fn prune(schema: &Value, object: &mut Value, unknown: &mut Vec<String>) {
    prune_at(schema, object, "", true, unknown);
}

fn is_set(schema: &Value, extension: &str) -> bool {
    schema.get(extension) == Some(&Value::Bool(true))
}

fn prune_at(schema: &Value, value: &mut Value, path: &str, is_resource: bool, unknown: &mut Vec<String>) {
    let is_resource = is_resource || is_set(schema, "x-kubernetes-embedded-resource");
    match value {
        Value::Object(fields) => prune_fields(schema, fields, path, is_resource, unknown),
        Value::Array(items) => {
            let items_schema = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(items_schema, item, &format!("{path}[{index}]"), false, unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_fields(
    schema: &Value,
    fields: &mut Map<String, Value>,
    path: &str,
    is_resource: bool,
    unknown: &mut Vec<String>,
) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties").filter(|it| **it != Value::Bool(false));
    let keeps_all = is_set(schema, "x-kubernetes-preserve-unknown-fields") || additional == Some(&Value::Bool(true));
    fields.retain(|name, value| {
        if is_resource && matches!(&**name, "apiVersion" | "kind" | "metadata") {
            return true;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let of = properties.and_then(|properties| properties.get(name)).or(additional.filter(|it| it.is_object()));
        match of {
            Some(of) => {
                prune_at(of, value, &path, false, unknown);
                true
            }
            None if keeps_all => true,
            None => {
                unknown.push(path);
                false
            }
        }
    });
}

/// Sets the defaults of a schema in a value, and removes each `null` that has a default and is not nullable.
pub(crate) fn set_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, of) in properties.into_iter().flatten() {
                if let Some(default) = of.get("default") {
                    let is_nullable = of.get("nullable") == Some(&Value::Bool(true));
                    let is_unset = fields.get(name).is_none_or(|value| value.is_null() && !is_nullable);
                    if is_unset {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                if let Some(value) = fields.get_mut(name) {
                    set_defaults(of, value);
                }
            }
            if let Some(of) = schema.get("additionalProperties").filter(|it| it.is_object()) {
                let named = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
                fields.iter_mut().filter(|(name, _)| !named(name)).for_each(|(_, value)| set_defaults(of, value));
            }
        }
        Value::Array(items) => {
            let of = schema.get("items").unwrap_or(&Value::Null);
            for item in items {
                set_defaults(of, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_fields_go_and_defaults_come() {
        let schema = json!({"properties": {
            "spec": {"properties": {
                "a": {"default": 1},
                "list": {"items": {"properties": {"x": {}, "y": {"default": "z"}}}},
                "map": {"additionalProperties": {"properties": {"x": {}}}},
                "free": {"x-kubernetes-preserve-unknown-fields": true},
            }},
        }});
        let mut object = json!({"apiVersion": "g/v1", "metadata": {"name": "n"}, "other": 1, "spec": {
            "list": [{"x": 1, "u": 2}], "map": {"k": {"x": 1, "u": 2}}, "free": {"u": 1}, "u": {"v": 1},
        }});
        let mut unknown = Vec::new();
        prune(&schema, &mut object, &mut unknown);
        set_defaults(&schema, &mut object);
        assert_eq!(unknown, ["other", "spec.list[0].u", "spec.map.k.u", "spec.u"]);
        assert_eq!(
            object["spec"],
            json!({"a": 1, "list": [{"x": 1, "y": "z"}], "map": {"k": {"x": 1}}, "free": {"u": 1}})
        );
    }
}
