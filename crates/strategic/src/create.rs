//! Creates the patch that makes one object of another.
//!
//! Two-way and three-way are one walk. What the user took away is what is in `before` and not in `after`; what is to be changed or
//! added is where `after` is not `live`. For a two-way patch the first two are one and the same object.

pub(super) mod conflicts;
mod lists;
mod pairs;

use crate::Context;
use crate::apply::Step;
use crate::directive::{PATCH, RETAIN_KEYS};
use crate::error::{Fault, PatchError, Reason};
use crate::schema::{Field, NodeId, Strategy};
use crate::settle::{Mode, settle};
use crate::value::{Entry, Fields, Value, ValueKind};
use lists::KeyedLevel;

/// The objects that a patch is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) before: &'a [Entry<'a>],
    pub(super) live: &'a [Entry<'a>],
    pub(super) after: &'a [Entry<'a>],
}

/// What is to be in the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Making {
    /// `$setElementOrder` where a list is merged.
    pub(super) order: bool,
    /// Values are as they are after two patches were joined, which leaves out what is marked with `$patch`.
    pub(super) joined: bool,
}

/// The patch.
pub(super) fn create<'a>(context: &Context<'a>, sides: Sides<'a>, making: Making) -> Result<Value<'a>, PatchError> {
    let live = Some(sides.live);
    let root = MapLevel::new(making, NodeId::ROOT, false, Some(sides.before), live, sides.after);
    let mut open: Vec<(Step<'a>, Level<'a>)> = vec![(Step::Item(0), Level::Map(root))];
    let mut done: Option<Outcome<'a>> = None;
    while let Some((_, level)) = open.last_mut() {
        let next = match level {
            Level::Map(level) => level.step(context, done.take().as_ref()),
            Level::Keyed(level) => level.step(context, done.take().as_ref()),
        };
        match next {
            Ok(Next::Into(step, level)) => open.push((step, level)),
            Ok(Next::Done(outcome)) => {
                open.pop();
                done = Some(outcome);
            }
            Err(fault) => {
                let path = open.iter().skip(1).map(|(step, _)| step.segment(context));
                return Err(fault.into_error(path));
            }
        }
    }
    Ok(match done {
        Some(Outcome::Map { patch: Some(patch), .. }) => patch,
        _ => Value::EMPTY,
    })
}

/// A level whose fields or items are not all compared.
enum Level<'a> {
    Map(Box<MapLevel<'a>>),
    Keyed(Box<KeyedLevel<'a>>),
}

enum Next<'a> {
    Into(Step<'a>, Level<'a>),
    Done(Outcome<'a>),
}

/// What a level contributes to the patch around it.
#[derive(Debug)]
enum Outcome<'a> {
    Map {
        /// The patch of the object, `None` if nothing is to be said.
        patch: Option<Value<'a>>,
        /// Whether it takes something away.
        deletes: bool,
    },
    List {
        items: Option<Value<'a>>,
        delete: Option<Value<'a>>,
        order: Option<Value<'a>>,
        deletes: bool,
    },
}

/// Objects that are compared.
struct MapLevel<'a> {
    making: Making,
    node: NodeId,
    retain_keys: bool,
    before: &'a [Entry<'a>],
    before_fields: Fields<'a>,
    before_met: usize,
    /// `None` where the live object has nothing, so that all is to be added.
    live: Option<Fields<'a>>,
    live_entries: &'a [Entry<'a>],
    live_met: usize,
    /// Whether `before` is `live`.
    twins: bool,
    after: &'a [Entry<'a>],
    next: usize,
    patch: Vec<Entry<'a>>,
    deletes: bool,
}

