//! Decides what one patch does to one field.

use super::list;
use super::task::{FieldState, ListPatch, MergeTask};
use crate::context::Context;
use crate::directive::{self, DELETE_FROM_PRIMITIVE_LIST, Directive, SET_ELEMENT_ORDER, refuse_unknown};
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::schema::{NodeId, Strategy};
use crate::strip_directives::{StripMode, strip_directives};
use crate::value::{MapEntry, Value, ValueKind};
use hashbrown::HashMap;

/// The parts of a patch that concern one field.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FieldPatch<'a> {
    value: Option<Value<'a>>,
    /// `$setElementOrder`
    order: Option<Value<'a>>,
    /// `$deleteFromPrimitiveList`
    delete: Option<Value<'a>>,
}

/// Collects the fields that a patch names, each with its directives.
pub(super) fn field_patches<'a>(
    context: &Context<'a>,
    patch: &'a [MapEntry<'a>],
    node: NodeId,
) -> Result<Vec<(&'a str, FieldPatch<'a>)>, BrokenAt> {
    if patch.iter().all(|(key, _)| !key.starts_with('$')) {
        let plain = |&(key, value): &MapEntry<'a>| (key, FieldPatch { value: Some(value), ..FieldPatch::default() });
        return Ok(patch.iter().map(plain).collect());
    }
    let mut fields: Vec<(&'a str, FieldPatch<'a>)> = Vec::with_capacity(patch.len());
    let mut positions: HashMap<&'a str, usize> = HashMap::with_capacity(patch.len());
    for &(key, value) in patch {
        let directive = Directive::read(key).map_err(|rule| rule.at(context.schema.step(node, key)))?;
        let name = match directive {
            None => {
                refuse_unknown(context.schema, node, key)?;
                key
            }
            Some(Directive::Order(name) | Directive::Delete(name)) => name,
            Some(Directive::Patch | Directive::RetainKeys) => continue,
        };
        let position = *positions.entry(name).or_insert(fields.len());
        if position == fields.len() {
            fields.push((name, FieldPatch::default()));
        }
        let Some((_, field)) = fields.get_mut(position) else { continue };
        match directive {
            Some(Directive::Order(_)) => field.order = Some(value),
            Some(Directive::Delete(_)) => field.delete = Some(value),
            _ => field.value = Some(value),
        }
    }
    Ok(fields)
}

/// Returns the effect of a patch on a field with this live value, `None` if the field stays as it is.
pub(super) fn field_change<'a>(
    context: &Context<'a>,
    node: NodeId,
    key: &'a str,
    live: Option<Value<'a>>,
    patch: FieldPatch<'a>,
) -> Result<Option<FieldState<'a>>, BrokenAt> {
    if patch.order.is_none() && patch.delete.is_none() {
        return patch.value.map_or(Ok(None), |value| set_field(context, node, key, live, value).map(Some));
    }
    let order = patch.order.map(|order| directive::list(SET_ELEMENT_ORDER, order)).transpose()?;
    let delete = patch.delete.map(|delete| directive::list(DELETE_FROM_PRIMITIVE_LIST, delete)).transpose()?;
    if let (Some(Value::List(items)), Some(delete)) = (patch.value, delete) {
        list::refuse_added_and_deleted(context, items, delete)?;
    }
    let not_a_list = |side, found: Value<'a>| {
        let directive = SET_ELEMENT_ORDER.into();
        Err(BrokenRule::DirectiveTarget { directive, side, found: found.kind() }.into())
    };
    let items = match patch.value {
        None => None,
        Some(Value::List(items)) => Some(items),
        Some(other) if order.is_some() => return not_a_list(PatchSide::Patch, other),
        // Another type replaces the list, so there is nothing to delete from.
        Some(other) => return set_field(context, node, key, live, other).map(Some),
    };
    let merge = |live| {
        let field = context.schema.field(node, key, ValueKind::List)?;
        Ok(Some(FieldState::Merging(live, MergeTask::Lists(field, vec![ListPatch { order, items, delete }]))))
    };
    match (live, items) {
        (Some(live @ Value::List(_)), _) => merge(live),
        (Some(other), _) if order.is_some() => not_a_list(PatchSide::Live, other),
        (None, Some(_)) if order.is_some() => merge(Value::Null),
        (None, None) if order.is_some() => {
            context.schema.field(node, key, ValueKind::List)?;
            Ok(Some(FieldState::Removed))
        }
        (live, Some(items)) => set_field(context, node, key, live, Value::List(items)).map(Some),
        (Some(_), None) => Ok(None),
        (None, None) => Ok(Some(FieldState::Removed)),
    }
}

/// Returns the effect of a value without directives beside it.
fn set_field<'a>(
    context: &Context<'a>,
    node: NodeId,
    key: &'a str,
    live: Option<Value<'a>>,
    value: Value<'a>,
) -> Result<FieldState<'a>, BrokenAt> {
    match (live, value) {
        (_, Value::Null) => Ok(FieldState::Removed),
        (Some(live @ Value::Map(_)), Value::Map(_)) => {
            let field = context.schema.field(node, key, ValueKind::Object)?;
            if field.strategy == Strategy::Replace {
                let value = strip_directives(context, value, Some(field.object), StripMode::Literal)?;
                return Ok(FieldState::Set(value.unwrap_or(Value::EMPTY)));
            }
            Ok(FieldState::Merging(live, MergeTask::Objects(field.object, vec![value])))
        }
        (Some(live @ Value::List(_)), Value::List(items)) => {
            let field = context.schema.field(node, key, ValueKind::List)?;
            if field.strategy != Strategy::Merge {
                let value = strip_directives(context, value, Some(field.items), StripMode::Literal)?;
                return Ok(value.map_or(FieldState::Removed, FieldState::Set));
            }
            let patch = ListPatch { order: None, items: Some(items), delete: None };
            Ok(FieldState::Merging(live, MergeTask::Lists(field, vec![patch])))
        }
        (_, value) => {
            let field = context.schema.known(node, key);
            let inner = field.map(|field| if matches!(value, Value::List(_)) { field.items } else { field.object });
            let value = strip_directives(context, value, inner, StripMode::Fresh)?;
            Ok(value.map_or(FieldState::Removed, FieldState::Set))
        }
    }
}
