//! Managed fields: who has set which field, so that a server-side apply finds conflicts, and removes what it no longer sets.
//!
//! The sets of fields are close to those of a real API server. They leave out the fields of other versions of a kind.

use crate::error::ApiError;
use crate::field_types::{FieldType, ListType, item_name};
use crate::kinds;
use crate::resource::ResourceInfo;
use crate::write::{Target, WriteOptions, metadata};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Paths of fields. An element is `f:name`, `k:{…}` or `v:…`.
pub(crate) type FieldSet = BTreeSet<Vec<String>>;

/// A manager and its fields.
#[derive(Debug, Clone, PartialEq)]
struct ManagedEntry {
    manager: String,
    is_apply: bool,
    api_version: String,
    subresource: String,
    time: Value,
    fields: FieldSet,
}

impl ManagedEntry {
    /// Returns what tells an entry from others, in the notation by which the API server sorts managers.
    fn identifier(&self) -> String {
        let operation = if self.is_apply { "Apply" } else { "Update" };
        let mut identifier = json!({"manager": self.manager, "operation": operation});
        // An apply is the same manager at every version.
        if !self.is_apply {
            kinds::set_or_remove(&mut identifier, "apiVersion", Some(self.api_version.clone().into()));
        }
        if !self.subresource.is_empty() {
            kinds::set_or_remove(&mut identifier, "subresource", Some(self.subresource.clone().into()));
        }
        identifier.to_string()
    }
}

/// The difference of two objects.
#[derive(Debug, Default, Clone)]
struct Difference {
    /// Fields that were added or have another value.
    changed: FieldSet,
    removed: FieldSet,
}

/// A change as managers see it. A write ignores the fields that its subresource does not write. A write of the whole object ignores them
/// only in its own version of the kind: managers of other versions lose them.
#[derive(Debug)]
struct SeenChange {
    api_version: String,
    own: Difference,
    of_other_versions: Difference,
}

impl SeenChange {
    fn new(target: &Target, old: &Value, new: &Value) -> Self {
        let of = FieldType::root(&target.resource);
        let mut own = Difference::default();
        compare(&of, Some(old), Some(new), &mut Vec::new(), &mut own);
        own.retain(is_tracked);
        let whole = own.clone();
        own.retain(|path| is_managed(&target.resource, &target.subresource, path));
        let of_other_versions = if target.subresource == "status" { own.clone() } else { whole };
        Self { api_version: target.resource.api_version(), own, of_other_versions }
    }

    fn seen_by(&self, entry: &ManagedEntry) -> &Difference {
        if entry.api_version == self.api_version { &self.own } else { &self.of_other_versions }
    }
}

/// Fields of metadata that nobody manages.
const STRIPPED: [&str; 10] = [
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// Notes that a write other than an apply makes an object of another one.
pub(crate) fn update(target: &Target, old: Option<&Value>, object: &mut Value, options: &WriteOptions, time: &Value) {
    let sent = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    // A list with one empty item removes all.
    let is_reset = sent.is_some_and(|all| all.iter().all(|it| it.as_object().is_some_and(Map::is_empty)));
    // A write of the whole object may name its managers.
    let is_whole = target.subresource.is_empty();
    let named = if is_whole { entries_of(object) } else { Vec::new() };
    let mut entries = match old {
        _ if is_whole && is_reset => Vec::new(),
        _ if named.iter().any(|entry| !entry.manager.is_empty()) => named,
        Some(old) => entries_of(old),
        None => Vec::new(),
    };
    // Whoever has removed all managers does not want them.
    if old.is_some() && entries.is_empty() {
        write(entries, object);
        return;
    }
    let change = SeenChange::new(target, old.unwrap_or(&kinds::empty(&target.resource)), object);
    let is_same = |entry: &ManagedEntry| {
        !entry.is_apply
            && entry.manager == options.field_manager
            && entry.api_version == target.resource.api_version()
            && entry.subresource == target.subresource
    };
    for entry in &mut entries {
        let seen = change.seen_by(entry);
        entry.fields.retain(|path| !is_under_any(path, &seen.removed));
        if !is_same(entry) {
            entry.fields.retain(|path| !seen.changed.contains(path));
        }
    }
    let changed = change.own.changed;
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| is_same(entry)) {
            Some(entry) => {
                entry.fields.extend(changed);
                entry.time = time.clone();
            }
            None => entries.push(ManagedEntry {
                manager: options.field_manager.clone(),
                is_apply: false,
                api_version: target.resource.api_version(),
                subresource: target.subresource.clone(),
                time: time.clone(),
                fields: changed,
            }),
        }
    }
    write(entries, object);
}

