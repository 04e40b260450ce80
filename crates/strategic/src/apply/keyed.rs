//! Merges lists of objects, item by item: by one key, or with `$patchMergeKey` by several.

use super::list::{Item, ListPatch, arrange, item_directive, refuse_other_order};
use crate::Context;
use crate::directive::{PATCH_MERGE_KEY, Whole, retained};
use crate::error::{Fault, PatchMergeKeyFault, Reason, Side};
use crate::keys::{DEFAULT_KEY, Index, KeySet, Tuple};
use crate::schema::{Field, Keys, Strategy};
use crate::settle::{Mode, settle_item, without_merge_key};
use crate::value::{Scalar, Value};
use hashbrown::{HashMap, HashSet};
use kube_unions_core::field_path::Segment;

/// An item of a patch.
#[derive(Debug, Clone, Copy)]
struct PatchItem<'a> {
    value: Value<'a>,
    tuple: Tuple<'a>,
    /// The keys that `$patchMergeKey` lists; without it the default key, of which the first match counts.
    keys: KeySet,
    /// Those of them that are null in the patch.
    removed: KeySet,
}

/// The items of a patch by what they say.
#[derive(Debug, Default)]
struct Sorted<'a> {
    merged: Vec<PatchItem<'a>>,
    deleted: Vec<PatchItem<'a>>,
    /// Whether the patch's items replace the list.
    replaces: bool,
    /// Whether the items say by which keys they match.
    listed: bool,
}

/// The list with the patch merged into it, in order.
pub(super) fn merge<'a>(
    context: &Context<'a>,
    field: &'a Field,
    keys: &'a Keys,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Vec<Item<'a>>, Fault> {
    let items = patch.items.unwrap_or_default();
    let literal = live.is_some() && patch.items.is_some() && field.strategy != Strategy::Merge;
    let mut sorted = sort(context, keys, items, literal)?;
    let order = patch.order.map(|order| Order::read(context, keys, order)).transpose()?;
    if let Some(order) = &order {
        order.refuse_other(context, keys, items)?;
    }
    sorted.replaces |= literal;
    let mut list = List::of(Index::new(*context, keys, 0), Vec::new());
    if live.is_none() || sorted.replaces {
        if order.is_some() {
            // What is replaced is put in order, too, as far as errors go.
            List::of_live(context, keys, live.unwrap_or_default())?;
        }
        let mode = if live.is_none() && !sorted.replaces { Mode::Fresh } else { Mode::Literal };
        for item in &sorted.merged {
            if let Some(value) = settle_item(context, item.value, field.items, mode)? {
                list.push(Item::new(value, None), item.tuple);
            }
        }
        if let Some(order) = order {
            order.rank(&mut list);
        }
        return Ok(arrange(list.into_items()));
    }
    list = List::of_live(context, keys, live.unwrap_or_default())?;
    let mut deleted = HashSet::new();
    for item in &sorted.deleted {
        let List { index, items, .. } = &mut list;
        if index.is_large() && !deleted.insert((item.keys, index.only(item.keys, item.tuple))) {
            continue;
        }
        index.all(item.keys, item.tuple, |position| {
            if let Some(place) = items.get_mut(position) {
                *place = None;
            }
        });
    }
    let mut ranks = Vec::with_capacity(sorted.merged.len());
    for item in &sorted.merged {
        ranks.push(list.merge(context, field, keys, *item, sorted.listed)?);
    }
    if sorted.listed {
        list.rename(context, keys)?;
        list.refuse_duplicates(context, keys)?;
    }
    match order {
        Some(order) => order.rank(&mut list),
        None if sorted.listed => list.rank_touched(&ranks),
        None => Order::of_patch(context, keys, &sorted.merged).rank(&mut list),
    }
    Ok(arrange(list.into_items()))
}

