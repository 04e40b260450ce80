//! Items of a list that `kubectl apply` mixes up, because several have the key by which an API server merges the list.
//!
//! kubectl sorts the items by this key, and compares those with the same key in their order. The API server merges each difference into the
//! first of them. If the last manifest had more of them, the patch deletes all.

use crate::json_merge::{merge, three_way};
use crate::schema::{FieldSchema, MergeSchema, NodeId, Strategy};
use kube_unions_core::field_path::{FieldPath, Segment};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Items with one key, of which a client-side apply does not store all as they are written. Which of them it stores depends on its order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MixedItem {
    /// The first of them in the new manifest.
    pub path: FieldPath,
    /// The only key by which an API server merges the list.
    pub key: Box<str>,
    /// True if nothing that the apply stores has the key.
    pub is_deleted: bool,
}

/// A value in the old manifest, the new one, and the live object.
#[derive(Clone, Copy)]
struct Sides<'v> {
    old: Option<&'v Value>,
    new: &'v Value,
    live: Option<&'v Value>,
}

struct MixedItemSearch<'s> {
    schema: &'s MergeSchema,
    path: Vec<Segment>,
    found: Vec<MixedItem>,
}

/// Returns the items of the manifest `new` that a three-way strategic merge patch mixes up, the first with each key. `old` is the
/// manifest before, and `live` the stored object.
pub(crate) fn mixed_items(schema: &MergeSchema, old: &Value, new: &Value, live: &Value) -> Vec<MixedItem> {
    let mut search = MixedItemSearch { schema, path: Vec::new(), found: Vec::new() };
    search.object(NodeId::ROOT, Sides { old: Some(old), new, live: Some(live) });
    search.found
}

impl MixedItemSearch<'_> {
    fn object(&mut self, id: NodeId, sides: Sides<'_>) {
        // A value that the live object lacks is sent as it is.
        let (Some(fields), Some(Value::Object(live))) = (sides.new.as_object(), sides.live) else { return };
        for (name, new) in fields {
            let Some(field) = self.schema.known(id, name).filter(|field| field.strategy != Strategy::Replace) else {
                continue;
            };
            let below = Sides { old: sides.old.and_then(|old| old.get(name)), new, live: live.get(name) };
            self.path.push(self.schema.step(id, name));
            match new {
                Value::Array(items) => self.list(field, items, below),
                Value::Object(_) => self.object(field.object, below),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
            self.path.pop();
        }
    }

    fn list(&mut self, field: &FieldSchema, items: &[Value], sides: Sides<'_>) {
        let live = sides.live.and_then(Value::as_array).filter(|live| !live.is_empty());
        let (Strategy::Merge, Some(keys), Some(live)) = (field.strategy, &field.keys, live) else { return };
        let key = keys.published().default_key();
        let old = sides.old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let [of_old, mut of_new, of_live] = [old, items, live].map(|list| by_key(list, key));
        for (position, item) in items.iter().enumerate() {
            // The first item with a key takes them all.
            let Some(value) = item.get(key).map(Value::to_string) else { continue };
            let Some(of_new) = of_new.remove(&value) else { continue };
            let [of_old, of_live] = [&of_old, &of_live].map(|all| all.get(&value).map_or(&[][..], Vec::as_slice));
            self.path.push(Segment::Index(position));
            if of_old.len() <= 1 && of_new.len() == 1 && of_live.len() <= 1 {
                self.object(
                    field.items,
                    Sides { old: of_old.first().copied(), new: item, live: of_live.first().copied() },
                );
            } else {
                let stored = stored(of_old, &of_new, of_live);
                if !of_new.iter().all(|item| stored.iter().any(|stored| has(stored, item))) {
                    let path = self.path.iter().cloned().collect();
                    self.found.push(MixedItem { path, key: key.into(), is_deleted: stored.is_empty() });
                }
            }
            self.path.pop();
        }
    }
}

