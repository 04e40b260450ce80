//! What has to change in one CRD for its unions to stand in the annotation.

use crate::cli::manifest::{Document, Edit};
use crate::declaration::ANNOTATION;
use crate::field_path::{pointer_tokens, push_token};
use crate::schema::EXTENSION;
use anyhow::Context;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What Kubernetes allows all annotations of an object together to take, keys and values.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// Schema keywords below which a schema stands, and those below which a map or list of schemas does.
const SCHEMAS: [&str; 4] = ["items", "additionalProperties", "additionalItems", "not"];
const MAPS_OF_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];
const LISTS_OF_SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];

/// The edits of one CRD, and what there is to object to.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Empty where the annotation says it already and the schema says nothing.
    pub(super) edits: Vec<Edit>,
    pub(super) objections: Vec<String>,
}

/// Version → JSON Pointer into its schema → the extension's value.
type Declarations = BTreeMap<String, BTreeMap<String, Value>>;

impl Plan {
    /// `None` where the schema declares no unions.
    pub(super) fn of(document: &Document) -> anyhow::Result<Option<Self>> {
        let crd: Value = serde_json::from_str(&document.text)
            .with_context(|| format!("{}: {} cannot be annotated", document.file.display(), document.title()))?;
        let base = pointer_tokens(&document.pointer).unwrap_or_default();
        let mut plan = Self::default();
        let declared = plan.collect(&crd, &base);
        if declared.is_empty() {
            return Ok(None);
        }

        let annotations = crd.pointer("/metadata/annotations").and_then(Value::as_object);
        let present = annotations.and_then(|annotations| annotations.get(ANNOTATION));
        let before: Declarations = match present.and_then(Value::as_str).map(serde_json::from_str).transpose() {
            Ok(before) => before.unwrap_or_default(),
            Err(error) => {
                let message = format!(
                    "left as it is: the annotation `{ANNOTATION}` cannot be merged with ({error}); remove it first"
                );
                return Ok(Some(Self { edits: Vec::new(), objections: vec![message] }));
            }
        };
        // The schema has the last word; that they contradict each other is for the compiler to report.
        let mut after = before.clone();
        for (version, places) in declared {
            after.entry(version).or_default().extend(places);
        }
        if after != before {
            let value = serde_json::to_string(&after)?;
            plan.measure(annotations, &value);
            plan.edits.push(set_annotation(&crd, &base, value));
        }
        Ok(Some(plan))
    }

    /// Takes every extension out of every version's schema.
    fn collect(&mut self, crd: &Value, base: &[String]) -> Declarations {
        let mut declared = Declarations::new();
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        for (index, version) in versions.into_iter().flatten().enumerate() {
            let (Some(name), Some(schema)) =
                (version.get("name").and_then(Value::as_str), version.pointer("/schema/openAPIV3Schema"))
            else {
                continue;
            };
            for (path, value) in extensions(schema) {
                let pointer = path.iter().fold(String::new(), |mut pointer, token| {
                    pointer.push('/');
                    push_token(&mut pointer, token);
                    pointer
                });
                declared.entry(name.to_owned()).or_default().insert(pointer, value.clone());

                let index = index.to_string();
                let way = ["spec", "versions", &index, "schema", "openAPIV3Schema"].map(str::to_owned);
                let mut full = base.to_vec();
                full.extend(way.into_iter().chain(path).chain([EXTENSION.to_owned()]));
                self.edits.push(Edit::Remove(full));
            }
        }
        declared
    }

    fn measure(&mut self, annotations: Option<&Map<String, Value>>, value: &str) {
        let others = annotations.into_iter().flatten().filter(|(name, _)| *name != ANNOTATION);
        let others: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
        let total = others + ANNOTATION.len() + value.len();
        if total > ANNOTATIONS_LIMIT {
            self.objections.push(format!(
                "its annotations would take {total} bytes, and Kubernetes allows {ANNOTATIONS_LIMIT}: declare the unions in \
                 fewer versions, or split the CRD"
            ));
        }
    }
}

fn set_annotation(crd: &Value, base: &[String], value: String) -> Edit {
    let path = |tokens: &[&str]| base.iter().cloned().chain(tokens.iter().map(|&token| token.to_owned())).collect();
    let whole = |value: Value| Value::Object(Map::from_iter([(ANNOTATION.to_owned(), value)]));
    let value = Value::String(value);
    match crd.get("metadata") {
        Some(Value::Object(metadata)) if metadata.get("annotations").is_some_and(Value::is_object) => {
            Edit::Set(path(&["metadata", "annotations", ANNOTATION]), value)
        }
        Some(Value::Object(_)) => Edit::Set(path(&["metadata", "annotations"]), whole(value)),
        _ => {
            let annotations = Map::from_iter([("annotations".to_owned(), whole(value))]);
            Edit::Set(path(&["metadata"]), Value::Object(annotations))
        }
    }
}

/// Every extension of a schema with the path of the node where it stands, in the order of the text. A property may well
/// have the extension's name: only schemas are looked at.
fn extensions(schema: &Value) -> Vec<(Vec<String>, &Value)> {
    let (mut found, mut waiting) = (Vec::new(), vec![(Vec::new(), schema)]);
    while let Some((path, node)) = waiting.pop() {
        let Some(members) = node.as_object() else { continue };
        let mut below = Vec::new();
        for (name, value) in members {
            let name = name.as_str();
            let at =
                |tokens: &[&str]| path.iter().cloned().chain(tokens.iter().map(|&token| token.to_owned())).collect();
            match value {
                value if name == EXTENSION => found.push((path.clone(), value)),
                Value::Object(schemas) if MAPS_OF_SCHEMAS.contains(&name) => {
                    below.extend(schemas.iter().map(|(key, schema)| (at(&[name, key]), schema)));
                }
                Value::Array(schemas) if LISTS_OF_SCHEMAS.contains(&name) => {
                    let numbered = schemas.iter().enumerate();
                    below.extend(numbered.map(|(index, schema)| (at(&[name, &index.to_string()]), schema)));
                }
                schema if SCHEMAS.contains(&name) => below.push((at(&[name]), schema)),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => {}
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn extensions_are_found_in_schemas_only() {
        let schema = json!({
            "x-kubernetes-unions": [1],
            "default": {"x-kubernetes-unions": "data"},
            "properties": {
                "x-kubernetes-unions": {"type": "string", "x-kubernetes-unions": {"a": 1}},
                "a/b": {"items": {"x-kubernetes-unions": [2]}, "enum": [{"x-kubernetes-unions": 0}]},
                "m": {"additionalProperties": {"anyOf": [{}, {"x-kubernetes-unions": [3]}]}},
            },
        });
        let found: Vec<(String, &Value)> =
            extensions(&schema).into_iter().map(|(path, value)| (path.join(" "), value)).collect();
        assert_eq!(
            found,
            [
                (String::new(), &json!([1])),
                ("properties x-kubernetes-unions".to_owned(), &json!({"a": 1})),
                ("properties a/b items".to_owned(), &json!([2])),
                ("properties m additionalProperties anyOf 1".to_owned(), &json!([3])),
            ]
        );
    }
}