/// Returns what a server-side apply makes of an object.
pub(crate) fn apply(
    target: &Target,
    configuration: &Value,
    force: bool,
    old: &Value,
    options: &WriteOptions,
    time: &Value,
) -> Result<Value, ApiError> {
    let of = FieldType::root(&target.resource);
    let mut applied = configuration.clone();
    for field in STRIPPED.iter().filter(|field| !matches!(**field, "name" | "namespace" | "uid" | "resourceVersion")) {
        metadata(&mut applied).remove(*field);
    }
    let mut whole = FieldSet::new();
    collect(&of, &applied, &mut Vec::new(), &mut whole);
    let is_kept = |path: &&Vec<String>| is_managed(&target.resource, &target.subresource, path);
    let set: FieldSet = whole.iter().filter(is_kept).cloned().collect();
    let mut object = merge(&of, old, &applied);
    let mut entries = entries_of(old);
    if entries.is_empty() {
        entries.extend(before_first_apply(target, old, time));
    }
    let is_same = |entry: &ManagedEntry| {
        entry.is_apply && entry.manager == options.field_manager && entry.subresource == target.subresource
    };
    let place = entries.iter().position(is_same);
    let mut before = place.map(|place| entries.remove(place));
    if let Some(last) = &before {
        let owned: FieldSet = entries.iter().flat_map(|entry| &entry.fields).chain(&whole).cloned().collect();
        for path in last.fields.difference(&owned) {
            if let Some(path) = removed_at(path, &owned) {
                remove(&of, &mut object, path);
            }
        }
    }
    let change = SeenChange::new(target, old, &object);
    let mut conflicts = Vec::new();
    for entry in &mut entries {
        let seen = change.seen_by(entry);
        let taken: Vec<Vec<String>> = entry.fields.intersection(&seen.changed).cloned().collect();
        for path in taken {
            entry.fields.remove(&path);
            conflicts.push((entry.clone(), path));
        }
        entry.fields.retain(|path| !is_under_any(path, &seen.removed));
    }
    if !force && !conflicts.is_empty() {
        return Err(conflict(conflicts));
    }
    let is_unchanged = before.as_ref().is_some_and(|before| before.fields == set);
    let time = before.take().filter(|_| is_unchanged).map_or_else(|| time.clone(), |before| before.time);
    if !set.is_empty() {
        entries.push(ManagedEntry {
            manager: options.field_manager.clone(),
            is_apply: true,
            api_version: target.resource.api_version(),
            subresource: target.subresource.clone(),
            time,
            fields: set,
        });
    }
    write(entries, &mut object);
    Ok(object)
}

/// Returns the manager of the fields of an object that has none. `None`: it has no fields.
fn before_first_apply(target: &Target, old: &Value, time: &Value) -> Option<ManagedEntry> {
    let difference = SeenChange::new(target, &kinds::empty(&target.resource), old).own;
    (!difference.changed.is_empty()).then(|| ManagedEntry {
        manager: "before-first-apply".to_owned(),
        is_apply: false,
        api_version: target.resource.api_version(),
        subresource: target.subresource.clone(),
        time: time.clone(),
        fields: difference.changed,
    })
}

/// Returns the name of a manager in a message.
fn title(entry: &ManagedEntry) -> String {
    let subresource = if entry.subresource.is_empty() {
        String::new()
    } else {
        format!(" with subresource \"{}\"", entry.subresource)
    };
    let manager = &entry.manager;
    if entry.is_apply {
        format!("\"{manager}\"{subresource}")
    } else {
        format!("\"{manager}\"{subresource} using {}", entry.api_version)
    }
}

