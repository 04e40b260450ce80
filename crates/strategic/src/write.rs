//! Writes a [`Value`] as JSON text or as a `serde_json::Value`.

use crate::value::Value;
use serde::ser::{Error, Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;

/// Returns the compact JSON text.
pub(crate) fn text(value: Value<'_>) -> String {
    serde_json::to_string(&value).unwrap_or_else(|error| {
        debug_assert!(false, "each number is one of JSON, and a string takes any text: {error}");
        String::new()
    })
}

/// A number keeps its text.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(text) => {
                serde_json::from_str::<&RawValue>(text).map_err(S::Error::custom)?.serialize(serializer)
            }
            Self::String(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(*items),
            Self::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// Returns the value as a `serde_json::Value`. A number out of its range becomes the nearest one in range.
pub(crate) fn json(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(value),
        Value::Number(text) => number(text),
        Value::String(text) => Json::String(text.to_owned()),
        Value::List(items) => {
            let mut out = Vec::with_capacity(items.len());
            for item in items {
                out.push(json(*item));
            }
            Json::Array(out)
        }
        Value::Map(entries) => {
            let mut out = serde_json::Map::with_capacity(entries.len());
            for (key, value) in entries {
                out.insert((*key).to_owned(), json(*value));
            }
            Json::Object(out)
        }
    }
}

/// Converts a number. `serde_json` itself would not always find the nearest `f64`: its feature `float_roundtrip` is off.
fn number(text: &str) -> Json {
    let integer = text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<u64>().map(Json::from));
    integer.unwrap_or_else(|_| text.parse::<f64>().map_or(Json::Null, Json::from))
}
