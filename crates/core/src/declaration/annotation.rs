//! The annotation `kube-unions.dev/unions`, which an API server keeps although it drops the extension from the schema.
//!
//! Its value is a JSON object: version of the CRD → JSON Pointer (RFC 6901) into the `openAPIV3Schema` of that version →
//! value of `x-kubernetes-unions` at that place.

use super::{Definition, FaultKind, Source};
use crate::field_path::Printable;
use crate::schema::{Declared, Origin, Place};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

/// The name of the annotation.
pub const ANNOTATION: &str = "kube-unions.dev/unions";

const BY: (Source, Option<&Origin>) = (Source::Annotation, None);

/// Greatest size of all annotations of an object together, keys and values, in bytes. A limit of Kubernetes.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The content of the annotation, for writers: version → JSON Pointer into its schema → value of the extension.
///
/// A [`Definition`] reads the annotation entry by entry instead, to report a fault of each.
pub type AnnotationContent = BTreeMap<String, BTreeMap<String, Value>>;

pub(super) fn graft(definition: &mut Definition, text: &str) {
    let by_version: OrderedEntries<OrderedEntries<Entry>> = match serde_json::from_str(text) {
        Ok(entries) => entries,
        Err(error) => {
            let message =
                format!("not a JSON object of versions and pointers: {error}; write it with `kube-unions annotate`");
            return definition.report(FaultKind::InvalidAnnotation, None, &Place::root(), BY, message);
        }
    };
    let mut versions = HashSet::new();
    for (name, by_pointer) in by_version.0.into_iter().rev() {
        if !versions.insert(name.clone()) {
            let message = format!("has the version `{name}` twice; the last one counts");
            definition.report(FaultKind::DuplicateEntry, None, &Place::root(), BY, message);
            continue;
        }
        let Some(version) = definition.version_named(&name) else {
            let message = format!("the CRD has no version `{name}` with a schema; correct the name or remove it");
            definition.report(FaultKind::UnknownVersion, None, &Place::root(), BY, message);
            continue;
        };
        graft_version(definition, version, by_pointer);
    }
}

fn graft_version(definition: &mut Definition, version: usize, by_pointer: OrderedEntries<Entry>) {
    let mut places = HashSet::new();
    for (pointer, entry) in by_pointer.0.into_iter().rev() {
        match Place::from_pointer(&pointer) {
            Err(error) => {
                let message = error.to_string();
                definition.report(FaultKind::InvalidAnnotation, Some(version), &Place::root(), BY, message);
            }
            Ok(place) if places.insert(place.clone()) => {
                let mut repeated = None;
                let value = entry.into_value(&mut repeated);
                if let Some(key) = repeated {
                    let message = format!("`{pointer}` has `{}` twice; the last one counts", Printable::new(&key, 64));
                    definition.report(FaultKind::DuplicateEntry, Some(version), &place, BY, message);
                }
                definition.graft(version, &place, Declared::new(value, Source::Annotation));
            }
            Ok(place) => {
                let message = format!("has `{pointer}` twice; the last one counts");
                definition.report(FaultKind::DuplicateEntry, Some(version), &place, BY, message);
            }
        }
    }
}

/// A JSON value with its duplicate keys.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Fields(OrderedEntries<Self>),
    Items(Vec<Self>),
    Other(Value),
}

impl Entry {
    /// Returns the value with the last of each key, and a key that it has twice.
    fn into_value(self, repeated: &mut Option<String>) -> Value {
        match self {
            Self::Fields(OrderedEntries(entries)) => {
                let mut fields = Map::new();
                for (name, entry) in entries {
                    let value = entry.into_value(repeated);
                    if fields.insert(name.clone(), value).is_some() {
                        repeated.get_or_insert(name);
                    }
                }
                Value::Object(fields)
            }
            Self::Items(items) => items.into_iter().map(|item| item.into_value(repeated)).collect(),
            Self::Other(value) => value,
        }
    }
}

/// The entries of a JSON object in their order, with duplicate keys.
struct OrderedEntries<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedEntries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = OrderedEntries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(OrderedEntries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}
