//! Merges lists of objects item by item: by one merge key, or with `$patchMergeKey` by several.

mod list_rules;
mod order;
mod patch_items;
mod working_list;

pub(super) use list_rules::{ListRules, MergeItem};
pub(super) use patch_items::lists_keys;

use super::arrange::{ListItem, arrange};
use super::field::ListPatch;
use crate::error::BrokenAt;
use crate::schema::Strategy;
use crate::strip_directives::{StripMode, strip_item_directives};
use crate::value::Value;
use order::RequestedOrder;
use patch_items::PatchItems;
use working_list::WorkingList;

impl<'a> ListRules<'a> {
    /// Returns the items of the merged list, in order.
    pub(super) fn merge(
        self,
        live: Option<&'a [Value<'a>]>,
        patch: &ListPatch<'a>,
    ) -> Result<Vec<Value<'a>>, BrokenAt> {
        let items = patch.items.unwrap_or_default();
        let literal = live.is_some() && patch.items.is_some() && self.field.strategy != Strategy::Merge;
        let patch_items = PatchItems::read(&self, items, literal)?;
        let order = patch.order.map(|order| RequestedOrder::read(&self, order)).transpose()?;
        if let Some(order) = &order {
            order.refuse_other(&self, items)?;
        }
        let replace = patch_items.replace || literal;
        let Some(live) = live.filter(|_| !replace) else {
            if order.is_some() {
                // Errors in the replaced items count, because the reference orders the items before it replaces them.
                WorkingList::of_live(self, live.unwrap_or_default())?;
            }
            let mut list = WorkingList::of_live(self, &[])?;
            let mode = if replace { StripMode::Literal } else { StripMode::Fresh };
            for item in &patch_items.merge {
                if let Some(value) = strip_item_directives(&self.context, item.value, self.field.items, mode)? {
                    list.push(ListItem::new(value, None), item.tuple);
                }
            }
            match order {
                Some(order) => order.rank(&mut list),
                // The reference also puts the items of a new list that replaces another in the order of their keys.
                None if patch_items.replace && live.is_some() && !literal && self.keys.is_single() => {
                    RequestedOrder::of_patch(&patch_items.merge).rank(&mut list);
                }
                None => {}
            }
            return Ok(arrange(list.into_items(), self.context.arena));
        };
        let mut list = WorkingList::of_live(self, live)?;
        list.delete(&patch_items.delete);
        let mut merged_at = Vec::with_capacity(patch_items.merge.len());
        for item in &patch_items.merge {
            merged_at.push(list.merge(*item, patch_items.list_keys)?);
        }
        if patch_items.list_keys {
            list.rename(&merged_at)?;
        }
        match order {
            Some(order) => order.rank(&mut list),
            None if patch_items.list_keys => list.rank_merged(&merged_at),
            None => RequestedOrder::of_patch(&patch_items.merge).rank(&mut list),
        }
        Ok(arrange(list.into_items(), self.context.arena))
    }
}