/// Returns the items of a list by the JSON text of their key.
fn by_key<'v>(list: &'v [Value], key: &str) -> BTreeMap<String, Vec<&'v Value>> {
    let mut all = BTreeMap::<String, Vec<&Value>>::new();
    for item in list {
        if let Some(value) = item.get(key) {
            all.entry(value.to_string()).or_default().push(item);
        }
    }
    all
}

/// Returns the live items with one key after an apply.
fn stored(old: &[&Value], new: &[&Value], live: &[&Value]) -> Vec<Value> {
    if old.len() > new.len() {
        return Vec::new();
    }
    let empty = Value::Object(Map::new());
    let mut stored: Vec<Value> = live.iter().copied().cloned().collect();
    for (position, item) in new.iter().enumerate() {
        let [old, live] = [old, live].map(|list| list.get(position).copied().unwrap_or(&empty));
        let patch = three_way(old, item, live);
        if patch == empty {
            continue;
        }
        match stored.first_mut() {
            Some(first) => merge(first, &patch),
            None => stored.push((*item).clone()),
        }
    }
    stored
}

/// Returns true if a value has everything of another, and perhaps defaults.
fn has(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(fields), Value::Object(parts)) => {
            parts.iter().all(|(name, part)| part.is_null() || fields.get(name).is_some_and(|value| has(value, part)))
        }
        _ => value == part,
    }
}

#[cfg(test)]
mod tests {
    use crate::apply_engines::ApplySides;
    use crate::patcher::Patcher;
    use serde_json::json;

    /// Returns the positions of the ports that are mixed up, and if they are deleted.
    fn mixed([old, new, live]: [&[&str]; 3]) -> Vec<(String, bool)> {
        let schema = json!({"properties": {"ports": {"type": "array", "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "port", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"properties": {"port": {"type": "integer"}, "protocol": {"type": "string"}, "name": {"type": "string"}}}}}});
        let patcher = Patcher::from_json_schema("Service", &schema.to_string()).unwrap();
        let object = |ports: &[&str]| {
            let port = |port: &&str| {
                let (number, rest) = port.split_once('/').unwrap();
                let (protocol, name) = rest.split_once('=').unwrap();
                json!({"port": number.parse::<u16>().unwrap(), "protocol": protocol, "name": name})
            };
            json!({"ports": ports.iter().map(port).collect::<Vec<_>>()})
        };
        let [old, new, live] = [old, new, live].map(object);
        let found = patcher.mixed_items(ApplySides { old: &old, new: &new, live: &live });
        found.into_iter().map(|item| (item.path.to_string(), item.is_deleted)).collect()
    }

    #[test]
    fn an_item_whose_key_another_has_is_mixed_up_if_something_changes() {
        let (udp, tcp, web) = ("53/UDP=a", "53/TCP=b", "80/TCP=c");
        let item = |position: usize, deleted| (format!("ports[{position}]"), deleted);
        for (sides, want) in [
            ([&[udp, web][..], &[udp, tcp, web], &[udp, web]], vec![item(0, false)]),
            ([&[udp, tcp, web], &[udp, web], &[udp, tcp, web]], vec![item(0, true)]),
            ([&[udp, tcp], &[udp, "53/TCP=d"], &[udp, tcp]], vec![item(0, false)]),
            ([&[udp, tcp], &["53/UDP=d", tcp], &[udp, tcp]], vec![]),
            ([&[udp, tcp, web], &[udp, tcp, "80/TCP=d"], &[udp, tcp, web]], vec![]),
            ([&[udp, tcp, web], &[udp, tcp], &[udp, tcp, web]], vec![]),
            ([&[udp, tcp], &[web], &[udp, tcp]], vec![]),
            ([&[], &[udp, tcp], &[]], vec![]),
            ([&[web], &[web, udp, tcp], &[web]], vec![item(1, false)]),
        ] {
            assert_eq!(mixed(sides), want, "{sides:?}");
        }
    }
}
