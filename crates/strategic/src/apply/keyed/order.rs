//! The order that `$setElementOrder`, or the patch itself, requests for a list of objects.

use super::list_rules::ListRules;
use super::patch_items::PatchItem;
use super::working_list::WorkingList;
use crate::apply::arrange::refuse_other_order;
use crate::directive::PatchMode;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyTuple};
use crate::value::{Scalar, Value};
use hashbrown::HashMap;

/// The entries of an order list.
#[derive(Default)]
pub(super) struct RequestedOrder<'a> {
    /// The ranks of the entries with only the default key. Each ranks every item that has this key.
    loose: HashMap<Option<Scalar<'a>>, usize>,
    /// The ranks of the entries with further keys.
    exact: HashMap<KeyTuple<'a>, usize>,
    /// All entries: true for one with further keys, and the keys.
    entries: Vec<(bool, KeyTuple<'a>)>,
}

impl<'a> RequestedOrder<'a> {
    /// Reads a `$setElementOrder`.
    pub(super) fn read(list: &ListRules<'a>, order: &'a [Value<'a>]) -> Result<Self, BrokenRule> {
        let mut all = Self::default();
        for entry in order {
            let tuple = list.keys.tuple(*entry, PatchSide::Order, &list.context)?;
            let exact = list.keys.all().iter().skip(1).any(|key| entry.get(&key.name).is_some());
            all.push(exact, tuple);
        }
        Ok(all)
    }

    /// Returns the order of the items of a patch.
    pub(super) fn of_patch(items: &[PatchItem<'a>]) -> Self {
        let mut all = Self::default();
        for item in items {
            all.push(false, item.tuple);
        }
        all
    }

    fn push(&mut self, exact: bool, tuple: KeyTuple<'a>) {
        let rank = self.entries.len();
        self.entries.push((exact, tuple));
        if exact {
            self.exact.entry(tuple).or_insert(rank);
        } else {
            self.loose.entry(default_key(tuple)).or_insert(rank);
        }
    }

    /// Refuses a patch whose items are in another order.
    pub(super) fn refuse_other(&self, list: &ListRules<'a>, items: &'a [Value<'a>]) -> Result<(), BrokenAt> {
        let mut wanted = Vec::with_capacity(items.len());
        for item in items {
            match PatchMode::of_item(*item)? {
                Some(PatchMode::Delete) => {}
                Some(PatchMode::Replace) => wanted.push(None),
                None => wanted.push(Some(list.keys.tuple(*item, PatchSide::Patch, &list.context)?)),
            }
        }
        let fits = |item: &KeyTuple<'a>, (exact, entry): &&(bool, KeyTuple<'a>)| {
            if *exact { item == entry } else { item.first() == entry.first() }
        };
        Ok(refuse_other_order(wanted, &self.entries, fits)?)
    }

    /// Ranks every item that the order names.
    pub(super) fn rank(&self, list: &mut WorkingList<'a>) {
        for position in 0..list.items.len() {
            let Some(tuple) = list.tuple(position) else { continue };
            let rank = self.exact.get(tuple).or_else(|| self.loose.get(&default_key(tuple))).copied();
            let is_single = list.list.keys.is_single();
            let Some(Some(item)) = list.items.get_mut(position) else { continue };
            item.rank = rank;
            // With one key, all items with the same key are ordered as the first of them.
            if is_single && item.live.is_some() {
                item.live = list.index.matching(DEFAULT_KEY, tuple).next().or(item.live);
            }
        }
    }
}

fn default_key(tuple: KeyTuple<'_>) -> Option<Scalar<'_>> {
    tuple.first().copied().flatten()
}
