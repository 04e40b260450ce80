//! The order that `$setElementOrder`, or the patch itself, requests for a list of objects.

use super::patch_items::PatchItem;
use super::working_list::WorkingList;
use crate::apply::arrange::refuse_other_order;
use crate::context::Context;
use crate::directive::PatchMode;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeyTuple};
use crate::schema::MergeKeys;
use crate::value::Value;

/// The entries of an order list.
pub(super) struct RequestedOrder<'a> {
    keys: &'a MergeKeys,
    /// The entries with only the default key. Each ranks every item that has this key.
    loose: KeyIndex<'a>,
    /// The ranks of the loose entries.
    loose_ranks: Vec<usize>,
    /// The entries with further keys.
    exact: KeyIndex<'a>,
    exact_ranks: Vec<usize>,
    /// All entries: true for one with further keys, and the keys.
    entries: Vec<(bool, KeyTuple<'a>)>,
}

impl<'a> RequestedOrder<'a> {
    fn empty(context: &Context<'a>, keys: &'a MergeKeys, capacity: usize) -> Self {
        Self {
            keys,
            loose: KeyIndex::new(*context, keys, capacity),
            loose_ranks: Vec::new(),
            exact: KeyIndex::new(*context, keys, 0),
            exact_ranks: Vec::new(),
            entries: Vec::with_capacity(capacity),
        }
    }

    /// Reads a `$setElementOrder`.
    pub(super) fn read(context: &Context<'a>, keys: &'a MergeKeys, order: &'a [Value<'a>]) -> Result<Self, BrokenRule> {
        let mut all = Self::empty(context, keys, order.len());
        for entry in order {
            let tuple = keys.tuple(*entry, PatchSide::Order, context)?;
            let exact = keys.all().iter().skip(1).any(|key| entry.get(&key.name).is_some());
            all.push(exact, tuple);
        }
        Ok(all)
    }

    /// Returns the order of the items of a patch.
    pub(super) fn of_patch(context: &Context<'a>, keys: &'a MergeKeys, items: &[PatchItem<'a>]) -> Self {
        let mut all = Self::empty(context, keys, items.len());
        for item in items {
            all.push(false, item.tuple);
        }
        all
    }

    fn push(&mut self, exact: bool, tuple: KeyTuple<'a>) {
        let rank = self.entries.len();
        self.entries.push((exact, tuple));
        let (index, ranks) =
            if exact { (&mut self.exact, &mut self.exact_ranks) } else { (&mut self.loose, &mut self.loose_ranks) };
        index.push(tuple);
        ranks.push(rank);
    }

    /// Refuses a patch whose items are in another order.
    pub(super) fn refuse_other(
        &self,
        context: &Context<'a>,
        keys: &'a MergeKeys,
        items: &'a [Value<'a>],
    ) -> Result<(), BrokenAt> {
        let mut wanted = Vec::with_capacity(items.len());
        for item in items {
            match PatchMode::of_item(*item)? {
                Some(PatchMode::Delete) => {}
                Some(PatchMode::Replace) => wanted.push(None),
                None => wanted.push(Some(keys.tuple(*item, PatchSide::Patch, context)?)),
            }
        }
        refuse_other_order(
            wanted,
            &self.entries,
            |item, (exact, entry)| {
                if *exact { item == entry } else { item.first() == entry.first() }
            },
        )?;
        Ok(())
    }

    /// Ranks every item that the order names.
    pub(super) fn rank(mut self, list: &mut WorkingList<'a>) {
        let every = self.keys.every();
        for position in 0..list.items.len() {
            let Some(tuple) = list.tuple(position) else { continue };
            let loose = self.loose.first(DEFAULT_KEY, tuple, |_| true).and_then(|at| self.loose_ranks.get(at));
            let exact = self.exact.first(every, tuple, |_| true).and_then(|at| self.exact_ranks.get(at));
            let rank = exact.or(loose).copied();
            let Some(Some(item)) = list.items.get_mut(position) else { continue };
            item.rank = rank;
            // With one key, all items with the same key are ordered as the first of them.
            if self.keys.is_single() && item.live.is_some() {
                item.live = list.index.first(DEFAULT_KEY, tuple, |_| true).or(item.live);
            }
        }
    }
}