/// Reads the items of a patch. Of a list that is replaced all items are taken as they are.
fn sort<'a>(context: &Context<'a>, keys: &'a Keys, items: &'a [Value<'a>], literal: bool) -> Result<Sorted<'a>, Fault> {
    let mut sorted =
        Sorted { listed: items.iter().any(|item| item.get(PATCH_MERGE_KEY).is_some()), ..Sorted::default() };
    for (position, &value) in items.iter().enumerate() {
        let at = |reason: Reason| reason.at([Segment::Index(position)]);
        let directive = if literal { None } else { item_directive(value).map_err(at)? };
        if directive == Some(Whole::Replace) {
            sorted.replaces = true;
            continue;
        }
        let tuple = keys.tuple(value, Side::Patch, context).map_err(at)?;
        let mut item = PatchItem { value, tuple, keys: DEFAULT_KEY, removed: 0 };
        match value.get(PATCH_MERGE_KEY) {
            None if sorted.listed => return Err(at(Reason::PatchMergeKey(PatchMergeKeyFault::Mixed))),
            None => {}
            Some(listed) => {
                item.keys = keys.listed(listed).map_err(at)?;
                for (bit, key) in keys.all().iter().enumerate() {
                    if item.keys & (1 << bit) != 0 && matches!(value.get(&key.name), Some(Value::Null)) {
                        if directive.is_some() {
                            let fault = PatchMergeKeyFault::NullInDelete(key.name.clone());
                            return Err(at(Reason::PatchMergeKey(fault)));
                        }
                        item.removed |= 1 << bit;
                    }
                }
                if let Value::Map(entries) = value {
                    item.value = without_merge_key(context, entries);
                }
            }
        }
        match directive {
            Some(_) => sorted.deleted.push(item),
            None => sorted.merged.push(item),
        }
    }
    Ok(sorted)
}

/// A list in the making.
struct List<'a> {
    /// The keys of all items, those that are gone included.
    index: Index<'a>,
    items: Vec<Option<Item<'a>>>,
    /// The items that the patch merged into or added.
    touched: Vec<usize>,
    /// The keys of the items once the patch was merged, if it may change them.
    renamed: Vec<Option<Tuple<'a>>>,
    /// The item that patch items with these keys merge into, which is the same for all of them: the keys that tell the item,
    /// those that the patch removes, and their values.
    found: HashMap<(KeySet, KeySet, Tuple<'a>), Option<usize>>,
}

impl<'a> List<'a> {
    fn of(index: Index<'a>, items: Vec<Option<Item<'a>>>) -> Self {
        Self { index, items, touched: Vec::new(), renamed: Vec::new(), found: HashMap::new() }
    }

    fn of_live(context: &Context<'a>, keys: &'a Keys, live: &'a [Value<'a>]) -> Result<Self, Fault> {
        let mut index = Index::new(*context, keys, live.len());
        let mut items = Vec::with_capacity(live.len());
        for (position, value) in live.iter().enumerate() {
            let at = |reason: Reason| reason.at([Segment::Index(position)]);
            index.push(keys.tuple(*value, Side::Live, context).map_err(at)?);
            items.push(Some(Item::new(*value, Some(position))));
        }
        Ok(Self::of(index, items))
    }

    fn push(&mut self, item: Item<'a>, tuple: Tuple<'a>) -> usize {
        self.index.push(tuple);
        self.items.push(Some(item));
        self.items.len() - 1
    }

    /// Merges one item of a patch, and says where.
    fn merge(
        &mut self,
        context: &Context<'a>,
        field: &Field,
        keys: &Keys,
        item: PatchItem<'a>,
        listed: bool,
    ) -> Result<usize, Fault> {
        let known = self.index.is_large().then(|| {
            let by = if listed { item.keys & !item.removed } else { DEFAULT_KEY };
            (by, item.removed, self.index.only(by, item.tuple))
        });
        let found = match known.and_then(|known| self.found.get(&known)) {
            Some(found) => *found,
            None => self.find(context, keys, item, listed)?,
        };
        let position = if let Some(position) = found {
            if let Some(Some(found)) = self.items.get_mut(position) {
                found.patches.push(item.value);
            }
            position
        } else {
            let value = settle_item(context, item.value, field.items, Mode::Fresh)?.unwrap_or(Value::EMPTY);
            self.push(Item::new(value, None), item.tuple)
        };
        if let Some(known) = known {
            // By several keys an item is told as it was, by one also those that this patch added.
            self.found.insert(known, if listed { found } else { Some(position) });
        }
        if listed {
            self.touched.push(position);
        }
        Ok(position)
    }

    fn find(
        &mut self,
        context: &Context<'a>,
        keys: &Keys,
        item: PatchItem<'a>,
        listed: bool,
    ) -> Result<Option<usize>, Reason> {
        let Self { index, items, .. } = self;
        let is_there = |position: usize| items.get(position).is_some_and(Option::is_some);
        if !listed {
            return Ok(index.first(DEFAULT_KEY, item.tuple, is_there));
        }
        let has_removed = |position: usize| {
            let value = items.get(position).and_then(Option::as_ref).map(|item| item.value);
            keys.all().iter().enumerate().all(|(bit, key)| {
                item.removed & (1 << bit) == 0
                    || value.and_then(|value| value.get(&key.name)).is_some_and(|value| !matches!(value, Value::Null))
            })
        };
        let (mut first, mut several) = (None, false);
        index.all(item.keys & !item.removed, item.tuple, |position| {
            let was_there = items.get(position).and_then(Option::as_ref).is_some_and(|item| item.live.is_some());
            if was_there && has_removed(position) {
                several |= first.is_some();
                first = first.or(Some(position));
            }
        });
        if several && (item.removed == 0 || context.strict) {
            return Err(Reason::Ambiguous);
        }
        let removed = keys.all().iter().enumerate().find(|(bit, _)| item.removed & (1 << bit) != 0);
        match (first, removed) {
            (None, Some((_, key))) => Err(Reason::PatchMergeKey(PatchMergeKeyFault::NothingToRemove(key.name.clone()))),
            (found, _) => Ok(found),
        }
    }

    /// Finds out which keys the items have in the end: a patch that lists keys may add some and take some away.
    fn rename(&mut self, context: &Context<'a>, keys: &'a Keys) -> Result<(), Fault> {
        for (position, item) in self.items.iter().enumerate() {
            let mut tuple = self.index.tuple(position).filter(|_| item.is_some());
            for patch in item.iter().flat_map(|item| &item.patches) {
                tuple = tuple.map(|tuple| after_patch(context, keys, tuple, *patch)).transpose()?;
            }
            self.renamed.push(tuple);
        }
        Ok(())
    }

    /// The keys of an item in the end.
    fn tuple(&self, position: usize) -> Option<Tuple<'a>> {
        self.renamed.get(position).copied().flatten().or_else(|| self.index.tuple(position))
    }

    /// Refuses a result in which an item that was touched has the keys of another.
    fn refuse_duplicates(&mut self, context: &Context<'a>, keys: &'a Keys) -> Result<(), Fault> {
        let mut after = Index::new(*context, keys, self.items.len());
        let there: Vec<(usize, Tuple<'a>)> =
            self.renamed.iter().enumerate().filter_map(|(position, tuple)| Some((position, (*tuple)?))).collect();
        for (_, tuple) in &there {
            after.push(tuple);
        }
        self.touched.sort_unstable();
        for (at, (position, tuple)) in there.iter().enumerate() {
            let touched = self.touched.binary_search(position).is_ok();
            if touched && after.first(keys.every(), tuple, |other| other != at).is_some() {
                return Err(Reason::Duplicate.into());
            }
        }
        Ok(())
    }

    /// Ranks the items that the patch speaks of, each by the first item of the patch that does.
    fn rank_touched(&mut self, positions: &[usize]) {
        for (rank, position) in positions.iter().enumerate() {
            if let Some(Some(item)) = self.items.get_mut(*position) {
                item.rank.get_or_insert(rank);
            }
        }
    }

    fn into_items(self) -> Vec<Item<'a>> {
        self.items.into_iter().flatten().collect()
    }
}

