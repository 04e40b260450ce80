//! The storage, as etcd is one: objects under keys, one revision for each write, and the history of writes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tokio::time::Instant;

/// All objects and their history.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    revision: u64,
    /// The last revision that is forgotten.
    compacted: u64,
    collections: BTreeMap<String, BTreeMap<String, StoredObject>>,
    /// INVARIANT: one for each revision from `first_event` to `revision`.
    events: Vec<StoredEvent>,
    first_event: u64,
}

/// An object and the revision of its last write.
#[derive(Debug, Clone)]
pub(crate) struct StoredObject {
    pub(crate) object: Arc<Value>,
    pub(crate) revision: u64,
}

/// A write.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    pub(crate) revision: u64,
    pub(crate) at: Instant,
    pub(crate) collection: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

/// Some objects of a collection.
#[derive(Debug, Default)]
pub(crate) struct StoredPage {
    pub(crate) objects: Vec<(String, StoredObject)>,
    /// Objects behind the page.
    pub(crate) remaining: usize,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Self { revision: 1, compacted: 0, collections: BTreeMap::new(), events: Vec::new(), first_event: 2 }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Forgets the history before the present.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&StoredObject> {
        self.collections.get(collection)?.get(key)
    }

    pub(crate) fn objects(&self, collection: &str) -> impl Iterator<Item = (&str, &StoredObject)> {
        self.collections.get(collection).into_iter().flatten().map(|(key, stored)| (&**key, stored))
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = &str> {
        self.collections.keys().map(String::as_str)
    }

    /// Stores an object, `None` to delete it, and returns it with its new `resourceVersion`.
    ///
    /// The event of a deletion has the object with the version of the deletion.
    pub(crate) fn write(
        &mut self,
        collection: &str,
        key: &str,
        object: Option<Value>,
        at: Instant,
    ) -> Option<Arc<Value>> {
        self.revision += 1;
        let revision = self.revision;
        let objects = self.collections.entry(collection.to_owned()).or_default();
        let after = object.map(|mut object| {
            set_version(&mut object, revision);
            Arc::new(object)
        });
        let before = match &after {
            Some(object) => objects.insert(key.to_owned(), StoredObject { object: Arc::clone(object), revision }),
            None => objects.remove(key),
        };
        self.events.push(StoredEvent {
            revision,
            at,
            collection: collection.into(),
            key: key.into(),
            before: before.map(|stored| stored.object),
            after: after.clone(),
        });
        after
    }

    /// Returns the writes after a revision.
    pub(crate) fn events_after(&self, revision: u64) -> &[StoredEvent] {
        let skipped = revision.saturating_add(1).saturating_sub(self.first_event);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(self.events.len());
        self.events.get(skipped..).unwrap_or_default()
    }

    /// Returns the last revision that was written at a time or before.
    pub(crate) fn revision_at(&self, time: Instant) -> u64 {
        let behind = self.events.partition_point(|event| event.at <= time);
        behind
            .checked_sub(1)
            .and_then(|last| self.events.get(last))
            .map_or(self.first_event - 1, |event| event.revision)
    }

    /// Returns objects of a collection as they were at a revision: those that have the prefix, from a key on, `limit` of those that
    /// `is_selected`.
    pub(crate) fn page(
        &self,
        collection: &str,
        revision: u64,
        range: (&str, &str),
        limit: usize,
        is_selected: impl Fn(&Value) -> bool,
    ) -> StoredPage {
        let (prefix, start) = range;
        let past;
        let empty = BTreeMap::new();
        let objects = if revision >= self.revision {
            self.collections.get(collection).unwrap_or(&empty)
        } else {
            past = self.at(collection, revision);
            &past
        };
        let from = if start > prefix { start } else { prefix };
        let mut page = StoredPage::default();
        let range = objects.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        let mut range = range.take_while(|(key, _)| key.starts_with(prefix));
        for (key, stored) in range.by_ref() {
            if is_selected(&stored.object) {
                page.objects.push((key.clone(), stored.clone()));
                if page.objects.len() == limit {
                    break;
                }
            }
        }
        page.remaining = range.count();
        page
    }

    /// Returns an object as it was at a revision.
    pub(crate) fn get_at(&self, collection: &str, key: &str, revision: u64) -> Option<Arc<Value>> {
        let later = self.events_after(revision);
        match later.iter().find(|event| &*event.collection == collection && &*event.key == key) {
            Some(event) => event.before.clone(),
            None => self.get(collection, key).map(|stored| Arc::clone(&stored.object)),
        }
    }

    /// Returns a collection as it was at a revision.
    fn at(&self, collection: &str, revision: u64) -> BTreeMap<String, StoredObject> {
        let mut objects = self.collections.get(collection).cloned().unwrap_or_default();
        for event in self.events_after(revision).iter().rev().filter(|event| &*event.collection == collection) {
            match &event.before {
                Some(object) => {
                    let stored = StoredObject { object: Arc::clone(object), revision: version_of(object) };
                    objects.insert(event.key.to_string(), stored);
                }
                None => {
                    objects.remove(&*event.key);
                }
            }
        }
        objects
    }
}

/// Returns the key of an object.
pub(crate) fn key_of(namespace: &str, name: &str) -> String {
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{namespace}{slash}{name}")
}

/// Returns the `resourceVersion` of a stored object as a number.
pub(crate) fn version_of(object: &Value) -> u64 {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Sets the `resourceVersion` of an object.
pub(crate) fn set_version(object: &mut Value, revision: u64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_past_can_be_read() {
        let (mut storage, now) = (Storage::new(), Instant::now());
        let object = |value: u32| Some(json!({"metadata": {}, "value": value}));
        storage.write("c", "a", object(1), now);
        storage.write("c", "b", object(1), now);
        storage.write("d", "a", object(1), now);
        storage.write("c", "a", object(2), now);
        storage.write("c", "b", None, now);
        assert_eq!(storage.revision(), 6);
        let keys = |revision| {
            let page = storage.page("c", revision, ("", ""), usize::MAX, |_| true);
            page.objects.iter().map(|(key, it)| format!("{key}{}", it.object["value"])).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(keys), ["", "a1", "a1 b1", "a1 b1", "a2 b1", "a2"]);
        assert_eq!(storage.get_at("c", "b", 5).unwrap()["metadata"]["resourceVersion"], "3");
        assert_eq!(storage.get_at("c", "b", 6), None);
        assert_eq!(storage.events_after(4).len(), 2);
        assert_eq!(storage.events_after(9).len(), 0);
    }

    #[test]
    fn a_page_ends_at_its_limit() {
        let (mut storage, now) = (Storage::new(), Instant::now());
        for key in ["a-b/x", "a/x", "a/y", "b/x"] {
            storage.write("c", key, Some(json!({"metadata": {}})), now);
        }
        let page = |prefix, start, limit| {
            let page = storage.page("c", 5, (prefix, start), limit, |_| true);
            (page.objects.into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" "), page.remaining)
        };
        assert_eq!(page("", "", 2), ("a-b/x a/x".to_owned(), 2));
        assert_eq!(page("", "a/x\0", 2), ("a/y b/x".to_owned(), 0));
        assert_eq!(page("a/", "", 9), ("a/x a/y".to_owned(), 0));
    }
}
