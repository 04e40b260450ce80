//! Merges lists of objects item by item: by one merge key, or with `$patchMergeKey` by several.

mod order;
mod patch_items;
mod working_list;

use super::arrange::{ListItem, arrange};
use super::task::ListPatch;
use crate::context::Context;
use crate::error::BrokenAt;
use crate::schema::{FieldSchema, MergeKeys, Strategy};
use crate::strip_directives::{StripMode, strip_item_directives};
use crate::value::Value;
use hashbrown::HashSet;
use order::RequestedOrder;
use patch_items::{PatchItem, PatchItems};
use working_list::WorkingList;

/// Returns the items of the merged list, in order.
pub(super) fn merge<'a>(
    context: &Context<'a>,
    field: &'a FieldSchema,
    keys: &'a MergeKeys,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Vec<ListItem<'a>>, BrokenAt> {
    let items = patch.items.unwrap_or_default();
    let literal = live.is_some() && patch.items.is_some() && field.strategy != Strategy::Merge;
    let patch_items = PatchItems::read(context, keys, items, literal)?;
    let order = patch.order.map(|order| RequestedOrder::read(context, keys, order)).transpose()?;
    if let Some(order) = &order {
        order.refuse_other(context, keys, items)?;
    }
    let replace = patch_items.replace || literal;
    let Some(live) = live.filter(|_| !replace) else {
        if order.is_some() {
            // Errors in the replaced items count, because the reference orders the items before it replaces them.
            WorkingList::of_live(context, keys, live.unwrap_or_default())?;
        }
        let mut list = WorkingList::empty(context, keys);
        let mode = if replace { StripMode::Literal } else { StripMode::Fresh };
        for item in &patch_items.merge {
            if let Some(value) = strip_item_directives(context, item.value, field.items, mode)? {
                list.push(ListItem::new(value, None), item.tuple);
            }
        }
        if let Some(order) = order {
            order.rank(&mut list);
        }
        return Ok(arrange(list.into_items()));
    };
    let mut list = WorkingList::of_live(context, keys, live)?;
    list.delete(&patch_items.delete);
    let mut merged_at = Vec::with_capacity(patch_items.merge.len());
    for item in &patch_items.merge {
        merged_at.push(list.merge(context, field, keys, *item, patch_items.list_keys)?);
    }
    if patch_items.list_keys {
        list.rename(context, keys, &merged_at)?;
    }
    match order {
        Some(order) => order.rank(&mut list),
        None if patch_items.list_keys => list.rank_merged(&merged_at),
        None => RequestedOrder::of_patch(context, keys, &patch_items.merge).rank(&mut list),
    }
    Ok(arrange(list.into_items()))
}

impl<'a> WorkingList<'a> {
    /// Deletes every item that a patch item matches. A large list looks for the same keys only once.
    fn delete(&mut self, items: &[PatchItem<'a>]) {
        let mut deleted = HashSet::new();
        for item in items {
            if !self.index.is_large() || deleted.insert((item.keys, self.index.only(item.keys, item.tuple))) {
                self.delete_matching(item.keys, item.tuple);
            }
        }
    }
}
