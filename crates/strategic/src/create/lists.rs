//! Compares lists that merge: sets of scalars, and lists of objects item by item. `repeated` has lists with one key twice.

use super::options::CreateOptions;
use super::pairs::{ItemPair, ItemPairs};
use super::sides::CreateSides;
use crate::context::Context;
use crate::directive::{PATCH, PATCH_MERGE_KEY};
use crate::elements::{Elements, elements};
use crate::error::{BrokenAt, BrokenRule};
use crate::schema::{FieldSchema, MergeKeys};
use crate::value::{MapEntry, Scalar, Value};
use hashbrown::{HashMap, HashSet};
use kube_unions_core::field_path::Segment;

/// The change of a list that merges.
#[derive(Debug, Default)]
pub(super) struct ListChange<'a> {
    pub(super) items: Option<Value<'a>>,
    /// `$deleteFromPrimitiveList`
    pub(super) delete: Option<Value<'a>>,
    /// `$setElementOrder`
    pub(super) order: Option<Value<'a>>,
}

/// The result of comparing lists.
pub(super) enum ComparedLists<'a> {
    Changed(ListChange<'a>),
    /// The patch contains the whole list.
    Whole,
}

/// Compares an item of the modified list with the items that it is paired with: the original one and the current one.
pub(super) type CompareItem<'c, 'a> =
    dyn FnMut(CreateSides<'a, MapEntry<'a>>) -> Result<Option<Value<'a>>, BrokenAt> + 'c;

impl<'a> CreateSides<'a, Value<'a>> {
    pub(super) fn compare(
        self,
        context: &Context<'a>,
        field: &'a FieldSchema,
        options: CreateOptions,
        compare_item: &mut CompareItem<'_, 'a>,
    ) -> Result<ComparedLists<'a>, BrokenAt> {
        let original = self.original.unwrap_or_default();
        let current = self.current;
        if let Some(keys) = &field.keys
            && keys.published().is_single()
            && self.repeats(context, keys.published())
        {
            return self.repeated(context, field, keys, options, compare_item);
        }
        let keys = field.keys.as_ref().map(MergeKeys::published);
        let several_keys = keys.is_some_and(|keys| !keys.is_single());
        // With several keys, even the items of an empty list must say by which keys they match.
        let merges = several_keys && !self.modified.is_empty();
        if original.is_empty() && current.is_empty() && !merges {
            refuse_repeated_scalar(context, self.modified)?;
            let stays_empty = self.modified.is_empty();
            return Ok(if stays_empty { ComparedLists::Changed(ListChange::default()) } else { ComparedLists::Whole });
        }
        let mut kind = None;
        for list in [original, current].into_iter().filter(|list| merges || !list.is_empty()) {
            kind = kind.or(elements(list, self.modified)?);
        }
        if kind != Some(Elements::Maps) {
            return self.scalars(context, options).map(ComparedLists::Changed);
        }
        let Some(keys) = keys else { return Err(BrokenRule::NoKeyDeclared.into()) };
        let pairs = ItemPairs::find(context, keys, self)?;
        self.keyed(context, keys, pairs, options, compare_item).map(ComparedLists::Changed)
    }

    /// Compares lists of objects item by item.
    pub(super) fn keyed(
        self,
        context: &Context<'a>,
        keys: &'a MergeKeys,
        pairs: ItemPairs<'a>,
        options: CreateOptions,
        compare_item: &mut CompareItem<'_, 'a>,
    ) -> Result<ListChange<'a>, BrokenAt> {
        let lists = KeyedLists { options, keys, lists: self, pairs, items: Vec::new(), deletes: false };
        lists.compare(context, compare_item)
    }

    fn scalars(self, context: &Context<'a>, options: CreateOptions) -> Result<ListChange<'a>, BrokenAt> {
        let scalar = |value: &Value<'a>| value.scalar(context.arena).unwrap_or(Scalar::Null);
        let (original, current) = (self.original.unwrap_or_default(), self.current);
        let changed = !current.is_empty() && !Value::List(current).same(Value::List(self.modified));
        if changed {
            refuse_repeated_scalar(context, self.modified)?;
        }
        let mut removed: Vec<Value<'a>> = Vec::new();
        if !original.is_empty() {
            let kept: HashSet<Scalar<'a>> = self.modified.iter().map(scalar).collect();
            let mut seen = HashSet::new();
            let is_removed = |item: &&Value<'a>| !kept.contains(&scalar(item)) && seen.insert(scalar(item));
            removed.extend(original.iter().filter(is_removed));
            removed.sort_by_key(|item| item.sort_text());
        }
        let items = if current.is_empty() {
            if self.modified.is_empty() { None } else { options.whole(context, Value::List(self.modified))? }
        } else {
            let mut counts: HashMap<Scalar<'a>, usize> = HashMap::with_capacity(current.len());
            for item in current {
                *counts.entry(scalar(item)).or_default() += 1;
            }
            // Adding a value that is twice in the list makes the API server keep it once.
            let is_added = |item: &&Value<'a>| changed && counts.get(&scalar(item)).is_none_or(|count| *count > 1);
            let added: Vec<Value<'a>> = self.modified.iter().filter(is_added).copied().collect();
            (!added.is_empty()).then(|| context.list(&added))
        };
        let deletes = !removed.is_empty();
        let order = options.order && !self.modified.is_empty() && (deletes || changed);
        Ok(ListChange {
            items,
            delete: deletes.then(|| context.list(&removed)),
            order: order.then_some(Value::List(self.modified)),
        })
    }
}

