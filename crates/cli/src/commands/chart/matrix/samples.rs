//! Values that the API server accepts for the members of unions.
//!
//! A schema does not say all of what the API server asks for: that of a built-in kind has neither the fields that are required nor the form of
//! a text. `samples.json` has what the members of built-in kinds take. Everything else is made from the schema.

use kube_unions_core::schema::Schema;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SAMPLES: &str = include_str!("samples.json");

/// The texts for strings of a form, which is the `format` of the schema or the last word of the field's name.
const TEXTS: [(&str, &str); 14] = [
    ("byte", "eA=="),
    ("cidr", "192.0.2.0/24"),
    ("date", "2000-01-01"),
    ("date-time", "2000-01-01T00:00:00Z"),
    ("duration", "1s"),
    ("email", "x@example.com"),
    ("hostname", "example.com"),
    ("ip", "192.0.2.1"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("mac", "00:00:5e:00:53:01"),
    ("uri", "https://example.com/x"),
    ("url", "https://example.com/x"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
];

/// The deepest object of a value that is made from a schema.
const DEEPEST: usize = 4;

/// The samples by the names of fields. Where a name has several, the first that fits a schema counts.
#[derive(Debug)]
pub(super) struct Samples(BTreeMap<String, Vec<Value>>);

impl Samples {
    pub(super) fn read() -> Self {
        Self(serde_json::from_str(SAMPLES).unwrap_or_default())
    }

    /// Returns true if a field of this name has a sample.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a value for a field that is not empty.
    pub(super) fn of(&self, name: &str, schema: Option<&Schema>) -> Value {
        schema
            .map_or_else(|| self.fitting(name, None).unwrap_or_else(|| json!("x")), |it| self.value(name, it, DEEPEST))
    }

    fn value(&self, name: &str, schema: &Schema, depth: usize) -> Value {
        self.fitting(name, Some(schema)).unwrap_or_else(|| self.made(name, schema, depth))
    }

    fn fitting(&self, name: &str, schema: Option<&Schema>) -> Option<Value> {
        let fits = |sample: &&Value| schema.is_none_or(|schema| fits(sample, schema));
        self.0.get(name)?.iter().find(fits).cloned()
    }

    /// Returns a value that a schema allows.
    fn made(&self, name: &str, schema: &Schema, depth: usize) -> Value {
        let first = schema.values.as_ref().and_then(|values| values.iter().find(|value| **value != json!("")));
        if let Some(first) = first {
            return first.clone();
        }
        let deeper = |name: &str, schema: &Schema| self.value(name, schema, depth.saturating_sub(1));
        match schema.type_name.as_deref() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") if depth > 0 => schema.items.iter().map(|items| deeper("", items)).collect(),
            Some("array") => json!([]),
            Some("object") if depth > 0 => {
                let required = schema.properties.iter().filter(|(name, _)| schema.required.contains(name));
                let mut fields: Map<String, Value> =
                    required.map(|(name, schema)| (name.to_string(), deeper(name, schema))).collect();
                let first = schema.properties.iter().next().filter(|_| fields.is_empty());
                fields.extend(first.map(|(name, schema)| (name.to_string(), deeper(name, schema))));
                if fields.is_empty() {
                    let inner =
                        schema.additional_properties.as_ref().map_or_else(|| json!("x"), |inner| deeper("", inner));
                    fields.insert("x".to_owned(), inner);
                }
                Value::Object(fields)
            }
            Some("object") => json!({}),
            _ if schema.format.as_deref() == Some("int-or-string") => json!(1),
            _ => json!(text(name, schema.format.as_deref())),
        }
    }
}

/// Returns true if a schema has every field of a value, with the type that the value has there.
fn fits(value: &Value, schema: &Schema) -> bool {
    let is_type = |names: &[&str]| schema.type_name.as_deref().is_none_or(|name| names.contains(&name));
    match value {
        Value::Object(fields) => {
            is_type(&["object"])
                && fields.iter().all(|(name, value)| {
                    let field = schema.properties.get(name.as_str()).or(schema.additional_properties.as_deref());
                    field.is_some_and(|field| fits(value, field))
                })
        }
        Value::Array(items) => {
            is_type(&["array"]) && schema.items.as_ref().is_some_and(|of| items.iter().all(|item| fits(item, of)))
        }
        Value::String(_) => is_type(&["string"]),
        Value::Number(_) => is_type(&["integer", "number"]),
        Value::Bool(_) => is_type(&["boolean"]),
        Value::Null => false,
    }
}

/// Returns a text of a form, or `x`.
fn text(name: &str, format: Option<&str>) -> &'static str {
    let start = name.char_indices().rev().take_while(|(_, letter)| letter.is_uppercase()).last();
    let start = start.or_else(|| name.char_indices().rfind(|(_, letter)| letter.is_uppercase()));
    let word = name.get(start.map_or(0, |(at, _)| at)..).unwrap_or_default().to_lowercase();
    let of = |form: &str| TEXTS.iter().find(|(known, _)| *known == form).map(|(_, text)| *text);
    format.and_then(of).or_else(|| of(&word)).unwrap_or("x")
}

#[cfg(test)]
mod tests {
    use super::Samples;
    use kube_unions_core::schema::Schema;
    use serde_json::{Value, json};

    fn sample(name: &str, schema: Value) -> Value {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        Samples::read().of(name, Some(&schema))
    }

    #[test]
    fn a_text_has_the_form_that_its_schema_or_its_name_asks_for() {
        for (name, schema, want) in [
            ("diskURI", json!({"type": "string"}), "https://example.com/x"),
            ("url", json!({"type": "string"}), "https://example.com/x"),
            ("callbackUrl", json!({"type": "string"}), "https://example.com/x"),
            ("loadBalancerIP", json!({"type": "string"}), "192.0.2.1"),
            ("block", json!({"type": "string", "format": "cidr"}), "192.0.2.0/24"),
            ("until", json!({"type": "string", "format": "date-time"}), "2000-01-01T00:00:00Z"),
            ("address", json!({"type": "string"}), "x"),
            ("curl", json!({"type": "string"}), "x"),
            ("mode", json!({"type": "string", "enum": ["", "Fast"]}), "Fast"),
        ] {
            assert_eq!(sample(name, schema), want, "{name}");
        }
    }

    #[test]
    fn a_sample_has_only_fields_that_the_schema_has() {
        let text = || json!({"type": "string"});
        let port = json!({"type": "object", "properties": {"number": {"type": "integer"}, "name": text()}});
        let backend = json!({"type": "object", "properties": {"name": text(), "port": port}});
        assert_eq!(sample("service", backend), json!({"name": "x", "port": {"number": 1}}));
        let client = json!({"name": text(), "namespace": text(), "path": text(), "port": {"type": "integer"}});
        let client = json!({"type": "object", "properties": client});
        assert_eq!(sample("service", client), json!({"name": "x", "namespace": "x"}));
        // A custom resource means something else by the name.
        let own = json!({"type": "object", "required": ["fqdn"], "properties": {"fqdn": text(), "port": text()}});
        assert_eq!(sample("service", own), json!({"fqdn": "x"}));
        let outer = json!({"type": "object", "required": ["exec"], "properties": {
            "exec": {"type": "object", "properties": {"command": {"type": "array", "items": text()}}},
            "url": text()}});
        assert_eq!(sample("hook", outer), json!({"exec": {"command": ["true"]}}));
    }
}
