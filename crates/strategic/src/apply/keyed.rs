//! Merges lists of objects item by item: by one merge key, or with `$patchMergeKey` by several.

mod order;
mod working_list;

use super::arrange::{ListItem, arrange};
use super::task::ListPatch;
use crate::context::Context;
use crate::directive::{PATCH_MERGE_KEY, PatchMode};
use crate::error::{BrokenAt, BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::keys::{DEFAULT_KEY, KeySet, KeyTuple};
use crate::schema::{FieldSchema, MergeKeys, Strategy};
use crate::settle::{StripMode, strip_item_directives};
use crate::value::{MapEntry, Value};
use hashbrown::HashSet;
use kube_unions_core::field_path::Segment;
use order::RequestedOrder;
use working_list::WorkingList;

/// An item of a patch.
#[derive(Debug, Clone, Copy)]
struct PatchItem<'a> {
    /// The item without `$patchMergeKey`.
    value: Value<'a>,
    tuple: KeyTuple<'a>,
    /// The keys that `$patchMergeKey` lists. Without it the default key, and the first match counts.
    keys: KeySet,
    /// The listed keys that are null in the patch: the patch removes them from the item.
    removed: KeySet,
}

/// The items of a patch by their effect.
#[derive(Debug, Default)]
struct PatchItems<'a> {
    merge: Vec<PatchItem<'a>>,
    delete: Vec<PatchItem<'a>>,
    /// The items replace the list.
    replace: bool,
    /// The items list the keys by which they match.
    list_keys: bool,
}

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

impl<'a> PatchItems<'a> {
    /// Reads the items of a patch. In a literal list, `$patch` has no meaning.
    fn read(
        context: &Context<'a>,
        keys: &'a MergeKeys,
        items: &'a [Value<'a>],
        literal: bool,
    ) -> Result<Self, BrokenAt> {
        let list_keys = items.iter().any(|item| item.get(PATCH_MERGE_KEY).is_some());
        let mut all = Self { list_keys, ..Self::default() };
        for (position, item) in items.iter().enumerate() {
            all.add(context, keys, *item, literal).map_err(|rule| rule.at(Segment::Index(position)))?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        context: &Context<'a>,
        keys: &'a MergeKeys,
        value: Value<'a>,
        literal: bool,
    ) -> Result<(), BrokenRule> {
        let directive = if literal { None } else { PatchMode::of_item(value)? };
        if directive == Some(PatchMode::Replace) {
            self.replace = true;
            return Ok(());
        }
        let tuple = keys.tuple(value, PatchSide::Patch, context)?;
        let mut item = PatchItem { value, tuple, keys: DEFAULT_KEY, removed: 0 };
        match value.get(PATCH_MERGE_KEY) {
            None if self.list_keys => return Err(BrokenRule::PatchMergeKey(PatchMergeKeyFault::Mixed)),
            None => {}
            Some(listed) => {
                item.keys = keys.listed(listed)?;
                for (bit, key) in keys.all().iter().enumerate() {
                    if item.keys & (1 << bit) != 0 && matches!(value.get(&key.name), Some(Value::Null)) {
                        if directive.is_some() {
                            let fault = PatchMergeKeyFault::NullInDelete(key.name.clone());
                            return Err(BrokenRule::PatchMergeKey(fault));
                        }
                        item.removed |= 1 << bit;
                    }
                }
                let is_field = |entry: &&MapEntry<'a>| entry.0 != PATCH_MERGE_KEY;
                let fields: Vec<_> = value.entries().unwrap_or_default().iter().filter(is_field).copied().collect();
                item.value = context.map(&fields);
            }
        }
        if directive.is_some() {
            self.delete.push(item);
        } else {
            self.merge.push(item);
        }
        Ok(())
    }
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
