//! The documents that users bring: JSON text, which loses nothing, or `serde_json::Value`, which kube works with.

use crate::error::{Document as Role, PatchError};
use crate::read;
use crate::value::{Entry, Value};
use crate::write;
use bumpalo::Bump;
use serde_json::Value as Json;

/// Something that holds a JSON object: `str` as text, or `serde_json::Value`.
///
/// Text keeps every number as it was written. The result of an operation is owned: a `String` or a `serde_json::Value`.
pub trait Document: ToOwned + sealed::Sealed {}

impl Document for str {}
impl Document for Json {}

pub(super) mod sealed {
    use super::{Bump, PatchError, Role, Value};

    /// How the engine gets at a document.
    pub trait Sealed: ToOwned {
        #[doc(hidden)]
        fn tree<'a>(&'a self, role: Role, arena: &'a Bump) -> Result<Tree<'a>, PatchError>;

        #[doc(hidden)]
        fn owned(tree: Tree<'_>) -> Self::Owned;
    }

    /// A value, which nobody outside can open.
    #[derive(Debug, Clone, Copy)]
    pub struct Tree<'a>(pub(crate) Value<'a>);
}

use sealed::Tree;

impl sealed::Sealed for str {
    fn tree<'a>(&'a self, role: Role, arena: &'a Bump) -> Result<Tree<'a>, PatchError> {
        read::read(self, arena).map(Tree).map_err(|source| PatchError::Unreadable { document: role, source })
    }

    fn owned(tree: Tree<'_>) -> String {
        write::text(tree.0)
    }
}

impl sealed::Sealed for Json {
    fn tree<'a>(&'a self, _: Role, arena: &'a Bump) -> Result<Tree<'a>, PatchError> {
        Ok(Tree(from_json(self, arena)))
    }

    fn owned(tree: Tree<'_>) -> Json {
        write::json(tree.0)
    }
}

fn from_json<'a>(json: &'a Json, arena: &'a Bump) -> Value<'a> {
    enum Building<'a> {
        List(std::slice::Iter<'a, Json>, Vec<Value<'a>>),
        Map(serde_json::map::Iter<'a>, &'a str, Vec<Entry<'a>>),
    }
    let mut open: Vec<Building<'a>> = Vec::new();
    let mut next = Some(json);
    loop {
        let mut done = match next.take() {
            None => None,
            Some(Json::Array(items)) => {
                open.push(Building::List(items.iter(), Vec::with_capacity(items.len())));
                None
            }
            Some(Json::Object(map)) => {
                open.push(Building::Map(map.iter(), "", Vec::with_capacity(map.len())));
                None
            }
            Some(Json::Null) => Some(Value::Null),
            Some(Json::Bool(value)) => Some(Value::Bool(*value)),
            Some(Json::Number(number)) => Some(Value::Number(arena.alloc_str(&number.to_string()))),
            Some(Json::String(text)) => Some(Value::String(text)),
        };
        while next.is_none() {
            match (open.last_mut(), done.take()) {
                (None, whole) => return whole.unwrap_or(Value::Null),
                (Some(Building::List(_, items)), Some(item)) => items.push(item),
                (Some(Building::Map(_, key, entries)), Some(value)) => entries.push((key, value)),
                (Some(Building::List(items, _)), None) => next = items.next(),
                (Some(Building::Map(entries, key, _)), None) => {
                    next = entries.next().map(|(name, value)| {
                        *key = name;
                        value
                    });
                }
            }
            if next.is_none() {
                let ended = match open.last() {
                    Some(Building::List(items, _)) => items.len() == 0,
                    Some(Building::Map(entries, ..)) => entries.len() == 0,
                    None => false,
                };
                if ended {
                    done = open.pop().map(|building| match building {
                        Building::List(_, items) => Value::List(arena.alloc_slice_copy(&items)),
                        Building::Map(_, _, entries) => Value::Map(arena.alloc_slice_copy(&entries)),
                    });
                }
            }
        }
    }
}
