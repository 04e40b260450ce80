//! What becomes of a part of a patch that is stored as it is: its directives are followed and never stored.

use crate::Context;
use crate::directive::{Directive, PATCH, PATCH_MERGE_KEY, Whole, known, list, retained, whole};
use crate::error::{Fault, Reason};
use crate::schema::NodeId;
use crate::value::{Entry, Value};
use kube_unions_core::field_path::Segment;
use std::slice::Iter;

/// How a part of a patch becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is added where nothing was to merge with: a null deletes nothing, and is dropped.
    Fresh,
    /// It is taken literally, for the schema or a directive said to replace: a null is a value.
    Literal,
    /// It is part of a patch that two were joined to: only what is marked with `$patch` is left out.
    Unmarked,
}

enum Open<'a> {
    Map {
        entries: Iter<'a, Entry<'a>>,
        node: Option<NodeId>,
        mode: Mode,
        in_list: bool,
        key: &'a str,
        out: Vec<Entry<'a>>,
    },
    List {
        items: Iter<'a, Value<'a>>,
        node: Option<NodeId>,
        mode: Mode,
        position: usize,
        out: Vec<Value<'a>>,
    },
}

/// What became of a value so far.
enum Settled<'a> {
    /// It is a list or an object whose parts come next.
    Opened,
    /// A directive took it away.
    Gone,
    Value(Value<'a>),
}

/// The value to store, `None` if a directive says that there is none. `node` is the type of the value, or of its items.
pub(super) fn settle<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: Option<NodeId>,
    mode: Mode,
) -> Result<Option<Value<'a>>, Fault> {
    settle_within(context, value, node, mode, false)
}

/// The same for an item of a list.
pub(super) fn settle_item<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: NodeId,
    mode: Mode,
) -> Result<Option<Value<'a>>, Fault> {
    settle_within(context, value, Some(node), mode, true)
}

fn settle_within<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: Option<NodeId>,
    mode: Mode,
    in_list: bool,
) -> Result<Option<Value<'a>>, Fault> {
    if is_plain(value, mode) {
        return Ok(Some(value));
    }
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut done = begin(value, node, mode, in_list, &mut open)?;
    loop {
        match (open.last_mut(), done) {
            (None, Settled::Value(value)) => return Ok(Some(value)),
            (None, Settled::Gone) => return Ok(None),
            (Some(Open::Map { key, out, .. }), Settled::Value(value)) => out.push((key, value)),
            (Some(Open::List { out, .. }), Settled::Value(value)) => out.push(value),
            (_, Settled::Opened) | (Some(_), Settled::Gone) => {}
        }
        done = Settled::Opened;
        let within = |fault: Fault, open: &[Open<'a>]| {
            let path = open.iter().map(|level| match level {
                Open::Map { key, .. } => Segment::Field((*key).into()),
                Open::List { position, .. } => Segment::Index(*position),
            });
            Fault { below: path.chain(fault.below).collect(), reason: fault.reason }
        };
        let next = match open.last_mut() {
            None => return Ok(None),
            Some(Open::Map { entries, node, mode, in_list, key, .. }) => entries.next().map(|(name, value)| {
                *key = name;
                (*value, *node, *mode, Some((*name, *in_list)))
            }),
            Some(Open::List { items, node, mode, position, .. }) => items.next().map(|value| {
                *position = position.wrapping_add(1);
                (*value, *node, *mode, None)
            }),
        };
        let Some((value, node, mode, field)) = next else {
            done = match open.pop() {
                Some(Open::Map { out, .. }) => Settled::Value(context.map(&out)),
                Some(Open::List { out, .. }) => Settled::Value(context.list(&out)),
                None => Settled::Gone,
            };
            continue;
        };
        let Some((name, in_list)) = field else {
            done = begin(value, node, mode, true, &mut open).map_err(|fault| within(fault, &open))?;
            continue;
        };
        if is_directive(context, name, value, node, (mode, in_list))
            .map_err(|fault| within(fault, open.get(..open.len() - 1).unwrap_or_default()))?
            || (mode == Mode::Fresh && matches!(value, Value::Null))
        {
            continue;
        }
        let field = node.and_then(|node| context.meta.known(node, name));
        let inner = field.map(|field| if value.items().is_some() { field.items } else { field.object });
        done = begin(value, inner, mode, false, &mut open).map_err(|fault| within(fault, &open))?;
    }
}

