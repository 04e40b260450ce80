//! The merge rules of a list of objects.

use crate::apply::merging_value::MergingValue;
use crate::context::Context;
use crate::error::BrokenAt;
use crate::schema::{FieldSchema, MergeKeys, NodeId};
use crate::value::MapEntry;

/// Merges a patch into an item of this type.
pub(in crate::apply) type MergeItem<'a> =
    fn(&Context<'a>, &mut MergingValue<'a>, NodeId, &'a [MapEntry<'a>]) -> Result<(), BrokenAt>;

/// A list of objects with merge keys.
#[derive(Debug, Clone, Copy)]
pub(in crate::apply) struct ListRules<'a> {
    pub(in crate::apply) context: Context<'a>,
    pub(in crate::apply) field: &'a FieldSchema,
    pub(in crate::apply) keys: &'a MergeKeys,
    pub(in crate::apply) merge_item: MergeItem<'a>,
}
