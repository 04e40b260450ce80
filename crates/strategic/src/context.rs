//! The inputs that every step of every operation shares.

use crate::schema::MergeSchema;
use crate::value::{MapEntry, Value};
use bumpalo::Bump;

/// The schema, the arena that owns intermediate values, and the options of one operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) schema: &'a MergeSchema,
    pub(crate) arena: &'a Bump,
    /// Refuse what the format otherwise decides by the order of items.
    pub(crate) strict: bool,
}

impl<'a> Context<'a> {
    /// Stores an object in the arena.
    pub(crate) fn map(&self, entries: &[MapEntry<'a>]) -> Value<'a> {
        Value::map_in(self.arena, entries)
    }

    /// Stores a list in the arena.
    pub(crate) fn list(&self, items: &[Value<'a>]) -> Value<'a> {
        Value::list_in(self.arena, items)
    }
}
