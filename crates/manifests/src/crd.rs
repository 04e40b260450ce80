//! Finds the schemas of a CRD, and keywords in them.

use serde_json::Value;

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 4] = ["items", "additionalProperties", "additionalItems", "not"];

/// Keywords whose value is a map of schemas.
const MAPS_OF_SCHEMAS: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];

/// Keywords whose value is a list of schemas.
const LISTS_OF_SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];

/// Returns position, name and schema of each version with a schema.
pub fn schemas(crd: &Value) -> impl Iterator<Item = (usize, &str, &Value)> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten().enumerate().filter_map(|(index, version)| {
        let name = version.get("name").and_then(Value::as_str)?;
        Some((index, name, version.pointer("/schema/openAPIV3Schema")?))
    })
}

/// Returns every keyword of a schema whose name is wanted, with the path of its parent, in the order of the text. A property is
/// not a keyword.
pub fn keywords(schema: &Value, wanted: impl Fn(&str) -> bool) -> Vec<(Vec<String>, &str, &Value)> {
    let (mut found, mut waiting) = (Vec::new(), vec![(Vec::new(), schema)]);
    while let Some((path, node)) = waiting.pop() {
        let Some(members) = node.as_object() else { continue };
        let mut below = Vec::new();
        for (name, value) in members {
            let name = name.as_str();
            let at =
                |tokens: &[&str]| path.iter().cloned().chain(tokens.iter().map(|&token| token.to_owned())).collect();
            match value {
                value if wanted(name) => found.push((path.clone(), name, value)),
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
    use kube_unions_core::schema::EXTENSION;
    use serde_json::json;

    #[test]
    fn extensions_are_found_extensionss_only() {
        let schema = json!({
            "x-kubernetes-unions": [1],
            "default": {"x-kubernetes-unions": "data"},
            "properties": {
                "x-kubernetes-unions": {"type": "string", "x-kubernetes-unions": {"a": 1}},
                "a/b": {"items": {"x-kubernetes-unions": [2]}, "enum": [{"x-kubernetes-unions": 0}]},
                "m": {"additionalProperties": {"anyOf": [{}, {"x-kubernetes-unions": [3]}]}},
            },
        });
        let found: Vec<(String, &Value)> = keywords(&schema, |name| name == EXTENSION)
            .into_iter()
            .map(|(path, _, value)| (path.join(" "), value))
            .collect();
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
