//! Which item of one list is which of another.

use crate::Context;
use crate::error::{Fault, Reason, Side};
use crate::keys::{DEFAULT_KEY, Index, KeySet, Tuple};
use crate::schema::Keys;
use crate::value::Value;
use kube_unions_core::field_path::Segment;
use std::ops::ControlFlow;

/// What an item as it is wanted was before, and what it is in the cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pair {
    pub(super) before: Option<usize>,
    pub(super) live: Option<usize>,
    /// The merge keys that it did not have in the cluster.
    pub(super) added: KeySet,
}

/// The pairs of a list.
#[derive(Debug, Default)]
pub(super) struct Pairs<'a> {
    /// One for each item as it is wanted.
    pub(super) of: Vec<Pair>,
    /// The items that were there before and are not wanted any more.
    pub(super) gone: Vec<Value<'a>>,
    /// Whether the items stand in another order than in the cluster, or are others.
    pub(super) reordered: bool,
}

/// Most left-over items with one default key that are held against each other.
const MOST_LEFT_OVER: usize = 16;

impl<'a> Pairs<'a> {
    pub(super) fn find(
        context: &Context<'a>,
        keys: &'a Keys,
        before: Option<&'a [Value<'a>]>,
        live: Option<&'a [Value<'a>]>,
        after: &'a [Value<'a>],
    ) -> Result<Self, Fault> {
        let live_absent = live.is_none();
        let (before, live) = (before.unwrap_or_default(), live.unwrap_or_default());
        let wanted = tuples(context, keys, after, Side::Patch)?;
        let twins = std::ptr::eq(before, live);
        // To an absent list the items are added as they are, to any other each is merged.
        let merges = !live_absent;
        let live_side = Matched::find(context, keys, live, after, &wanted, merges)?;
        let before_side = if twins { None } else { Some(Matched::find(context, keys, before, after, &wanted, false)?) };
        let reordered =
            live.len() != after.len() || live_side.tuples.iter().zip(&wanted).any(|(left, right)| left != right);
        let source = before_side.as_ref().unwrap_or(&live_side);
        let mut pairs = Self { of: vec![Pair::default(); after.len()], gone: Vec::new(), reordered };
        for (position, pair) in pairs.of.iter_mut().enumerate() {
            pair.live = live_side.of.get(position).copied().flatten();
            pair.before = source.of.get(position).copied().flatten();
            if let (Some(was), Some(is)) = (pair.live.and_then(|at| live_side.tuples.get(at)), wanted.get(position)) {
                let added = |(was, is): (&Option<_>, &Option<_>)| was.is_none() && is.is_some();
                let bits = was.iter().zip(*is).enumerate().filter(|(_, pair)| added((pair.0, pair.1)));
                pair.added = bits.fold(0, |all, (bit, _)| all | 1 << bit);
            }
        }
        let mut deleted = Index::new(*context, keys, 0);
        let mut gone = |position: usize| {
            let (Some(item), Some(tuple)) = (source.items.get(position), source.tuples.get(position)) else { return };
            // One directive takes all items with these keys.
            if deleted.first(keys.every(), tuple, |_| true).is_none() {
                deleted.push(tuple);
                pairs.gone.push(*item);
            }
        };
        source.gone.iter().for_each(|position| gone(*position));
        // An item of which several were there before is made anew, once all of them are gone.
        for position in &source.remade {
            if let Some(pair) = pairs.of.get_mut(*position) {
                *pair = Pair::default();
            }
        }
        // So is one that is about to be deleted under the keys by which it would be found.
        if !twins {
            for pair in &mut pairs.of {
                if let Some(tuple) = pair.live.and_then(|at| live_side.tuples.get(at))
                    && deleted.first(keys.every(), tuple, |_| true).is_some()
                {
                    *pair = Pair::default();
                }
            }
        }
        Ok(pairs)
    }
}

impl Pairs<'_> {
    /// Refuses items that nothing tells apart: a list that is there, if only empty, would merge them into one.
    pub(super) fn refuse_twins<'a>(context: &Context<'a>, keys: &'a Keys, items: &'a [Value<'a>]) -> Result<(), Fault> {
        let mut seen = Index::new(*context, keys, items.len());
        for (position, item) in items.iter().enumerate() {
            // What is wrong with an item is said where it is merged.
            let Ok(tuple) = keys.tuple(*item, Side::Patch, context) else { continue };
            if seen.first(keys.every(), tuple, |_| true).is_some() {
                return Err(Reason::Duplicate.at([Segment::Index(position)]));
            }
            seen.push(tuple);
        }
        Ok(())
    }
}

fn tuples<'a>(
    context: &Context<'a>,
    keys: &'a Keys,
    items: &'a [Value<'a>],
    side: Side,
) -> Result<Vec<Tuple<'a>>, Fault> {
    let tuple = |(position, item): (usize, &Value<'a>)| {
        keys.tuple(*item, side, context).map_err(|reason| reason.at([Segment::Index(position)]))
    };
    items.iter().enumerate().map(tuple).collect()
}

