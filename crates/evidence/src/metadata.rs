//! The fields of `metadata` that rules can read.

use crate::names::mentions;
use crate::node::SchemaNode;
use crate::rule::RULES;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Returns the schema of a kind as the API server gives it to CEL: every object has a name. A schema whose rules do not read
/// `metadata` is returned as it is.
pub(crate) fn with_names(schema: &Value) -> Cow<'_, Value> {
    let root = SchemaNode(schema);
    let rules = root.list(RULES).iter().filter_map(|rule| SchemaNode(rule).text("rule"));
    let is_kind = root.property("metadata").is_some_and(|it| it.type_name() == Some("object") && !it.is_open());
    if !is_kind || !rules.into_iter().any(|rule| mentions(rule, "metadata")) {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let name = json!({"type": "string", "minLength": 1});
        let names = json!({"name": name, "generateName": {"type": "string"}});
        properties.insert("metadata".to_owned(), json!({"type": "object", "required": ["name"], "properties": names}));
    }
    let required: Vec<Value> = root.required().chain(["metadata"]).map(Value::from).collect();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("required".to_owned(), required.into());
    }
    Cow::Owned(schema)
}
