//! A list of objects into which the items of a patch are being merged.

use super::patch_items::PatchItem;
use crate::apply::arrange::ListItem;
use crate::context::Context;
use crate::directive::RetainedKeys;
use crate::error::{BrokenAt, BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeySet, KeyTuple};
use crate::schema::{FieldSchema, MergeKey, MergeKeys};
use crate::strip_directives::{StripMode, strip_item_directives};
use crate::value::{Scalar, Value};
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;

/// The items of a list with an index of their keys.
pub(super) struct WorkingList<'a> {
    /// The keys of all items, including the deleted ones.
    pub(super) index: KeyIndex<'a>,
    /// The items, `None` for a deleted one.
    pub(super) items: Vec<Option<ListItem<'a>>>,
    /// The keys of each item after the merge, if the patch may change them.
    renamed: Vec<Option<KeyTuple<'a>>>,
    /// The item into which the patch items with these matched keys, removed keys and values merge. It saves equal patch items
    /// from searching the list again.
    found: HashMap<(KeySet, KeySet, KeyTuple<'a>), Option<usize>>,
}

impl<'a> WorkingList<'a> {
    pub(super) fn empty(context: &Context<'a>, keys: &'a MergeKeys) -> Self {
        let index = KeyIndex::new(*context, keys, 0);
        Self { index, items: Vec::new(), renamed: Vec::new(), found: HashMap::new() }
    }

