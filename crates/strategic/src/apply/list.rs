//! Merges the patch of a list into it.

use super::keyed;
use super::{Level, Opened, Out, Pending, Step, Work};
use crate::Context;
use crate::directive::{DELETE_FROM_PRIMITIVE_LIST, Whole, whole};
use crate::error::{Fault, Reason};
use crate::schema::{Field, Strategy};
use crate::settle::{Mode, settle};
use crate::value::{Scalar, Value, ValueKind};
use hashbrown::{HashMap, HashSet};
use kube_unions_core::field_path::Segment;

/// What a patch says of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPatch<'a> {
    /// `$setElementOrder`
    pub(super) order: Option<&'a [Value<'a>]>,
    /// The items.
    pub(super) items: Option<&'a [Value<'a>]>,
    /// `$deleteFromPrimitiveList`
    pub(super) delete: Option<&'a [Value<'a>]>,
}

/// What the items of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    Maps,
    Scalars(ValueKind),
}

/// An item of the list that becomes.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) value: Value<'a>,
    /// The patches to merge into it, in order.
    pub(super) patches: Vec<Value<'a>>,
    /// Its place in the order asked for, if that says one.
    pub(super) rank: Option<usize>,
    /// Its place in the list that there was.
    pub(super) live: Option<usize>,
}

impl<'a> Item<'a> {
    pub(super) fn new(value: Value<'a>, live: Option<usize>) -> Self {
        Self { value, patches: Vec::new(), rank: None, live }
    }
}

/// Merges the patch of a list.
pub(super) fn open<'a>(
    context: &Context<'a>,
    field: &'a Field,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Opened<'a>, Fault> {
    let gone = patch.delete.map(|delete| scalar_set(context, delete)).transpose()?;
    let is_gone = |value: &Value<'a>| {
        let scalar = gone.as_ref().and_then(|gone| Some((gone, value.scalar(context.arena)?)));
        scalar.is_some_and(|(gone, scalar)| gone.contains(&scalar))
    };
    let mut live = live;
    if let (Some(there), Some(delete)) = (live, patch.delete) {
        elements([there, delete])?;
        // Only what is put in order is so before something is deleted from it.
        if patch.order.is_none() {
            let left: Vec<Value<'a>> = there.iter().filter(|value| !is_gone(value)).copied().collect();
            live = Some(context.arena.alloc_slice_copy(&left));
        }
    }
    let (live_items, items) = (live.unwrap_or_default(), patch.items.unwrap_or_default());
    if live_items.is_empty() && items.is_empty() && patch.order.is_none() {
        return Ok(Opened::Done(Value::List(live_items)));
    }
    let elements = elements([live_items, items])?;
    if elements.is_none() && patch.order.is_some() {
        return Err(Reason::NothingToOrder.into());
    }
    let mut become_of = match (elements, patch.order, patch.items) {
        (None, ..) | (_, None, None) => {
            live_items.iter().enumerate().map(|(at, value)| Item::new(*value, Some(at))).collect()
        }
        (Some(_), ..) if field.keys.is_some() || elements == Some(Elements::Maps) => {
            let Some(keys) = &field.keys else { return Err(Reason::NoKeyDeclared.into()) };
            keyed::merge(context, field, keys, live, patch)?
        }
        (Some(_), ..) => scalars(context, field, live, patch)?,
    };
    if gone.is_some() {
        become_of.retain(|item| !is_gone(&item.value));
    }
    let mut out = Vec::with_capacity(become_of.len());
    let mut pending = Vec::new();
    for item in become_of {
        let slot = out.len();
        out.push(item.value);
        if !item.patches.is_empty() {
            let step = Step::Item(item.live.unwrap_or(slot));
            pending.push(Pending { slot, step, live: item.value, work: Work::Map(field.items, item.patches) });
        }
    }
    if pending.is_empty() {
        return Ok(Opened::Done(context.list(&out)));
    }
    pending.reverse();
    Ok(Opened::Level(Level { out: Out::List(out), pending }))
}

/// The type of all items of some lists, `None` if they have none. An integer and a decimal are both numbers.
pub(crate) fn elements(lists: [&[Value<'_>]; 2]) -> Result<Option<Elements>, Fault> {
    let mut found: Option<ValueKind> = None;
    for (list, side) in lists.into_iter().zip([crate::error::Side::Live, crate::error::Side::Patch]) {
        for (position, item) in list.iter().enumerate() {
            let kind = item.kind();
            let fault = |reason: Reason| Err(reason.at([Segment::Index(position)]));
            match (kind, found) {
                (ValueKind::List, None) => return fault(Reason::ListOfLists),
                (ValueKind::Null, _) => return fault(Reason::NullItem(side)),
                (kind, Some(first)) if kind != first => return fault(Reason::MixedTypes(first, kind)),
                _ => found = Some(kind),
            }
        }
    }
    Ok(found.map(|kind| if kind == ValueKind::Object { Elements::Maps } else { Elements::Scalars(kind) }))
}

/// Refuses a patch that adds what it deletes.
pub(super) fn refuse_added_and_deleted<'a>(
    context: &Context<'a>,
    items: &'a [Value<'a>],
    delete: &'a [Value<'a>],
) -> Result<(), Reason> {
    let gone = scalar_set(context, delete)?;
    let both = items.iter().any(|item| item.scalar(context.arena).is_some_and(|scalar| gone.contains(&scalar)));
    if both { Err(Reason::AddedAndDeleted) } else { Ok(()) }
}

