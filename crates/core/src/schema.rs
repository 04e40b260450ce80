//! Structural schemas, reduced to what unions and patches need, and the places in them.
//!
//! A schema is read from the raw JSON of a CRD's `openAPIV3Schema`, since typed clients drop `x-kubernetes-unions`.
//! Descriptions and validations are skipped. Built-in types have their schemas in an [`OpenApi`] document. Each
//! declaration is grafted onto the schema with its [`Source`], whatever its source is, so readers look in one place.
//!
//! This module must not know the semantics of unions, clusters or objects. [`declaration`](crate::declaration) finds
//! declarations; [`compile`](crate::union::compile()) checks them.

pub mod cel_name;
mod declared;
mod defaults;
mod definitions;
mod extension;
mod openapi;
mod place;
mod unowned;
mod untyped;
mod walk;

pub use declared::{Actions, Declared, Normalization, Origin, OriginEntry, Severity, Source, Untyped};
pub use defaults::DefaultsError;
pub use definitions::{Definitions, OpenApiError};
pub use extension::{Extension, ExtensionError, Form, SelectedField, SelectedFields, WrittenUnion};
#[cfg(feature = "kube")]
pub(crate) use extension::{ListUnion, MapUnion, structural};
pub use openapi::OpenApi;
pub use place::{Place, PlaceError, PlaceStep};
pub use unowned::Unowned;
pub(crate) use untyped::{KeysLeftOut, MOST_UNTYPED_NODES, UntypedError};

use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the extension in a schema.
pub const EXTENSION: &str = "x-kubernetes-unions";

/// A node of a structural schema.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a keyword of its own")]
pub struct Schema {
    /// `type`, for example `object`, `array` or `string`.
    #[serde(rename = "type")]
    pub type_name: Option<Box<str>>,
    /// `format`, for example `int-or-string`.
    pub format: Option<Box<str>>,
    /// The named fields of an object.
    #[serde(deserialize_with = "null_is_default")]
    pub properties: BTreeMap<Box<str>, Schema>,
    /// The schema of the values of a map. `true` and `false` say nothing about the values and read as `None`.
    #[serde(deserialize_with = "schema_or_bool")]
    pub additional_properties: Option<Box<Schema>>,
    /// The schema of the items of a list.
    pub items: Option<Box<Schema>>,
    /// The fields that an object must have.
    #[serde(deserialize_with = "null_is_default")]
    pub required: Vec<Box<str>>,
    /// The values that a scalar may have.
    #[serde(rename = "enum")]
    pub values: Option<Vec<Value>>,
    /// The `default` of the node itself.
    #[serde(deserialize_with = "default_value")]
    pub default: DefaultValue,
    /// True if the value may be null. Elsewhere the API server removes a null, or replaces it by the default.
    pub nullable: bool,
    /// The type of a list: `atomic`, `set` or `map`.
    #[serde(rename = "x-kubernetes-list-type")]
    pub list_type: Option<Box<str>>,
    /// The fields that identify an item of a list of type `map`.
    #[serde(rename = "x-kubernetes-list-map-keys", deserialize_with = "null_is_default")]
    pub list_map_keys: Vec<Box<str>>,
    /// The strategies of a strategic merge patch, separated by commas.
    #[serde(rename = "x-kubernetes-patch-strategy")]
    pub patch_strategy: Option<Box<str>>,
    /// The field that identifies a list item in a strategic merge patch.
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    pub patch_merge_key: Option<Box<str>>,
    /// The fields that identify a list item together, separated by commas, the merge key first.
    #[serde(rename = "x-kubernetes-recommended-patch-merge-key")]
    pub recommended_patch_merge_key: Option<Box<str>>,
    /// The type of an object: `granular`, or `atomic` if it is only replaced as a whole.
    #[serde(rename = "x-kubernetes-map-type")]
    pub map_type: Option<Box<str>>,
    /// True if fields without a schema are kept.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserve_unknown_fields: bool,
    /// True if the node is a whole Kubernetes object of another kind.
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub embedded_resource: bool,
    /// The unions declared at this node, from all sources. If there are several, none contradicts another.
    #[serde(rename = "x-kubernetes-unions", deserialize_with = "declared_in_schema")]
    pub unions: Vec<Declared>,
    /// True if the schema does not describe the node, and a `UnionDeclaration` has named it.
    #[serde(skip)]
    pub untyped: bool,
    /// The fields that identify an item, of a list that the schema describes without keys: a `UnionDeclaration` has named them. The
    /// API server does not know them, so the list stays one value for it.
    #[serde(skip)]
    pub declared_keys: Box<[Box<str>]>,
    /// `$ref`: the document describes this node elsewhere. [`OpenApi::schema`] resolves all references.
    #[serde(rename = "$ref")]
    pub reference: Option<Box<str>>,
    /// `allOf`, which OpenAPI documents use to add to a reference. In a CRD it has validations only. Empty once references are resolved.
    #[serde(deserialize_with = "null_is_default")]
    pub all_of: Vec<Schema>,
}

