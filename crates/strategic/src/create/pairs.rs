//! Pairs the items of the modified list with the items of the original and of the current list.

use crate::context::Context;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeySet, KeyTuple};
use crate::schema::MergeKeys;
use crate::value::Value;
use kube_unions_core::field_path::Segment;
use std::ops::ControlFlow;

/// The lists of one field.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListSides<'a> {
    pub(super) original: Option<&'a [Value<'a>]>,
    /// `None` if the current object has no such list, so that the patch adds everything.
    pub(super) current: Option<&'a [Value<'a>]>,
    pub(super) modified: &'a [Value<'a>],
}

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
        // An item whose current keys are deleted is created anew, too.
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
        let mut wanted_index = KeyIndex::new(*context, keys, wanted.len());
        for tuple in wanted {
            wanted_index.push(tuple);
        }
        let every = keys.every();
        let mut paired = vec![false; items.len()];
        for (position, tuple) in wanted.iter().enumerate() {
            let first = wanted_index.first(every, tuple, |_| true).unwrap_or(position);
            if first != position {
                // The first item with these keys paired all of them.
                continue;
            }
            let is_repeated = wanted_index.first(every, tuple, |at| at != position).is_some();
            let mut matches = Vec::new();
            index.all(every, tuple, |at| matches.push(at));
            if matches.is_empty() {
                if is_repeated && merges {
                    return Err(BrokenRule::Duplicate.at(Segment::Index(position)));
                }
                continue;
            }
            for at in &matches {
                if let Some(paired) = paired.get_mut(*at) {
                    *paired = true;
                }
            }
            if is_repeated {
                found.pair_equals(&mut wanted_index, tuple, &matches, modified, every, position)?;
            } else if let [only] = matches[..] {
                if let Some(place) = found.of.get_mut(position) {
                    *place = Some(only);
                }
            } else {
                found.recreated.push(position);
                found.deleted.extend(matches.first());
            }
        }
        if !keys.is_single() {
            found.pair_by_changed_keys(context, keys, &mut index, wanted, &mut paired);
        }
        found.deleted.extend(paired.iter().enumerate().filter(|(_, paired)| !**paired).map(|(position, _)| position));
        Ok(found)
    }

    /// Pairs several items with the same keys. Fails if any of them changes, since a patch could not tell them apart.
    fn pair_equals(
        &mut self,
        wanted_index: &mut KeyIndex<'a>,
        tuple: KeyTuple<'a>,
        matches: &[usize],
        modified: &'a [Value<'a>],
        every: KeySet,
        position: usize,
    ) -> Result<(), BrokenAt> {
        let mut repeats = Vec::new();
        wanted_index.all(every, tuple, |at| repeats.push(at));
        let same = matches.len() == repeats.len()
            && matches.iter().zip(&repeats).all(|(at, repeat)| match (self.items.get(*at), modified.get(*repeat)) {
                (Some(left), Some(right)) => left.same(*right),
                _ => false,
            });
        if !same {
            return Err(BrokenRule::Duplicate.at(Segment::Index(position)));
        }
        for (at, repeat) in matches.iter().zip(repeats) {
            if let Some(place) = self.of.get_mut(repeat) {
                *place = Some(*at);
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
        paired: &mut [bool],
    ) {
        let unpaired: Vec<usize> = self
            .of
            .iter()
            .enumerate()
            .filter(|(at, found)| found.is_none() && self.recreated.binary_search(at).is_err())
            .map(|(at, _)| at)
            .collect();
        let mut unpaired_index = KeyIndex::new(*context, keys, unpaired.len());
        unpaired.iter().filter_map(|at| wanted.get(*at)).for_each(|tuple| unpaired_index.push(tuple));
        let differs_in_absent_keys = |one: KeyTuple<'a>, other: KeyTuple<'a>| {
            one.iter().zip(other).all(|(one, other)| one == other || one.is_none() || other.is_none())
        };
        for at in &unpaired {
            let Some(tuple) = wanted.get(*at) else { continue };
            let mut candidates = Vec::new();
            index.while_wanted(DEFAULT_KEY, tuple, |position| {
                if paired.get(position).is_some_and(|paired| !paired) {
                    candidates.push(position);
                }
                up_to(MOST_UNPAIRED, candidates.len())
            });
            candidates.retain(|position| {
                self.tuples.get(*position).is_some_and(|other| differs_in_absent_keys(tuple, other))
            });
            let ([only], Some(was)) =
                (&candidates[..], candidates.first().and_then(|position| self.tuples.get(*position)))
            else {
                continue;
            };
            let mut rival_count = 0;
            unpaired_index.while_wanted(DEFAULT_KEY, was, |rival| {
                let rival = unpaired.get(rival).and_then(|rival| wanted.get(*rival));
                rival_count += usize::from(rival.is_some_and(|rival| differs_in_absent_keys(rival, was)));
                up_to(2, rival_count)
            });
            let changed = was.iter().zip(*tuple).enumerate().filter(|(_, (was, is))| was != is);
            let changed = changed.fold(0, |all, (bit, _)| all | 1 << bit);
            let mut fit_count = 0;
            index.while_wanted(keys.every() & !changed, was, |_| {
                fit_count += 1;
                up_to(2, fit_count)
            });
            if rival_count == 1 && fit_count == 1 {
                if let Some(place) = self.of.get_mut(*at) {
                    *place = Some(*only);
                }
                if let Some(paired) = paired.get_mut(*only) {
                    *paired = true;
                }
            }
        }
    }
}

/// Stops a search once it found `most` items.
fn up_to(most: usize, found: usize) -> ControlFlow<()> {
    if found < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
