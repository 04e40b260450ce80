//! The merge keys of list items, and an index that finds items by them in constant time.

use crate::context::Context;
use crate::error::{BrokenAt, BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::schema::{KeyDefault, MergeKey, MergeKeys};
use crate::value::{Scalar, Value};
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;

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
        let values = self.all().iter().map(|key| value(key, item, side, context)).collect::<Result<Vec<_>, _>>()?;
        self.has_default(&values, side)?;
        Ok(context.arena.alloc_slice_copy(&values))
    }

    /// Returns the values of the keys of each item.
    pub(crate) fn tuples<'a>(
        &'a self,
        items: &'a [Value<'a>],
        side: PatchSide,
        context: &Context<'a>,
    ) -> Result<Vec<KeyTuple<'a>>, BrokenAt> {
        let tuple = |(position, item): (usize, &Value<'a>)| {
            self.tuple(*item, side, context).map_err(|rule| rule.at(Segment::Index(position)))
        };
        items.iter().enumerate().map(tuple).collect()
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
        // A null key is absent. The caller checks the default key.
        Some(Value::Null) if key.default.is_some() || side != PatchSide::Order => {}
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
    /// The positions of each tuple, for each set of keys that was searched.
    searched: Vec<(KeySet, HashMap<KeyTuple<'a>, Vec<usize>>)>,
}

impl<'a> KeyIndex<'a> {
    pub(crate) fn new(context: Context<'a>, keys: &MergeKeys, tuples: Vec<KeyTuple<'a>>) -> Self {
        Self { context, every: keys.every(), tuples, searched: Vec::new() }
    }

    pub(crate) fn push(&mut self, tuple: KeyTuple<'a>) {
        let position = self.tuples.len();
        self.tuples.push(tuple);
        for (keys, positions) in &mut self.searched {
            positions.entry(project(self.context, tuple, *keys, self.every)).or_default().push(position);
        }
    }

    pub(crate) fn tuples(&self) -> &[KeyTuple<'a>] {
        &self.tuples
    }

    /// Returns a tuple with only the values of some keys.
    pub(crate) fn only(&self, keys: KeySet, tuple: KeyTuple<'a>) -> KeyTuple<'a> {
        project(self.context, tuple, keys, self.every)
    }

    /// Returns every position that has the values of `wanted` in `keys`, in order.
    pub(crate) fn matching(&mut self, keys: KeySet, wanted: KeyTuple<'a>) -> impl Iterator<Item = usize> {
        let wanted = self.only(keys, wanted);
        let known = self.searched.iter().position(|(searched, _)| *searched == keys);
        let known = known.unwrap_or_else(|| {
            let mut positions: HashMap<_, Vec<usize>> = HashMap::with_capacity(self.tuples.len());
            for (position, tuple) in self.tuples.iter().enumerate() {
                positions.entry(self.only(keys, tuple)).or_default().push(position);
            }
            self.searched.push((keys, positions));
            self.searched.len() - 1
        });
        let found = self.searched.get(known).and_then(|(_, positions)| positions.get(wanted));
        found.into_iter().flatten().copied()
    }
}

/// Returns a tuple with only the values of some keys.
fn project<'a>(context: Context<'a>, tuple: KeyTuple<'a>, keys: KeySet, every: KeySet) -> KeyTuple<'a> {
    if keys == every {
        return tuple;
    }
    let value = |(position, value): (usize, &Option<Scalar<'a>>)| value.filter(|_| keys & (1 << position) != 0);
    context.arena.alloc_slice_fill_iter(tuple.iter().enumerate().map(value))
}
