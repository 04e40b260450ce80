//! The documents that users bring: JSON text, which loses nothing, or `serde_json::Value`, which kube works with.

use crate::error::{BrokenAt, BrokenRule, DocumentRole, PatchError};
use crate::read;
use crate::value::{DEEPEST, Value};
use crate::write;
use bumpalo::Bump;
use kube_unions_core::field_path::Segment;
use serde_json::{Number, Value as Json};

/// A JSON document: `str` or `serde_json::Value`.
///
/// Text keeps every number as it is written. An operation returns the owned form: `String` or `serde_json::Value`.
pub trait JsonDocument: ToOwned + sealed::Sealed {}

impl JsonDocument for str {}
impl JsonDocument for Json {}

mod sealed {
    use super::{Bump, DocumentRole, PatchError, Value};

    /// Converts documents to the engine's values and back.
    pub trait Sealed: ToOwned {
        #[doc(hidden)]
        fn read<'a>(&'a self, role: DocumentRole, arena: &'a Bump) -> Result<Value<'a>, PatchError>;

        #[doc(hidden)]
        fn write(value: Value<'_>) -> Self::Owned;
    }
}

impl sealed::Sealed for str {
    fn read<'a>(&'a self, role: DocumentRole, arena: &'a Bump) -> Result<Value<'a>, PatchError> {
        read::read(self, arena).map_err(|source| PatchError::Unreadable { document: role, source })
    }

    fn write(value: Value<'_>) -> String {
        write::text(value)
    }
}

impl sealed::Sealed for Json {
    fn read<'a>(&'a self, _: DocumentRole, arena: &'a Bump) -> Result<Value<'a>, PatchError> {
        Ok(from_json(self, 0, arena)?)
    }

    fn write(value: Value<'_>) -> Json {
        write::json(value)
    }
}

/// Converts a value that has this number of lists and objects around it.
fn from_json<'a>(json: &'a Json, depth: usize, arena: &'a Bump) -> Result<Value<'a>, BrokenAt> {
    if depth >= DEEPEST && (json.is_array() || json.is_object()) {
        return Err(BrokenRule::TooDeep.into());
    }
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number_from(number, arena),
        Json::String(text) => Value::String(text),
        Json::Array(items) => {
            let mut out = Vec::with_capacity(items.len());
            for (position, item) in items.iter().enumerate() {
                let item = from_json(item, depth + 1, arena);
                out.push(item.map_err(|broken| broken.inside(Segment::Index(position)))?);
            }
            Value::list_in(arena, &out)
        }
        Json::Object(fields) => {
            let mut out = Vec::with_capacity(fields.len());
            for (name, value) in fields {
                let value = from_json(value, depth + 1, arena);
                let value = value.map_err(|broken| broken.inside(Segment::Field(name.as_str().into())))?;
                out.push((name.as_str(), value));
            }
            Value::map_in(arena, &out)
        }
    })
}

fn number_from<'a>(number: &Number, arena: &'a Bump) -> Value<'a> {
    Value::Number(arena.alloc_str(&number.to_string()))
}
