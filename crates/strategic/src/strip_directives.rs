//! Turns a part of a patch into the value to store: follows the directives in it and removes them.

use crate::context::Context;
use crate::directive::{Directive, PATCH, PATCH_MERGE_KEY, PatchMode, RetainedKeys, list, refuse_unknown};
use crate::error::{BrokenAt, BrokenRule};
use crate::schema::NodeId;
use crate::value::{MapEntry, Value};
use kube_unions_core::field_path::Segment;

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
    Strip { context, node, mode, in_list: false }.strip(value)
}

/// Returns the list item to store, or `None` if a directive deletes it.
pub(crate) fn strip_item_directives<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    node: NodeId,
    mode: StripMode,
) -> Result<Option<Value<'a>>, BrokenAt> {
    Strip { context, node: Some(node), mode, in_list: true }.strip(value)
}

/// The place of a value whose directives are followed.
#[derive(Clone, Copy)]
struct Strip<'c, 'a> {
    context: &'c Context<'a>,
    node: Option<NodeId>,
    mode: StripMode,
    in_list: bool,
}

impl<'a> Strip<'_, 'a> {
    fn strip(self, value: Value<'a>) -> Result<Option<Value<'a>>, BrokenAt> {
        let Self { context, node, .. } = self;
        let entries = match value {
            Value::Map(entries) => entries,
            Value::List(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (position, item) in items.iter().enumerate() {
                    let item = Self { in_list: true, ..self }.strip(*item);
                    out.extend(item.map_err(|broken| broken.inside(Segment::Index(position)))?);
                }
                return Ok(Some(context.list(&out)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(Some(value)),
        };
        let Some(mode) = self.mode_inside(entries)? else { return Ok(None) };
        let inside = Self { mode, ..self };
        let mut out = Vec::with_capacity(entries.len());
        for &(name, value) in entries {
            if inside.is_directive(name, value)? || (mode == StripMode::Fresh && matches!(value, Value::Null)) {
                continue;
            }
            let field = node.and_then(|node| context.schema.known(node, name));
            let node_inside = field.map(|field| if value.items().is_some() { field.items } else { field.object });
            let value = Self { node: node_inside, in_list: false, ..inside }
                .strip(value)
                .map_err(|broken| broken.inside(context.schema.step(node.unwrap_or_default(), name)))?;
            out.extend(value.map(|value| (name, value)));
        }
        Ok(Some(context.map(&out)))
    }

    /// Returns the treatment of the fields of an object, or `None` if a directive deletes the object.
    fn mode_inside(self, entries: &'a [MapEntry<'a>]) -> Result<Option<StripMode>, BrokenRule> {
        let Self { mode, in_list, .. } = self;
        if mode == StripMode::Unmarked {
            let is_marked = entries.iter().any(|(key, _)| *key == PATCH);
            return Ok((!is_marked).then_some(mode));
        }
        let mode = match PatchMode::of(entries)? {
            Some(PatchMode::Delete) => return Ok(None),
            Some(PatchMode::Replace) if in_list => return Ok(None),
            Some(PatchMode::Replace) => StripMode::Literal,
            None => mode,
        };
        if mode == StripMode::Fresh {
            RetainedKeys::of(entries, in_list.then_some(PATCH_MERGE_KEY))?;
        }
        Ok(Some(mode))
    }

    /// Returns true for a directive, once its value is checked.
    fn is_directive(self, name: &str, value: Value<'a>) -> Result<bool, BrokenAt> {
        if self.mode == StripMode::Unmarked || !name.starts_with('$') {
            return Ok(false);
        }
        match Directive::read(name)? {
            Some(Directive::Patch | Directive::RetainKeys) => return Ok(true),
            Some(Directive::Order(_) | Directive::Delete(_)) => {
                list(name, value)?;
                return Ok(true);
            }
            None if self.in_list && name == PATCH_MERGE_KEY => return Ok(true),
            None => {}
        }
        if let Some(node) = self.node {
            refuse_unknown(self.context.schema, node, name)?;
        }
        Ok(false)
    }
}
