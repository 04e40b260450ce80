//! Compares lists of objects in which several items have the key by which an API server merges the list.
//!
//! It merges a patch item into the first of them, and puts all of them next to each other. So the patch replaces such a list, unless
//! these items stay as they are. With further keys, which `$patchMergeKey` would name, the changes of others stay as well.

use super::lists::{CompareItem, ComparedLists, ListChange};
use super::options::CreateOptions;
use super::pairs::ItemPairs;
use super::sides::CreateSides;
use crate::apply::merge_by_all_keys;
use crate::context::Context;
use crate::directive::PATCH;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::KeyTuple;
use crate::schema::{FieldSchema, MergeKeys};
use crate::value::Value;
use hashbrown::HashSet;
use kube_unions_core::field_path::Segment;

impl<'a> CreateSides<'a, Value<'a>> {
    /// Returns true if two items of a list have the same keys.
    pub(super) fn repeats(&self, context: &Context<'a>, keys: &'a MergeKeys) -> bool {
        let original = self.original.filter(|original| !std::ptr::eq(*original, self.current));
        let mut lists = [original, Some(self.current), Some(self.modified)].into_iter().flatten();
        lists.any(|items| {
            let mut seen = HashSet::with_capacity(items.len());
            // Comparing the items reports one without a key.
            let mut tuples = items.iter().filter_map(|item| keys.tuple(*item, PatchSide::Patch, context).ok());
            tuples.any(|tuple| !seen.insert(tuple))
        })
    }

    /// Compares lists of which one has items with the same key.
    pub(super) fn repeated(
        self,
        context: &Context<'a>,
        field: &'a FieldSchema,
        keys: &'a MergeKeys,
        options: CreateOptions,
        compare_item: &mut CompareItem<'_, 'a>,
    ) -> Result<ComparedLists<'a>, BrokenAt> {
        if Value::List(self.current).same(Value::List(self.modified)) {
            return Ok(ComparedLists::Changed(ListChange::default()));
        }
        let tuples = keys.published().tuples(self.modified, PatchSide::Patch, context)?;
        let pairs = ItemPairs::find(context, keys.published(), self);
        let wanted = match pairs {
            Ok(pairs) if (keys.is_single() || !pairs.recreates) && apart(&tuples).is_none() => {
                let change = self.keyed(context, keys.published(), pairs, options, compare_item)?;
                return Ok(ComparedLists::Changed(change));
            }
            _ => self.merged(context, field, keys, options, compare_item)?,
        };
        let tuples = keys.published().tuples(wanted, PatchSide::Patch, context)?;
        if let Some(position) = apart(&tuples) {
            return Err(BrokenRule::Apart(keys.default_key().into()).at(Segment::Index(position)));
        }
        let replace = context.map(&[(PATCH, Value::String("replace"))]);
        let items: Vec<Value<'a>> = std::iter::once(replace).chain(wanted.iter().copied()).collect();
        let changed = !Value::List(self.current).same(Value::List(wanted));
        let items = changed.then(|| context.list(&items));
        Ok(ComparedLists::Changed(ListChange { items, ..ListChange::default() }))
    }

    /// Returns the list as the user wants it, with the changes of others.
    fn merged(
        self,
        context: &Context<'a>,
        field: &'a FieldSchema,
        keys: &'a MergeKeys,
        options: CreateOptions,
        compare_item: &mut CompareItem<'_, 'a>,
    ) -> Result<&'a [Value<'a>], BrokenAt> {
        let (original, current) = (self.original.unwrap_or_default(), self.current);
        if Value::List(original).same(Value::List(current)) {
            return Ok(self.modified);
        }
        let pairs = ItemPairs::find(context, keys, self)?;
        if keys.is_single() {
            // Items that stay as they are, and are apart.
            let tuples = keys.tuples(self.modified, PatchSide::Patch, context)?;
            return Err(
                BrokenRule::Apart(keys.default_key().into()).at(Segment::Index(apart(&tuples).unwrap_or_default()))
            );
        }
        if self.repeats(context, keys) {
            return Err(BrokenRule::Duplicate.into());
        }
        let change = self.keyed(context, keys, pairs, options, compare_item)?;
        let items = |list: Option<Value<'a>>| list.and_then(Value::items);
        let merged = merge_by_all_keys(context, field, keys, current, items(change.order), items(change.items))?;
        Ok(context.arena.alloc_slice_copy(&merged))
    }
}

/// Returns the position of an item whose key an earlier item has, with items of other keys between them.
fn apart(tuples: &[KeyTuple<'_>]) -> Option<usize> {
    let mut seen = HashSet::with_capacity(tuples.len());
    let mut last = None;
    tuples.iter().position(|tuple| {
        let adjoins = last == Some(tuple);
        last = Some(tuple);
        !seen.insert(tuple) && !adjoins
    })
}
