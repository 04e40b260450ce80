//! What a three-way patch may not do: change which object this is, or undo what somebody else changed.

use crate::Context;
use crate::apply::list::{Elements, elements};
use crate::directive::{Directive, PATCH, RETAIN_KEYS};
use crate::error::{Effect, Fault, PatchError, Side};
use crate::keys::Index;
use crate::schema::{Keys, NodeId, Strategy};
use crate::value::{Entry, Value, ValueKind, find};
use kube_unions_core::field_path::{FieldPath, Segment};

/// Refuses a patch that changes which object it is for.
pub(crate) fn refuse_other_object(patch: Value<'_>) -> Result<(), PatchError> {
    let in_metadata = |name| patch.get("metadata").and_then(|metadata| metadata.get(name));
    let changed =
        [("apiVersion", patch.get("apiVersion")), ("kind", patch.get("kind")), ("metadata.name", in_metadata("name"))];
    match changed.into_iter().find(|(_, value)| value.is_some()) {
        Some((field, _)) => Err(PatchError::Precondition { field }),
        None => Ok(()),
    }
}

/// Two values at one place: what the patch says, and what the change in the cluster would say as a patch.
#[derive(Debug, Clone, Copy)]
struct Both<'a> {
    ours: Value<'a>,
    theirs: Value<'a>,
    how: How<'a>,
    /// The position in the trail of steps.
    at: usize,
}

/// How two values are held against each other.
#[derive(Debug, Clone, Copy)]
enum How<'a> {
    /// Objects of this type, lists item by item.
    Plain(NodeId),
    /// A list whose items merge.
    Merged(NodeId, Option<&'a Keys>),
    /// One replaces the other.
    Replaced,
}

struct Search<'a> {
    open: Vec<Both<'a>>,
    /// Steps, each with the one before it.
    trail: Vec<(usize, Segment)>,
}

/// Refuses a patch that changes what was changed in the cluster, and differently. Neither is changed by looking.
pub(crate) fn refuse_conflicts<'a>(
    context: &Context<'a>,
    ours: Value<'a>,
    theirs: Value<'a>,
) -> Result<(), PatchError> {
    let first = Both { ours, theirs, how: How::Plain(NodeId::ROOT), at: 0 };
    let mut search = Search { open: vec![first], trail: vec![(0, Segment::Index(0))] };
    while let Some(both) = search.open.pop() {
        let conflicts = match (both.ours, both.theirs) {
            (Value::Map(ours), Value::Map(theirs)) => search.maps(context, both, ours, theirs),
            (Value::List(ours), Value::List(theirs)) => search.lists(context, both, ours, theirs),
            (ours, theirs) => Ok(!ours.same(theirs)),
        };
        match conflicts {
            Ok(false) => {}
            Ok(true) => {
                let (ours, theirs) = (effect(both.ours), effect(both.theirs));
                return Err(PatchError::Conflict { path: search.path(both.at), ours, theirs });
            }
            Err(fault) => return Err(fault.into_error(search.path(both.at).segments().iter().cloned())),
        }
    }
    Ok(())
}

impl<'a> Search<'a> {
    fn maps(
        &mut self,
        context: &Context<'a>,
        both: Both<'a>,
        ours: &'a [Entry<'a>],
        theirs: &'a [Entry<'a>],
    ) -> Result<bool, Fault> {
        match (find(ours, PATCH), find(theirs, PATCH)) {
            (None, None) => {}
            (Some(ours), Some(theirs)) if ours.same(theirs) => {}
            _ => return Ok(true),
        }
        let node = match both.how {
            How::Plain(node) | How::Merged(node, _) => node,
            How::Replaced => return Ok(false),
        };
        let mut others = crate::value::Fields::of(theirs);
        for &(key, ours) in ours {
            let Some((_, theirs)) = others.get(key) else { continue };
            // Orders never conflict, and what both sides delete from a set is gone.
            if key == RETAIN_KEYS || Directive::read(key)?.is_some() {
                continue;
            }
            let how = match ours.kind() {
                ValueKind::Object => {
                    let field = context.meta.field(node, key, ValueKind::Object)?;
                    if field.strategy == Strategy::Replace { How::Replaced } else { How::Plain(field.object) }
                }
                ValueKind::List => {
                    let field = context.meta.field(node, key, ValueKind::List)?;
                    if field.strategy == Strategy::Merge {
                        How::Merged(field.items, field.keys.as_ref())
                    } else {
                        How::Plain(field.items)
                    }
                }
                ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => How::Plain(node),
            };
            self.push(both.at, context.meta.step(node, key), Both { ours, theirs, how, at: 0 });
        }
        Ok(false)
    }

    fn lists(
        &mut self,
        context: &Context<'a>,
        both: Both<'a>,
        ours: &'a [Value<'a>],
        theirs: &'a [Value<'a>],
    ) -> Result<bool, Fault> {
        let kinds = elements([ours, theirs])?;
        let (node, keys) = match both.how {
            How::Merged(..) if matches!(kinds, Some(Elements::Scalars(_)) | None) => return Ok(false),
            How::Merged(node, keys) => (node, keys),
            How::Plain(node) => return Ok(self.items(context, both, node, kinds, ours, theirs)),
            How::Replaced => return Ok(false),
        };
        let Some(keys) = keys else { return Ok(false) };
        let mut index = Index::new(*context, keys, theirs.len());
        for item in theirs {
            index.push(keys.tuple(*item, Side::Live, context)?);
        }
        for (position, item) in ours.iter().enumerate() {
            let tuple = keys.tuple(*item, Side::Patch, context)?;
            if let Some(other) = index.first(keys.every(), tuple, |_| true).and_then(|at| theirs.get(at)) {
                let next = Both { ours: *item, theirs: *other, how: How::Plain(node), at: 0 };
                self.push(both.at, Segment::Index(position), next);
            }
        }
        Ok(false)
    }

    /// Lists of which one replaces the other: scalars in any order, anything else item by item.
    fn items(
        &mut self,
        context: &Context<'a>,
        both: Both<'a>,
        node: NodeId,
        kinds: Option<Elements>,
        ours: &'a [Value<'a>],
        theirs: &'a [Value<'a>],
    ) -> bool {
        if ours.len() != theirs.len() {
            return true;
        }
        if matches!(kinds, Some(Elements::Scalars(_))) {
            let set = |items: &'a [Value<'a>]| {
                let mut all: Vec<_> = items.iter().filter_map(|item| item.scalar(context.arena)).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            return set(ours) != set(theirs);
        }
        for (position, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            let next = Both { ours: *ours, theirs: *theirs, how: How::Plain(node), at: 0 };
            self.push(both.at, Segment::Index(position), next);
        }
        false
    }

    fn push(&mut self, at: usize, step: Segment, both: Both<'a>) {
        self.trail.push((at, step));
        self.open.push(Both { at: self.trail.len() - 1, ..both });
    }

    fn path(&self, at: usize) -> FieldPath {
        let mut steps = Vec::new();
        let mut at = at;
        while at != 0 {
            let Some((before, step)) = self.trail.get(at) else { break };
            steps.push(step.clone());
            at = *before;
        }
        steps.into_iter().rev().collect()
    }
}

fn effect(value: Value<'_>) -> Effect {
    if matches!(value, Value::Null) {
        Effect::Deletes
    } else if value.get(PATCH).is_some() {
        Effect::Directs
    } else {
        Effect::Sets(value.kind())
    }
}
