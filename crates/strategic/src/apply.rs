//! Applies a patch to an object.
//!
//! This file merges patches into objects, and `merging_value` holds an object meanwhile. `field` collects the parts of a patch that
//! concern one field. `list` merges lists of scalars, and `keyed` lists of objects by their keys; both call back for an item.

mod arrange;
mod field;
mod keyed;
mod list;
mod merging_value;

use crate::context::Context;
use crate::directive::{self, DELETE_FROM_PRIMITIVE_LIST, PatchMode, RetainedKeys, SET_ELEMENT_ORDER};
use crate::error::{BrokenAt, BrokenRule, PatchError, PatchSide};
use crate::schema::{FieldSchema, MergeKeys, NodeId, Strategy};
use crate::strip_directives::{StripMode, strip_directives};
use crate::value::{MapEntry, Value, ValueKind};
use field::{FieldPatch, ListPatch, field_patches};
use keyed::ListRules;
use merging_value::{MergingValue, OpenObject};

/// Returns the object with the patch applied.
pub(crate) fn apply<'a>(
    context: &Context<'a>,
    live: &'a [MapEntry<'a>],
    patch: &'a [MapEntry<'a>],
) -> Result<Value<'a>, PatchError> {
    let mut object = OpenObject::of(live);
    merge_object(context, &mut object, patch, NodeId::ROOT)?;
    Ok(object.close(context.arena))
}

/// Returns the items of a list with the items of a patch merged by all keys of the list, also by those that an API server does not know.
pub(crate) fn merge_by_all_keys<'a>(
    context: &Context<'a>,
    field: &'a FieldSchema,
    keys: &'a MergeKeys,
    live: &'a [Value<'a>],
    order: Option<&'a [Value<'a>]>,
    items: Option<&'a [Value<'a>]>,
) -> Result<Vec<Value<'a>>, BrokenAt> {
    let list = ListRules { context: *context, field, keys, merge_item };
    list.merge(Some(live), &ListPatch { order, items, delete: None })
}

/// Merges a patch into an object.
fn merge_object<'a>(
    context: &Context<'a>,
    object: &mut OpenObject<'a>,
    patch: &'a [MapEntry<'a>],
    node: NodeId,
) -> Result<(), BrokenAt> {
    match PatchMode::of(patch)? {
        Some(PatchMode::Delete) => {
            *object = OpenObject::default();
            context.emptied.add();
            return Ok(());
        }
        Some(PatchMode::Replace) => {
            let new = strip_directives(context, Value::Map(patch), Some(node), StripMode::Literal)?;
            *object = OpenObject::of(new.and_then(Value::entries).unwrap_or_default());
            return Ok(());
        }
        None => {}
    }
    if let Some(retained) = RetainedKeys::of(patch, None)? {
        object.retain(|key| retained.has(key));
    }
    for (key, patch) in field_patches(context, patch, node)? {
        context.below(|| context.schema.step(node, key), || merge_field(context, object, node, key, patch))?;
    }
    Ok(())
}

/// Merges what a patch says about one field.
fn merge_field<'a>(
    context: &Context<'a>,
    object: &mut OpenObject<'a>,
    node: NodeId,
    key: &'a str,
    patch: FieldPatch<'a>,
) -> Result<(), BrokenAt> {
    if patch.order.is_none() && patch.delete.is_none() {
        return patch.value.map_or(Ok(()), |value| set_field(context, object, node, key, value));
    }
    let order = patch.order.map(|order| directive::list(SET_ELEMENT_ORDER, order)).transpose()?;
    let delete = patch.delete.map(|delete| directive::list(DELETE_FROM_PRIMITIVE_LIST, delete)).transpose()?;
    if let (Some(Value::List(items)), Some(delete)) = (patch.value, delete) {
        list::refuse_added_and_deleted(context, items, delete)?;
    }
    let not_a_list = |side, found| {
        let directive = SET_ELEMENT_ORDER.into();
        Err(BrokenRule::DirectiveTarget { directive, side, found }.into())
    };
    let items = match patch.value {
        None => None,
        Some(Value::List(items)) => Some(items),
        Some(other) if order.is_some() => return not_a_list(PatchSide::Patch, other.kind()),
        // Another type replaces the list, so there is nothing to delete from.
        Some(other) => return set_field(context, object, node, key, other),
    };
    let live = match (object.get_mut(key), items) {
        (Some(MergingValue::Closed(Value::List(live))), _) => Some(*live),
        (Some(MergingValue::Closed(other)), _) if order.is_some() => return not_a_list(PatchSide::Live, other.kind()),
        (Some(MergingValue::Open(_)), _) if order.is_some() => return not_a_list(PatchSide::Live, ValueKind::Object),
        (None, Some(_)) if order.is_some() => None,
        (_, Some(items)) => return set_field(context, object, node, key, Value::List(items)),
        (None, None) if order.is_some() => return Ok(context.schema.field(node, key, ValueKind::List).map(|_| ())?),
        (_, None) => return Ok(()),
    };
    let field = context.schema.field(node, key, ValueKind::List)?;
    let merged = list::merge(context, field, live, &ListPatch { order, items, delete }, merge_item)?;
    object.set(key, Some(merged));
    Ok(())
}

/// Merges a value without directives beside it into a field.
fn set_field<'a>(
    context: &Context<'a>,
    object: &mut OpenObject<'a>,
    node: NodeId,
    key: &'a str,
    value: Value<'a>,
) -> Result<(), BrokenAt> {
    let value = match (object.get_mut(key), value) {
        (_, Value::Null) => None,
        (Some(live @ (MergingValue::Open(_) | MergingValue::Closed(Value::Map(_)))), Value::Map(patch)) => {
            let field = context.schema.field(node, key, ValueKind::Object)?;
            if field.strategy != Strategy::Replace {
                return merge_item(context, live, field.object, patch);
            }
            Some(strip_directives(context, value, Some(field.object), StripMode::Literal)?.unwrap_or(Value::EMPTY))
        }
        (Some(MergingValue::Closed(Value::List(live))), Value::List(items)) => {
            let field = context.schema.field(node, key, ValueKind::List)?;
            if field.strategy == Strategy::Merge {
                let patch = ListPatch { order: None, items: Some(items), delete: None };
                Some(list::merge(context, field, Some(live), &patch, merge_item)?)
            } else {
                strip_directives(context, value, Some(field.items), StripMode::Literal)?
            }
        }
        (_, value) => {
            let field = context.schema.known(node, key);
            let inner = field.map(|field| if matches!(value, Value::List(_)) { field.items } else { field.object });
            strip_directives(context, value, inner, StripMode::Fresh)?
        }
    };
    object.set(key, value);
    Ok(())
}

/// Merges a patch into an object that is a field or a list item.
fn merge_item<'a>(
    context: &Context<'a>,
    live: &mut MergingValue<'a>,
    node: NodeId,
    patch: &'a [MapEntry<'a>],
) -> Result<(), BrokenAt> {
    live.open().map_or(Ok(()), |object| merge_object(context, object, patch, node))
}
