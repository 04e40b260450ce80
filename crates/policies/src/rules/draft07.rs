//! The schema of a CRD as a JSON schema (draft-07).
//!
//! JSON schemas say by other keywords what may be null, which bounds are exclusive, and which fields are unknown. The API server
//! adds the type and the metadata of an object by itself.

use kube_unions_core::names::GroupVersionKind;
use serde_json::{Map, Value, json};

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 3] = ["items", "additionalProperties", "not"];

/// Keywords whose value is a list of schemas.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the JSON schema of a kind.
pub(super) fn document(gvk: &GroupVersionKind, mut schema: Value) -> Value {
    translate(&mut schema);
    let mut document = Map::from_iter([("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"))]);
    if let Value::Object(root) = &mut schema {
        add_fields_of_objects(root);
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            properties.insert("apiVersion".to_owned(), json!({"type": "string", "const": gvk.api_version()}));
            properties.insert("kind".to_owned(), json!({"type": "string", "const": gvk.kind}));
        }
        let names = root.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(names) = names {
            let added: Vec<_> =
                [json!("apiVersion"), json!("kind")].into_iter().filter(|it| !names.contains(it)).collect();
            names.extend(added);
        }
        document.append(root);
    }
    document.into()
}

/// Adds the fields that every object has, as those of an embedded resource.
fn add_fields_of_objects(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for (name, of_field) in [
            ("apiVersion", json!({"type": "string"})),
            ("kind", json!({"type": "string"})),
            ("metadata", json!({"type": "object"})),
        ] {
            // The schema of `metadata` in a CRD constrains only the name.
            let known = properties.entry(name).or_insert(of_field);
            if let Some(known) = known.as_object_mut() {
                known.shift_remove("additionalProperties");
            }
        }
    }
}

fn translate(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    let is = |schema: &Map<String, Value>, keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    if is(schema, "x-kubernetes-int-or-string") {
        schema.insert("type".to_owned(), json!(["integer", "string"]));
        // Says the same, and would refuse null.
        schema.retain(|name, value| name != "anyOf" || *value != json!([{"type": "integer"}, {"type": "string"}]));
    }
    if is(schema, "nullable") {
        match schema.get_mut("type") {
            Some(Value::Array(types)) => types.push(json!("null")),
            Some(one) => *one = json!([one, "null"]),
            None => {}
        }
    }
    for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => {
                if let Some(bound) = schema.shift_remove(limit) {
                    schema.insert(exclusive.to_owned(), bound);
                }
            }
            Some(Value::Bool(false)) => drop(schema.shift_remove(exclusive)),
            _ => {}
        }
    }
    // The API server drops other fields, or refuses them if a client asks for it.
    let names_fields = schema.get("type").is_some() && schema.contains_key("properties");
    if names_fields
        && !schema.contains_key("additionalProperties")
        && !is(schema, "x-kubernetes-preserve-unknown-fields")
    {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    for (keyword, value) in schema.iter_mut() {
        let keyword = keyword.as_str();
        if keyword == "properties" {
            value.as_object_mut().into_iter().flatten().for_each(|(_, property)| translate(property));
        } else if LISTS.contains(&keyword) {
            value.as_array_mut().into_iter().flatten().for_each(translate);
        } else if SCHEMAS.contains(&keyword) {
            translate(value);
        }
    }
    if is(schema, "x-kubernetes-embedded-resource") {
        add_fields_of_objects(schema);
    }
}
