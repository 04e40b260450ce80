//! A resource that a CRD defines: its schema, its path, and its objects.

use serde_json::{Map, Value, json};

/// A version of a CRD.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    namespaced: bool,
}

impl Resource {
    /// Returns the first version.
    pub(crate) fn of_definition(definition: &Value) -> Self {
        Self::versions_of(definition).swap_remove(0)
    }

    pub(crate) fn versions_of(definition: &Value) -> Vec<Self> {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().expect("a CRD has names").to_owned();
        let of = |version: &Value| Self {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
            plural: text(&spec["names"]["plural"]),
            namespaced: spec["scope"] == "Namespaced",
        };
        spec["versions"].as_array().expect("a CRD has versions").iter().map(of).collect()
    }

    /// Returns the path of an object, or with an empty name of the collection.
    pub(crate) fn path(&self, name: &str) -> String {
        let namespace = if self.namespaced { "/namespaces/default" } else { "" };
        let collection = format!("/apis/{}/{}{namespace}/{}", self.group, self.version, self.plural);
        if name.is_empty() { collection } else { format!("{collection}/{name}") }
    }

    /// Returns an object with these fields beside its metadata.
    pub(crate) fn object(&self, name: &str, fields: &Value) -> Value {
        let mut object = fields.clone();
        object["apiVersion"] = format!("{}/{}", self.group, self.version).into();
        object["kind"] = self.kind.clone().into();
        object["metadata"] = json!({"name": name});
        if self.namespaced {
            object["metadata"]["namespace"] = "default".into();
        }
        object
    }
}

/// Returns a schema without abbreviations: a text is a type, a list with one schema is a list of such items, and what has properties or
/// additional ones is an object.
pub(crate) fn written_out(short: &Value) -> Value {
    match short {
        Value::String(name) if name == "any" => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Value::String(name) if name == "bytes" => json!({"type": "string", "format": "byte"}),
        Value::String(name) => json!({"type": name}),
        Value::Array(items) => json!({"type": "array", "items": written_out(&items[0])}),
        Value::Object(keywords) => {
            let mut schema = Map::new();
            if keywords.contains_key("properties") || keywords.contains_key("additionalProperties") {
                schema.insert("type".to_owned(), "object".into());
            }
            for (keyword, value) in keywords {
                let value = match (&**keyword, value) {
                    ("properties", Value::Object(fields)) => {
                        fields.iter().map(|(name, field)| (name.clone(), written_out(field))).collect()
                    }
                    ("items" | "additionalProperties", value) => written_out(value),
                    (_, value) => value.clone(),
                };
                schema.insert(keyword.clone(), value);
            }
            schema.into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => panic!("no schema: {short}"),
    }
}
