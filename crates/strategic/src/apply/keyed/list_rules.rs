//! The merge rules of a list of objects.

use crate::context::Context;
use crate::schema::{FieldSchema, MergeKeys};

/// A list of objects with merge keys.
#[derive(Debug, Clone, Copy)]
pub(in crate::apply) struct ListRules<'a> {
    pub(in crate::apply) context: Context<'a>,
    pub(in crate::apply) field: &'a FieldSchema,
    pub(in crate::apply) keys: &'a MergeKeys,
}
