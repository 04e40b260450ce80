//! One patch that does what two do, one after the other.
//!
//! The walk is that of applying, with the first patch as the object. What one patch can't say is refused rather than lost.

use super::Context;
use super::apply::{FieldPatch, Level, Opened, Out, Pending, Step, Work, field_patches, run};
use super::directive::{
    DELETE_FROM_PRIMITIVE_LIST, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER, Whole, list, retained, whole,
};
use super::error::{Fault, Reason, Side};
use super::keys::{DEFAULT_KEY, Index};
use super::list::{Elements, elements, item_directive};
use super::meta::{Field, Keys, NodeId, Strategy};
use super::settle::{Mode, settle};
use super::value::{Entry, Scalar, Value, ValueKind};
use hashbrown::{HashMap, HashSet};

/// Joins the patches of one object.
pub(super) fn open<'a>(
    context: &Context<'a>,
    first: &'a [Entry<'a>],
    second: &'a [Entry<'a>],
    node: NodeId,
) -> Result<Opened<'a>, Fault> {
    if whole(second)?.is_some() {
        return Ok(Opened::Done(Value::Map(second)));
    }
    if let Some(directive) = whole(first)? {
        let stored: Vec<Entry<'a>> = match directive {
            Whole::Replace => first.iter().copied().filter(|(key, _)| *key != PATCH).collect(),
            Whole::Delete => Vec::new(),
        };
        let stored = context.arena.alloc_slice_copy(&stored);
        let applied = run(&Context { joins: false, ..*context }, stored, second, node)?;
        return Ok(Opened::Done(replacing(context, applied)));
    }
    let (kept, cleared) = (retained(first, &[])?, retained(second, &[])?);
    let mut joined = Joined { context, node, out: Vec::with_capacity(first.len() + second.len()), pending: Vec::new() };
    let keys: Option<Vec<&'a str>> = match (&kept, &cleared) {
        (None, None) => None,
        (None, Some(cleared)) => Some(cleared.keys().to_vec()),
        (Some(kept), Some(cleared)) => {
            let set: HashSet<&str> =
                second.iter().filter(|(_, value)| !matches!(value, Value::Null)).map(|(key, _)| *key).collect();
            Some(cleared.keys().iter().copied().filter(|key| kept.has(key) || set.contains(key)).collect())
        }
        (Some(kept), None) => {
            let own = field_patches(context, second, node)?;
            let own =
                own.iter().filter(|(_, said)| !matches!(said.value, None | Some(Value::Null))).map(|(key, _)| *key);
            let mut keys: Vec<&'a str> = kept.keys().iter().copied().chain(own).collect();
            keys.sort_unstable();
            keys.dedup();
            Some(keys)
        }
    };
    if let Some(keys) = keys {
        let keys: Vec<Value<'a>> = keys.into_iter().map(Value::String).collect();
        joined.out.push((RETAIN_KEYS, context.list(&keys)));
    }
    let mut later: Vec<(&'a str, Option<FieldPatch<'a>>)> =
        field_patches(context, second, node)?.into_iter().map(|(key, said)| (key, Some(said))).collect();
    let positions: HashMap<&'a str, usize> = later.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect();
    for (key, before) in field_patches(context, first, node)? {
        if cleared.as_ref().is_some_and(|cleared| !cleared.has(key)) {
            continue;
        }
        let after = positions.get(key).and_then(|at| later.get_mut(*at)).and_then(|(_, said)| said.take());
        joined.field(key, before, after).map_err(|fault| fault.inside(context.meta.step(node, key)))?;
    }
    for (key, said) in later {
        let Some(said) = said else { continue };
        if kept.as_ref().is_none_or(|kept| kept.has(key)) {
            joined.put(key, said);
        } else {
            joined.anew(key, said).map_err(|fault| fault.inside(context.meta.step(node, key)))?;
        }
    }
    joined.pending.reverse();
    Ok(Opened::Level(Level { out: Out::Map(joined.out), pending: joined.pending }))
}

/// An object that replaces whatever is there.
fn replacing<'a>(context: &Context<'a>, value: Value<'a>) -> Value<'a> {
    let Value::Map(entries) = value else { return value };
    let all: Vec<Entry<'a>> =
        std::iter::once((PATCH, Value::String("replace"))).chain(entries.iter().copied()).collect();
    context.map(&all)
}

struct Joined<'c, 'a> {
    context: &'c Context<'a>,
    node: NodeId,
    out: Vec<Entry<'a>>,
    pending: Vec<Pending<'a>>,
}