fn conflict(mut conflicts: Vec<(ManagedEntry, Vec<String>)>) -> ApiError {
    conflicts.sort_by(|(one, path), (two, other)| {
        one.identifier().cmp(&two.identifier()).then_with(|| in_order_of_a_set(path, other))
    });
    let all: Vec<(String, String)> = conflicts.iter().map(|(entry, path)| (title(entry), readable(path))).collect();
    let causes: Vec<Value> = all
        .iter()
        .map(|(manager, field)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field})
        })
        .collect();
    let mut managers: Vec<&String> = all.iter().map(|(manager, _)| manager).collect();
    managers.dedup();
    let message = match (all.as_slice(), managers.as_slice()) {
        ([(manager, field)], _) => format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
        (_, [manager]) => {
            let fields: Vec<String> = all.iter().map(|(_, field)| format!("- {field}")).collect();
            format!("Apply failed with {} conflicts: conflicts with {manager}:\n{}", all.len(), fields.join("\n"))
        }
        _ => {
            let groups: Vec<String> = managers
                .iter()
                .map(|manager| {
                    let fields: Vec<String> =
                        all.iter().filter(|(of, _)| of == *manager).map(|(_, field)| format!("- {field}")).collect();
                    format!("conflicts with {manager}:\n{}", fields.join("\n"))
                })
                .collect();
            format!("Apply failed with {} conflicts: {}", all.len(), groups.join("\n"))
        }
    };
    ApiError::new(409, "Conflict", message).with_details(json!({"causes": causes}))
}

/// Compares paths in the order in which Go's `fieldpath.Set` iterates: at each level, the paths that end there come first.
fn in_order_of_a_set(one: &[String], two: &[String]) -> Ordering {
    let shared = one.iter().zip(two).take_while(|(one, two)| one == two).count();
    let goes_on = |path: &[String]| path.len() > shared + 1;
    goes_on(one).cmp(&goes_on(two)).then_with(|| one.cmp(two))
}

/// Returns a path as messages have it: `.spec.ports[port=80].name`.
fn readable(path: &[String]) -> String {
    path.iter()
        .map(|element| match element.split_once(':') {
            Some(("k", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", pairs.join(","))
            }
            Some(("v", value)) => format!("[={value}]"),
            Some((_, name)) => format!(".{name}"),
            None => element.clone(),
        })
        .collect()
}

/// Returns the managers of an object.
fn entries_of(object: &Value) -> Vec<ManagedEntry> {
    let all = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .map(|entry| {
            let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut fields = FieldSet::new();
            if let Some(tree) = entry.get("fieldsV1").and_then(Value::as_object) {
                read(tree, &mut Vec::new(), &mut fields);
            }
            ManagedEntry {
                manager: text("manager"),
                is_apply: text("operation") == "Apply",
                api_version: text("apiVersion"),
                subresource: text("subresource"),
                time: entry.get("time").cloned().unwrap_or_default(),
                fields,
            }
        })
        .collect()
}

fn read(tree: &Map<String, Value>, path: &mut Vec<String>, fields: &mut FieldSet) {
    if tree.is_empty() && !path.is_empty() {
        fields.insert(path.clone());
    }
    for (name, inner) in tree {
        if name == "." {
            fields.insert(path.clone());
        } else if let Some(inner) = inner.as_object() {
            path.push(name.clone());
            read(inner, path, fields);
            path.pop();
        }
    }
}

/// Writes the managers that have fields: those that apply first, then by time.
fn write(mut entries: Vec<ManagedEntry>, object: &mut Value) {
    entries.retain(|entry| !entry.fields.is_empty());
    let order = |entry: &ManagedEntry| {
        let time = entry.time.as_str().unwrap_or_default().to_owned();
        (!entry.is_apply, time, entry.manager.clone(), entry.api_version.clone(), entry.subresource.clone())
    };
    entries.sort_by_key(order);
    let all: Vec<Value> = entries
        .into_iter()
        .map(|entry| {
            let operation = if entry.is_apply { "Apply" } else { "Update" };
            let mut value = json!({
                "manager": entry.manager, "operation": operation, "apiVersion": entry.api_version, "time": entry.time,
                "fieldsType": "FieldsV1", "fieldsV1": tree_of(&entry.fields),
            });
            if !entry.subresource.is_empty() {
                kinds::set_or_remove(&mut value, "subresource", Some(entry.subresource.into()));
            }
            value
        })
        .collect();
    let metadata = metadata(object);
    if all.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), all.into());
    }
}