    pub(super) fn of_live(context: &Context<'a>, keys: &'a MergeKeys, live: &'a [Value<'a>]) -> Result<Self, BrokenAt> {
        let mut index = KeyIndex::new(*context, keys, live.len());
        let mut items = Vec::with_capacity(live.len());
        for (position, value) in live.iter().enumerate() {
            let tuple = keys.tuple(*value, PatchSide::Live, context);
            index.push(tuple.map_err(|rule| rule.at(Segment::Index(position)))?);
            items.push(Some(ListItem::new(*value, Some(position))));
        }
        Ok(Self { index, items, renamed: Vec::new(), found: HashMap::new() })
    }

    /// Adds an item and returns its position.
    pub(super) fn push(&mut self, item: ListItem<'a>, tuple: KeyTuple<'a>) -> usize {
        self.index.push(tuple);
        self.items.push(Some(item));
        self.items.len() - 1
    }

    /// Deletes every item with these values of the keys.
    pub(super) fn delete_matching(&mut self, keys: KeySet, tuple: KeyTuple<'a>) {
        self.index.all(keys, tuple, |position| {
            if let Some(item) = self.items.get_mut(position) {
                *item = None;
            }
        });
    }

    /// Merges a patch item into the item that it matches, or adds it. Returns the position.
    pub(super) fn merge(
        &mut self,
        context: &Context<'a>,
        field: &FieldSchema,
        keys: &MergeKeys,
        item: PatchItem<'a>,
        list_keys: bool,
    ) -> Result<usize, BrokenAt> {
        let search = self.index.is_large().then(|| {
            let by = if list_keys { item.keys & !item.removed } else { DEFAULT_KEY };
            (by, item.removed, self.index.only(by, item.tuple))
        });
        let found = match search.and_then(|search| self.found.get(&search)) {
            Some(found) => *found,
            None => self.find(context, keys, item, list_keys)?,
        };
        let position = if let Some(position) = found {
            if let Some(Some(found)) = self.items.get_mut(position) {
                found.patches.push(item.value);
            }
            position
        } else {
            let value =
                strip_item_directives(context, item.value, field.items, StripMode::Fresh)?.unwrap_or(Value::EMPTY);
            self.push(ListItem::new(value, None), item.tuple)
        };
        if let Some(search) = search {
            // `$patchMergeKey` matches live items only. The default key also matches items that this patch added.
            self.found.insert(search, if list_keys { found } else { Some(position) });
        }
        Ok(position)
    }

    /// Finds the item that a patch item matches.
    fn find(
        &mut self,
        context: &Context<'a>,
        keys: &MergeKeys,
        item: PatchItem<'a>,
        list_keys: bool,
    ) -> Result<Option<usize>, BrokenRule> {
        let Self { index, items, .. } = self;
        let item_at = |position: usize| items.get(position).and_then(Option::as_ref);
        if !list_keys {
            return Ok(index.first(DEFAULT_KEY, item.tuple, |position| item_at(position).is_some()));
        }
        let removed = || keys.all().iter().enumerate().filter(|(bit, _)| item.removed & (1 << bit) != 0);
        let has_removed = |found: &ListItem<'a>| {
            removed().all(|(_, key)| found.value.get(&key.name).is_some_and(|value| !matches!(value, Value::Null)))
        };
        let (mut first, mut several) = (None, false);
        index.all(item.keys & !item.removed, item.tuple, |position| {
            if item_at(position).is_some_and(|found| found.live.is_some() && has_removed(found)) {
                several |= first.is_some();
                first = first.or(Some(position));
            }
        });
        if several && (item.removed == 0 || context.strict) {
            return Err(BrokenRule::Ambiguous);
        }
        match (first, removed().next()) {
            (None, Some((_, key))) => {
                Err(BrokenRule::PatchMergeKey(PatchMergeKeyFault::NothingToRemove(key.name.clone())))
            }
            (found, _) => Ok(found),
        }
    }

    /// Computes the keys that the items have after the merge, since a patch that lists keys may add and remove keys. Refuses a
    /// result in which an item that was merged has the keys of another one.
    pub(super) fn rename(
        &mut self,
        context: &Context<'a>,
        keys: &'a MergeKeys,
        merged_at: &[usize],
    ) -> Result<(), BrokenAt> {
        let mut after = KeyIndex::new(*context, keys, self.items.len());
        let mut kept = Vec::with_capacity(self.items.len());
        for (position, item) in self.items.iter().enumerate() {
            let mut tuple = self.index.tuple(position).filter(|_| item.is_some());
            for patch in item.iter().flat_map(|item| &item.patches) {
                tuple = tuple.map(|tuple| tuple_after(context, keys, tuple, *patch)).transpose()?;
            }
            self.renamed.push(tuple);
            if let Some(tuple) = tuple {
                after.push(tuple);
                kept.push((position, tuple));
            }
        }
        let mut merged = vec![false; self.items.len()];
        for position in merged_at {
            if let Some(merged) = merged.get_mut(*position) {
                *merged = true;
            }
        }
        for (at, (position, tuple)) in kept.iter().enumerate() {
            let is_merged = merged.get(*position).is_some_and(|merged| *merged);
            if is_merged && after.first(keys.every(), tuple, |other| other != at).is_some() {
                return Err(BrokenRule::Duplicate.into());
            }
        }
        Ok(())
    }

    /// Returns the keys of an item after the merge.
    pub(super) fn tuple(&self, position: usize) -> Option<KeyTuple<'a>> {
        self.renamed.get(position).copied().flatten().or_else(|| self.index.tuple(position))
    }

    /// Ranks each merged item by the first patch item that names it.
    pub(super) fn rank_merged(&mut self, merged_at: &[usize]) {
        for (rank, position) in merged_at.iter().enumerate() {
            if let Some(Some(item)) = self.items.get_mut(*position) {
                item.rank.get_or_insert(rank);
            }
        }
    }

    pub(super) fn into_items(self) -> Vec<ListItem<'a>> {
        self.items.into_iter().flatten().collect()
    }
}

/// Returns the keys of an item after a patch is merged into it.
fn tuple_after<'a>(
    context: &Context<'a>,
    keys: &'a MergeKeys,
    before: KeyTuple<'a>,
    patch: Value<'a>,
) -> Result<KeyTuple<'a>, BrokenRule> {
    let set = keys.tuple(patch, PatchSide::Patch, context)?;
    let Value::Map(entries) = patch else { return Ok(before) };
    let retained = RetainedKeys::of(entries, None)?;
    let value = |((key, before), set): ((&MergeKey, &Option<Scalar<'a>>), &Option<Scalar<'a>>)| {
        let is_cleared = || retained.as_ref().is_some_and(|retained| !retained.has(&key.name));
        if patch.get(&key.name).is_some() || is_cleared() { *set } else { *before }
    };
    Ok(context.arena.alloc_slice_fill_iter(keys.all().iter().zip(before).zip(set).map(value)))
}
