//! Lists that merge, compared.

use super::pairs::{Pair, Pairs};
use super::{Making, Next, Outcome, item_level};
use crate::Context;
use crate::apply::Step;
use crate::apply::list::{Elements, elements};
use crate::directive::{PATCH, PATCH_MERGE_KEY};
use crate::error::{Fault, Reason};
use crate::schema::{Field, Keys};
use crate::value::{Entry, Scalar, Value};
use hashbrown::{HashMap, HashSet};
use kube_unions_core::field_path::Segment;

/// The list before, in the cluster, and as it is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lists<'a> {
    pub(super) before: Option<&'a [Value<'a>]>,
    /// `None` where the live object has no such list, so that all is to be added.
    pub(super) live: Option<&'a [Value<'a>]>,
    pub(super) after: &'a [Value<'a>],
}

/// What comparing lists came to.
pub(super) enum Compared<'a> {
    Done(Outcome<'a>),
    /// The whole list is to be in the patch.
    Whole,
    /// The items are to be compared.
    Keyed(Box<KeyedLevel<'a>>),
}

impl<'a> Lists<'a> {
    pub(super) fn compare(
        self,
        context: &Context<'a>,
        field: &'a Field,
        making: Making,
    ) -> Result<Compared<'a>, Fault> {
        let before = self.before.unwrap_or_default();
        let live = self.live.unwrap_or_default();
        // To an empty list everything is added, and there is no order to keep.
        let adds_all = live.is_empty();
        let several_keys = field.keys.as_ref().is_some_and(|keys| !keys.is_single());
        let merges = self.live.is_some() && several_keys && !self.after.is_empty();
        if before.is_empty() && adds_all && !merges {
            let nothing = Outcome::List { items: None, delete: None, order: None, deletes: false };
            if self.live.is_some()
                && let Some(keys) = &field.keys
            {
                Pairs::refuse_twins(context, keys, self.after)?;
            }
            let stays_empty = self.live.is_some() && self.after.is_empty();
            return Ok(if stays_empty { Compared::Done(nothing) } else { Compared::Whole });
        }
        let mut kinds = None;
        for list in [before, live].into_iter().filter(|list| merges || !list.is_empty()) {
            kinds = kinds.or(elements([list, self.after])?);
        }
        if kinds == Some(Elements::Maps) {
            let Some(keys) = &field.keys else { return Err(Reason::NoKeyDeclared.into()) };
            let pairs = Pairs::find(context, keys, self.before, self.live, self.after)?;
            return Ok(Compared::Keyed(Box::new(KeyedLevel {
                making,
                field,
                keys,
                lists: self,
                pairs,
                next: 0,
                items: Vec::new(),
                deletes: false,
            })));
        }
        self.scalars(context, making).map(Compared::Done)
    }

    fn scalars(self, context: &Context<'a>, making: Making) -> Result<Outcome<'a>, Fault> {
        let scalar = |value: &Value<'a>| value.scalar(context.arena).unwrap_or(Scalar::Null);
        let (before, live) = (self.before.unwrap_or_default(), self.live.unwrap_or_default());
        let mut gone: Vec<Value<'a>> = Vec::new();
        if !before.is_empty() {
            let kept: HashSet<Scalar<'a>> = self.after.iter().map(scalar).collect();
            let mut seen = HashSet::new();
            gone.extend(before.iter().filter(|item| !kept.contains(&scalar(item)) && seen.insert(scalar(item))));
            gone.sort_by_key(|item| item.sort_text());
        }
        let items = if live.is_empty() {
            let stays_empty = self.live.is_some() && self.after.is_empty();
            if stays_empty { None } else { making.whole(context, Value::List(self.after))? }
        } else {
            let mut there: HashMap<Scalar<'a>, usize> = HashMap::with_capacity(live.len());
            for item in live {
                *there.entry(scalar(item)).or_default() += 1;
            }
            let is_new = |item: &&Value<'a>| match there.get_mut(&scalar(item)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            let new: Vec<Value<'a>> = self.after.iter().filter(is_new).copied().collect();
            (!new.is_empty()).then(|| context.list(&new))
        };
        let changed = !live.is_empty() && !Value::List(live).same(Value::List(self.after));
        let deletes = !gone.is_empty();
        let order = making.order && !self.after.is_empty() && (deletes || changed);
        Ok(Outcome::List {
            items,
            delete: deletes.then(|| context.list(&gone)),
            order: order.then_some(Value::List(self.after)),
            deletes,
        })
    }
}

/// Lists of objects that are compared item by item.
pub(super) struct KeyedLevel<'a> {
    making: Making,
    field: &'a Field,
    keys: &'a Keys,
    lists: Lists<'a>,
    pairs: Pairs<'a>,
    next: usize,
    /// What the patch says of items so far.
    items: Vec<Value<'a>>,
    deletes: bool,
}

