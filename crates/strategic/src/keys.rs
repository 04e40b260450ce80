//! What tells apart the items of a list, and finding items by it in constant time.

use crate::Context;
use crate::error::{PatchMergeKeyFault, Reason, Side};
use crate::schema::{Key, KeyDefault, Keys};
use crate::value::{Scalar, Value};
use hashbrown::HashMap;
use std::ops::ControlFlow;

/// The values of an item's merge keys, in the order of [`Keys::all`]; `None` where the item has none.
pub(super) type Tuple<'a> = &'a [Option<Scalar<'a>>];

/// A set of merge keys: bit `n` is the key at position `n`.
pub(super) type KeySet = u64;

/// The default key alone.
pub(super) const DEFAULT_KEY: KeySet = 1;

impl Keys {
    /// All of them.
    pub(super) fn every(&self) -> KeySet {
        KeySet::MAX >> (Self::MOST - self.all().len())
    }

    /// The values of an item's keys. What an item does not have is what the schema has as default.
    pub(super) fn tuple<'a>(&'a self, item: Value<'a>, side: Side, context: &Context<'a>) -> Result<Tuple<'a>, Reason> {
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

    fn has_default(&self, values: &[Option<Scalar<'_>>], side: Side) -> Result<(), Reason> {
        match values.first() {
            Some(Some(_)) => Ok(()),
            _ => Err(Reason::NoMergeKey { side, key: self.default_key().into() }),
        }
    }

    /// Reads `$patchMergeKey`: the keys that it lists.
    pub(super) fn listed(&self, directive: Value<'_>) -> Result<KeySet, Reason> {
        let fault = |fault| Err(Reason::PatchMergeKey(fault));
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

fn value<'a>(key: &'a Key, item: Value<'a>, side: Side, context: &Context<'a>) -> Result<Option<Scalar<'a>>, Reason> {
    match item.get(&key.name) {
        None => {}
        Some(Value::Null) if key.default.is_some() => {}
        Some(Value::Null) if side == Side::Live || side == Side::Patch => {
            // A key that is null is absent; the default key may not be.
        }
        Some(found) => {
            let wrong = || Reason::KeyType { side, key: key.name.clone(), found: found.kind() };
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

/// The key tuples of a list, to be searched by any set of keys.
#[derive(Debug)]
pub(super) struct Index<'a> {
    context: Context<'a>,
    every: KeySet,
    tuples: Vec<Tuple<'a>>,
    /// One for each set of keys that was asked for.
    chains: Vec<Chain<'a>>,
}

/// For one set of keys: the first and last position of each tuple, and for each position the next one of the same tuple.
#[derive(Debug)]
struct Chain<'a> {
    keys: KeySet,
    ends: HashMap<Tuple<'a>, (usize, usize)>,
    next: Vec<usize>,
}

/// The end of a chain.
const NONE: usize = usize::MAX;

impl<'a> Index<'a> {
    /// Up to so many items a search is cheaper than a hash table.
    const SMALL: usize = 16;

    pub(super) fn new(context: Context<'a>, keys: &Keys, capacity: usize) -> Self {
        Self { context, every: keys.every(), tuples: Vec::with_capacity(capacity), chains: Vec::new() }
    }

    pub(super) fn push(&mut self, tuple: Tuple<'a>) {
        let position = self.tuples.len();
        self.tuples.push(tuple);
        for chain in &mut self.chains {
            chain.push(project(self.context, tuple, chain.keys, self.every), position);
        }
    }

    pub(super) fn tuple(&self, position: usize) -> Option<Tuple<'a>> {
        self.tuples.get(position).copied()
    }

    /// Returns true if there are so many items that it pays to remember where one was found.
    pub(super) fn is_large(&self) -> bool {
        self.tuples.len() > Self::SMALL
    }

    /// A tuple with the values of some keys alone.
    pub(super) fn only(&self, keys: KeySet, tuple: Tuple<'a>) -> Tuple<'a> {
        project(self.context, tuple, keys, self.every)
    }

    /// The first position whose values of `keys` are those of `wanted`, and which `fits`.
    pub(super) fn first(&mut self, keys: KeySet, wanted: Tuple<'a>, fits: impl Fn(usize) -> bool) -> Option<usize> {
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

    /// Calls `visit` with every such position, in order.
    pub(super) fn all(&mut self, keys: KeySet, wanted: Tuple<'a>, mut visit: impl FnMut(usize)) {
        self.while_wanted(keys, wanted, |position| {
            visit(position);
            ControlFlow::Continue(())
        });
    }

    /// Calls `visit` with every such position, in order, until it breaks off.
    pub(super) fn while_wanted(
        &mut self,
        keys: KeySet,
        wanted: Tuple<'a>,
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

    fn start(&self, chain: usize, keys: KeySet, wanted: Tuple<'a>) -> Option<usize> {
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
    fn push(&mut self, tuple: Tuple<'a>, position: usize) {
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

/// Whether two tuples have the same values of some keys.
fn agree(left: Tuple<'_>, right: Tuple<'_>, keys: KeySet) -> bool {
    left.iter().zip(right).enumerate().all(|(position, (left, right))| keys & (1 << position) == 0 || left == right)
}

/// A tuple with the values of some keys alone.
fn project<'a>(context: Context<'a>, tuple: Tuple<'a>, keys: KeySet, every: KeySet) -> Tuple<'a> {
    if keys == every {
        return tuple;
    }
    let value = |(position, value): (usize, &Option<Scalar<'a>>)| value.filter(|_| keys & (1 << position) != 0);
    context.arena.alloc_slice_fill_iter(tuple.iter().enumerate().map(value))
}
