//! The merge keys of list items, and an index that finds items by them in constant time.

use crate::context::Context;
use crate::error::{BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::schema::{KeyDefault, MergeKey, MergeKeys};
use crate::value::{Scalar, Value};
use hashbrown::HashMap;
use std::ops::ControlFlow;

/// The values of an item's merge keys, in the order of [`MergeKeys::all`]. `None` is an absent key.
pub(crate) type KeyTuple<'a> = &'a [Option<Scalar<'a>>];

/// A set of merge keys: bit `n` is the key at position `n`.
pub(crate) type KeySet = u64;

/// The default key alone.
pub(crate) const DEFAULT_KEY: KeySet = 1;

impl MergeKeys {
    pub(crate) fn every(&self) -> KeySet {
        KeySet::MAX >> (Self::MOST - self.all().len())
    }

    /// Returns the values of an item's keys. An absent key has the default of the schema. The default key must be present.
    pub(crate) fn tuple<'a>(
        &'a self,
        item: Value<'a>,
        side: PatchSide,
        context: &Context<'a>,
    ) -> Result<KeyTuple<'a>, BrokenRule> {
        let mut values = [None; 4];
        if self.all().len() <= values.len() {
            for (place, key) in values.iter_mut().zip(self.all()) {
                *place = value(key, item, side, context)?;
            }
            self.has_default(&values, side)?;
            return Ok(context.arena.alloc_slice_copy(values.get(..self.all().len()).unwrap_or_default()));
        }
        let values = self.all().iter().map(|key| value(key, item, side, context)).collect::<Result<Vec<_>, _>>()?;
        self.has_default(&values, side)?;
        Ok(context.arena.alloc_slice_copy(&values))
    }

    fn has_default(&self, values: &[Option<Scalar<'_>>], side: PatchSide) -> Result<(), BrokenRule> {
        match values.first() {
            Some(Some(_)) => Ok(()),
            _ => Err(BrokenRule::NoMergeKey { side, key: self.default_key().into() }),
        }
    }

    /// Reads a `$patchMergeKey` and returns the keys that it lists.
    pub(crate) fn listed(&self, directive: Value<'_>) -> Result<KeySet, BrokenRule> {
        let fault = |fault| Err(BrokenRule::PatchMergeKey(fault));
        let Value::List(items) = directive else { return fault(PatchMergeKeyFault::NotStrings) };
        let mut listed = 0;
        for item in items {
            let Value::String(name) = item else { return fault(PatchMergeKeyFault::NotStrings) };
            let Some(position) = self.all().iter().position(|key| *key.name == **name) else {
                return fault(PatchMergeKeyFault::NotRecommended((*name).into()));
            };
            if listed & (1 << position) != 0 {
                return fault(PatchMergeKeyFault::NotStrings);
            }
            listed |= 1 << position;
        }
        if items.is_empty() {
            return fault(PatchMergeKeyFault::NotStrings);
        }
        if listed & DEFAULT_KEY == 0 {
            return fault(PatchMergeKeyFault::NoDefault(self.default_key().into()));
        }
        Ok(listed)
    }
}

fn value<'a>(
    key: &'a MergeKey,
    item: Value<'a>,
    side: PatchSide,
    context: &Context<'a>,
) -> Result<Option<Scalar<'a>>, BrokenRule> {
    match item.get(&key.name) {
        None => {}
        Some(Value::Null) if key.default.is_some() => {}
        Some(Value::Null) if side == PatchSide::Live || side == PatchSide::Patch => {
            // A null key is absent. The caller checks the default key.
        }
        Some(found) => {
            let wrong = || BrokenRule::KeyType { side, key: key.name.clone(), found: found.kind() };
            return match found.scalar(context.arena) {
                None | Some(Scalar::Null) => Err(wrong()),
                scalar => Ok(scalar),
            };
        }
    }
    Ok(match &key.default {
        None => None,
        Some(KeyDefault::Bool(value)) => Some(Scalar::Bool(*value)),
        Some(KeyDefault::String(text)) => Some(Scalar::String(text)),
        Some(KeyDefault::Number(text)) => Value::Number(text).scalar(context.arena),
    })
}

/// The keys of all items of a list. It can be searched by any set of keys.
#[derive(Debug)]
pub(crate) struct KeyIndex<'a> {
    context: Context<'a>,
    every: KeySet,
    tuples: Vec<KeyTuple<'a>>,
    /// One chain for each set of keys that was searched.
    chains: Vec<Chain<'a>>,
}

/// An index by one set of keys.
#[derive(Debug)]
struct Chain<'a> {
    keys: KeySet,
    /// The first and the last position of each tuple.
    ends: HashMap<KeyTuple<'a>, (usize, usize)>,
    /// For each position the next one with the same tuple.
    next: Vec<usize>,
}

/// The end of a chain.
const NONE: usize = usize::MAX;

impl<'a> KeyIndex<'a> {
    /// Largest number of items for which a linear search is cheaper than a hash table.
    const SMALL: usize = 16;

