//! Merges the patch of a list into it: sets of scalars here, lists of objects in `keyed`.

use super::arrange::{ListItem, arrange, refuse_other_order};
use super::field::ListPatch;
use super::keyed::{ListRules, MergeItem, lists_keys};
use super::merging_value::MergingValue;
use crate::context::Context;
use crate::directive::DELETE_FROM_PRIMITIVE_LIST;
use crate::elements::{Elements, elements};
use crate::error::{BrokenAt, BrokenRule};
use crate::schema::{FieldSchema, Strategy};
use crate::strip_directives::{StripMode, strip_directives};
use crate::value::{Scalar, Value};
use hashbrown::{HashMap, HashSet};

/// Returns the merged list. `live` is `None` if the object has no such list.
pub(super) fn merge<'a>(
    context: &Context<'a>,
    field: &'a FieldSchema,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
    merge_item: MergeItem<'a>,
) -> Result<Value<'a>, BrokenAt> {
    let deleted = patch.delete.map(|delete| scalar_set(context, delete)).transpose()?;
    let is_deleted = |value: &Value<'a>| {
        let scalar = deleted.as_ref().and_then(|deleted| Some((deleted, value.scalar(context.arena)?)));
        scalar.is_some_and(|(deleted, scalar)| deleted.contains(&scalar))
    };
    let mut live = live;
    if let (Some(items), Some(delete)) = (live, patch.delete) {
        elements(items, delete)?;
        // With an order list, the items are put in order before any is deleted.
        if patch.order.is_none() {
            let kept: Vec<Value<'a>> = items.iter().filter(|value| !is_deleted(value)).copied().collect();
            live = Some(context.arena.alloc_slice_copy(&kept));
        }
    }
    let (live_items, items) = (live.unwrap_or_default(), patch.items.unwrap_or_default());
    if live_items.is_empty() && items.is_empty() && patch.order.is_none() {
        return Ok(context.list(&[]));
    }
    let elements = elements(live_items, items)?;
    if elements.is_none() && patch.order.is_some() {
        return Err(BrokenRule::NothingToOrder.into());
    }
    let unchanged = elements.is_none() || (patch.order.is_none() && patch.items.is_none());
    let mut merged = if unchanged {
        live_items.to_vec()
    } else if let Some(keys) = &field.keys {
        let keys = if lists_keys(items) { keys } else { keys.published() };
        ListRules { context: *context, field, keys, merge_item }.merge(live, patch)?
    } else if elements == Some(Elements::Maps) {
        return Err(BrokenRule::NoKeyDeclared.into());
    } else {
        scalars(context, field, live, patch)?
    };
    if deleted.is_some() {
        merged.retain(|item| !is_deleted(item));
    }
    Ok(context.list(&merged))
}

/// Refuses a patch that adds a scalar which it also deletes.
pub(super) fn refuse_added_and_deleted<'a>(
    context: &Context<'a>,
    items: &'a [Value<'a>],
    delete: &'a [Value<'a>],
) -> Result<(), BrokenRule> {
    let deleted = scalar_set(context, delete)?;
    let both = items.iter().any(|item| item.scalar(context.arena).is_some_and(|scalar| deleted.contains(&scalar)));
    if both { Err(BrokenRule::AddedAndDeleted) } else { Ok(()) }
}

fn scalar_set<'a>(context: &Context<'a>, delete: &'a [Value<'a>]) -> Result<HashSet<Scalar<'a>>, BrokenRule> {
    let scalar = |item: &Value<'a>| match item.scalar(context.arena) {
        None | Some(Scalar::Null) => Err(BrokenRule::DirectiveType {
            directive: DELETE_FROM_PRIMITIVE_LIST.into(),
            found: item.kind(),
            wanted: "a list of strings, numbers or booleans",
        }),
        Some(scalar) => Ok(scalar),
    };
    delete.iter().map(scalar).collect()
}

/// Merges lists of scalars as sets.
fn scalars<'a>(
    context: &Context<'a>,
    field: &FieldSchema,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Vec<Value<'a>>, BrokenAt> {
    let scalar = |value: &Value<'a>| value.scalar(context.arena).unwrap_or(Scalar::Null);
    let live_items = live.unwrap_or_default();
    let items = patch.items.unwrap_or_default();
    if let Some(order) = patch.order {
        refuse_other_order(items.iter().map(|item| Some(scalar(item))), order, |item, entry| *item == scalar(entry))?;
    }
    let all: Vec<Value<'a>> = match (live, patch.items) {
        (Some(_), Some(_)) if field.strategy == Strategy::Merge => {
            let mut seen = HashSet::with_capacity(live_items.len() + items.len());
            live_items.iter().chain(items).filter(|item| seen.insert(scalar(item))).copied().collect()
        }
        (_, Some(_)) => {
            let mode = if live.is_some() { StripMode::Literal } else { StripMode::Fresh };
            let items = strip_directives(context, Value::List(items), Some(field.items), mode)?.and_then(Value::items);
            items.unwrap_or_default().to_vec()
        }
        (_, None) => live_items.to_vec(),
    };
    let first_positions = |items: &'a [Value<'a>]| {
        let mut positions: HashMap<Scalar<'a>, usize> = HashMap::with_capacity(items.len());
        for (position, item) in items.iter().enumerate() {
            positions.entry(scalar(item)).or_insert(position);
        }
        positions
    };
    let (in_live, ranks) = (first_positions(live_items), first_positions(patch.order.unwrap_or(items)));
    let item = |value: Value<'a>| {
        let scalar = scalar(&value);
        let (rank, live) = (ranks.get(&scalar).copied(), in_live.get(&scalar).copied());
        ListItem { value: MergingValue::Closed(value), rank, live }
    };
    Ok(arrange(all.into_iter().map(item).collect(), context.arena))
}
