//! The checks of a three-way patch: it must not change which object it is for, nor overwrite a change in the cluster if the user
//! asked to be told.

use crate::context::Context;
use crate::directive::{Directive, PATCH};
use crate::elements::{Elements, elements};
use crate::error::{BrokenAt, ConflictEffect, PatchError, PatchSide};
use crate::keys::KeyIndex;
use crate::schema::{MergeKeys, NodeId, Strategy};
use crate::value::{FieldLookup, MapEntry, Value, ValueKind, find};
use kube_unions_core::field_path::{FieldPath, Segment};

/// Refuses a patch that changes a field which identifies the object.
pub(crate) fn refuse_other_object(patch: Value<'_>) -> Result<(), PatchError> {
    let name = patch.get("metadata").and_then(|metadata| metadata.get("name"));
    let identity = [("apiVersion", patch.get("apiVersion")), ("kind", patch.get("kind")), ("metadata.name", name)];
    match identity.into_iter().find(|(_, value)| value.is_some()) {
        Some((field, _)) => Err(PatchError::Precondition { field }),
        None => Ok(()),
    }
}

/// Refuses a patch that changes what the cluster changed differently. `theirs` is the change in the cluster as a patch.
pub(crate) fn refuse_conflicts<'a>(
    context: &Context<'a>,
    ours: Value<'a>,
    theirs: Value<'a>,
) -> Result<(), PatchError> {
    let root = ChangePair { ours, theirs, comparison: Comparison::Plain(NodeId::ROOT), at: 0 };
    let mut search = ConflictSearch { open: vec![root], trail: vec![(0, Segment::Index(0))] };
    while let Some(pair) = search.open.pop() {
        let conflict = match (pair.ours, pair.theirs) {
            (Value::Map(ours), Value::Map(theirs)) => search.maps(context, pair, ours, theirs),
            (Value::List(ours), Value::List(theirs)) => search.lists(context, pair, ours, theirs),
            (ours, theirs) => Ok(!ours.same(theirs)),
        };
        if conflict.map_err(|broken| broken.below(search.steps(pair.at)))? {
            let path: FieldPath = search.steps(pair.at).into_iter().collect();
            return Err(PatchError::Conflict { path, ours: effect(pair.ours), theirs: effect(pair.theirs) });
        }
    }
    Ok(())
}

/// The user's change and the change in the cluster at one place.
#[derive(Debug, Clone, Copy)]
struct ChangePair<'a> {
    ours: Value<'a>,
    theirs: Value<'a>,
    comparison: Comparison<'a>,
    /// The position of the last step in the trail.
    at: usize,
}

/// The way to compare two changes.
#[derive(Debug, Clone, Copy)]
enum Comparison<'a> {
    /// Objects of this type, or lists, item by item.
    Plain(NodeId),
    /// Lists whose items merge by these keys.
    Merged(NodeId, Option<&'a MergeKeys>),
    /// Only their `$patch`: one side replaces the other.
    Replaced,
}

struct ConflictSearch<'a> {
    open: Vec<ChangePair<'a>>,
    /// Steps, each with the position of the one before it. The first is the root.
    trail: Vec<(usize, Segment)>,
}

impl<'a> ConflictSearch<'a> {
    /// Returns true for a conflict between the changes of two objects, and opens the pairs below.
    fn maps(
        &mut self,
        context: &Context<'a>,
        pair: ChangePair<'a>,
        ours: &'a [MapEntry<'a>],
        theirs: &'a [MapEntry<'a>],
    ) -> Result<bool, BrokenAt> {
        match (find(ours, PATCH), find(theirs, PATCH)) {
            (None, None) => {}
            (Some(ours), Some(theirs)) if ours.same(theirs) => {}
            _ => return Ok(true),
        }
        let node = match pair.comparison {
            Comparison::Plain(node) | Comparison::Merged(node, _) => node,
            Comparison::Replaced => return Ok(false),
        };
        let mut others = FieldLookup::of(theirs);
        for &(key, ours) in ours {
            let Some((_, theirs)) = others.get(key) else { continue };
            // Two orders of a list are no conflict, and neither are two deletions from a set.
            if Directive::read(key)?.is_some() {
                continue;
            }
            let step = context.schema.step(node, key);
            let schema = |kind| context.schema.field(node, key, kind).map_err(|rule| rule.at(step.clone()));
            let comparison = match ours.kind() {
                ValueKind::Object => match schema(ValueKind::Object)? {
                    field if field.strategy == Strategy::Replace => Comparison::Replaced,
                    field => Comparison::Plain(field.object),
                },
                ValueKind::List => match schema(ValueKind::List)? {
                    field if field.strategy == Strategy::Merge => Comparison::Merged(field.items, field.keys.as_ref()),
                    field => Comparison::Plain(field.items),
                },
                ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => Comparison::Plain(node),
            };
            self.push(pair.at, step, ours, theirs, comparison);
        }
        Ok(false)
    }

    /// Returns true for a conflict between the changes of two lists, and opens the pairs below.
    fn lists(
        &mut self,
        context: &Context<'a>,
        pair: ChangePair<'a>,
        ours: &'a [Value<'a>],
        theirs: &'a [Value<'a>],
    ) -> Result<bool, BrokenAt> {
        let elements = elements(ours, theirs)?;
        let (node, keys) = match pair.comparison {
            Comparison::Merged(node, Some(keys)) if elements == Some(Elements::Maps) => (node, keys),
            Comparison::Merged(..) | Comparison::Replaced => return Ok(false),
            Comparison::Plain(_) if ours.len() != theirs.len() => return Ok(true),
            Comparison::Plain(_) if elements == Some(Elements::Scalars) => {
                let set = |items: &'a [Value<'a>]| {
                    let mut all: Vec<_> = items.iter().filter_map(|item| item.scalar(context.arena)).collect();
                    all.sort_unstable();
                    all.dedup();
                    all
                };
                return Ok(set(ours) != set(theirs));
            }
            Comparison::Plain(node) => {
                for (position, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                    self.push(pair.at, Segment::Index(position), *ours, *theirs, Comparison::Plain(node));
                }
                return Ok(false);
            }
        };
        let mut index = KeyIndex::new(*context, keys, theirs.len());
        for item in theirs {
            index.push(keys.tuple(*item, PatchSide::Live, context)?);
        }
        for (position, item) in ours.iter().enumerate() {
            let tuple = keys.tuple(*item, PatchSide::Patch, context)?;
            if let Some(other) = index.first(keys.every(), tuple, |_| true).and_then(|at| theirs.get(at)) {
                self.push(pair.at, Segment::Index(position), *item, *other, Comparison::Plain(node));
            }
        }
        Ok(false)
    }

    fn push(&mut self, before: usize, step: Segment, ours: Value<'a>, theirs: Value<'a>, comparison: Comparison<'a>) {
        self.open.push(ChangePair { ours, theirs, comparison, at: self.trail.len() });
        self.trail.push((before, step));
    }

    /// Returns the steps from the root to a position in the trail.
    fn steps(&self, at: usize) -> Vec<Segment> {
        let mut steps = Vec::new();
        let mut at = at;
        while let Some((before, step)) = self.trail.get(at).filter(|_| at != 0) {
            steps.push(step.clone());
            at = *before;
        }
        steps.reverse();
        steps
    }
}

fn effect(value: Value<'_>) -> ConflictEffect {
    if matches!(value, Value::Null) {
        ConflictEffect::Deletes
    } else if value.get(PATCH).is_some() {
        ConflictEffect::Directs
    } else {
        ConflictEffect::Sets(value.kind())
    }
}