fn tree_of(fields: &FieldSet) -> Value {
    let mut root = Map::new();
    for path in fields {
        // An inner field makes a leaf a branch, which says that it is a field itself.
        let next = fields.range(path.clone()..).nth(1);
        let is_branch = next.is_some_and(|next| next.len() > path.len() && next.starts_with(path));
        insert(&mut root, path, is_branch);
    }
    root.into()
}

fn insert(tree: &mut Map<String, Value>, path: &[String], is_branch: bool) {
    if let Some((first, rest)) = path.split_first() {
        if let Value::Object(inner) = tree.entry(first.clone()).or_insert_with(|| json!({})) {
            insert(inner, rest, is_branch);
        }
    } else if is_branch {
        tree.insert(".".to_owned(), json!({}));
    }
}

fn is_under_any(path: &[String], of: &FieldSet) -> bool {
    (1..=path.len()).any(|end| path.get(..end).is_some_and(|start| of.contains(start)))
}

impl Difference {
    fn retain(&mut self, is_kept: impl Fn(&[String]) -> bool) {
        self.changed.retain(|path| is_kept(path));
        self.removed.retain(|path| is_kept(path));
    }
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(|element| element.strip_prefix("f:").unwrap_or(element)).collect()
}

/// Returns true if a field can have a manager.
fn is_tracked(path: &[String]) -> bool {
    match names(path).as_slice() {
        ["apiVersion" | "kind" | "metadata"] => false,
        ["metadata", field, ..] => !STRIPPED.contains(field),
        [..] => true,
    }
}

/// Returns true if a write of a subresource can manage a field.
fn is_managed(resource: &ResourceInfo, subresource: &str, path: &[String]) -> bool {
    match names(path).as_slice() {
        [..] if !is_tracked(path) => false,
        ["metadata", field, ..] if subresource == "status" => {
            resource.builtin.is_some_and(|kind| !kinds::kept_by_status(kind).contains(field))
        }
        ["metadata", ..] => true,
        ["status", ..] => subresource == "status" || !resource.has_status(),
        [..] => subresource != "status",
    }
}