impl<'a> Joined<'_, 'a> {
    fn put(&mut self, key: &'a str, said: FieldPatch<'a>) {
        let named = |directive: &str| &*self.context.arena.alloc_str(&format!("{directive}/{key}"));
        self.out.extend(said.order.map(|order| (named(SET_ELEMENT_ORDER), order)));
        self.out.extend(said.delete.map(|delete| (named(DELETE_FROM_PRIMITIVE_LIST), delete)));
        self.out.extend(said.value.map(|value| (key, value)));
    }

    /// What the second patch says of a field that the first one clears by not retaining it. The joined patch retains the field, so
    /// that it has to say itself that nothing of before is left.
    fn anew(&mut self, key: &'a str, said: FieldPatch<'a>) -> Result<(), Fault> {
        let merges = || self.context.meta.known(self.node, key).is_some_and(|field| field.strategy == Strategy::Merge);
        match said.value {
            Some(value @ Value::Map(_)) => {
                let settled = settle(self.context, value, None, Mode::Fresh)?;
                let value = settled.map_or(Value::Null, |settled| replacing(self.context, settled));
                self.put(key, FieldPatch { value: Some(value), ..FieldPatch::default() });
            }
            Some(Value::List(_)) if merges() => return Err(Reason::NotOnePatch.into()),
            None => return Err(Reason::NotOnePatch.into()),
            Some(_) => self.put(key, said),
        }
        Ok(())
    }

    fn pend(&mut self, key: &'a str, live: Value<'a>, work: Work<'a>) {
        let slot = self.out.len();
        self.out.push((key, Value::Null));
        self.pending.push(Pending { slot, step: Step::Field(self.node, key), live, work });
    }

    /// Joins what both say of one field.
    fn field(&mut self, key: &'a str, first: FieldPatch<'a>, second: Option<FieldPatch<'a>>) -> Result<(), Fault> {
        let Some(second) = second else {
            self.put(key, first);
            return Ok(());
        };
        let own = |fault: Fault| Fault { below: Vec::new(), reason: fault.reason };
        let is_list = |said: &FieldPatch<'a>| {
            matches!(said.value, Some(Value::List(_)) | None)
                && (said.value.is_some() || said.order.is_some() || said.delete.is_some())
        };
        match (first.value, second.value) {
            (_, Some(Value::Null)) => self.put(key, FieldPatch { value: Some(Value::Null), ..FieldPatch::default() }),
            (Some(before @ Value::Map(_)), Some(after @ Value::Map(_))) => {
                let field = self.context.meta.field(self.node, key, ValueKind::Object).map_err(own)?;
                if field.strategy == Strategy::Replace {
                    self.put(key, second);
                } else {
                    self.pend(key, before, Work::Map(field.object, vec![after]));
                }
            }
            (_, Some(Value::Map(_))) if first.value.is_some() => self.anew(key, second)?,
            _ if is_list(&first) && is_list(&second) => {
                let field = self.context.meta.field(self.node, key, ValueKind::List).map_err(own)?;
                self.lists(key, field, first, second)?;
            }
            (_, Some(Value::List(_))) => {
                let merges =
                    self.context.meta.known(self.node, key).is_some_and(|field| field.strategy == Strategy::Merge);
                if merges {
                    return Err(Reason::NotOnePatch.into());
                }
                self.put(key, second);
            }
            (_, Some(_)) => self.put(key, second),
            (_, None) => return Err(Reason::NotOnePatch.into()),
        }
        Ok(())
    }

    fn lists(
        &mut self,
        key: &'a str,
        field: &'a Field,
        first: FieldPatch<'a>,
        second: FieldPatch<'a>,
    ) -> Result<(), Fault> {
        if field.strategy != Strategy::Merge {
            return match (second.value, first.order.or(second.order)) {
                (Some(_), None) => {
                    self.put(key, second);
                    Ok(())
                }
                _ => Err(Reason::NotOnePatch.into()),
            };
        }
        let order = match (first.order, second.order) {
            (Some(one), Some(other)) if !one.same(other) => return Err(Reason::OrdersDiffer.into()),
            (one, other) => one.or(other),
        };
        let items = |value: Option<Value<'a>>| if let Some(Value::List(items)) = value { items } else { &[] };
        let (before, after) = (items(first.value), items(second.value));
        if elements([before, after])? == Some(Elements::Maps) {
            let Some(keys) = &field.keys else { return Err(Reason::NoKeyDeclared.into()) };
            self.put(key, FieldPatch { value: None, order, delete: None });
            let level = self.keyed(field, keys, order, before, after)?;
            self.pend(key, Value::Null, Work::Ready(Some(Box::new(Opened::Level(level)))));
            return Ok(());
        }
        let arena = self.context.arena;
        let set =
            |items: &[Value<'a>]| items.iter().filter_map(|item| item.scalar(arena)).collect::<HashSet<Scalar<'a>>>();
        let gone = |said: Option<Value<'a>>| said.map_or(Ok(&[][..]), |said| list(DELETE_FROM_PRIMITIVE_LIST, said));
        let (gone_before, gone_after) = (gone(first.delete)?, gone(second.delete)?);
        let (added, dropped) = (set(after), set(gone_after));
        let in_set = |set: &HashSet<Scalar<'a>>, item: &Value<'a>| {
            item.scalar(arena).is_some_and(|scalar| set.contains(&scalar))
        };
        let stays = before.iter().filter(|item| !in_set(&added, item) && !in_set(&dropped, item));
        let values: Vec<Value<'a>> = after.iter().chain(stays).copied().collect();
        let still = gone_before.iter().filter(|item| !in_set(&added, item) && !in_set(&dropped, item));
        let gone: Vec<Value<'a>> = still.chain(gone_after).copied().collect();
        let values = match order {
            None => values,
            Some(order) => {
                let order = list(SET_ELEMENT_ORDER, order)?;
                let mut ranks = HashMap::with_capacity(order.len());
                for (rank, entry) in order.iter().enumerate() {
                    ranks.entry(entry.scalar(arena)).or_insert(rank);
                }
                in_order(values, |value| Ok(ranks.get(&value.scalar(arena)).copied()))?
            }
        };
        let said = first.value.is_some() || second.value.is_some();
        let delete = (!gone.is_empty()).then(|| self.context.list(&gone));
        self.put(key, FieldPatch { value: said.then(|| self.context.list(&values)), order, delete });
        Ok(())
    }

    fn keyed(
        &self,
        field: &'a Field,
        keys: &'a Keys,
        order: Option<Value<'a>>,
        first: &'a [Value<'a>],
        second: &'a [Value<'a>],
    ) -> Result<Level<'a>, Fault> {
        let context = self.context;
        let directives =
            |items: &[Value<'a>]| items.iter().map(|item| item_directive(*item)).collect::<Result<Vec<_>, _>>();
        let (before, after) = (directives(first)?, directives(second)?);
        if after.contains(&Some(Whole::Replace)) {
            return Ok(Level { out: Out::List(second.to_vec()), pending: Vec::new() });
        }
        if before.contains(&Some(Whole::Replace)) {
            return Err(Reason::NotOnePatch.into());
        }
        let mut index = Index::new(*context, keys, first.len());
        for item in first {
            index.push(keys.tuple(*item, Side::Patch, context)?);
        }
        let mut taken = vec![false; first.len()];
        let (mut deletes, mut gone) = (Vec::new(), HashSet::new());
        // The items, each with what is to be merged into it.
        let mut items: Vec<(Value<'a>, Option<(usize, Value<'a>)>)> = Vec::with_capacity(first.len() + second.len());
        // As in applying, what is deleted is so before anything is merged.
        for (item, _) in second.iter().zip(&after).filter(|(_, directive)| directive.is_some()) {
            deletes.push(*item);
            let tuple = keys.tuple(*item, Side::Patch, context)?;
            if index.is_large() && !gone.insert(tuple) {
                continue;
            }
            index.all(keys.every(), tuple, |at| {
                if let Some(taken) = taken.get_mut(at) {
                    *taken = true;
                }
            });
        }
        for (item, _) in second.iter().zip(&after).filter(|(_, directive)| directive.is_none()) {
            let tuple = keys.tuple(*item, Side::Patch, context)?;
            let merges = |at: usize| matches!(before.get(at), Some(None)) && taken.get(at) == Some(&false);
            let found = index.first_left(keys.every(), tuple, merges);
            if let Some((at, old)) = found.and_then(|at| Some((at, *first.get(at)?))) {
                if let Some(taken) = taken.get_mut(at) {
                    *taken = true;
                }
                items.push((old, Some((at, *item))));
            } else {
                items.push((*item, None));
            }
        }
        for ((item, directive), taken) in first.iter().zip(before).zip(taken) {
            match (taken, directive) {
                (true, _) => {}
                (false, None) => items.push((*item, None)),
                (false, Some(_)) => deletes.push(*item),
            }
        }
        if let Some(order) = order {
            let mut entries = Index::new(*context, keys, 0);
            for entry in list(SET_ELEMENT_ORDER, order)? {
                entries.push(keys.tuple(*entry, Side::Order, context)?);
            }
            items = in_order(items, |(item, _)| {
                let tuple = keys.tuple(*item, Side::Patch, context)?;
                let exact = entries.first(keys.every(), tuple, |_| true);
                Ok(exact.or_else(|| entries.first(DEFAULT_KEY, tuple, |_| true)))
            })?;
        }
        let mut pending = Vec::new();
        for (slot, (live, merged)) in items.iter().enumerate() {
            if let Some((at, patch)) = merged {
                let work = Work::Map(field.items, vec![*patch]);
                pending.push(Pending { slot, step: Step::Item(*at), live: *live, work });
            }
        }
        pending.reverse();
        Ok(Level { out: Out::List(items.into_iter().map(|(item, _)| item).chain(deletes).collect()), pending })
    }
}

/// Puts what a patch adds in the order that it has beside it, which must speak of all.
fn in_order<T>(items: Vec<T>, mut rank: impl FnMut(&T) -> Result<Option<usize>, Reason>) -> Result<Vec<T>, Reason> {
    let ranked = |item: T| rank(&item)?.map(|rank| (rank, item)).ok_or(Reason::OrdersDiffer);
    let mut items = items.into_iter().map(ranked).collect::<Result<Vec<_>, _>>()?;
    items.sort_by_key(|(rank, _)| *rank);
    Ok(items.into_iter().map(|(_, item)| item).collect())
}
