//! Applies a patch to an object.
//!
//! `object` and `list` are the rules: each merges one level and leaves the parts that merge themselves as tasks (`task`). This
//! file hands the tasks to the walk. `field` decides about one field, `keyed` merges lists of objects by their keys.

mod arrange;
mod field;
mod keyed;
mod list;
mod object;
mod task;

use crate::context::Context;
use crate::error::{BrokenAt, PatchError};
use crate::schema::NodeId;
use crate::value::{MapEntry, Value};
use crate::walk::{Level, Next, walk};
use task::{MergeTask, Merged, Unfinished};

/// Returns the object with the patch applied.
pub(crate) fn apply<'a>(
    context: &Context<'a>,
    live: &'a [MapEntry<'a>],
    patch: &'a [MapEntry<'a>],
) -> Result<Value<'a>, PatchError> {
    Ok(match object::merge(context, live, &[patch], NodeId::ROOT)? {
        Merged::Value(value) => value,
        Merged::Unfinished(level) => walk(context, level)?,
    })
}

impl<'a> Level<'a> for Unfinished<'a> {
    type Output = Value<'a>;

    fn step(&mut self, context: &Context<'a>, part: Option<Value<'a>>) -> Result<Next<'a, Self>, BrokenAt> {
        if let Some(value) = part {
            self.finish_task(value);
        }
        while let Some(pending) = self.pending.last_mut() {
            let step = pending.step;
            let merged = match &mut pending.task {
                MergeTask::Objects(node, patches) => {
                    let live = pending.live.entries().unwrap_or_default();
                    let patches: Vec<_> = std::mem::take(patches).into_iter().filter_map(Value::entries).collect();
                    object::merge(context, live, &patches, *node)
                }
                MergeTask::Lists(field, patches) => match patches.pop_front() {
                    Some(patch) => list::merge(context, field, pending.live.items(), &patch),
                    None => Ok(Merged::Value(pending.live)),
                },
            };
            match merged.map_err(|broken| broken.inside(step.segment(context)))? {
                Merged::Value(value) => self.finish_task(value),
                Merged::Unfinished(level) => return Ok(Next::Into(step, level)),
            }
        }
        Ok(Next::Done(self.out.store(context)))
    }
}