/// The keys of an item once a patch was merged into it.
fn after_patch<'a>(
    context: &Context<'a>,
    keys: &'a Keys,
    before: Tuple<'a>,
    patch: Value<'a>,
) -> Result<Tuple<'a>, Reason> {
    let said = keys.tuple(patch, Side::Patch, context)?;
    let Value::Map(entries) = patch else { return Ok(before) };
    let retained = retained(entries, &[])?;
    let value = |(position, key): (usize, &'a crate::schema::Key)| -> Option<Scalar<'a>> {
        let before = before.get(position).copied().flatten();
        let said = said.get(position).copied().flatten();
        match patch.get(&key.name) {
            Some(_) => said,
            None if retained.as_ref().is_some_and(|retained| !retained.has(&key.name)) => said,
            None => before,
        }
    };
    Ok(context.arena.alloc_slice_fill_iter(keys.all().iter().enumerate().map(value)))
}

/// An order that is asked for.
struct Order<'a> {
    keys: &'a Keys,
    /// The entries that have the default key alone, which stand for every item that has it.
    loose: Index<'a>,
    /// The places of the loose entries.
    loose_ranks: Vec<usize>,
    /// The entries that have further keys.
    exact: Index<'a>,
    exact_ranks: Vec<usize>,
    /// All entries: whether one has further keys, and the keys.
    entries: Vec<(bool, Tuple<'a>)>,
}

