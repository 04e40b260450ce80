//! Merges an applied configuration into the object in the cluster, and removes owned fields from it.

use super::field_set::FieldSet;
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, ListType, MapType, TypeRef};
use crate::value::{MapEntry, Value, by_name};
use bumpalo::Bump;
use std::collections::{BTreeMap, BTreeSet};

/// Changes objects. Their values are in the arena.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging<'a> {
    pub(super) types: &'a ApplyTypes,
    pub(super) arena: &'a Bump,
}

impl<'a> Merging<'a> {
    /// Returns the object with everything that the configuration sets.
    pub(super) fn merge(self, live: Value<'a>, config: Value<'a>) -> Value<'a> {
        self.merge_values(live, config, TypeRef::ROOT)
    }

    fn merge_values(self, live: Value<'a>, config: Value<'a>, of: TypeRef) -> Value<'a> {
        match self.types.handling(of, Some(config)) {
            Handling::Map(map) if !map.atomic => {
                let (old, new) = (live.entries().unwrap_or_default(), config.entries().unwrap_or_default());
                if old.is_empty() && new.is_empty() { config } else { self.merge_fields(map, old, new) }
            }
            Handling::List(list) if !list.is_atomic() => {
                let (old, new) = (live.items().unwrap_or_default(), config.items().unwrap_or_default());
                if old.is_empty() && new.is_empty() { config } else { self.merge_items(list, old, new) }
            }
            Handling::Map(_) | Handling::List(_) | Handling::Scalar => config,
        }
    }

    fn merge_fields(self, map: &MapType, live: &'a [MapEntry<'a>], config: &'a [MapEntry<'a>]) -> Value<'a> {
        let (present, added) = (by_name(live), by_name(config));
        let mut out = Vec::with_capacity(live.len().max(config.len()));
        for (name, value) in live {
            let merged = match (added.get(name), map.field(name)) {
                (Some(new), Some(of)) => self.merge_values(*value, *new, of),
                _ => *value,
            };
            out.push((*name, merged));
        }
        out.extend(config.iter().filter(|(name, _)| !present.contains_key(name)));
        Value::map_in(self.arena, &out)
    }

    /// Merges two lists of items with identities. The items of the configuration keep their order, and items of the object
    /// stay before the item that they preceded.
    fn merge_items(self, list: &ListType, live: &'a [Value<'a>], config: &'a [Value<'a>]) -> Value<'a> {
        let elements = |items: &[Value<'a>]| items.iter().map(|item| list.element_or_none(*item)).collect::<Vec<_>>();
        let (ours, theirs) = (elements(config), elements(live));
        let new: BTreeMap<&PathElement, Value<'a>> = ours.iter().zip(config.iter().copied()).collect();
        let mut old = BTreeMap::<&PathElement, Value<'a>>::new();
        for (element, item) in theirs.iter().zip(live) {
            // Duplicates are not merged with the item of the configuration, which replaces them.
            old.entry(element).and_modify(|known| *known = Value::Null).or_insert(*item);
        }
        let mut shared = ours.iter().filter(|element| old.contains_key(element)).peekable();
        let mut merged = BTreeSet::<&PathElement>::new();
        let mut out = Vec::with_capacity(live.len().max(config.len()));
        let merge = |element: &PathElement| match (old.get(element), new.get(element)) {
            (Some(old), Some(new)) => Some(self.merge_values(*old, *new, list.items)),
            (_, new) => new.copied(),
        };
        let (mut at_live, mut at_config) = (0, 0);
        loop {
            let (their, our) = (theirs.get(at_live), ours.get(at_config));
            if their.is_none() && our.is_none() {
                return Value::list_in(self.arena, &out);
            }
            if let (Some(their), Some(our)) = (their, our) {
                if their == our {
                    merged.insert(our);
                    out.extend(merge(our));
                    (at_live, at_config) = (at_live + 1, at_config + 1);
                    shared.next();
                    continue;
                }
                if new.contains_key(their) && shared.peek().is_some_and(|next| *next != their) {
                    // The configuration has the item at another position.
                    at_live += 1;
                    continue;
                }
            }
            if let Some(their) = their {
                if !new.contains_key(their) {
                    out.extend(live.get(at_live).copied());
                    at_live += 1;
                    continue;
                }
                if merged.contains(their) {
                    at_live += 1;
                }
            }
            if let Some(our) = our {
                merged.insert(our);
                out.extend(merge(our));
                at_config += 1;
                if shared.peek().is_some_and(|next| *next == our) {
                    shared.next();
                }
            }
        }
    }

    /// Returns the object without the fields and the items of a set. What loses all its fields becomes null.
    pub(super) fn remove(self, object: Value<'a>, set: &FieldSet) -> Value<'a> {
        self.remove_from(object, set, TypeRef::ROOT)
    }

    fn remove_from(self, value: Value<'a>, set: &FieldSet, of: TypeRef) -> Value<'a> {
        match (self.types.handling(of, Some(value)), value) {
            (Handling::Scalar, value) => value,
            (Handling::List(list), Value::List(items)) if !list.is_atomic() => self.remove_items(list, items, set),
            (Handling::Map(map), Value::Map(fields)) if !map.atomic => self.remove_fields(map, fields, set),
            (Handling::List(_) | Handling::Map(_), _) => Value::Null,
        }
    }

    fn remove_items(self, list: &ListType, items: &[Value<'a>], set: &FieldSet) -> Value<'a> {
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            match set.get(&list.element_or_none(*item)) {
                Some(node) if node.member => {}
                Some(node) => kept.push(self.remove_from(*item, &node.children, list.items)),
                None => kept.push(*item),
            }
        }
        if kept.is_empty() { Value::Null } else { Value::list_in(self.arena, &kept) }
    }

    fn remove_fields(self, map: &MapType, fields: &[MapEntry<'a>], set: &FieldSet) -> Value<'a> {
        let mut kept = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            match (set.get(&PathElement::Field((*name).into())), map.field(name)) {
                (Some(node), _) if node.member => {}
                (Some(node), Some(of)) => kept.push((*name, self.remove_from(*value, &node.children, of))),
                _ => kept.push((*name, *value)),
            }
        }
        if kept.is_empty() { Value::Null } else { Value::map_in(self.arena, &kept) }
    }
}
