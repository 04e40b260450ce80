//! Removes the subject of a rule from a case, so that both engines must agree on the rest.

#![allow(clippy::wildcard_enum_match_arm, reason = "JSON has no further kinds of values")]

use super::{Case, PatchOperation};
use crate::generate::{distinct, field, key, merges, strategy, text};
use fixtures::files::files;
use serde_json::{Map, Value};

/// A rule by which the engine differs from Go's package on purpose. The README explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    NoLeaks,
    NoPanics,
    AddedAndDeleted,
    NullDeleteList,
    OrderWhereItChanged,
    OrderAskedFor,
    NothingLost,
    UnchangedReplace,
    NumbersAreOneType,
    ConflictsOnlyLook,
    NewItemsWhole,
}

/// Removes the subject of a rule from the documents of a case.
type TakeOut = fn(&mut Case);

/// The rules, each with the change that removes its subject.
pub(super) const RULES: [(Difference, TakeOut); 11] = [
    (Difference::NoLeaks, |case| no_leaks(&case.schema.clone(), Some(&case.original), &mut case.patch)),
    (Difference::NoPanics, |case| case.each(&mut sane)),
    (Difference::AddedAndDeleted, |case| case.each(&mut |_, fields| added_and_deleted(fields))),
    (Difference::NullDeleteList, |case| case.each(&mut |_, fields| null_delete_list(fields))),
    (Difference::OrderWhereItChanged, |case| {
        sets_sorted(&case.schema, &mut case.original);
        sets_sorted(&case.schema, &mut case.current);
    }),
    (Difference::OrderAskedFor, |case| {
        walk_both(&case.schema, &mut case.original, &case.patch, &mut deleted_before);
    }),
    (Difference::NothingLost, |case| case.each(&mut once)),
    (Difference::UnchangedReplace, |case| {
        walk_both(&case.schema, &mut case.original, &case.modified, &mut unchanged_replaced);
        walk_both(&case.schema, &mut case.original, &case.current, &mut unchanged_replaced);
        walk_both(&case.schema, &mut case.current, &case.modified, &mut unchanged_replaced);
    }),
    (Difference::NumbersAreOneType, |case| {
        for document in [&mut case.original, &mut case.patch, &mut case.modified, &mut case.current] {
            integers(document);
        }
    }),
    (Difference::NewItemsWhole, |case| {
        walk_both(&case.schema, &mut case.original, &case.current, &mut gone_items);
    }),
    (Difference::ConflictsOnlyLook, |case| {
        if case.op != PatchOperation::ThreeWay {
            return;
        }
        case.each(&mut sorted);
        walk_both(&case.schema, &mut case.current, &case.original, &mut nothing_deleted);
        case.each(&mut |_, fields| fields.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty())));
    }),
];

#[test]
fn the_rows_of_the_format_name_rules_that_exist() {
    for (path, text) in files("tests/cases/strategic", "json") {
        let suite: Value = serde_json::from_str(&text).unwrap();
        for rule in suite["rows"].as_array().unwrap().iter().filter_map(|row| row["rule"].as_str()) {
            assert!(RULES.iter().any(|(known, _)| format!("{known:?}") == rule), "{path}: `{rule}` is no rule");
        }
    }
}

impl Case {
    /// Changes every object of every document, the outermost first.
    fn each(&mut self, change: &mut dyn FnMut(&Value, &mut Map<String, Value>)) {
        let schema = self.schema.clone();
        for document in [&mut self.original, &mut self.patch, &mut self.modified, &mut self.current] {
            walk(&schema, document, change);
        }
    }
}

fn walk(schema: &Value, value: &mut Value, change: &mut dyn FnMut(&Value, &mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            change(schema, fields);
            fields.iter_mut().for_each(|(name, value)| walk(field(schema, name), value, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(&schema["items"], item, change)),
        _ => {}
    }
}

/// Returns the lists of an object, each with its schema.
fn lists<'v>(
    schema: &'v Value,
    fields: &'v mut Map<String, Value>,
) -> impl Iterator<Item = (&'v Value, &'v mut Vec<Value>)> {
    let list = |(name, value): (&'v String, &'v mut Value)| {
        let name = name.rsplit('/').next().unwrap();
        value.as_array_mut().map(|items| (field(schema, name), items))
    };
    fields.iter_mut().filter_map(list)
}

