//! A level that is merged except for some of its fields or items. Each of these is a task of its own.

use crate::context::Context;
use crate::schema::{FieldSchema, NodeId};
use crate::value::{MapEntry, Value};
use crate::walk::Step;
use std::collections::VecDeque;

/// The result of merging one level.
#[derive(Debug)]
pub(super) enum Merged<'a> {
    /// The level has no part that is left to merge.
    Value(Value<'a>),
    Unfinished(Unfinished<'a>),
}

/// A level with parts that are left to merge.
#[derive(Debug)]
pub(super) struct Unfinished<'a> {
    pub(super) out: Parts<'a>,
    /// The parts that are left, the next one last.
    pub(super) pending: Vec<Pending<'a>>,
}

/// The parts of a level, in order.
#[derive(Debug)]
pub(super) enum Parts<'a> {
    Map(Vec<MapEntry<'a>>),
    List(Vec<Value<'a>>),
}

/// A field or an item that is left to merge.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    /// The place of the result among the parts; `None` if a later patch replaced the field, so that only errors count.
    pub(super) slot: Option<usize>,
    pub(super) step: Step<'a>,
    pub(super) live: Value<'a>,
    pub(super) task: MergeTask<'a>,
}

/// Patches to merge into a field or an item, in order.
#[derive(Debug)]
pub(super) enum MergeTask<'a> {
    /// Objects of this type. One pass merges all patches.
    Objects(NodeId, Vec<Value<'a>>),
    /// Lists. Each patch is a pass of its own, since it may put the list in order.
    Lists(&'a FieldSchema, VecDeque<ListPatch<'a>>),
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

impl<'a> Merged<'a> {
    /// Returns the level as a value, unless parts are pending. `pending` is in the order of the parts.
    pub(super) fn new(context: &Context<'a>, out: Parts<'a>, mut pending: Vec<Pending<'a>>) -> Self {
        if pending.is_empty() {
            return Self::Value(out.store(context));
        }
        pending.reverse();
        Self::Unfinished(Unfinished { out, pending })
    }
}

impl<'a> Unfinished<'a> {
    /// Stores the result of the current task, unless another patch of a list has yet to be merged into it.
    pub(super) fn finish_task(&mut self, value: Value<'a>) {
        let Some(mut pending) = self.pending.pop() else { return };
        if matches!(&pending.task, MergeTask::Lists(_, patches) if !patches.is_empty()) {
            pending.live = value;
            self.pending.push(pending);
            return;
        }
        let place = match &mut self.out {
            Parts::Map(entries) => pending.slot.and_then(|slot| entries.get_mut(slot)).map(|(_, value)| value),
            Parts::List(items) => pending.slot.and_then(|slot| items.get_mut(slot)),
        };
        if let Some(place) = place {
            *place = value;
        }
    }
}

impl<'a> Parts<'a> {
    /// Stores the parts in the arena.
    pub(super) fn store(&self, context: &Context<'a>) -> Value<'a> {
        match self {
            Self::Map(entries) => context.map(entries),
            Self::List(items) => context.list(items),
        }
    }
}
