//! Applies a patch to an object.
//!
//! One level at a time: a level decides at once what becomes of each of its fields or items, but for those that merge, which are
//! levels of their own. Open levels are kept on the heap. Several patches of one object are merged in one pass (`object`).

mod keyed;
pub(super) mod list;
mod object;

use self::list::ListPatch;
use crate::Context;
use crate::directive::{Directive, known, list};
use crate::error::{Fault, PatchError, Side};

use crate::schema::{Field, NodeId, Strategy};
use crate::settle::{Mode, settle, wrong_target};
use crate::value::{Entry, Value};
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;

/// What is left to do for one field or item.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    /// Where the result goes; past the end ([`Self::NOWHERE`]) if only its faults count.
    pub(super) slot: usize,
    pub(super) step: Step<'a>,
    pub(super) live: Value<'a>,
    pub(super) work: Work<'a>,
}

impl Pending<'_> {
    /// The slot of a result that a later patch of the same object replaced.
    pub(super) const NOWHERE: usize = usize::MAX;
}

/// The step to a level.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Field(NodeId, &'a str),
    Item(usize),
}

/// How a field or an item merges.
#[derive(Debug)]
pub(super) enum Work<'a> {
    /// Objects of this type, with the patches to merge, in order.
    Map(NodeId, Vec<Value<'a>>),
    /// Lists, with the patches to merge one after the other, the first one last.
    List(&'a Field, Vec<ListPatch<'a>>),
}

/// What a level came to.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    Done(Value<'a>),
    Level(Level<'a>),
}

/// A level whose fields or items are not all done.
#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) out: Out<'a>,
    /// The last one is next.
    pub(super) pending: Vec<Pending<'a>>,
}

/// What a level will be.
#[derive(Debug)]
pub(super) enum Out<'a> {
    Map(Vec<Entry<'a>>),
    List(Vec<Value<'a>>),
}

/// The object with the patch applied.
pub(super) fn apply<'a>(
    context: &Context<'a>,
    live: &'a [Entry<'a>],
    patch: &'a [Entry<'a>],
) -> Result<Value<'a>, PatchError> {
    run(context, live, patch, NodeId::ROOT).map_err(|fault| fault.into_error([]))
}

/// The object of some type with the patch applied; the path of a fault starts there.
pub(super) fn run<'a>(
    context: &Context<'a>,
    live: &'a [Entry<'a>],
    patch: &'a [Entry<'a>],
    node: NodeId,
) -> Result<Value<'a>, Fault> {
    let mut open: Vec<Level<'a>> = Vec::new();
    let mut done = match object::open(context, live, &[patch], node)? {
        Opened::Done(value) => return Ok(value),
        Opened::Level(level) => {
            open.push(level);
            None
        }
    };
    while let Some(level) = open.last_mut() {
        if let Some(value) = done.take() {
            level.take(value);
        }
        let Some(next) = level.pending.last_mut() else {
            done = open.pop().map(|level| level.out.finish(context));
            continue;
        };
        let opened = match &mut next.work {
            Work::Map(node, patches) => {
                let patches: Vec<_> = std::mem::take(patches).into_iter().filter_map(Value::entries).collect();
                let live = next.live.entries().unwrap_or_default();
                object::open(context, live, &patches, *node)
            }
            Work::List(field, patches) => match (next.live, patches.pop()) {
                (Value::List(live), Some(patch)) => list::open(context, field, Some(live), &patch),
                (_, Some(patch)) => list::open(context, field, None, &patch),
                (live, None) => Ok(Opened::Done(live)),
            },
        };
        match opened {
            Ok(Opened::Done(value)) => done = Some(value),
            Ok(Opened::Level(level)) => open.push(level),
            Err(fault) => {
                let steps = open.iter().filter_map(|level| Some(level.pending.last()?.step.segment(context)));
                return Err(Fault { below: steps.chain(fault.below).collect(), reason: fault.reason });
            }
        }
    }
    Ok(done.unwrap_or(Value::EMPTY))
}

impl<'a> Level<'a> {
    /// Takes the result of the pending field or item, unless another patch has to be merged into it first.
    fn take(&mut self, value: Value<'a>) {
        let Some(pending) = self.pending.last_mut() else { return };
        if let Work::List(_, patches) = &pending.work
            && !patches.is_empty()
        {
            pending.live = value;
            return;
        }
        match &mut self.out {
            Out::Map(entries) => {
                if let Some(entry) = entries.get_mut(pending.slot) {
                    entry.1 = value;
                }
            }
            Out::List(items) => {
                if let Some(item) = items.get_mut(pending.slot) {
                    *item = value;
                }
            }
        }
        self.pending.pop();
    }
}

impl<'a> Out<'a> {
    pub(super) fn finish(self, context: &Context<'a>) -> Value<'a> {
        match self {
            Self::Map(entries) => context.map(&entries),
            Self::List(items) => context.list(&items),
        }
    }
}

impl Step<'_> {
    pub(super) fn segment(&self, context: &Context<'_>) -> Segment {
        match self {
            Self::Field(node, name) => context.meta.step(*node, name),
            Self::Item(position) => Segment::Index(*position),
        }
    }
}

/// What becomes of one field.
#[derive(Debug)]
pub(super) enum Fate<'a> {
    Kept,
    Dropped,
    Set(Value<'a>),
    Pending(Value<'a>, Work<'a>),
}

/// What a patch says of one field.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FieldPatch<'a> {
    pub(super) value: Option<Value<'a>>,
    pub(super) order: Option<Value<'a>>,
    pub(super) delete: Option<Value<'a>>,
}