    pub(crate) fn new(context: Context<'a>, keys: &MergeKeys, capacity: usize) -> Self {
        Self { context, every: keys.every(), tuples: Vec::with_capacity(capacity), chains: Vec::new() }
    }

    pub(crate) fn push(&mut self, tuple: KeyTuple<'a>) {
        let position = self.tuples.len();
        self.tuples.push(tuple);
        for chain in &mut self.chains {
            chain.push(project(self.context, tuple, chain.keys, self.every), position);
        }
    }

    pub(crate) fn tuple(&self, position: usize) -> Option<KeyTuple<'a>> {
        self.tuples.get(position).copied()
    }

    /// Returns true if the list is so large that remembering a found item is cheaper than searching again.
    pub(crate) fn is_large(&self) -> bool {
        self.tuples.len() > Self::SMALL
    }

    /// Returns a tuple with only the values of some keys.
    pub(crate) fn only(&self, keys: KeySet, tuple: KeyTuple<'a>) -> KeyTuple<'a> {
        project(self.context, tuple, keys, self.every)
    }

    /// Returns the first position that `fits` and has the values of `wanted` in `keys`.
    pub(crate) fn first(&mut self, keys: KeySet, wanted: KeyTuple<'a>, fits: impl Fn(usize) -> bool) -> Option<usize> {
        if !self.is_large() {
            return self
                .tuples
                .iter()
                .enumerate()
                .position(|(position, tuple)| agree(tuple, wanted, keys) && fits(position));
        }
        let chain = self.chain(keys);
        let mut at = self.start(chain, keys, wanted);
        while let Some(position) = at {
            if fits(position) {
                return Some(position);
            }
            at = self.after(chain, position);
        }
        None
    }

    /// Calls `visit` with every position that has the values of `wanted` in `keys`, in order.
    pub(crate) fn all(&mut self, keys: KeySet, wanted: KeyTuple<'a>, mut visit: impl FnMut(usize)) {
        self.while_wanted(keys, wanted, |position| {
            visit(position);
            ControlFlow::Continue(())
        });
    }

    /// As [`Self::all`], until `visit` breaks off.
    pub(crate) fn while_wanted(
        &mut self,
        keys: KeySet,
        wanted: KeyTuple<'a>,
        mut visit: impl FnMut(usize) -> ControlFlow<()>,
    ) {
        if !self.is_large() {
            let mut found = self.tuples.iter().enumerate().filter(|(_, tuple)| agree(tuple, wanted, keys));
            let _ = found.try_for_each(|(position, _)| visit(position));
            return;
        }
        let chain = self.chain(keys);
        let mut at = self.start(chain, keys, wanted);
        while let Some(position) = at {
            if visit(position).is_break() {
                return;
            }
            at = self.after(chain, position);
        }
    }

    fn start(&self, chain: usize, keys: KeySet, wanted: KeyTuple<'a>) -> Option<usize> {
        let wanted = project(self.context, wanted, keys, self.every);
        self.chains.get(chain)?.ends.get(wanted).map(|(first, _)| *first)
    }

    fn after(&self, chain: usize, position: usize) -> Option<usize> {
        self.chains.get(chain)?.next.get(position).copied().filter(|next| *next != NONE)
    }

    fn chain(&mut self, keys: KeySet) -> usize {
        if let Some(found) = self.chains.iter().position(|chain| chain.keys == keys) {
            return found;
        }
        let size = self.tuples.len();
        let mut chain = Chain { keys, ends: HashMap::with_capacity(size), next: Vec::with_capacity(size) };
        for (position, tuple) in self.tuples.iter().enumerate() {
            chain.push(project(self.context, tuple, keys, self.every), position);
        }
        self.chains.push(chain);
        self.chains.len() - 1
    }
}

impl<'a> Chain<'a> {
    fn push(&mut self, tuple: KeyTuple<'a>, position: usize) {
        self.next.push(NONE);
        let (_, last) = self.ends.entry(tuple).or_insert((position, position));
        if *last != position {
            if let Some(next) = self.next.get_mut(*last) {
                *next = position;
            }
            *last = position;
        }
    }
}

/// Returns true if two tuples have the same values of some keys.
fn agree(left: KeyTuple<'_>, right: KeyTuple<'_>, keys: KeySet) -> bool {
    left.iter().zip(right).enumerate().all(|(position, (left, right))| keys & (1 << position) == 0 || left == right)
}

/// Returns a tuple with only the values of some keys.
fn project<'a>(context: Context<'a>, tuple: KeyTuple<'a>, keys: KeySet, every: KeySet) -> KeyTuple<'a> {
    if keys == every {
        return tuple;
    }
    let value = |(position, value): (usize, &Option<Scalar<'a>>)| value.filter(|_| keys & (1 << position) != 0);
    context.arena.alloc_slice_fill_iter(tuple.iter().enumerate().map(value))
}
