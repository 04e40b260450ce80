//! JSON Schemas (draft 7) of the annotation and of `UnionDeclaration`, for editors.
//!
//! They are made from the wire types, and stricter than the schema in a CRD can be: an unknown key is an error.

use super::{AnnotationContent, UnionDeclarationSpec};
use crate::schema::{ListUnion, MapUnion};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The folder of the published schemas.
const BASE: &str = "https://kube-unions.dev/schemas";

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// A value of `x-kubernetes-unions`, as a schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ExtensionForm {
    /// The 2019 form: a list on the schema of the object.
    List(#[schemars(length(min = 1))] Vec<ListUnion>),
    /// The 2022 form: a map on the schema of the discriminator.
    Map(MapUnion),
}

/// Returns the JSON Schema of the annotation `kube-unions.dev/unions`, whose value is a JSON text.
pub fn annotation_json_schema() -> Value {
    // INVARIANT: `AnnotationContent` has the same shape with any JSON in place of the extension.
    let _: fn() -> AnnotationContent = BTreeMap::<String, BTreeMap<String, Value>>::new;
    let by_version = json!({
        "type": "object",
        "description": "The unions of each version, by the JSON Pointer of the place in its schema.",
        "propertyNames": {"pattern": "^(/.*)?$"},
        "additionalProperties": closed(schema_of::<ExtensionForm>()),
    });
    json!({
        "$schema": DRAFT,
        "$id": format!("{BASE}/annotation.json"),
        "title": "The annotation kube-unions.dev/unions",
        "description": "The unions of a CustomResourceDefinition, by the name of the version.",
        "type": "object",
        "additionalProperties": by_version,
    })
}

/// Returns the JSON Schema of a `UnionDeclaration`.
pub fn union_declaration_json_schema() -> Value {
    let mut spec = closed(schema_of::<UnionDeclarationSpec>());
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("title");
        // The rules that the CRD has in CEL.
        let not_empty = |name: &str| json!({"required": [name], "properties": {name: {"minItems": 1}}});
        spec.insert("anyOf".to_owned(), json!([not_empty("unions"), not_empty("podTemplates")]));
        let contains = |action: &str| json!({"contains": {"const": action}});
        let both = json!({"required": ["validationActions"],
            "properties": {"validationActions": {"allOf": [contains("Deny"), contains("Warn")]}}});
        spec.insert("not".to_owned(), both);
    }
    json!({
        "$schema": DRAFT,
        "$id": format!("{BASE}/union-declaration.json"),
        "title": "UnionDeclaration",
        "description": "Declares which fields of a kind are unions, for kinds that somebody else owns.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": false,
        "properties": {
            "apiVersion": {"const": super::custom_resource::API_VERSION},
            "kind": {"const": "UnionDeclaration"},
            "metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "spec": spec,
            "status": {"type": "object", "description": "Written by the webhook."},
        },
    })
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Closes every object that has properties, and replaces the keywords of Kubernetes.
fn closed(schema: Value) -> Value {
    match schema {
        Value::Array(all) => all.into_iter().map(closed).collect(),
        Value::Object(keywords) => {
            let is_set = keywords.get("x-kubernetes-list-type").is_some_and(|kind| kind == "set");
            // Not the conditions of `oneOf`, which name some of the properties.
            let is_object = keywords.contains_key("type") && keywords.contains_key("properties");
            let is_closed = is_object && !keywords.contains_key("additionalProperties");
            let kept = keywords.into_iter().filter(|(name, _)| !name.starts_with("x-kubernetes-"));
            let mut kept: Map<String, Value> = kept.map(|(name, value)| (name, closed(value))).collect();
            if is_set {
                kept.insert("uniqueItems".to_owned(), true.into());
            }
            if is_closed {
                kept.insert("additionalProperties".to_owned(), false.into());
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema,
    }
}
