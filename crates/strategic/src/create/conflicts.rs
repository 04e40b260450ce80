//! The checks of a three-way patch: it must not change which object it is for, nor overwrite a change in the cluster if the user
//! asked to be told.

use crate::context::Context;
use crate::directive::{Directive, PATCH};
use crate::elements::{Elements, elements};
use crate::error::{BrokenAt, ConflictEffect, PatchError, PatchSide};
use crate::schema::{MergeKeys, NodeId, Strategy};
use crate::value::{MapEntry, Value, ValueKind, by_name, find};
use hashbrown::HashMap;
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
    let root = ChangePair { ours, theirs, comparison: Comparison::Plain(NodeId::ROOT) };
    match conflict(context, root)? {
        None => Ok(()),
        Some(Conflict { path, ours, theirs }) => Err(PatchError::Conflict {
            path: path.into_iter().rev().collect::<FieldPath>(),
            ours: effect(ours),
            theirs: effect(theirs),
        }),
    }
}

/// A place that both sides change differently.
struct Conflict<'a> {
    /// The steps from the place upwards.
    path: Vec<Segment>,
    ours: Value<'a>,
    theirs: Value<'a>,
}

/// The pairs below a pair. `None` is a conflict of the pair itself.
type Below<'a> = Option<Vec<(Segment, ChangePair<'a>)>>;

/// Returns the last conflict between two changes.
fn conflict<'a>(context: &Context<'a>, pair: ChangePair<'a>) -> Result<Option<Conflict<'a>>, BrokenAt> {
    let below = match (pair.ours, pair.theirs) {
        (Value::Map(ours), Value::Map(theirs)) => maps(context, pair.comparison, ours, theirs)?,
        (Value::List(ours), Value::List(theirs)) => lists(context, pair.comparison, ours, theirs)?,
        (ours, theirs) => ours.same(theirs).then(Vec::new),
    };
    let Some(below) = below else {
        return Ok(Some(Conflict { path: Vec::new(), ours: pair.ours, theirs: pair.theirs }));
    };
    for (step, pair) in below.into_iter().rev() {
        match conflict(context, pair) {
            Ok(None) => {}
            Ok(Some(mut found)) => {
                found.path.push(step);
                return Ok(Some(found));
            }
            Err(broken) => return Err(broken.inside(step)),
        }
    }
    Ok(None)
}

/// The user's change and the change in the cluster at one place.
#[derive(Debug, Clone, Copy)]
struct ChangePair<'a> {
    ours: Value<'a>,
    theirs: Value<'a>,
    comparison: Comparison<'a>,
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

/// Compares the changes of two objects.
fn maps<'a>(
    context: &Context<'a>,
    comparison: Comparison<'a>,
    ours: &'a [MapEntry<'a>],
    theirs: &'a [MapEntry<'a>],
) -> Result<Below<'a>, BrokenAt> {
    match (find(ours, PATCH), find(theirs, PATCH)) {
        (None, None) => {}
        (Some(ours), Some(theirs)) if ours.same(theirs) => {}
        _ => return Ok(None),
    }
    let mut below = Vec::new();
    let node = match comparison {
        Comparison::Plain(node) | Comparison::Merged(node, _) => node,
        Comparison::Replaced => return Ok(Some(below)),
    };
    let others = by_name(theirs);
    for &(key, ours) in ours {
        let Some(&theirs) = others.get(key) else { continue };
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
                field if field.strategy == Strategy::Merge => {
                    Comparison::Merged(field.items, field.keys.as_ref().map(MergeKeys::published))
                }
                field => Comparison::Plain(field.items),
            },
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => Comparison::Plain(node),
        };
        below.push((step, ChangePair { ours, theirs, comparison }));
    }
    Ok(Some(below))
}

/// Compares the changes of two lists.
fn lists<'a>(
    context: &Context<'a>,
    comparison: Comparison<'a>,
    ours: &'a [Value<'a>],
    theirs: &'a [Value<'a>],
) -> Result<Below<'a>, BrokenAt> {
    let elements = elements(ours, theirs)?;
    let replaces =
        |items: &[Value<'_>]| items.iter().any(|item| matches!(item.get(PATCH), Some(Value::String("replace"))));
    let pair = |(position, ours, theirs): (usize, &Value<'a>, &Value<'a>), node| {
        let comparison = Comparison::Plain(node);
        (Segment::Index(position), ChangePair { ours: *ours, theirs: *theirs, comparison })
    };
    let (node, keys) = match comparison {
        Comparison::Merged(..) if replaces(ours) || replaces(theirs) => {
            return Ok(Value::List(ours).same(Value::List(theirs)).then(Vec::new));
        }
        Comparison::Merged(node, Some(keys)) if elements == Some(Elements::Maps) => (node, keys),
        Comparison::Merged(..) | Comparison::Replaced => return Ok(Some(Vec::new())),
        Comparison::Plain(_) if ours.len() != theirs.len() => return Ok(None),
        Comparison::Plain(_) if elements == Some(Elements::Scalars) => {
            let set = |items: &'a [Value<'a>]| {
                let mut all: Vec<_> = items.iter().filter_map(|item| item.scalar(context.arena)).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            return Ok((set(ours) == set(theirs)).then(Vec::new));
        }
        Comparison::Plain(node) => {
            let items = ours.iter().zip(theirs).enumerate();
            return Ok(Some(items.map(|(position, (ours, theirs))| pair((position, ours, theirs), node)).collect()));
        }
    };
    let mut others = HashMap::with_capacity(theirs.len());
    for item in theirs {
        others.entry(keys.tuple(*item, PatchSide::Live, context)?).or_insert(item);
    }
    let mut below = Vec::new();
    for (position, item) in ours.iter().enumerate() {
        let tuple = keys.tuple(*item, PatchSide::Patch, context)?;
        if let Some(other) = others.get(tuple) {
            below.push(pair((position, item, other), node));
        }
    }
    Ok(Some(below))
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
