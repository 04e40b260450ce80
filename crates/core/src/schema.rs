//! A structural schema, as far as unions and patches need it, and the places in it.
//!
//! Read from the raw JSON of a CRD's `openAPIV3Schema`: typed clients drop `x-kubernetes-unions`, and descriptions, formats
//! and validations are skipped without being built. Built-in types have their schemas in an [`OpenApi`] document, which gives
//! the same thing. Wherever a union was declared, once grafted it stands on the schema with its [`Source`], so that whoever
//! reads the schema has one thing to look at.
//!
//! May not know unions, clusters or objects.

mod declared;
mod definitions;
mod extension;
mod openapi;
mod walk;

pub use declared::{Action, Declared, Origin, Severity, Source};
pub use definitions::Definitions;
pub use extension::{Extension, ExtensionError, ListUnion, MapUnion, MemberField};
pub use openapi::{OpenApi, OpenApiError};
pub use walk::{Place, PlaceError, PlaceStep};

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The name of the extension, in a schema.
pub const EXTENSION: &str = "x-kubernetes-unions";

/// One node of a structural schema.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    /// `type`: `object`, `array`, `string`, …
    #[serde(rename = "type")]
    pub type_name: Option<Box<str>>,
    /// The named fields of an object.
    #[serde(deserialize_with = "null_is_default")]
    pub properties: BTreeMap<Box<str>, Schema>,
    /// The schema of a map's values. `true` and `false` say nothing about the values' shape and read as none.
    #[serde(deserialize_with = "schema_or_bool")]
    pub additional_properties: Option<Box<Schema>>,
    /// The schema of a list's items.
    pub items: Option<Box<Schema>>,
    /// The fields an object must have.
    #[serde(deserialize_with = "null_is_default")]
    pub required: Vec<Box<str>>,
    /// The values a scalar may have.
    #[serde(rename = "enum")]
    pub values: Option<Vec<Value>>,
    /// The node's own `default`.
    #[serde(deserialize_with = "default_value")]
    pub default: DefaultValue,
    /// How items of a list are told apart: `atomic`, `set` or `map`.
    #[serde(rename = "x-kubernetes-list-type")]
    pub list_type: Option<Box<str>>,
    /// The fields that tell apart the items of a list of type `map`.
    #[serde(rename = "x-kubernetes-list-map-keys", deserialize_with = "null_is_default")]
    pub list_map_keys: Vec<Box<str>>,
    /// The strategies of a strategic merge patch, separated by commas.
    #[serde(rename = "x-kubernetes-patch-strategy")]
    pub patch_strategy: Option<Box<str>>,
    /// The field that tells apart list items in a strategic merge patch.
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    pub patch_merge_key: Option<Box<str>>,
    /// The fields that tell apart list items together, separated by commas, the merge key first.
    #[serde(rename = "x-kubernetes-recommended-patch-merge-key")]
    pub recommended_patch_merge_key: Option<Box<str>>,
    /// How an object is changed: `granular`, or `atomic` as a whole.
    #[serde(rename = "x-kubernetes-map-type")]
    pub map_type: Option<Box<str>>,
    /// Whether fields that are not described are kept.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserve_unknown_fields: bool,
    /// Whether the node is a whole Kubernetes object of another kind.
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub embedded_resource: bool,
    /// The unions declared at this node, whichever sources they came from; more than one only if none contradicts another.
    #[serde(rename = "x-kubernetes-unions", deserialize_with = "declared_in_schema")]
    pub unions: Vec<Declared>,
    /// `$ref`: this node is described elsewhere in its document. None is left once a document gave the schema.
    #[serde(rename = "$ref")]
    reference: Option<Box<str>>,
    /// `allOf`, which documents use to put something beside a reference. In a CRD it holds validations only.
    #[serde(deserialize_with = "null_is_default")]
    all_of: Vec<Schema>,
}

/// Whether a node has a `default`.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum DefaultValue {
    /// It has none.
    #[default]
    Absent,
    /// A zero value: null, `""`, `0`, `false`, `{}` or `[]`. In a CRD that is a default like any other; the documents of
    /// built-in types write it for every field that is not a pointer, and nothing acts on it.
    Zero(Value),
    /// Any other value.
    Given(Value),
}

impl Schema {
    /// The fields that tell apart the items of this list, none if its items have no identity.
    pub(crate) fn list_keys(&self) -> &[Box<str>] {
        if self.list_type.as_deref() == Some("map") {
            return &self.list_map_keys;
        }
        let merges = self.patch_strategy.as_deref().is_some_and(|all| all.split(',').any(|one| one.trim() == "merge"));
        match &self.patch_merge_key {
            Some(key) if merges && self.list_type.is_none() => std::slice::from_ref(key),
            _ => &[],
        }
    }

    /// Where this node is described instead, if it is `$ref`.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// The parts of `allOf`: none once a document gave the schema.
    pub fn all_of(&self) -> &[Self] {
        &self.all_of
    }

    /// Drops every union that is declared on it.
    pub(crate) fn clear_unions(&mut self) {
        self.unions.clear();
        let inner = [&mut self.items, &mut self.additional_properties];
        self.properties
            .values_mut()
            .chain(inner.into_iter().flatten().map(|node| &mut **node))
            .for_each(Self::clear_unions);
    }

    /// Whether this is an object with named fields, in name or in fact.
    pub fn is_object(&self) -> bool {
        match self.type_name.as_deref() {
            Some(name) => name == "object",
            None => !self.properties.is_empty(),
        }
    }
}

fn default_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DefaultValue, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let zero = match &value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    };
    Ok(if zero { DefaultValue::Zero(value) } else { DefaultValue::Given(value) })
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn schema_or_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Schema>>, D::Error> {
    struct SchemaOrBool;

    impl<'de> serde::de::Visitor<'de> for SchemaOrBool {
        type Value = Option<Box<Schema>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a schema, true or false")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Schema::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Box::new).map(Some)
        }
    }

    deserializer.deserialize_any(SchemaOrBool)
}

fn declared_in_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Declared>, D::Error> {
    Ok(vec![Declared::new(Value::deserialize(deserializer)?, Source::Schema)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(value: Value) -> Schema {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn reads_what_unions_need_and_skips_the_rest() {
        let schema = schema(json!({
            "type": "object", "description": "…", "required": ["a"], "properties": {
                "a": {"type": "string", "enum": ["x"], "default": null},
                "b": {"type": "object", "additionalProperties": true},
                "c": {"type": "object", "additionalProperties": {"type": "string"}},
                "d": {"type": "object", "properties": null, "required": null},
            },
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A"}}],
        }));
        assert!(schema.is_object());
        assert_eq!(schema.properties["a"].default, DefaultValue::Zero(Value::Null));
        assert_eq!(schema.properties["b"].default, DefaultValue::Absent);
        assert!(schema.properties["b"].additional_properties.is_none());
        assert!(schema.properties["c"].additional_properties.is_some());
        assert_eq!(schema.unions[0].source, Source::Schema);
    }

    #[test]
    fn lists_are_keyed_by_their_map_keys_or_by_a_merge_key() {
        let keys = |value| schema(value).list_keys().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            keys(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]})),
            ["a", "b"]
        );
        assert_eq!(
            keys(json!({"x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "n"})),
            ["n"]
        );
        assert!(keys(json!({"x-kubernetes-patch-merge-key": "n"})).is_empty());
        assert!(keys(json!({"x-kubernetes-list-type": "atomic", "x-kubernetes-list-map-keys": ["a"]})).is_empty());
    }
}
