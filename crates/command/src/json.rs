//! JSON of reports.

use serde_json::Value;

/// Leaves out the members of an object that are `null` or an empty list.
pub fn present(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    }
    object
}