impl<'a> MapLevel<'a> {
    fn new(
        making: Making,
        node: NodeId,
        retain_keys: bool,
        before: Option<&'a [Entry<'a>]>,
        live: Option<&'a [Entry<'a>]>,
        after: &'a [Entry<'a>],
    ) -> Box<Self> {
        let before = before.unwrap_or_default();
        let live_entries = live.unwrap_or_default();
        Box::new(Self {
            making,
            node,
            retain_keys,
            before,
            before_fields: Fields::of(before),
            before_met: 0,
            live: live.map(Fields::of),
            live_entries,
            live_met: 0,
            twins: live.is_some() && std::ptr::eq(before, live_entries),
            after,
            next: 0,
            patch: Vec::new(),
            deletes: false,
        })
    }

    fn step(&mut self, context: &Context<'a>, done: Option<&Outcome<'a>>) -> Result<Next<'a>, Fault> {
        if let Some(outcome) = done {
            self.take(context, outcome);
        }
        while let Some(&(key, after)) = self.after.get(self.next) {
            self.next += 1;
            let live = self.live.as_mut().and_then(|fields| fields.get(key)).map(|(_, value)| value);
            self.live_met += usize::from(live.is_some());
            let before = if self.twins { live } else { self.before_fields.get(key).map(|(_, value)| value) };
            self.before_met += usize::from(before.is_some());
            if key == PATCH
                && let Some(live) = live
                && let Some(wrong) = [live, after].into_iter().find(|value| value.kind() != ValueKind::String)
            {
                return Err(Reason::Patch(wrong.kind().to_string().into()).into());
            }
            if let Some(next) = self.field(context, key, before, live, after)? {
                return Ok(next);
            }
        }
        Ok(Next::Done(self.finish(context)))
    }

    /// Compares one field, unless it is a level of its own.
    fn field(
        &mut self,
        context: &Context<'a>,
        key: &'a str,
        before: Option<Value<'a>>,
        live: Option<Value<'a>>,
        after: Value<'a>,
    ) -> Result<Option<Next<'a>>, Fault> {
        let kind = after.kind();
        let of_kind = |value: Option<Value<'a>>| value.filter(|value| value.kind() == kind);
        let (before, live) = (of_kind(before), of_kind(live));
        if !matches!(kind, ValueKind::Object | ValueKind::List) || (before.is_none() && live.is_none()) {
            if live.is_none_or(|live| !live.same(after)) {
                self.put(context, key, after)?;
            }
            return Ok(None);
        }
        let field = match context.meta.field(self.node, key, kind) {
            Ok(field) => field,
            Err(fault) => {
                if [before, live].into_iter().flatten().any(|value| !value.same(after)) {
                    return Err(fault);
                }
                if live.is_none() {
                    self.put(context, key, after)?;
                }
                return Ok(None);
            }
        };
        let step = Step::Field(self.node, key);
        match (after, field.strategy) {
            (Value::Map(after), Strategy::Unsaid | Strategy::Merge) => {
                let (before, live) = (before.and_then(Value::entries), live.and_then(Value::entries));
                let level = MapLevel::new(self.making, field.object, field.retain_keys, before, live, after);
                Ok(Some(Next::Into(step, Level::Map(level))))
            }
            (Value::List(after), Strategy::Merge) => {
                let below = |fault: Fault| fault.inside(step.segment(context));
                let (before, live) = (before.and_then(Value::items), live.and_then(Value::items));
                let lists = lists::Lists { before, live, after };
                match lists.compare(context, field, self.making).map_err(below)? {
                    lists::Compared::Done(outcome) => {
                        self.take(context, &outcome);
                        Ok(None)
                    }
                    lists::Compared::Whole => {
                        self.put(context, key, Value::List(after))?;
                        Ok(None)
                    }
                    lists::Compared::Keyed(level) => Ok(Some(Next::Into(step, Level::Keyed(level)))),
                }
            }
            _ => {
                if live.is_none_or(|live| !live.same(after)) {
                    self.put(context, key, after)?;
                }
                Ok(None)
            }
        }
    }

    /// Puts a whole value into the patch.
    fn put(&mut self, context: &Context<'a>, key: &'a str, value: Value<'a>) -> Result<(), Fault> {
        if let Some(value) = self.making.whole(context, value)? {
            self.patch.push((key, value));
        }
        Ok(())
    }

    /// Takes what the field compared last came to.
    fn take(&mut self, context: &Context<'a>, outcome: &Outcome<'a>) {
        let Some(&(key, _)) = self.after.get(self.next.wrapping_sub(1)) else { return };
        match *outcome {
            Outcome::Map { patch, deletes } => {
                self.deletes |= deletes;
                self.patch.extend(patch.map(|patch| (key, patch)));
            }
            Outcome::List { items, delete, order, deletes } => {
                self.deletes |= deletes;
                let named = |directive: &str| &*context.arena.alloc_str(&format!("{directive}/{key}"));
                self.patch.extend(order.map(|order| (named(crate::directive::SET_ELEMENT_ORDER), order)));
                self.patch.extend(delete.map(|delete| (named(crate::directive::DELETE_FROM_PRIMITIVE_LIST), delete)));
                self.patch.extend(items.map(|items| (key, items)));
            }
        }
    }

    fn finish(&mut self, context: &Context<'a>) -> Outcome<'a> {
        let gone = self.before_met < self.before.len();
        let mut extra = false;
        if gone {
            let mut after = Fields::of(self.after);
            for (key, value) in self.before {
                if after.get(key).is_none() {
                    self.deletes = true;
                    extra |= !matches!(value, Value::Null);
                    self.patch.push((key, Value::Null));
                }
            }
        }
        let whole = self.live.is_none();
        if self.retain_keys {
            if !whole && self.live_met < self.live_entries.len() {
                let mut after = Fields::of(self.after);
                extra |= self
                    .live_entries
                    .iter()
                    .any(|(key, value)| !matches!(value, Value::Null) && after.get(key).is_none());
            }
            let mut keys: Vec<&'a str> =
                self.after.iter().filter(|(_, value)| !matches!(value, Value::Null)).map(|(key, _)| *key).collect();
            let says = if whole { self.deletes } else { !self.patch.is_empty() };
            if !keys.is_empty() && (says || extra) {
                keys.sort_unstable();
                let keys: Vec<Value<'a>> = keys.into_iter().map(Value::String).collect();
                self.patch.insert(0, (RETAIN_KEYS, context.list(&keys)));
            }
        }
        let patch = (whole || !self.patch.is_empty()).then(|| context.map(&self.patch));
        Outcome::Map { patch, deletes: self.deletes }
    }
}

impl Making {
    /// A value that is in the patch as a whole.
    fn whole<'a>(self, context: &Context<'a>, value: Value<'a>) -> Result<Option<Value<'a>>, Fault> {
        if self.joined { settle(context, value, None, Mode::Unmarked) } else { Ok(Some(value)) }
    }
}

/// Compares an item with the one that it is paired with.
fn item_level<'a>(
    making: Making,
    field: &Field,
    before: Option<Value<'a>>,
    live: Option<Value<'a>>,
    after: Value<'a>,
) -> Level<'a> {
    let (before, live) = (before.and_then(Value::entries), live.and_then(Value::entries));
    let after = after.entries().unwrap_or_default();
    Level::Map(MapLevel::new(making, field.items, field.retain_keys, before, live, after))
}