/// Removes invalid directives, null items, keys that are not scalars, and orders without items.
fn sane(schema: &Value, fields: &mut Map<String, Value>) {
    let known = |name: &str| !schema["properties"].is_object() || !field(schema, name).is_null();
    fields.retain(|name, value| match name.as_str() {
        "$patch" => value == "replace" || value == "delete",
        "$retainKeys" => value.is_array(),
        _ if name.starts_with("$deleteFromPrimitiveList/") => {
            value.is_null() || value.as_array().is_some_and(|items| items.iter().all(|item| !item.is_object()))
        }
        _ if name.starts_with("$setElementOrder/") => true,
        _ => !name.starts_with('$') || known(name),
    });
    if let Some(Value::Array(keys)) = fields.get_mut("$retainKeys") {
        keys.retain(Value::is_string);
    }
    for (schema, items) in lists(schema, fields) {
        items.retain(|item| !item.is_null());
        items.retain(|item| item["$patch"].is_null() || item["$patch"] == "replace" || item["$patch"] == "delete");
        if let Some(key) = key(schema) {
            items.retain(|item| !item[key].is_object() && !item[key].is_array() && item.get(key) != Some(&Value::Null));
        }
    }
    let pointless: Vec<String> = fields
        .iter()
        .filter_map(|(name, order)| {
            let (list, order) = (name.strip_prefix("$setElementOrder/")?, order.as_array()?);
            let beside = fields.get(list).and_then(Value::as_array).is_some_and(|items| !items.is_empty());
            // For a list of objects without a key, the order that Go's package gives is meaningless.
            let unkeyed = order.iter().any(Value::is_object) && key(field(schema, list)).is_none();
            (order.is_empty() && beside || unkeyed).then(|| name.clone())
        })
        .collect();
    for name in &pointless {
        fields.shift_remove(name);
    }
}

fn added_and_deleted(fields: &mut Map<String, Value>) {
    let names: Vec<String> = fields.keys().cloned().collect();
    for name in names {
        let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") else { continue };
        let added = fields.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(Value::Array(gone)) = fields.get_mut(&name) {
            gone.retain(|item| !added.contains(item));
        }
    }
}

fn null_delete_list(fields: &mut Map<String, Value>) {
    fields.retain(|name, value| !name.starts_with("$deleteFromPrimitiveList/") || !value.is_null());
}

pub(super) fn sets_sorted(schema: &Value, document: &mut Value) {
    walk(schema, document, &mut |schema, fields| {
        for (schema, items) in lists(schema, fields) {
            if merges(schema) && items.iter().all(|item| !item.is_object()) {
                items.sort_by_key(text);
            }
        }
    });
}

fn once(schema: &Value, fields: &mut Map<String, Value>) {
    for (schema, items) in lists(schema, fields) {
        let objects = items.iter().any(Value::is_object);
        if merges(schema) || key(schema).is_some() || !objects {
            distinct(items, key(schema).filter(|_| objects).as_slice(), &Value::Null);
        }
    }
}

/// Sorts lists of scalars that are replaced, as Go's package does when it looks for conflicts.
fn sorted(schema: &Value, fields: &mut Map<String, Value>) {
    for (schema, items) in lists(schema, fields) {
        if !merges(schema) && items.iter().all(|item| !item.is_object() && !item.is_array()) {
            items.sort_by_key(text);
            distinct(items, &[], &Value::Null);
        }
    }
}

