//! Applies a patch to an object.
//!
//! `object` and `list` are the rules: each merges one level and leaves the parts that merge themselves as tasks (`task`). This
//! file merges those. `field` decides about one field, `keyed` merges lists of objects by their keys.

mod arrange;
mod field;
mod keyed;
mod list;
mod object;
mod task;

use crate::context::Context;
use crate::error::{BrokenAt, PatchError};
use crate::schema::{FieldSchema, NodeId};
use crate::value::{MapEntry, Value};
use arrange::ListItem;
use kube_unions_core::field_path::Segment;
use object::MergingObject;
use task::{FieldState, ListPatch, MergeTask};

/// Returns the object with the patch applied.
pub(crate) fn apply<'a>(
    context: &Context<'a>,
    live: &'a [MapEntry<'a>],
    patch: &'a [MapEntry<'a>],
) -> Result<Value<'a>, PatchError> {
    Ok(merge_object(context, live, &[patch], NodeId::ROOT)?)
}

/// Merges patches, in order, into an object.
fn merge_object<'a>(
    context: &Context<'a>,
    live: &'a [MapEntry<'a>],
    patches: &[&'a [MapEntry<'a>]],
    node: NodeId,
) -> Result<Value<'a>, BrokenAt> {
    let MergingObject { fields, replaced, .. } = MergingObject::merge(context, live, patches, node)?;
    let merge = |key: &str, live, task| {
        merge_part(context, live, task).map_err(|broken| broken.inside(context.schema.step(node, key)))
    };
    for (key, live, task) in replaced {
        merge(key, live, task)?;
    }
    let mut out = Vec::with_capacity(fields.len());
    for (key, state) in fields {
        match state {
            FieldState::Removed => {}
            FieldState::Set(value) => out.push((key, value)),
            FieldState::Merging(live, task) => out.push((key, merge(key, live, task)?)),
        }
    }
    Ok(context.map(&out))
}

/// Merges the patch of a list. `live` is `None` if the object has no such list.
fn merge_list<'a>(
    context: &Context<'a>,
    field: &'a FieldSchema,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Value<'a>, BrokenAt> {
    let items = list::merge(context, field, live, patch)?;
    let mut out = Vec::with_capacity(items.len());
    for ListItem { value, patches, live, .. } in items {
        if patches.is_empty() {
            out.push(value);
            continue;
        }
        let merged = merge_part(context, value, MergeTask::Objects(field.items, patches));
        out.push(merged.map_err(|broken| broken.inside(Segment::Index(live.unwrap_or(out.len()))))?);
    }
    Ok(context.list(&out))
}

/// Merges the patches of a field or an item into it.
fn merge_part<'a>(context: &Context<'a>, live: Value<'a>, task: MergeTask<'a>) -> Result<Value<'a>, BrokenAt> {
    match task {
        MergeTask::Objects(node, patches) => {
            let patches: Vec<_> = patches.into_iter().filter_map(Value::entries).collect();
            merge_object(context, live.entries().unwrap_or_default(), &patches, node)
        }
        MergeTask::Lists(field, patches) => {
            patches.iter().try_fold(live, |live, patch| merge_list(context, field, live.items(), patch))
        }
    }
}
