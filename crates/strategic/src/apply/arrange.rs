//! Puts the items of a merged list in order.

use super::merging_value::MergingValue;
use crate::error::BrokenRule;
use crate::value::Value;
use bumpalo::Bump;

/// An item of the merged list.
#[derive(Debug)]
pub(super) struct ListItem<'a> {
    pub(super) value: MergingValue<'a>,
    /// The position in the requested order, if the order names the item.
    pub(super) rank: Option<usize>,
    /// The position in the live list, if the item was in it.
    pub(super) live: Option<usize>,
}

impl<'a> ListItem<'a> {
    pub(super) fn new(value: Value<'a>, live: Option<usize>) -> Self {
        Self { value: MergingValue::Closed(value), rank: None, live }
    }
}

/// Merges the ranked items, by rank, with the others, which keep their order. An unranked item precedes a ranked one if it did
/// so in the live list.
pub(super) fn arrange<'a>(items: Vec<ListItem<'a>>, arena: &'a Bump) -> Vec<Value<'a>> {
    let (mut ranked, others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.rank.is_some());
    ranked.sort_by_key(|item| item.rank);
    let mut all = Vec::with_capacity(ranked.len() + others.len());
    let mut others = others.into_iter().peekable();
    for mut item in ranked {
        let precedes =
            |other: &ListItem<'_>| matches!((other.live, item.live), (Some(other), Some(item)) if other < item);
        while let Some(mut other) = others.next_if(precedes) {
            all.push(other.value.close(arena));
        }
        all.push(item.value.close(arena));
    }
    all.extend(others.map(|mut other| other.value.close(arena)));
    all
}

/// Refuses a patch whose items are not a subsequence of its order list. `None` is an item with a directive, which may be
/// anywhere before the end of the order list.
pub(super) fn refuse_other_order<T, E>(
    items: impl IntoIterator<Item = Option<T>>,
    order: impl IntoIterator<Item = E>,
    fits: impl Fn(&T, &E) -> bool,
) -> Result<(), BrokenRule> {
    let mut order = order.into_iter().peekable();
    for item in items {
        let fits = match item {
            None => order.peek().is_some(),
            Some(item) => order.any(|entry| fits(&item, &entry)),
        };
        if !fits {
            return Err(BrokenRule::OrderMismatch);
        }
    }
    Ok(())
}