fn scalar_set<'a>(context: &Context<'a>, delete: &'a [Value<'a>]) -> Result<HashSet<Scalar<'a>>, Reason> {
    let wanted = "a list of strings, numbers or booleans";
    let scalar = |item: &Value<'a>| match item.scalar(context.arena) {
        None | Some(Scalar::Null) => {
            Err(Reason::DirectiveType { directive: DELETE_FROM_PRIMITIVE_LIST.into(), found: item.kind(), wanted })
        }
        Some(scalar) => Ok(scalar),
    };
    delete.iter().map(scalar).collect()
}

/// Merges lists of scalars, which are sets.
fn scalars<'a>(
    context: &Context<'a>,
    field: &Field,
    live: Option<&'a [Value<'a>]>,
    patch: &ListPatch<'a>,
) -> Result<Vec<Item<'a>>, Fault> {
    let scalar = |value: &Value<'a>| value.scalar(context.arena).unwrap_or(Scalar::Null);
    let live_items = live.unwrap_or_default();
    let items = patch.items.unwrap_or_default();
    let order = patch.order.map(|order| order.iter().map(scalar).collect::<Vec<_>>());
    if let Some(order) = &order {
        let wanted = items.iter().map(|item| (false, scalar(item)));
        refuse_other_order(wanted, order.iter(), |(_, item), entry| item == **entry)?;
    }
    let mut first_live: HashMap<Scalar<'a>, usize> = HashMap::with_capacity(live_items.len());
    for (position, item) in live_items.iter().enumerate() {
        first_live.entry(scalar(item)).or_insert(position);
    }
    let merges = field.strategy == Strategy::Merge;
    let mut all: Vec<Item<'a>> = match (live, patch.items) {
        (Some(_), Some(_)) if merges => {
            let mut seen = HashSet::with_capacity(live_items.len() + items.len());
            let once = live_items.iter().chain(items).filter(|item| seen.insert(scalar(item)));
            once.map(|item| Item::new(*item, None)).collect()
        }
        (_, Some(_)) => {
            let mode = if live.is_some() { Mode::Literal } else { Mode::Fresh };
            match settle(context, Value::List(items), Some(field.items), mode)? {
                Some(Value::List(items)) => items.iter().map(|item| Item::new(*item, None)).collect(),
                _ => Vec::new(),
            }
        }
        (_, None) => live_items.iter().map(|item| Item::new(*item, None)).collect(),
    };
    let mut ranks: HashMap<Scalar<'a>, usize> = HashMap::new();
    match &order {
        Some(order) => order.iter().enumerate().for_each(|(rank, entry)| {
            ranks.entry(*entry).or_insert(rank);
        }),
        None => items.iter().enumerate().for_each(|(rank, item)| {
            ranks.entry(scalar(item)).or_insert(rank);
        }),
    }
    for item in &mut all {
        let scalar = scalar(&item.value);
        item.rank = ranks.get(&scalar).copied();
        item.live = first_live.get(&scalar).copied();
    }
    Ok(arrange(all))
}

/// Puts items in order: those that the order speaks of in its order, the others in that of the list that there was; of the two
/// heads the second comes first if both were in the list and it stood earlier there.
pub(super) fn arrange(items: Vec<Item<'_>>) -> Vec<Item<'_>> {
    let (mut asked, others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.rank.is_some());
    asked.sort_by_key(|item| item.rank);
    let mut all = Vec::with_capacity(asked.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in asked {
        while others
            .peek()
            .is_some_and(|other| matches!((other.live, item.live), (Some(other), Some(item)) if other < item))
        {
            all.extend(others.next());
        }
        all.push(item);
    }
    all.extend(others);
    all
}

/// Refuses a patch whose items are not in the order list, or not in its order. An item that is a directive fits anywhere before
/// the end of the order list.
pub(super) fn refuse_other_order<T: Copy, E>(
    items: impl Iterator<Item = (bool, T)>,
    mut order: impl Iterator<Item = E>,
    fits: impl Fn((bool, T), &E) -> bool,
) -> Result<(), Reason> {
    let mut next = order.next();
    for item in items {
        let (is_directive, _) = item;
        if is_directive {
            if next.is_none() {
                return Err(Reason::OrderMismatch);
            }
            continue;
        }
        while !fits(item, next.as_ref().ok_or(Reason::OrderMismatch)?) {
            next = order.next();
        }
        next = order.next();
    }
    Ok(())
}

/// Whether an item of a patch is a directive, and which.
pub(super) fn item_directive(item: Value<'_>) -> Result<Option<Whole>, Reason> {
    item.entries().map_or(Ok(None), whole)
}