/// Whether a key is a directive, which is then checked.
fn is_directive<'a>(
    context: &Context<'a>,
    name: &str,
    value: Value<'a>,
    node: Option<NodeId>,
    (mode, in_list): (Mode, bool),
) -> Result<bool, Fault> {
    if mode == Mode::Unmarked || !name.starts_with('$') {
        return Ok(false);
    }
    match Directive::read(name)? {
        Some(Directive::Patch | Directive::RetainKeys) => return Ok(true),
        Some(Directive::Order(_) | Directive::Delete(_)) => {
            list(name, value)?;
            return Ok(true);
        }
        None => {}
    }
    if in_list && name == PATCH_MERGE_KEY {
        return Ok(true);
    }
    if let Some(node) = node {
        known(context.meta, node, name)?;
    }
    Ok(false)
}

/// Opens a list or an object; anything else is done at once.
fn begin<'a>(
    value: Value<'a>,
    node: Option<NodeId>,
    mode: Mode,
    in_list: bool,
    open: &mut Vec<Open<'a>>,
) -> Result<Settled<'a>, Fault> {
    match value {
        Value::Map(entries) if mode == Mode::Unmarked => {
            if entries.iter().any(|(key, _)| *key == PATCH) {
                return Ok(Settled::Gone);
            }
            let out = Vec::with_capacity(entries.len());
            open.push(Open::Map { entries: entries.iter(), node, mode, in_list, key: "", out });
            Ok(Settled::Opened)
        }
        Value::Map(entries) => {
            let mode = match whole(entries)? {
                Some(Whole::Delete) => return Ok(Settled::Gone),
                Some(Whole::Replace) if in_list => return Ok(Settled::Gone),
                Some(Whole::Replace) => Mode::Literal,
                None => mode,
            };
            if mode == Mode::Fresh {
                retained(entries, if in_list { &[PATCH_MERGE_KEY] } else { &[] })?;
            }
            let out = Vec::with_capacity(entries.len());
            open.push(Open::Map { entries: entries.iter(), node, mode, in_list, key: "", out });
            Ok(Settled::Opened)
        }
        Value::List(items) => {
            let out = Vec::with_capacity(items.len());
            open.push(Open::List { items: items.iter(), node, mode, position: usize::MAX, out });
            Ok(Settled::Opened)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Settled::Value(value)),
    }
}

/// Whether nothing in it can be a directive.
fn is_plain(value: Value<'_>, mode: Mode) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::List(items) => {
                open.extend(items.iter().filter(|item| matches!(item, Value::List(_) | Value::Map(_))));
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    match value {
                        _ if *key == PATCH || (mode != Mode::Unmarked && key.starts_with('$')) => return false,
                        Value::Null if mode == Mode::Fresh => return false,
                        Value::List(_) | Value::Map(_) => open.push(*value),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

/// The patch of a list item without `$patchMergeKey`, which is never stored.
pub(super) fn without_merge_key<'a>(context: &Context<'a>, entries: &'a [Entry<'a>]) -> Value<'a> {
    if entries.iter().all(|(key, _)| *key != PATCH_MERGE_KEY) {
        return Value::Map(entries);
    }
    let rest: Vec<Entry<'a>> = entries.iter().copied().filter(|(key, _)| *key != PATCH_MERGE_KEY).collect();
    context.map(&rest)
}

/// The error for a list in the patch where the object has something else.
pub(super) fn wrong_target(directive: &str, side: crate::error::Side, found: Value<'_>) -> Reason {
    Reason::DirectiveTarget { directive: directive.into(), side, found: found.kind() }
}