/// Changes each object that another document has at the same place, the outermost first.
fn walk_both(schema: &Value, one: &mut Value, other: &Value, change: ChangeBeside<'_>) {
    let (Value::Object(fields), Value::Object(others)) = (one, other) else { return };
    change(schema, fields, others);
    for (name, value) in fields {
        let schema = field(schema, name);
        match (value, others.get(name)) {
            (value @ Value::Object(_), Some(other)) => walk_both(schema, value, other, change),
            (Value::Array(items), Some(Value::Array(others))) => {
                let Some(key) = key(schema) else { continue };
                for item in items {
                    let id = item[key].clone();
                    for other in others.iter().filter(|other| other[key] == id) {
                        walk_both(&schema["items"], item, other, change);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Changes the fields of an object beside those of the other.
type ChangeBeside<'c> = &'c mut dyn FnMut(&Value, &mut Map<String, Value>, &Map<String, Value>);

/// Restores the items that only the current object lost from a set.
fn nothing_deleted(schema: &Value, now: &mut Map<String, Value>, before: &Map<String, Value>) {
    for (name, now) in now {
        let schema = field(schema, name);
        let (Some(Value::Array(before)), Value::Array(now)) = (before.get(name), now) else { continue };
        if merges(schema) && key(schema).is_none() && before.iter().chain(&*now).all(|item| !item.is_object()) {
            now.extend(before.iter().cloned());
            distinct(now, &[], &Value::Null);
            now.sort_by_key(text);
        }
    }
}

/// Removes the objects, lists and items that the current object no longer has.
fn gone_items(schema: &Value, before: &mut Map<String, Value>, now: &Map<String, Value>) {
    let is_gone = |name: &String, value: &Value| match value {
        Value::Object(_) => !now.get(name).is_some_and(Value::is_object),
        Value::Array(_) => !now.get(name).is_some_and(Value::is_array),
        _ => false,
    };
    before.retain(|name, value| !is_gone(name, value));
    for (name, before) in before {
        let Some(key) = key(field(schema, name)) else { continue };
        let Value::Array(items) = before else { continue };
        let there = now.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.retain(|item| there.iter().any(|other| other[key] == item[key]));
    }
}

fn integers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(integers),
        Value::Array(items) => items.iter_mut().for_each(integers),
        Value::Number(number) if number.is_f64() => *value = Value::from(7),
        _ => {}
    }
}

/// Removes from the live object the items that the patch deletes from keyed lists.
fn deleted_before(schema: &Value, live: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, live) in live {
        let (Value::Array(items), Some(Value::Array(said))) = (live, patch.get(name)) else { continue };
        let Some(key) = key(field(schema, name)) else { continue };
        items.retain(|item| !said.iter().any(|patch| patch["$patch"] == "delete" && patch[key] == item[key]));
    }
}

/// Removes unchanged maps with the strategy `replace` from the live object, so that both engines add them.
fn unchanged_replaced(schema: &Value, live: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    live.retain(|name, value| {
        let same = wanted.get(name) == Some(value);
        !(same && value.is_object() && strategy(field(schema, name)).contains("replace"))
    });
}

/// Removes directives from the parts of a patch that are stored as they are.
fn no_leaks(schema: &Value, live: Option<&Value>, patch: &mut Value) {
    let Some(said) = patch.as_object_mut() else { return };
    if let Some(whole) = said.get("$patch").cloned() {
        if whole == "replace" {
            said.values_mut().for_each(|value| settle(value, false));
            said.retain(|name, value| name == "$patch" || !(is_directive(name) || gone(value)));
        }
        return;
    }
    let retained = said.get("$retainKeys").and_then(Value::as_array).cloned();
    let names: Vec<String> = said.keys().filter(|name| !is_directive(name)).cloned().collect();
    for name in names {
        let cleared = retained.as_ref().is_some_and(|keys| !keys.contains(&Value::from(name.as_str())));
        let live = live.and_then(|live| live.get(&name)).filter(|_| !cleared);
        let inner = field(schema, &name);
        let value = said.get_mut(&name).unwrap();
        match (live, &mut *value) {
            (Some(Value::Object(_)), Value::Object(_)) if !strategy(inner).contains("replace") => {
                no_leaks(inner, live, value);
            }
            (Some(Value::Object(_)), Value::Object(fields)) => {
                let deletes = fields.get("$patch").is_some_and(|whole| whole == "delete");
                settle(value, false);
                if deletes {
                    *value = Value::Object(Map::new());
                }
            }
            (Some(Value::Array(there)), Value::Array(items)) if merges(inner) && key(inner).is_some() => {
                let key = key(inner).unwrap();
                let replaces = items.iter().any(|item| item["$patch"] == "replace");
                let deleted: Vec<Value> =
                    items.iter().filter(|item| item["$patch"] == "delete").map(|item| item[key].clone()).collect();
                let mut added: Vec<Value> = Vec::new();
                for item in items.iter_mut().filter(|item| item["$patch"].is_null()) {
                    let old = there.iter().find(|old| old[key] == item[key] && !deleted.contains(&old[key]));
                    if replaces {
                        settle(item, false);
                    } else if old.is_some() {
                        no_leaks(&inner["items"], old, item);
                    } else if let Some(first) = added.iter().find(|first| first[key] == item[key]) {
                        no_leaks(&inner["items"], Some(first), item);
                    } else {
                        settle(item, true);
                        added.push(item.clone());
                    }
                }
            }
            (Some(Value::Array(_)), Value::Array(items)) => {
                if !merges(inner) {
                    for item in items.iter_mut() {
                        settle(item, false);
                    }
                    items.retain(|item| !gone(item));
                }
            }
            _ => {
                let was_null = value.is_null();
                settle(value, true);
                if gone(value) && !was_null {
                    said.shift_remove(&name);
                }
            }
        }
    }
}

fn is_directive(name: &str) -> bool {
    ["$patch", "$retainKeys"].contains(&name)
        || name.starts_with("$setElementOrder/")
        || name.starts_with("$deleteFromPrimitiveList/")
}

/// Returns true for the mark of a value that a directive deletes.
fn gone(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.contains_key("\u{0}gone"))
}

/// Follows the directives in a value and removes them.
fn settle(value: &mut Value, fresh: bool) {
    match value {
        Value::Object(fields) => {
            let whole = fields.get("$patch").cloned();
            if whole.as_ref().is_some_and(|whole| whole == "delete") {
                *value = serde_json::json!({"\u{0}gone": true});
                return;
            }
            let fresh = fresh && whole.is_none();
            fields.retain(|name, value| !(is_directive(name) || fresh && value.is_null()));
            fields.values_mut().for_each(|value| settle(value, fresh));
            fields.retain(|_, value| !gone(value));
        }
        Value::Array(items) => {
            items.retain(|item| item.get("$patch").is_none());
            for item in items.iter_mut() {
                settle(item, fresh);
            }
        }
        _ => {}
    }
}