/// A list, held against the one that is wanted.
struct Matched<'a> {
    items: &'a [Value<'a>],
    tuples: Vec<Tuple<'a>>,
    /// For each item that is wanted its position here.
    of: Vec<Option<usize>>,
    /// The items here that are not wanted.
    gone: Vec<usize>,
    /// The wanted items that must be made anew, in order.
    remade: Vec<usize>,
}

impl<'a> Matched<'a> {
    fn find(
        context: &Context<'a>,
        keys: &'a Keys,
        items: &'a [Value<'a>],
        after: &'a [Value<'a>],
        wanted: &[Tuple<'a>],
        merges: bool,
    ) -> Result<Self, Fault> {
        let tuples = tuples(context, keys, items, Side::Live)?;
        let mut found = Self { items, tuples, of: vec![None; wanted.len()], gone: Vec::new(), remade: Vec::new() };
        let mut index = Index::new(*context, keys, found.tuples.len());
        found.tuples.iter().for_each(|tuple| index.push(tuple));
        let mut ahead = Index::new(*context, keys, wanted.len());
        for tuple in wanted {
            ahead.push(tuple);
        }
        let every = keys.every();
        let mut taken = vec![false; items.len()];
        for (position, tuple) in wanted.iter().enumerate() {
            // Mostly both stand in one order and no keys are there twice.
            let first = ahead.first(every, tuple, |_| true).unwrap_or(position);
            if first != position {
                // All items with these keys were paired with the first of them.
                continue;
            }
            let twice_wanted = ahead.first(every, tuple, |at| at != position).is_some();
            let mut here = Vec::new();
            index.all(every, tuple, |at| here.push(at));
            if here.is_empty() {
                if twice_wanted && merges {
                    return Err(Reason::Duplicate.at([Segment::Index(position)]));
                }
                continue;
            }
            for at in &here {
                if let Some(taken) = taken.get_mut(*at) {
                    *taken = true;
                }
            }
            if twice_wanted {
                found.pair_equals(&mut ahead, tuple, &here, after, every, position)?;
            } else if let [only] = here[..] {
                if let Some(place) = found.of.get_mut(position) {
                    *place = Some(only);
                }
            } else {
                found.remade.push(position);
                found.gone.extend(here.first());
            }
        }
        if !keys.is_single() {
            found.pair_left_over(context, keys, &mut index, wanted, &mut taken);
        }
        found.gone.extend(taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(position, _)| position));
        Ok(found)
    }

    /// Pairs items that nothing tells apart: only as long as none of them changes.
    fn pair_equals(
        &mut self,
        ahead: &mut Index<'a>,
        tuple: Tuple<'a>,
        here: &[usize],
        after: &'a [Value<'a>],
        every: KeySet,
        position: usize,
    ) -> Result<(), Fault> {
        let mut there = Vec::new();
        ahead.all(every, tuple, |at| there.push(at));
        let same = here.len() == there.len()
            && here.iter().zip(&there).all(|(here, there)| match (self.items.get(*here), after.get(*there)) {
                (Some(left), Some(right)) => left.same(*right),
                _ => false,
            });
        if !same {
            return Err(Reason::Duplicate.at([Segment::Index(position)]));
        }
        for (here, there) in here.iter().zip(there) {
            if let Some(place) = self.of.get_mut(there) {
                *place = Some(*here);
            }
        }
        Ok(())
    }

    /// Pairs what is left over where a merge key was added or taken away, one to one.
    fn pair_left_over(
        &mut self,
        context: &Context<'a>,
        keys: &'a Keys,
        index: &mut Index<'a>,
        wanted: &[Tuple<'a>],
        taken: &mut [bool],
    ) {
        let left: Vec<usize> = self
            .of
            .iter()
            .enumerate()
            .filter(|(at, found)| found.is_none() && self.remade.binary_search(at).is_err())
            .map(|(at, _)| at)
            .collect();
        let mut left_index = Index::new(*context, keys, left.len());
        left.iter().filter_map(|at| wanted.get(*at)).for_each(|tuple| left_index.push(tuple));
        let near = |one: Tuple<'a>, other: Tuple<'a>| {
            one.iter().zip(other).all(|(one, other)| one == other || one.is_none() || other.is_none())
        };
        for at in &left {
            let Some(tuple) = wanted.get(*at) else { continue };
            let mut here = Vec::new();
            index.while_wanted(DEFAULT_KEY, tuple, |position| {
                if taken.get(position).is_some_and(|taken| !taken) {
                    here.push(position);
                }
                up_to(MOST_LEFT_OVER, here.len())
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

/// Goes on until there are so many.
fn up_to(most: usize, found: usize) -> ControlFlow<()> {
    if found < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
