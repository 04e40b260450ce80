//! Pairs the items of the modified list with the items of the original and of the current list.

use super::sides::CreateSides;
use crate::context::Context;
use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::keys::{DEFAULT_KEY, KeyIndex, KeySet, KeyTuple};
use crate::schema::MergeKeys;
use crate::value::Value;
use hashbrown::HashSet;
use kube_unions_core::field_path::Segment;

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
    /// One modified item takes the place of several with its keys.
    pub(super) recreates: bool,
}

/// The most unpaired items with one default key that are compared with each other.
const MOST_UNPAIRED: usize = 16;

impl<'a> ItemPairs<'a> {
    pub(super) fn find(
        context: &Context<'a>,
        keys: &'a MergeKeys,
        lists: CreateSides<'a, Value<'a>>,
    ) -> Result<Self, BrokenAt> {
        let (original, current) = (lists.original.unwrap_or_default(), lists.current);
        let wanted = keys.tuples(lists.modified, PatchSide::Patch, context)?;
        let in_current = MatchedList::find(context, keys, current, lists.modified, &wanted, true)?;
        let in_original = if std::ptr::eq(original, current) {
            None
        } else {
            Some(MatchedList::find(context, keys, original, lists.modified, &wanted, false)?)
        };
        let reordered = in_current.tuples != wanted;
        let source = in_original.as_ref().unwrap_or(&in_current);
        let recreates = !in_current.recreated.is_empty() || !source.recreated.is_empty();
        let mut pairs = Self { of: vec![ItemPair::default(); wanted.len()], deleted: Vec::new(), reordered, recreates };
        for (position, pair) in pairs.of.iter_mut().enumerate() {
            pair.current = in_current.of.get(position).copied().flatten();
            pair.original = source.of.get(position).copied().flatten();
            let current = pair.current.and_then(|at| in_current.tuples.get(at));
            if let (Some(current), Some(wanted)) = (current, wanted.get(position)) {
                let added = current.iter().zip(*wanted).map(|(current, wanted)| current.is_none() && wanted.is_some());
                pair.added = added.enumerate().fold(0, |all, (bit, added)| all | KeySet::from(added) << bit);
            }
        }
        // One directive deletes all items with these keys.
        let mut deleted = HashSet::new();
        for position in &source.deleted {
            if let (Some(item), Some(tuple)) = (source.items.get(*position), source.tuples.get(*position))
                && deleted.insert(*tuple)
            {
                pairs.deleted.push(*item);
            }
        }
        // An item that replaces several original ones is created anew, once all of them are deleted.
        for position in &source.recreated {
            put(&mut pairs.of, *position, ItemPair::default());
        }
        // An item whose current keys are deleted is created anew, too.
        if in_original.is_some() {
            for pair in &mut pairs.of {
                let current = pair.current.and_then(|at| in_current.tuples.get(at));
                if current.is_some_and(|tuple| deleted.contains(tuple)) {
                    *pair = ItemPair::default();
                }
            }
        }
        Ok(pairs)
    }
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
        let tuples = keys.tuples(items, PatchSide::Live, context)?;
        let mut index = KeyIndex::new(*context, keys, tuples.clone());
        let mut found =
            Self { items, tuples, of: vec![None; wanted.len()], deleted: Vec::new(), recreated: Vec::new() };
        let mut wanted_index = KeyIndex::new(*context, keys, wanted.to_vec());
        let mut paired = vec![false; items.len()];
        for (position, tuple) in wanted.iter().enumerate() {
            if wanted_index.matching(keys.every(), tuple).next() != Some(position) {
                // The first item with these keys paired all of them.
                continue;
            }
            let repeats: Vec<usize> = wanted_index.matching(keys.every(), tuple).collect();
            let matches: Vec<usize> = index.matching(keys.every(), tuple).collect();
            for at in &matches {
                put(&mut paired, *at, true);
            }
            match (&matches[..], &repeats[..]) {
                ([], [_, _, ..]) if merges => return Err(BrokenRule::Duplicate.at(Segment::Index(position))),
                ([], _) => {}
                (_, [_, _, ..]) => found.pair_equals(&matches, &repeats, modified)?,
                ([only], _) => put(&mut found.of, position, Some(*only)),
                ([first, ..], _) => {
                    found.recreated.push(position);
                    found.deleted.push(*first);
                }
            }
        }
        if !keys.is_single() {
            found.pair_by_changed_keys(context, keys, &mut index, wanted, &mut paired);
        }
        found.deleted.extend(paired.iter().enumerate().filter(|(_, paired)| !**paired).map(|(position, _)| position));
        Ok(found)
    }

    /// Pairs several items with the same keys. Fails if any of them changes, since a patch could not tell them apart.
    fn pair_equals(&mut self, matches: &[usize], repeats: &[usize], modified: &[Value<'a>]) -> Result<(), BrokenAt> {
        let same = |(at, repeat): (&usize, &usize)| {
            let pair = self.items.get(*at).zip(modified.get(*repeat));
            pair.is_some_and(|(left, right)| left.same(*right))
        };
        if matches.len() != repeats.len() || !matches.iter().zip(repeats).all(same) {
            return Err(BrokenRule::Duplicate.at(Segment::Index(repeats.first().copied().unwrap_or_default())));
        }
        for (at, repeat) in matches.iter().zip(repeats) {
            put(&mut self.of, *repeat, Some(*at));
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
        let is_unpaired = |at: &usize| self.of.get(*at).is_some_and(Option::is_none);
        let unpaired = (0..wanted.len()).filter(|at| is_unpaired(at) && self.recreated.binary_search(at).is_err());
        let unpaired: Vec<_> = unpaired.filter_map(|at| Some((at, *wanted.get(at)?))).collect();
        let mut unpaired_index = KeyIndex::new(*context, keys, unpaired.iter().map(|(_, tuple)| *tuple).collect());
        let differs_in_absent_keys = |one: KeyTuple<'a>, other: KeyTuple<'a>| {
            one.iter().zip(other).all(|(one, other)| one == other || one.is_none() || other.is_none())
        };
        for (at, tuple) in &unpaired {
            let candidates = {
                let open =
                    index.matching(DEFAULT_KEY, tuple).filter(|at| paired.get(*at).is_some_and(|paired| !paired));
                let candidates = open.take(MOST_UNPAIRED).filter_map(|at| Some((at, *self.tuples.get(at)?)));
                let mut candidates = candidates.filter(|(_, other)| differs_in_absent_keys(tuple, other));
                (candidates.next(), candidates.next())
            };
            let (Some((only, was)), None) = candidates else { continue };
            let rivals = unpaired_index.matching(DEFAULT_KEY, was).filter_map(|rival| unpaired.get(rival));
            let rivals = rivals.filter(|(_, rival)| differs_in_absent_keys(rival, was));
            let changed = was.iter().zip(*tuple).enumerate().filter(|(_, (was, is))| was != is);
            let changed = changed.fold(0, |all, (bit, _)| all | 1 << bit);
            let fitting = index.matching(keys.every() & !changed, was);
            if rivals.take(2).count() == 1 && fitting.take(2).count() == 1 {
                put(&mut self.of, *at, Some(only));
                put(paired, only, true);
            }
        }
    }
}

/// Replaces an item of a list.
fn put<T>(list: &mut [T], position: usize, item: T) {
    if let Some(place) = list.get_mut(position) {
        *place = item;
    }
}