/// Lists of objects whose items are being compared.
struct KeyedLists<'a> {
    options: CreateOptions,
    keys: &'a MergeKeys,
    lists: CreateSides<'a, Value<'a>>,
    pairs: ItemPairs<'a>,
    /// The items of the patch.
    items: Vec<Value<'a>>,
    deletes: bool,
}

impl<'a> KeyedLists<'a> {
    fn compare(
        mut self,
        context: &Context<'a>,
        compare_item: &mut CompareItem<'_, 'a>,
    ) -> Result<ListChange<'a>, BrokenAt> {
        for (position, &modified) in self.lists.modified.iter().enumerate() {
            let pair = self.pair(position);
            let item = |list: Option<&'a [Value<'a>]>, position: Option<usize>| list?.get(position?).copied();
            let original = item(self.lists.original, pair.original);
            let current = item(Some(self.lists.current), pair.current).and_then(Value::entries);
            // An item that the current list lacks is added as it is: an API server stores directives and nulls in a new item.
            let (step, patch) = if let Some(current) = current {
                let original = original.and_then(Value::entries);
                let sides = CreateSides { original, current, modified: modified.entries().unwrap_or_default() };
                (pair.current.unwrap_or(position), compare_item(sides))
            } else {
                (position, self.options.whole(context, modified))
            };
            if let Some(patch) = patch.map_err(|broken| broken.inside(Segment::Index(step)))? {
                self.add(context, position, modified, patch);
            }
        }
        Ok(self.finish(context))
    }

    fn pair(&self, position: usize) -> ItemPair {
        self.pairs.of.get(position).copied().unwrap_or_default()
    }

    /// Adds the patch of an item, with the keys that identify the item.
    fn add(&mut self, context: &Context<'a>, position: usize, modified: Value<'a>, patch: Value<'a>) {
        let Value::Map(patch) = patch else { return };
        let mut item: Vec<MapEntry<'a>> = Vec::with_capacity(patch.len() + 2);
        if !self.keys.is_single() {
            item.push((PATCH_MERGE_KEY, self.matched_keys(context, self.pair(position))));
        }
        item.extend(present_keys(self.keys, modified).filter(|(name, _)| patch.iter().all(|(key, _)| key != name)));
        let identity = item.len();
        // A missing key with a default has the value of the default, so there is nothing to remove.
        let is_defaulted =
            |key: &str| self.keys.all().iter().any(|merge_key| *merge_key.name == *key && merge_key.default.is_some());
        item.extend(patch.iter().filter(|(key, value)| !(matches!(value, Value::Null) && is_defaulted(key))));
        let removes_only_defaults =
            item.len() == identity && !patch.is_empty() && patch.iter().all(|(_, value)| matches!(value, Value::Null));
        if !removes_only_defaults {
            self.items.push(context.map(&item));
        }
    }

    /// Returns the `$patchMergeKey` of an item: all keys but the ones that the patch adds.
    fn matched_keys(&self, context: &Context<'a>, pair: ItemPair) -> Value<'a> {
        let matched = self.keys.all().iter().enumerate().filter(|(bit, _)| pair.added & (1 << bit) == 0);
        let names: Vec<Value<'a>> = matched.map(|(_, key)| Value::String(&key.name)).collect();
        context.list(&names)
    }

    fn finish(&mut self, context: &Context<'a>) -> ListChange<'a> {
        let changes = !self.items.is_empty();
        let mut deleted = std::mem::take(&mut self.pairs.deleted);
        deleted.sort_by_cached_key(|item| {
            let text = |name: &str| item.get(name).map_or("", Value::sort_text);
            self.keys.all().iter().map(|key| text(&key.name)).collect::<Vec<_>>()
        });
        for item in deleted {
            self.deletes = true;
            let mut delete: Vec<MapEntry<'a>> = Vec::with_capacity(3);
            if !self.keys.is_single() {
                delete.push((PATCH_MERGE_KEY, self.matched_keys(context, ItemPair::default())));
            }
            delete.push((PATCH, Value::String("delete")));
            delete.extend(present_keys(self.keys, item));
            self.items.push(context.map(&delete));
        }
        let adds_all = self.lists.current.is_empty();
        let differs = !adds_all && (changes || self.pairs.reordered);
        let order = self.options.order && !self.lists.modified.is_empty() && (self.deletes || differs);
        let order = order.then(|| {
            let entry = |item: &Value<'a>| context.map(&present_keys(self.keys, *item).collect::<Vec<_>>());
            context.list(&self.lists.modified.iter().map(entry).collect::<Vec<_>>())
        });
        let items = (!self.items.is_empty()).then(|| context.list(&self.items));
        ListChange { items, delete: None, order }
    }
}

fn present_keys<'a>(keys: &'a MergeKeys, item: Value<'a>) -> impl Iterator<Item = MapEntry<'a>> {
    let value = move |name: &'a str| Some((name, item.get(name).filter(|value| !matches!(value, Value::Null))?));
    keys.all().iter().filter_map(move |key| value(&key.name))
}

/// Refuses a set with a value twice: merging a patch keeps one of them.
fn refuse_repeated_scalar<'a>(context: &Context<'a>, items: &'a [Value<'a>]) -> Result<(), BrokenAt> {
    let mut seen = HashSet::with_capacity(items.len());
    match items.iter().position(|item| {
        item.scalar(context.arena).is_some_and(|scalar| scalar != Scalar::Null && !seen.insert(scalar))
    }) {
        Some(position) => Err(BrokenRule::RepeatedValue.at(Segment::Index(position))),
        None => Ok(()),
    }
}
