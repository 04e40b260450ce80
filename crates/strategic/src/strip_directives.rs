//! Turns a part of a patch into the value to store: follows the directives in it and removes them.

use crate::context::Context;
use crate::directive::{Directive, PATCH, PATCH_MERGE_KEY, PatchMode, RetainedKeys, list, refuse_unknown};
use crate::error::{BrokenAt, BrokenRule};
use crate::schema::NodeId;
use crate::value::{MapEntry, Value};
use crate::walk::{self, Next, Step, walk};
use std::iter::Enumerate;
use std::slice::Iter;

/// The treatment of nulls and directives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StripMode {
    /// The value is added where nothing was: a null deletes nothing and is dropped.
    Fresh,
    /// The value replaces another one: a null is a value.
    Literal,
    /// The value stays part of a patch: only what is marked with `$patch` is left out.
    Unmarked,
}

/// Returns the value to store, or `None` if a directive deletes it. `node` is the type of the value, or of its items.
pub(crate) fn strip_directives<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: Option<NodeId>,
    mode: StripMode,
) -> Result<Option<Value<'a>>, BrokenAt> {
    strip_at(context, value, node, mode, false)
}

/// Returns the list item to store, or `None` if a directive deletes it.
pub(crate) fn strip_item_directives<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: NodeId,
    mode: StripMode,
) -> Result<Option<Value<'a>>, BrokenAt> {
    strip_at(context, value, Some(node), mode, true)
}

fn strip_at<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: Option<NodeId>,
    mode: StripMode,
    in_list: bool,
) -> Result<Option<Value<'a>>, BrokenAt> {
    if is_plain(value, mode) {
        return Ok(Some(value));
    }
    match Stripped::open(value, node, mode, in_list)? {
        Stripped::Value(value) => Ok(Some(value)),
        Stripped::Deleted => Ok(None),
        Stripped::Level(level) => walk(context, level),
    }
}

/// A value before its parts are stripped.
enum Stripped<'a> {
    /// A list or an object, whose parts come next.
    Level(StripLevel<'a>),
    /// A directive deletes the value.
    Deleted,
    Value(Value<'a>),
}

/// A list or an object whose parts are being stripped.
enum StripLevel<'a> {
    Map {
        entries: Iter<'a, MapEntry<'a>>,
        node: Option<NodeId>,
        mode: StripMode,
        in_list: bool,
        key: &'a str,
        out: Vec<MapEntry<'a>>,
    },
    List {
        items: Enumerate<Iter<'a, Value<'a>>>,
        node: Option<NodeId>,
        mode: StripMode,
        out: Vec<Value<'a>>,
    },
}

impl<'a> Stripped<'a> {
    fn open(value: Value<'a>, node: Option<NodeId>, mode: StripMode, in_list: bool) -> Result<Self, BrokenRule> {
        let entries = match value {
            Value::Map(entries) => entries,
            Value::List(items) => {
                let (out, items) = (Vec::with_capacity(items.len()), items.iter().enumerate());
                return Ok(Self::Level(StripLevel::List { items, node, mode, out }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(Self::Value(value)),
        };
        let mut mode = mode;
        if mode == StripMode::Unmarked {
            if entries.iter().any(|(key, _)| *key == PATCH) {
                return Ok(Self::Deleted);
            }
        } else {
            mode = match PatchMode::of(entries)? {
                Some(PatchMode::Delete) => return Ok(Self::Deleted),
                Some(PatchMode::Replace) if in_list => return Ok(Self::Deleted),
                Some(PatchMode::Replace) => StripMode::Literal,
                None => mode,
            };
            if mode == StripMode::Fresh {
                RetainedKeys::of(entries, in_list.then_some(PATCH_MERGE_KEY))?;
            }
        }
        let out = Vec::with_capacity(entries.len());
        Ok(Self::Level(StripLevel::Map { entries: entries.iter(), node, mode, in_list, key: "", out }))
    }
}

impl<'a> walk::Level<'a> for StripLevel<'a> {
    type Output = Option<Value<'a>>;

    fn step(&mut self, context: &Context<'a>, part: Option<Self::Output>) -> Result<Next<'a, Self>, BrokenAt> {
        let part = part.flatten();
        match self {
            Self::List { items, node, mode, out } => {
                out.extend(part);
                for (position, item) in items {
                    let step = Step::Item(position);
                    match Stripped::open(*item, *node, *mode, true).map_err(|rule| rule.at(step.segment(context)))? {
                        Stripped::Value(value) => out.push(value),
                        Stripped::Deleted => {}
                        Stripped::Level(level) => return Ok(Next::Into(step, level)),
                    }
                }
                Ok(Next::Done(Some(context.list(out))))
            }
            Self::Map { entries, node, mode, in_list, key, out } => {
                out.extend(part.map(|value| (*key, value)));
                for &(name, value) in entries {
                    if is_directive(context, name, value, *node, *mode, *in_list)?
                        || (*mode == StripMode::Fresh && matches!(value, Value::Null))
                    {
                        continue;
                    }
                    let field = node.and_then(|node| context.schema.known(node, name));
                    let inner = field.map(|field| if value.items().is_some() { field.items } else { field.object });
                    let step = Step::Field(node.unwrap_or_default(), name);
                    match Stripped::open(value, inner, *mode, false).map_err(|rule| rule.at(step.segment(context)))? {
                        Stripped::Value(value) => out.push((name, value)),
                        Stripped::Deleted => {}
                        Stripped::Level(level) => {
                            *key = name;
                            return Ok(Next::Into(step, level));
                        }
                    }
                }
                Ok(Next::Done(Some(context.map(out))))
            }
        }
    }
}

/// Returns true for a directive, once its value is checked.
fn is_directive<'a>(
    context: &Context<'a>,
    name: &str,
    value: Value<'a>,
    node: Option<NodeId>,
    mode: StripMode,
    in_list: bool,
) -> Result<bool, BrokenAt> {
    if mode == StripMode::Unmarked || !name.starts_with('$') {
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
        refuse_unknown(context.schema, node, name)?;
    }
    Ok(false)
}

/// Returns true if the value contains nothing that settling would change, so that it can be shared instead of copied.
fn is_plain(value: Value<'_>, mode: StripMode) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::List(items) => {
                open.extend(items.iter().filter(|item| matches!(item, Value::List(_) | Value::Map(_))));
            }
            Value::Map(entries) => {
                for (key, value) in entries {
                    match value {
                        _ if *key == PATCH || (mode != StripMode::Unmarked && key.starts_with('$')) => return false,
                        Value::Null if mode == StripMode::Fresh => return false,
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
