//! Items of a list with the same keys, which a client-side apply merges.

use kube_unions_core::union::{ItemKey, UnionPlace, UnionStep};
use serde_json::Value;
use strategic_merge_patch::json_merge::merge;

/// Returns the old manifest, the new one and the live object without the duplicates of the new one, in lists on the way to unions. Of the
/// items with the same keys, a client compares the first with the first and so on, and the API server merges every difference into the first.
///
/// Returns `None` if the new manifest has no duplicates, or fewer than the old one: a client then removes all of them.
pub(super) fn merged(places: &[UnionPlace<'_>], sides: [&Value; 3]) -> Option<[Value; 3]> {
    let mut merged = sides.map(Clone::clone);
    let mut is_merged = false;
    for place in places {
        for (length, step) in place.steps.iter().enumerate() {
            if let UnionStep::Items { keys } = step
                && !keys.is_empty()
            {
                let way = place.steps.get(..length).unwrap_or_default();
                is_merged |= merge_lists(way, keys, merged.each_mut().map(Some));
            }
        }
    }
    is_merged.then_some(merged)
}

/// Merges the duplicates of the lists at the end of a way. Returns true if there are any.
fn merge_lists(way: &[UnionStep<'_>], keys: &[ItemKey<'_>], sides: [Option<&mut Value>; 3]) -> bool {
    let Some((step, rest)) = way.split_first() else { return merge_items(keys, sides) };
    let [old, Some(new), live] = sides else { return false };
    let (mut old, mut live) = (old, live);
    match step {
        UnionStep::Field(name) => merge_lists(rest, keys, [old, Some(new), live].map(|side| side?.get_mut(*name))),
        UnionStep::Values => new.as_object_mut().into_iter().flatten().fold(false, |is_merged, (name, value)| {
            let sides = [
                old.as_deref_mut().and_then(|side| side.get_mut(name)),
                Some(value),
                live.as_deref_mut().and_then(|side| side.get_mut(name)),
            ];
            merge_lists(rest, keys, sides) || is_merged
        }),
        UnionStep::Items { keys: outer } => new.as_array_mut().into_iter().flatten().fold(false, |is_merged, item| {
            let (old, live) = (find(old.as_deref_mut(), outer, item), find(live.as_deref_mut(), outer, item));
            merge_lists(rest, keys, [old, Some(item), live]) || is_merged
        }),
    }
}

fn find<'v>(list: Option<&'v mut Value>, keys: &[ItemKey<'_>], item: &Value) -> Option<&'v mut Value> {
    list?.as_array_mut()?.iter_mut().find(|other| !keys.is_empty() && are_same(keys, other, item))
}

fn are_same(keys: &[ItemKey<'_>], one: &Value, other: &Value) -> bool {
    keys.iter().all(|key| one.get(key.name) == other.get(key.name))
}

fn merge_items(keys: &[ItemKey<'_>], sides: [Option<&mut Value>; 3]) -> bool {
    let [mut old, new, mut live] = sides.map(|side| side.and_then(Value::as_array_mut));
    let Some(items) = new else { return false };
    let mut is_merged = false;
    let mut position = 0;
    while let Some(item) = items.get(position).cloned() {
        position += 1;
        let same = |list: Option<&Vec<Value>>| -> Vec<Value> {
            list.into_iter().flatten().filter(|other| are_same(keys, other, &item)).cloned().collect()
        };
        let [of_old, of_new, of_live] = [same(old.as_deref()), same(Some(&*items)), same(live.as_deref())];
        if of_new.len() < 2 || of_old.len() > of_new.len() {
            continue;
        }
        let first = merged_item(&of_old, &of_new, &of_live);
        for list in [old.as_deref_mut(), Some(&mut *items), live.as_deref_mut()].into_iter().flatten() {
            let mut is_first = true;
            list.retain(|other| !are_same(keys, other, &item) || std::mem::take(&mut is_first));
        }
        if let Some(kept) = items.iter_mut().find(|other| are_same(keys, other, &item)) {
            *kept = first;
        }
        is_merged = true;
    }
    is_merged
}

/// Returns the first item after the patches of all.
fn merged_item(old: &[Value], new: &[Value], live: &[Value]) -> Value {
    let mut first = live.first().cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    for (position, item) in new.iter().enumerate() {
        let fields = item.as_object().into_iter().flatten();
        let before = live.get(position);
        let is_changed =
            |name: &str, value: &Value| !before.and_then(|it| it.get(name)).is_some_and(|it| has(it, value));
        let patch: Value = fields
            .filter(|(name, value)| is_changed(name, value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        merge(&mut first, &patch);
        let gone = old
            .get(position)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter(|(name, _)| item.get(name).is_none());
        if let Some(fields) = first.as_object_mut() {
            gone.for_each(|(name, _)| drop(fields.remove(name)));
        }
    }
    first
}

/// Returns true if a value has everything of another, and perhaps defaults.
fn has(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(fields), Value::Object(parts)) => {
            parts.iter().all(|(name, part)| fields.get(name).is_some_and(|value| has(value, part)))
        }
        _ => value == part,
    }
}