impl<'a> KeyedLevel<'a> {
    pub(super) fn step(&mut self, context: &Context<'a>, done: Option<&Outcome<'a>>) -> Result<Next<'a>, Fault> {
        if let Some(&Outcome::Map { patch, deletes }) = done {
            self.deletes |= deletes;
            self.take(context, patch);
        }
        while let Some(&after) = self.lists.after.get(self.next) {
            let pair = self.pairs.of.get(self.next).copied().unwrap_or_default();
            self.next += 1;
            let at = |list: Option<&'a [Value<'a>]>, position: Option<usize>| list?.get(position?).copied();
            let (before, live) = (at(self.lists.before, pair.before), at(self.lists.live, pair.live));
            if live.is_none() && before.is_none() {
                if let Some(item) =
                    self.making.whole(context, after).map_err(|fault| fault.inside(Segment::Index(self.next - 1)))?
                {
                    self.take(context, Some(item));
                }
                continue;
            }
            let level = item_level(self.making, self.field, before, live, after);
            return Ok(Next::Into(Step::Item(pair.live.unwrap_or(self.next - 1)), level));
        }
        Ok(Next::Done(self.finish(context)))
    }

    /// Takes what the patch says of the item compared last, and adds what tells which item it is.
    fn take(&mut self, context: &Context<'a>, patch: Option<Value<'a>>) {
        let position = self.next.wrapping_sub(1);
        let pair = self.pairs.of.get(position).copied().unwrap_or_default();
        let (Some(after), Some(Value::Map(said))) = (self.lists.after.get(position), patch) else { return };
        let mut item: Vec<Entry<'a>> = Vec::with_capacity(said.len() + 2);
        if !self.keys.is_single() {
            item.push((PATCH_MERGE_KEY, self.names(context, pair)));
        }
        item.extend(present(self.keys, *after).filter(|(name, _)| said.iter().all(|(key, _)| key != name)));
        let keys = item.len();
        for (key, value) in said {
            // A key that the schema fills in is the same whether it is there or not.
            let filled_in = matches!(value, Value::Null)
                && self.keys.all().iter().any(|merge_key| *merge_key.name == **key && merge_key.default.is_some());
            if !filled_in {
                item.push((key, *value));
            }
        }
        let only_keys =
            item.len() == keys && !said.is_empty() && said.iter().all(|(_, value)| matches!(value, Value::Null));
        if !only_keys {
            self.items.push(context.map(&item));
        }
    }

    /// The keys that tell which item of the live list is meant: all, but those that are being added.
    fn names(&self, context: &Context<'a>, pair: Pair) -> Value<'a> {
        let listed = self.keys.all().iter().enumerate().filter(|(bit, _)| pair.added & (1 << bit) == 0);
        let names: Vec<Value<'a>> = listed.map(|(_, key)| Value::String(&key.name)).collect();
        context.list(&names)
    }

    fn finish(&mut self, context: &Context<'a>) -> Outcome<'a> {
        let changes = !self.items.is_empty();
        let mut gone = std::mem::take(&mut self.pairs.gone);
        gone.sort_by(|left, right| {
            let texts = |item: &Value<'a>| {
                let text = |name: &str| item.get(name).map_or("", Value::sort_text);
                self.keys.all().iter().map(|key| text(&key.name)).collect::<Vec<_>>()
            };
            texts(left).cmp(&texts(right))
        });
        for item in gone {
            self.deletes = true;
            let mut delete: Vec<Entry<'a>> = Vec::with_capacity(3);
            if !self.keys.is_single() {
                delete.push((PATCH_MERGE_KEY, self.names(context, Pair::default())));
            }
            delete.push((PATCH, Value::String("delete")));
            delete.extend(present(self.keys, item));
            self.items.push(context.map(&delete));
        }
        let adds_all = self.lists.live.is_none_or(<[_]>::is_empty);
        let differs = !adds_all && (changes || self.pairs.reordered);
        let order = self.making.order && !self.lists.after.is_empty() && (self.deletes || differs);
        let order = order.then(|| {
            let entry = |item: &Value<'a>| context.map(&present(self.keys, *item).collect::<Vec<_>>());
            context.list(&self.lists.after.iter().map(entry).collect::<Vec<_>>())
        });
        let whole = self.lists.live.is_none();
        let items = (whole || !self.items.is_empty()).then(|| context.list(&self.items));
        Outcome::List { items, delete: None, order, deletes: self.deletes }
    }
}

/// The merge keys that an item has.
fn present<'a>(keys: &'a Keys, item: Value<'a>) -> impl Iterator<Item = Entry<'a>> {
    let value =
        move |name: &'a str| item.get(name).filter(|value| !matches!(value, Value::Null)).map(|value| (name, value));
    keys.all().iter().filter_map(move |key| value(&key.name))
}
