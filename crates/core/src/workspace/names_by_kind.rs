//! Names of objects, by the kind that they are about.

use crate::names::GroupKind;
use std::collections::{BTreeSet, HashMap};

/// Sets of names. INVARIANT: no set is empty.
#[derive(Debug, Default)]
pub(super) struct NamesByKind(HashMap<GroupKind, BTreeSet<Box<str>>>);

impl NamesByKind {
    pub(super) fn insert(&mut self, kind: &GroupKind, name: &str) {
        self.0.entry(kind.clone()).or_default().insert(name.into());
    }

    pub(super) fn remove(&mut self, kind: &GroupKind, name: &str) {
        if let Some(names) = self.0.get_mut(kind) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(kind);
            }
        }
    }

    /// Returns true if there is a name for the kind.
    pub(super) fn has(&self, kind: &GroupKind) -> bool {
        self.0.contains_key(kind)
    }

    /// Returns the names for a kind, sorted.
    pub(super) fn of(&self, kind: &GroupKind) -> impl Iterator<Item = &Box<str>> {
        self.0.get(kind).into_iter().flatten()
    }

    /// Returns the kinds that have names.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.0.keys()
    }
}