/// The `default` of a node.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum DefaultValue {
    /// The node has no default.
    #[default]
    Absent,
    /// A zero value: null, `""`, `0`, `false`, `{}` or `[]`. In a CRD it is a default like any other. OpenAPI documents of
    /// built-in types have it for every field that is not a pointer, without effect.
    Zero(Value),
    /// Any other value.
    Given(Value),
}

impl Schema {
    /// Returns the fields that identify an item of this list. Empty if its items have no identity.
    pub(crate) fn list_keys(&self) -> &[Box<str>] {
        if self.list_type.as_deref() == Some("map") {
            return &self.list_map_keys;
        }
        if !self.declared_keys.is_empty() {
            return &self.declared_keys;
        }
        let merges = self.patch_strategy.as_deref().is_some_and(|all| all.split(',').any(|one| one.trim() == "merge"));
        match &self.patch_merge_key {
            Some(key) if merges && self.list_type.is_none() => std::slice::from_ref(key),
            _ => &[],
        }
    }

    /// Returns true if the schema describes a string.
    pub(crate) fn is_string(&self) -> bool {
        self.type_name.as_deref() == Some("string") && !self.untyped
    }

    /// Returns true for a list of which a field manager owns each item. An empty one has no owner.
    pub(crate) fn has_owned_items(&self) -> bool {
        let keyed = self.declared_keys.is_empty() && !self.list_keys().is_empty();
        (keyed || matches!(self.list_type.as_deref(), Some("map" | "set")))
            && self.items.as_ref().is_some_and(|items| !items.untyped)
    }

    /// Returns true if a field manager that applies a value here owns all of it, and not each field or item.
    pub(crate) fn is_atomic(&self) -> bool {
        match &self.items {
            // Without a schema a list is one value, whatever a declaration says of its keys.
            Some(items) => items.untyped || self.list_type.as_deref() != Some("map"),
            None => self.map_type.as_deref() == Some("atomic"),
        }
    }

    /// Returns the texts that `enum` and the enums in `allOf` all allow. `None` without an enum.
    pub fn allowed_texts(&self) -> Option<BTreeSet<&str>> {
        let own = self.values.as_ref().map(|own| own.iter().filter_map(Value::as_str).collect());
        let parts = self.all_of.iter().filter_map(Self::allowed_texts);
        own.into_iter().chain(parts).reduce(|mut allowed: BTreeSet<&str>, other| {
            allowed.retain(|value| other.contains(value));
            allowed
        })
    }

    /// Returns true if the node itself or a part of `allOf` has an enum.
    pub(crate) fn has_enum(&self) -> bool {
        self.values.is_some() || self.all_of.iter().any(Self::has_enum)
    }

    /// Removes every union declared in this schema.
    pub(crate) fn clear_unions(&mut self) {
        self.unions.clear();
        let inner = [&mut self.items, &mut self.additional_properties];
        self.properties
            .values_mut()
            .chain(inner.into_iter().flatten().map(|node| &mut **node))
            .for_each(Self::clear_unions);
    }

    /// Returns true if a name that is no property reads as a path into one: `a.b` where `a` is a property.
    pub(crate) fn is_path_into_property(&self, name: &str) -> bool {
        let first = name.split_once(['.', '[']).map(|(first, _)| first);
        !self.properties.contains_key(name) && first.is_some_and(|first| self.properties.contains_key(first))
    }

    /// Returns true for an object with named fields, even if it has no `type`.
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

pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
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
    fn a_value_must_be_in_the_enum_and_in_those_of_all_of() {
        let allowed = |value| {
            let schema = schema(value);
            let allowed = schema.allowed_texts();
            assert_eq!(allowed.is_some(), schema.has_enum());
            allowed.map(|values| values.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(allowed(json!({"type": "string", "allOf": [{"maxLength": 3}]})), None);
        assert_eq!(allowed(json!({"enum": ["b", "a"]})), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            allowed(json!({"allOf": [{"enum": ["a", "b", ""]}, {"allOf": [{"enum": ["", "b", "c"]}]}, {}]})),
            Some(vec![String::new(), "b".to_owned()])
        );
        assert_eq!(allowed(json!({"enum": ["a"], "allOf": [{"enum": ["b"]}]})), Some(Vec::new()));
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