/// The fields that a patch speaks of, each with the directives for it.
pub(super) fn field_patches<'a>(
    context: &Context<'a>,
    patch: &'a [Entry<'a>],
    node: NodeId,
) -> Result<Vec<(&'a str, FieldPatch<'a>)>, Fault> {
    let mut said: Vec<(&'a str, FieldPatch<'a>)> = Vec::with_capacity(patch.len());
    if patch.iter().all(|(key, _)| !key.starts_with('$')) {
        said.extend(
            patch.iter().map(|(key, value)| (*key, FieldPatch { value: Some(*value), ..FieldPatch::default() })),
        );
        return Ok(said);
    }
    let mut positions: HashMap<&'a str, usize> = HashMap::with_capacity(patch.len());
    for &(key, value) in patch {
        let read = Directive::read(key).map_err(|reason| reason.at([context.meta.step(node, key)]))?;
        let name = match read {
            None => {
                known(context.meta, node, key)?;
                key
            }
            Some(Directive::Order(name) | Directive::Delete(name)) => name,
            Some(Directive::Patch | Directive::RetainKeys) => continue,
        };
        let position = *positions.entry(name).or_insert(said.len());
        if position == said.len() {
            said.push((name, FieldPatch::default()));
        }
        let Some((_, field)) = said.get_mut(position) else { continue };
        match read {
            Some(Directive::Order(_)) => field.order = Some(value),
            Some(Directive::Delete(_)) => field.delete = Some(value),
            _ => field.value = Some(value),
        }
    }
    Ok(said)
}

/// What becomes of one field by one patch.
pub(super) fn fate<'a>(
    context: &Context<'a>,
    node: NodeId,
    key: &'a str,
    live: Option<Value<'a>>,
    said: FieldPatch<'a>,
) -> Result<Fate<'a>, Fault> {
    if said.order.is_none() && said.delete.is_none() {
        return match said.value {
            Some(value) => plain(context, node, key, live, value),
            None => Ok(Fate::Kept),
        };
    }
    let order = said.order.map(|order| list(crate::directive::SET_ELEMENT_ORDER, order)).transpose()?;
    let delete = said.delete.map(|delete| list(crate::directive::DELETE_FROM_PRIMITIVE_LIST, delete)).transpose()?;
    if let (Some(Value::List(items)), Some(delete)) = (said.value, delete) {
        list::refuse_added_and_deleted(context, items, delete)?;
    }
    let items = match said.value {
        None => None,
        Some(Value::List(items)) => Some(items),
        Some(other) if order.is_some() => {
            return Err(wrong_target(crate::directive::SET_ELEMENT_ORDER, Side::Patch, other).into());
        }
        // The list is replaced by something else, from which nothing can be deleted.
        Some(other) => return plain(context, node, key, live, other),
    };
    let field = |meta: &'a crate::schema::Meta| {
        meta.field(node, key, crate::value::ValueKind::List)
            .map_err(|fault| Fault { below: Vec::new(), reason: fault.reason })
    };
    match live {
        Some(live @ Value::List(_)) => {
            Ok(Fate::Pending(live, Work::List(field(context.meta)?, vec![ListPatch { order, items, delete }])))
        }
        Some(other) if order.is_some() => {
            Err(wrong_target(crate::directive::SET_ELEMENT_ORDER, Side::Live, other).into())
        }
        None if order.is_some() => {
            let field = field(context.meta)?;
            if items.is_none() {
                return Ok(Fate::Dropped);
            }
            Ok(Fate::Pending(Value::Null, Work::List(field, vec![ListPatch { order, items, delete }])))
        }
        live => match said.value {
            Some(value) => plain(context, node, key, live, value),
            None => Ok(if live.is_some() { Fate::Kept } else { Fate::Dropped }),
        },
    }
}

/// A field without directives.
fn plain<'a>(
    context: &Context<'a>,
    node: NodeId,
    key: &'a str,
    live: Option<Value<'a>>,
    value: Value<'a>,
) -> Result<Fate<'a>, Fault> {
    let below = |fault: Fault| Fault { below: Vec::new(), reason: fault.reason };
    match (live, value) {
        (_, Value::Null) => Ok(Fate::Dropped),
        (Some(live @ Value::Map(_)), Value::Map(_)) => {
            let field = context.meta.field(node, key, value.kind()).map_err(below)?;
            if field.strategy == Strategy::Replace {
                let settled = settle(context, value, Some(field.object), Mode::Literal)?;
                return Ok(Fate::Set(settled.unwrap_or(Value::EMPTY)));
            }
            Ok(Fate::Pending(live, Work::Map(field.object, vec![value])))
        }
        (Some(live @ Value::List(_)), Value::List(items)) => {
            let field = context.meta.field(node, key, value.kind()).map_err(below)?;
            if field.strategy != Strategy::Merge {
                let settled = settle(context, value, Some(field.items), Mode::Literal)?;
                return Ok(settled.map_or(Fate::Dropped, Fate::Set));
            }
            let patch = ListPatch { order: None, items: Some(items), delete: None };
            Ok(Fate::Pending(live, Work::List(field, vec![patch])))
        }
        (_, value) => {
            let known = context.meta.known(node, key);
            let inner = known.map(|field| if matches!(value, Value::List(_)) { field.items } else { field.object });
            Ok(settle(context, value, inner, Mode::Fresh)?.map_or(Fate::Dropped, Fate::Set))
        }
    }
}
