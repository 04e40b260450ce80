//! A list of objects into which the items of a patch are being merged.

use super::list_rules::ListRules;
use super::patch_items::PatchItem;
use crate::apply::arrange::ListItem;
use crate::error::{BrokenAt, BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeySet, KeyTuple};
use crate::strip_directives::{StripMode, strip_item_directives};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use kube_unions_core::field_path::Segment;

/// The items of a list with an index of their keys.
pub(super) struct WorkingList<'a> {
    pub(super) list: ListRules<'a>,
    /// The items before the merge.
    live: &'a [Value<'a>],
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
    pub(super) fn of_live(list: ListRules<'a>, live: &'a [Value<'a>]) -> Result<Self, BrokenAt> {
        let tuples = list.keys.tuples(live, PatchSide::Live, &list.context)?;
        let index = KeyIndex::new(list.context, list.keys, tuples);
        let items = live.iter().enumerate().map(|(position, value)| Some(ListItem::new(*value, Some(position))));
        Ok(Self { list, live, index, items: items.collect(), renamed: Vec::new(), found: HashMap::new() })
    }

    /// Adds an item and returns its position.
    pub(super) fn push(&mut self, item: ListItem<'a>, tuple: KeyTuple<'a>) -> usize {
        self.index.push(tuple);
        self.items.push(Some(item));
        self.items.len() - 1
    }

    /// Deletes every item that a patch item matches. Looks for the same keys only once.
    pub(super) fn delete(&mut self, items: &[PatchItem<'a>]) {
        let mut deleted = HashSet::new();
        for item in items {
            if deleted.insert((item.keys, self.index.only(item.keys, item.tuple))) {
                for position in self.index.matching(item.keys, item.tuple) {
                    if let Some(item) = self.items.get_mut(position) {
                        *item = None;
                    }
                }
            }
        }
    }

    /// Merges a patch item into the item that it matches, or adds it. Returns the position.
    pub(super) fn merge(&mut self, item: PatchItem<'a>, list_keys: bool) -> Result<usize, BrokenAt> {
        let by = if list_keys { item.keys & !item.removed } else { DEFAULT_KEY };
        let search = (by, item.removed, self.index.only(by, item.tuple));
        let found = match self.found.get(&search) {
            Some(found) => *found,
            None => self.find(item, list_keys)?,
        };
        let position = if let Some(position) = found {
            if let (Some(Some(found)), Value::Map(patch)) = (self.items.get_mut(position), item.value) {
                let ListRules { context, field, merge_item, .. } = &self.list;
                let merge = || merge_item(context, &mut found.value, field.items, patch);
                context.below(|| Segment::Index(position), merge)?;
            }
            position
        } else {
            let ListRules { context, field, .. } = &self.list;
            let value = strip_item_directives(context, item.value, field.items, StripMode::Fresh)?;
            self.push(ListItem::new(value.unwrap_or(Value::EMPTY), None), item.tuple)
        };
        // `$patchMergeKey` matches live items only. The default key also matches items that this patch added.
        self.found.insert(search, if list_keys { found } else { Some(position) });
        Ok(position)
    }

    /// Finds the item that a patch item matches.
    fn find(&mut self, item: PatchItem<'a>, list_keys: bool) -> Result<Option<usize>, BrokenRule> {
        let Self { index, items, live, list: ListRules { context, keys, .. }, .. } = self;
        let item_at = |position: usize| items.get(position).and_then(Option::as_ref);
        if !list_keys {
            return Ok(index.matching(DEFAULT_KEY, item.tuple).find(|position| item_at(*position).is_some()));
        }
        let removed = || keys.all().iter().enumerate().filter(|(bit, _)| item.removed & (1 << bit) != 0);
        let has_removed = |found: &Value<'a>| {
            removed().all(|(_, key)| found.get(&key.name).is_some_and(|value| !matches!(value, Value::Null)))
        };
        let fits = |at: &usize| item_at(*at).is_some() && live.get(*at).is_some_and(has_removed);
        let mut fitting = index.matching(item.keys & !item.removed, item.tuple).filter(fits);
        let first = fitting.next();
        if (item.removed == 0 || context.strict) && fitting.next().is_some() {
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
    pub(super) fn rename(&mut self, merged_at: &[usize]) -> Result<(), BrokenAt> {
        let ListRules { context, keys, .. } = self.list;
        let mut counts: HashMap<KeyTuple<'a>, usize> = HashMap::with_capacity(self.items.len());
        for item in &mut self.items {
            let item = item.as_mut().map(|item| item.value.close(context.arena));
            let tuple = item.map(|item| keys.tuple(item, PatchSide::Patch, &context)).transpose()?;
            self.renamed.push(tuple);
            if let Some(tuple) = tuple {
                *counts.entry(tuple).or_default() += 1;
            }
        }
        let mut merged = merged_at.iter().filter_map(|position| *self.renamed.get(*position)?);
        if merged.any(|tuple| counts.get(tuple).is_some_and(|count| *count > 1)) {
            return Err(BrokenRule::Duplicate.into());
        }
        Ok(())
    }

    /// Returns the keys of an item after the merge.
    pub(super) fn tuple(&self, position: usize) -> Option<KeyTuple<'a>> {
        self.renamed.get(position).copied().flatten().or_else(|| self.index.tuples().get(position).copied())
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
