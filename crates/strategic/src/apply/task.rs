//! The part of a level that is left to merge: a field or an item, with its patches.

use crate::schema::{FieldSchema, NodeId};
use crate::value::Value;

/// One field of an object that is being merged.
#[derive(Debug)]
pub(super) enum FieldState<'a> {
    Set(Value<'a>),
    Removed,
    /// Patches merge into this value.
    Merging(Value<'a>, MergeTask<'a>),
}

/// Patches to merge into a field or an item, in order.
#[derive(Debug)]
pub(super) enum MergeTask<'a> {
    /// Objects of this type. One pass merges all patches.
    Objects(NodeId, Vec<Value<'a>>),
    /// Lists. Each patch is a pass of its own, since it may put the list in order.
    Lists(&'a FieldSchema, Vec<ListPatch<'a>>),
}

/// The parts of a patch that concern one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPatch<'a> {
    /// `$setElementOrder`
    pub(super) order: Option<&'a [Value<'a>]>,
    pub(super) items: Option<&'a [Value<'a>]>,
    /// `$deleteFromPrimitiveList`
    pub(super) delete: Option<&'a [Value<'a>]>,
}
