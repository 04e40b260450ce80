//! The documents that users bring: JSON text, which loses nothing, or `serde_json::Value`, which kube works with.

use crate::error::{DocumentRole, PatchError};
use crate::read;
use crate::value::{MapEntry, Value};
use crate::write;
use bumpalo::Bump;
use serde_json::Value as Json;

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
        Ok(from_json(self, arena))
    }

    fn write(value: Value<'_>) -> Json {
        write::json(value)
    }
}

/// A list or an object whose parts are being converted.
enum FromJsonFrame<'a> {
    List(std::slice::Iter<'a, Json>, Vec<Value<'a>>),
    Map(serde_json::map::Iter<'a>, &'a str, Vec<MapEntry<'a>>),
}

fn from_json<'a>(json: &'a Json, arena: &'a Bump) -> Value<'a> {
    let mut open = Vec::new();
    let mut done = begin(json, arena, &mut open);
    loop {
        let next = match (open.last_mut(), done.take()) {
            (None, whole) => return whole.unwrap_or(Value::Null),
            (Some(FromJsonFrame::List(items, built)), part) => {
                built.extend(part);
                items.next()
            }
            (Some(FromJsonFrame::Map(fields, key, built)), part) => {
                built.extend(part.map(|value| (*key, value)));
                fields.next().map(|(name, value)| {
                    *key = name;
                    value
                })
            }
        };
        done = match next {
            Some(part) => begin(part, arena, &mut open),
            None => open.pop().map(|building| match building {
                FromJsonFrame::List(_, items) => Value::List(arena.alloc_slice_copy(&items)),
                FromJsonFrame::Map(_, _, entries) => Value::Map(arena.alloc_slice_copy(&entries)),
            }),
        };
    }
}

/// Converts a scalar, or opens a list or an object.
fn begin<'a>(json: &'a Json, arena: &'a Bump, open: &mut Vec<FromJsonFrame<'a>>) -> Option<Value<'a>> {
    match json {
        Json::Null => Some(Value::Null),
        Json::Bool(value) => Some(Value::Bool(*value)),
        Json::Number(number) => Some(Value::Number(arena.alloc_str(&number.to_string()))),
        Json::String(text) => Some(Value::String(text)),
        Json::Array(items) => {
            open.push(FromJsonFrame::List(items.iter(), Vec::with_capacity(items.len())));
            None
        }
        Json::Object(map) => {
            open.push(FromJsonFrame::Map(map.iter(), "", Vec::with_capacity(map.len())));
            None
        }
    }
}
