//! The keywords of a CRD that say which fields an object may have together.

use serde_json::{Map, Value};

/// The keyword of rules in CEL, which are not evaluated.
pub(crate) const RULES: &str = "x-kubernetes-validations";

/// The keywords of an object's schema that are about its fields together.
const OWN: [&str; 7] = ["oneOf", "anyOf", "allOf", "not", "required", "minProperties", "maxProperties"];

/// Returns the part of a schema that is about the fields of an object together.
pub(crate) fn own_keywords(schema: &Value) -> Value {
    let fields = schema.as_object().into_iter().flatten().filter(|(name, _)| OWN.contains(&name.as_str()));
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}
