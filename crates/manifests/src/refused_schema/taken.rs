//! The type of the value of each keyword, as in `JSONSchemaProps` of `apiextensions.k8s.io/v1`.

use self::TakenValue::{Flag, Integer, List, Map, NamedSchemas, Number, Schema, Schemas, Text, Texts};
use serde_json::Value;

/// The type of the values that a keyword takes, beside null.
#[derive(Debug, Clone, Copy)]
pub(super) enum TakenValue {
    Flag,
    Integer,
    List,
    Map,
    NamedSchemas,
    Number,
    Rules,
    Schema,
    Schemas,
    Text,
    Texts,
}

/// The keywords of a schema. Those that no schema may have are refused with any value.
pub(super) const OF_SCHEMAS: [(&str, TakenValue); 35] = [
    ("allOf", Schemas),
    ("anyOf", Schemas),
    ("definitions", Map),
    ("description", Text),
    ("enum", List),
    ("exclusiveMaximum", Flag),
    ("exclusiveMinimum", Flag),
    ("externalDocs", Map),
    ("format", Text),
    ("maxItems", Integer),
    ("maxLength", Integer),
    ("maxProperties", Integer),
    ("maximum", Number),
    ("minItems", Integer),
    ("minLength", Integer),
    ("minProperties", Integer),
    ("minimum", Number),
    ("multipleOf", Number),
    ("not", Schema),
    ("nullable", Flag),
    ("oneOf", Schemas),
    ("pattern", Text),
    ("patternProperties", Map),
    ("properties", NamedSchemas),
    ("required", Texts),
    ("title", Text),
    ("type", Text),
    ("uniqueItems", Flag),
    ("x-kubernetes-embedded-resource", Flag),
    ("x-kubernetes-int-or-string", Flag),
    ("x-kubernetes-list-map-keys", Texts),
    ("x-kubernetes-list-type", Text),
    ("x-kubernetes-map-type", Text),
    ("x-kubernetes-preserve-unknown-fields", Flag),
    ("x-kubernetes-validations", TakenValue::Rules),
];

/// The keywords of a rule.
pub(super) const OF_RULES: [(&str, TakenValue); 6] = [
    ("fieldPath", Text),
    ("message", Text),
    ("messageExpression", Text),
    ("optionalOldSelf", Flag),
    ("reason", Text),
    ("rule", Text),
];

impl TakenValue {
    pub(super) fn is(self, value: &Value) -> bool {
        let is_list_of = |is: fn(&Value) -> bool| value.as_array().is_some_and(|items| items.iter().all(is));
        let is_map_or_null = |value: &Value| value.is_object() || value.is_null();
        value.is_null()
            || match self {
                Flag => value.is_boolean(),
                Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                Number => value.is_number(),
                Text => value.is_string(),
                List => value.is_array(),
                Texts => is_list_of(|item| item.is_string() || item.is_null()),
                Map | Schema => value.is_object(),
                NamedSchemas => value.as_object().is_some_and(|fields| fields.values().all(is_map_or_null)),
                Schemas | Self::Rules => is_list_of(|item| item.is_object() || item.is_null()),
            }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Flag => "`true` or `false`",
            Integer => "an integer",
            List => "a list",
            Map => "a map",
            NamedSchemas => "a map of names to schemas",
            Number => "a number",
            Self::Rules => "a list of maps with `rule`",
            Schema => "a schema",
            Schemas => "a list of schemas",
            Text => "a string",
            Texts => "a list of strings",
        }
    }
}
