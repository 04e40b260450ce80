//! The keywords that are refused somewhere, with what to do about each, and how keywords are read.

use self::Refused::{NotEmpty, Present, True};
use serde_json::Value;

/// The values of a keyword that are refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refused {
    /// All but null.
    Present,
    True,
    /// All but null, `""`, `[]` and `{}`.
    NotEmpty,
}

pub(super) const OUTSIDE: &str = "move it to the same field outside, under `properties`";
pub(super) const REMOVE: &str = "remove it";
pub(super) const REFERENCE: &str = "write the schema out at its place";

/// Keywords that describe a field, so that validations must not have them.
pub(super) const NESTED: [(&str, Refused, &str); 13] = [
    ("type", NotEmpty, OUTSIDE),
    ("nullable", True, OUTSIDE),
    ("default", Present, OUTSIDE),
    ("additionalProperties", Present, OUTSIDE),
    ("title", NotEmpty, OUTSIDE),
    ("description", NotEmpty, OUTSIDE),
    ("x-kubernetes-preserve-unknown-fields", True, OUTSIDE),
    ("x-kubernetes-embedded-resource", True, OUTSIDE),
    ("x-kubernetes-int-or-string", True, OUTSIDE),
    ("x-kubernetes-list-map-keys", NotEmpty, OUTSIDE),
    ("x-kubernetes-list-type", Present, OUTSIDE),
    ("x-kubernetes-map-type", Present, OUTSIDE),
    ("x-kubernetes-validations", NotEmpty, "move the rules outside"),
];

/// Keywords that no schema may have.
pub(super) const NOWHERE: [(&str, Refused, &str); 8] = [
    ("$ref", Present, REFERENCE),
    ("$schema", NotEmpty, REMOVE),
    ("id", NotEmpty, REMOVE),
    ("definitions", NotEmpty, REFERENCE),
    ("dependencies", Present, "write a rule in `x-kubernetes-validations` instead"),
    ("patternProperties", NotEmpty, "use `additionalProperties` for a map"),
    ("additionalItems", Present, "give all items one schema in `items`"),
    ("uniqueItems", True, "use `x-kubernetes-list-type: set`"),
];

/// Keywords that the root of a schema must not have if the version has the status subresource.
pub(super) const NOT_BESIDE_STATUS: [&str; 12] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-map-type",
];

/// Keywords that `metadata` of the root must not have.
pub(super) const NOT_OF_METADATA: [&str; 15] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "description",
    "enum",
    "maxProperties",
    "minProperties",
    "not",
    "nullable",
    "oneOf",
    "required",
    "title",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

impl Refused {
    pub(super) fn is(self, value: &Value) -> bool {
        match self {
            Present => !value.is_null(),
            True => value == true,
            NotEmpty => !is_empty(value),
        }
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(super) fn text<'s>(node: &'s Value, keyword: &str) -> &'s str {
    node.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(node: &Value, keyword: &str) -> bool {
    node.get(keyword).is_some_and(|value| value == true)
}

pub(super) fn entries<'s>(node: &'s Value, keyword: &str) -> impl Iterator<Item = (&'s String, &'s Value)> {
    node.get(keyword).and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn list<'s>(node: &'s Value, keyword: &str) -> &'s [Value] {
    node.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn flag_is_false(node: &Value, keyword: &str) -> bool {
    node.get(keyword).is_some_and(|value| value == false)
}
