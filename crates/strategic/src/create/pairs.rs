//! Pairs the items of the modified list with the items of the original and of the current list.

use super::lists::ListSides;
use crate::context::Context;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeySet, KeyTuple};
use crate::schema::MergeKeys;
use crate::value::Value;
use kube_unions_core::field_path::Segment;
use std::ops::ControlFlow;

/// The positions of a modified item in the original and in the current list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ItemPair {
    pub(super) original: Option<usize>,
    pub(super) current: Option<usize>,
    /// The merge keys that the current item lacks and the modified one has.
    pub(super) added: KeySet,
}

/// The pairs of a list.
#[derive(Debug, Default)]
pub(super) struct ItemPairs<'a> {
    /// One pair for each modified item.
    pub(super) of: Vec<ItemPair>,
    /// The original items that the modified list no longer has.
    pub(super) deleted: Vec<Value<'a>>,
    /// The modified list has other items than the current one, or another order.
    pub(super) reordered: bool,
}

/// The most unpaired items with one default key that are compared with each other.
const MOST_UNPAIRED: usize = 16;

impl<'a> ItemPairs<'a> {
    pub(super) fn find(context: &Context<'a>, keys: &'a MergeKeys, lists: ListSides<'a>) -> Result<Self, BrokenAt> {
        let (original, current) = (lists.original.unwrap_or_default(), lists.current.unwrap_or_default());
        let wanted = tuples(context, keys, lists.modified, PatchSide::Patch)?;
        // Items are added to an absent list as they are, and merged into any other list.
        let merges = lists.current.is_some();
        let in_current = MatchedList::find(context, keys, current, lists.modified, &wanted, merges)?;
        let in_original = if std::ptr::eq(original, current) {
            None
        } else {
            Some(MatchedList::find(context, keys, original, lists.modified, &wanted, false)?)
        };
        let reordered = in_current.tuples != wanted;
        let source = in_original.as_ref().unwrap_or(&in_current);
        let mut pairs = Self { of: vec![ItemPair::default(); wanted.len()], deleted: Vec::new(), reordered };
        for (position, pair) in pairs.of.iter_mut().enumerate() {
            pair.current = in_current.of.get(position).copied().flatten();
            pair.original = source.of.get(position).copied().flatten();
            let current = pair.current.and_then(|at| in_current.tuples.get(at));
            if let (Some(current), Some(wanted)) = (current, wanted.get(position)) {
                let added = current.iter().zip(*wanted).map(|(current, wanted)| current.is_none() && wanted.is_some());
                pair.added = added.enumerate().fold(0, |all, (bit, added)| all | KeySet::from(added) << bit);
            }
        }
        let mut deleted = KeyIndex::new(*context, keys, 0);
        for position in &source.deleted {
            let (Some(item), Some(tuple)) = (source.items.get(*position), source.tuples.get(*position)) else {
                continue;
            };
            // One directive deletes all items with these keys.
            if deleted.first(keys.every(), tuple, |_| true).is_none() {
                deleted.push(tuple);
                pairs.deleted.push(*item);
            }
        }
        // An item that replaces several original ones is created anew, once all of them are deleted.
        for position in &source.recreated {
            if let Some(pair) = pairs.of.get_mut(*position) {
                *pair = ItemPair::default();
            }
        }
        // So is an item whose current keys are deleted.
        if in_original.is_some() {
            for pair in &mut pairs.of {
                if let Some(tuple) = pair.current.and_then(|at| in_current.tuples.get(at))
                    && deleted.first(keys.every(), tuple, |_| true).is_some()
                {
                    *pair = ItemPair::default();
                }
            }
        }
        Ok(pairs)
    }
}

impl ItemPairs<'_> {
    /// Refuses items with the same keys, which merging into an empty list would join.
    pub(super) fn refuse_duplicates<'a>(
        context: &Context<'a>,
        keys: &'a MergeKeys,
        items: &'a [Value<'a>],
    ) -> Result<(), BrokenAt> {
        let mut seen = KeyIndex::new(*context, keys, items.len());
        for (position, item) in items.iter().enumerate() {
            // Applying the patch reports an item without keys.
            let Ok(tuple) = keys.tuple(*item, PatchSide::Patch, context) else { continue };
            if seen.first(keys.every(), tuple, |_| true).is_some() {
                return Err(BrokenRule::Duplicate.at(Segment::Index(position)));
            }
            seen.push(tuple);
        }
        Ok(())
    }
}

fn tuples<'a>(
    context: &Context<'a>,
    keys: &'a MergeKeys,
    items: &'a [Value<'a>],
    side: PatchSide,
) -> Result<Vec<KeyTuple<'a>>, BrokenAt> {
    let tuple = |(position, item): (usize, &Value<'a>)| {
        keys.tuple(*item, side, context).map_err(|rule| rule.at(Segment::Index(position)))
    };
    items.iter().enumerate().map(tuple).collect()
}

/// A list, compared with the modified one.
struct MatchedList<'a> {
    items: &'a [Value<'a>],
    tuples: Vec<KeyTuple<'a>>,
    /// For each modified item its position in this list.
    of: Vec<Option<usize>>,
    /// The positions of the items that the modified list lacks.
    deleted: Vec<usize>,
    /// The positions of the modified items that must be created anew, in order.
    recreated: Vec<usize>,
}