/// Adds the fields of a value.
fn collect(of: &FieldType<'_>, value: &Value, path: &mut Vec<String>, fields: &mut FieldSet) {
    match value {
        Value::Object(map) if !map.is_empty() && !of.is_atomic_map() => {
            for (name, value) in map {
                path.push(format!("f:{name}"));
                collect(&of.field(name), value, path, fields);
                path.pop();
            }
        }
        Value::Array(items) if of.list() != ListType::Atomic => {
            let list = of.list();
            for item in items {
                path.extend(item_name(&list, item));
                fields.insert(path.clone());
                if matches!(list, ListType::Keyed(_)) {
                    collect(&of.item(), item, path, fields);
                }
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            fields.insert(path.clone());
        }
    }
}

/// Adds all fields of a value, which is not null, with those that have others in them.
fn collect_all(of: &FieldType<'_>, value: &Value, path: &mut Vec<String>, fields: &mut FieldSet) {
    if !path.is_empty() {
        fields.insert(path.clone());
    }
    match value {
        Value::Object(map) if !of.is_atomic_map() => {
            for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                path.push(format!("f:{name}"));
                collect_all(&of.field(name), value, path, fields);
                path.pop();
            }
        }
        Value::Array(items) => {
            let list = of.list();
            for item in items {
                let Some(name) = item_name(&list, item) else { continue };
                path.push(name);
                collect_all(&of.item(), item, path, fields);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
    }
}

fn compare(
    of: &FieldType<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<String>,
    difference: &mut Difference,
) {
    // A field that is null is none.
    match (old.filter(|it| !it.is_null()), new.filter(|it| !it.is_null())) {
        (None, Some(new)) => collect_all(of, new, path, &mut difference.changed),
        (Some(old), None) => collect_all(of, old, path, &mut difference.removed),
        (Some(Value::Object(old)), Some(Value::Object(new))) if !of.is_atomic_map() => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                path.push(format!("f:{name}"));
                compare(&of.field(name), old.get(name), new.get(name), path, difference);
                path.pop();
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if of.list() != ListType::Atomic => {
            let list = of.list();
            let named = |items: &[Value], name: &str| {
                items.iter().find(|item| item_name(&list, item).as_deref() == Some(name)).cloned()
            };
            let all: BTreeSet<String> = old.iter().chain(new).filter_map(|item| item_name(&list, item)).collect();
            for name in all {
                path.push(name.clone());
                compare(&of.item(), named(old, &name).as_ref(), named(new, &name).as_ref(), path, difference);
                path.pop();
            }
        }
        (Some(old), Some(new)) if old != new => {
            difference.changed.insert(path.clone());
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
}

/// Returns a value with the fields of an applied configuration.
fn merge(of: &FieldType<'_>, base: &Value, applied: &Value) -> Value {
    match (base, applied) {
        (Value::Object(base), Value::Object(applied)) if !of.is_atomic_map() => {
            let mut fields = base.clone();
            for (name, value) in applied {
                let merged = fields.get(name).map(|stored| merge(&of.field(name), stored, value));
                fields.insert(name.clone(), merged.unwrap_or_else(|| value.clone()));
            }
            fields.into()
        }
        (Value::Array(base), Value::Array(applied)) if of.list() != ListType::Atomic => {
            merge_lists(of, base, applied).into()
        }
        (_, applied) => applied.clone(),
    }
}

/// Merges lists by the names of items. The applied order counts among the items that are applied.
fn merge_lists(of: &FieldType<'_>, base: &[Value], applied: &[Value]) -> Vec<Value> {
    let list = of.list();
    let named = |items: &[Value], item: &Value| {
        let name = item_name(&list, item);
        items.iter().position(|it| item_name(&list, it) == name)
    };
    let (mut items, mut next) = (Vec::new(), 0);
    for stored in base {
        let Some(place) = named(applied, stored) else {
            items.push(stored.clone());
            continue;
        };
        // Everything that is applied up to this item comes first, in the applied order.
        while next <= place {
            if let Some(item) = applied.get(next) {
                let before = named(base, item).and_then(|at| base.get(at));
                items.push(before.map_or_else(|| item.clone(), |before| merge(&of.item(), before, item)));
            }
            next += 1;
        }
    }
    for item in applied.iter().skip(next) {
        items.push(item.clone());
    }
    items
}

/// Returns what goes when an apply no longer has a field: the outermost field in which nobody owns anything, with all that is in it.
fn removed_at<'p>(path: &'p [String], owned: &FieldSet) -> Option<&'p [String]> {
    let is_owned = |start: &[String]| owned.range(start.to_vec()..).next().is_some_and(|next| next.starts_with(start));
    let mut starts = (1..=path.len()).filter_map(|end| path.get(..end));
    starts.find(|start| {
        let is_named = start.last().is_some_and(|last| last.starts_with("f:"));
        (is_named || start.len() == path.len()) && !is_owned(start)
    })
}

/// Removes the field or the item at a path.
fn remove(of: &FieldType<'_>, value: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (value, first.strip_prefix("f:")) {
        (Value::Object(fields), Some(name)) => {
            if rest.is_empty() {
                fields.shift_remove(name);
            } else if let Some(inner) = fields.get_mut(name) {
                remove(&of.field(name), inner, rest);
            }
        }
        (Value::Array(items), None) => {
            let list = of.list();
            let place = items.iter().position(|item| item_name(&list, item).as_ref() == Some(first));
            let Some(place) = place else { return };
            if rest.is_empty() {
                items.remove(place);
            } else if let Some(item) = items.get_mut(place) {
                // The keys of an item go with the item.
                let name = rest.first().and_then(|it| it.strip_prefix("f:"));
                let is_key = matches!(&list, ListType::Keyed(keys) if rest.len() == 1
                    && name.is_some_and(|name| keys.iter().any(|key| key == name)));
                if !is_key {
                    remove(&of.item(), item, rest);
                }
            }
        }
        _ => {}
    }
}