impl<'a> Order<'a> {
    fn empty(context: &Context<'a>, keys: &'a Keys, capacity: usize) -> Self {
        Self {
            keys,
            loose: Index::new(*context, keys, capacity),
            loose_ranks: Vec::new(),
            exact: Index::new(*context, keys, 0),
            exact_ranks: Vec::new(),
            entries: Vec::with_capacity(capacity),
        }
    }

    fn read(context: &Context<'a>, keys: &'a Keys, order: &'a [Value<'a>]) -> Result<Self, Reason> {
        let mut all = Self::empty(context, keys, order.len());
        for entry in order {
            let tuple = keys.tuple(*entry, Side::Order, context)?;
            let exact = keys.all().iter().skip(1).any(|key| entry.get(&key.name).is_some());
            all.push(exact, tuple);
        }
        Ok(all)
    }

    /// The order of the patch itself.
    fn of_patch(context: &Context<'a>, keys: &'a Keys, items: &[PatchItem<'a>]) -> Self {
        let mut all = Self::empty(context, keys, items.len());
        for item in items {
            all.push(false, item.tuple);
        }
        all
    }

    fn push(&mut self, exact: bool, tuple: Tuple<'a>) {
        let rank = self.entries.len();
        self.entries.push((exact, tuple));
        if exact {
            self.exact.push(tuple);
            self.exact_ranks.push(rank);
        } else {
            self.loose.push(tuple);
            self.loose_ranks.push(rank);
        }
    }

    fn refuse_other(&self, context: &Context<'a>, keys: &'a Keys, items: &'a [Value<'a>]) -> Result<(), Fault> {
        let mut wanted = Vec::with_capacity(items.len());
        for item in items {
            match item_directive(*item)? {
                Some(Whole::Delete) => {}
                Some(Whole::Replace) => wanted.push((true, &[] as Tuple<'a>)),
                None => wanted.push((false, keys.tuple(*item, Side::Patch, context)?)),
            }
        }
        refuse_other_order(wanted.into_iter(), self.entries.iter(), |(_, item), (exact, entry)| {
            if *exact { item == *entry } else { item.first() == entry.first() }
        })?;
        Ok(())
    }

    /// Ranks every item that the order speaks of.
    fn rank(mut self, list: &mut List<'a>) {
        let every = self.keys.every();
        let single = self.keys.is_single();
        for position in 0..list.items.len() {
            let Some(tuple) = list.tuple(position) else { continue };
            let loose = self.loose.first(DEFAULT_KEY, tuple, |_| true).and_then(|at| self.loose_ranks.get(at));
            let exact = self.exact.first(every, tuple, |_| true).and_then(|at| self.exact_ranks.get(at));
            let rank = exact.or(loose).copied();
            // With one key all items of that key stand where the first of them does.
            let first = if single
                && list.items.get(position).is_some_and(|item| item.as_ref().is_some_and(|item| item.live.is_some()))
            {
                list.index.first(DEFAULT_KEY, tuple, |_| true)
            } else {
                None
            };
            if let Some(Some(item)) = list.items.get_mut(position) {
                item.rank = rank;
                item.live = first.or(item.live);
            }
        }
    }
}