impl<'a> MatchedList<'a> {
    fn find(
        context: &Context<'a>,
        keys: &'a MergeKeys,
        items: &'a [Value<'a>],
        modified: &'a [Value<'a>],
        wanted: &[KeyTuple<'a>],
        merges: bool,
    ) -> Result<Self, BrokenAt> {
        let tuples = tuples(context, keys, items, PatchSide::Live)?;
        let mut found =
            Self { items, tuples, of: vec![None; wanted.len()], deleted: Vec::new(), recreated: Vec::new() };
        let mut index = KeyIndex::new(*context, keys, found.tuples.len());
        found.tuples.iter().for_each(|tuple| index.push(tuple));
        let mut ahead = KeyIndex::new(*context, keys, wanted.len());
        for tuple in wanted {
            ahead.push(tuple);
        }
        let every = keys.every();
        let mut taken = vec![false; items.len()];
        for (position, tuple) in wanted.iter().enumerate() {
            let first = ahead.first(every, tuple, |_| true).unwrap_or(position);
            if first != position {
                // The first item with these keys paired all of them.
                continue;
            }
            let twice_wanted = ahead.first(every, tuple, |at| at != position).is_some();
            let mut here = Vec::new();
            index.all(every, tuple, |at| here.push(at));
            if here.is_empty() {
                if twice_wanted && merges {
                    return Err(BrokenRule::Duplicate.at(Segment::Index(position)));
                }
                continue;
            }
            for at in &here {
                if let Some(taken) = taken.get_mut(*at) {
                    *taken = true;
                }
            }
            if twice_wanted {
                found.pair_equals(&mut ahead, tuple, &here, modified, every, position)?;
            } else if let [only] = here[..] {
                if let Some(place) = found.of.get_mut(position) {
                    *place = Some(only);
                }
            } else {
                found.recreated.push(position);
                found.deleted.extend(here.first());
            }
        }
        if !keys.is_single() {
            found.pair_by_changed_keys(context, keys, &mut index, wanted, &mut taken);
        }
        found.deleted.extend(taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(position, _)| position));
        Ok(found)
    }

    /// Pairs several items with the same keys. Fails if any of them changes, since a patch could not tell them apart.
    fn pair_equals(
        &mut self,
        ahead: &mut KeyIndex<'a>,
        tuple: KeyTuple<'a>,
        here: &[usize],
        modified: &'a [Value<'a>],
        every: KeySet,
        position: usize,
    ) -> Result<(), BrokenAt> {
        let mut there = Vec::new();
        ahead.all(every, tuple, |at| there.push(at));
        let same = here.len() == there.len()
            && here.iter().zip(&there).all(|(here, there)| match (self.items.get(*here), modified.get(*there)) {
                (Some(left), Some(right)) => left.same(*right),
                _ => false,
            });
        if !same {
            return Err(BrokenRule::Duplicate.at(Segment::Index(position)));
        }
        for (here, there) in here.iter().zip(there) {
            if let Some(place) = self.of.get_mut(there) {
                *place = Some(*here);
            }
        }
        Ok(())
    }

    /// Pairs the remaining items that differ only in keys which one of them lacks, if the pair is unambiguous.
    fn pair_by_changed_keys(
        &mut self,
        context: &Context<'a>,
        keys: &'a MergeKeys,
        index: &mut KeyIndex<'a>,
        wanted: &[KeyTuple<'a>],
        taken: &mut [bool],
    ) {
        let left: Vec<usize> = self
            .of
            .iter()
            .enumerate()
            .filter(|(at, found)| found.is_none() && self.recreated.binary_search(at).is_err())
            .map(|(at, _)| at)
            .collect();
        let mut left_index = KeyIndex::new(*context, keys, left.len());
        left.iter().filter_map(|at| wanted.get(*at)).for_each(|tuple| left_index.push(tuple));
        let near = |one: KeyTuple<'a>, other: KeyTuple<'a>| {
            one.iter().zip(other).all(|(one, other)| one == other || one.is_none() || other.is_none())
        };
        for at in &left {
            let Some(tuple) = wanted.get(*at) else { continue };
            let mut here = Vec::new();
            index.while_wanted(DEFAULT_KEY, tuple, |position| {
                if taken.get(position).is_some_and(|taken| !taken) {
                    here.push(position);
                }
                up_to(MOST_UNPAIRED, here.len())
            });
            here.retain(|position| self.tuples.get(*position).is_some_and(|other| near(tuple, other)));
            let ([only], Some(was)) = (&here[..], here.first().and_then(|position| self.tuples.get(*position))) else {
                continue;
            };
            let mut rivals = 0;
            left_index.while_wanted(DEFAULT_KEY, was, |rival| {
                let rival = left.get(rival).and_then(|rival| wanted.get(*rival));
                rivals += usize::from(rival.is_some_and(|rival| near(rival, was)));
                up_to(2, rivals)
            });
            let changed = was.iter().zip(*tuple).enumerate().filter(|(_, (was, is))| was != is);
            let changed = changed.fold(0, |all, (bit, _)| all | 1 << bit);
            let mut fits = 0;
            index.while_wanted(keys.every() & !changed, was, |_| {
                fits += 1;
                up_to(2, fits)
            });
            if rivals == 1 && fits == 1 {
                if let Some(place) = self.of.get_mut(*at) {
                    *place = Some(*only);
                }
                if let Some(taken) = taken.get_mut(*only) {
                    *taken = true;
                }
            }
        }
    }
}

/// Stops a search once it found `most` items.
fn up_to(most: usize, found: usize) -> ControlFlow<()> {
    if found < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
