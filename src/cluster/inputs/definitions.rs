//! CRDs as inputs.

use super::super::compact::compact;
use super::super::raw::{ObjectParts, RawDefinition};
use super::Inputs;
use crate::causes::with_causes;
use kube_unions_core::catalog::compiling_cost;
use kube_unions_core::declaration::{ANNOTATION, Acceptance, BuiltinGroups, LAST_APPLIED, mentions_unions};
use kube_unions_core::names::GroupKind;
use kube_unions_core::schema::EXTENSION;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A CRD, shrunk to the parts that its unions follow from.
#[derive(Debug, Clone)]
pub(in crate::cluster) struct StoredDefinition {
    /// Hash of the annotations and the `spec`: the version of this input. An event that changes neither of them nor the
    /// acceptance costs nothing.
    fingerprint: u64,
    /// The error of a CRD that cannot be read does not depend on the groups of the API server.
    pub(in crate::cluster) acceptance: Result<Acceptance, String>,
    /// JSON text, compact.
    pub(in crate::cluster) spec: Arc<str>,
    /// The annotations that declare unions.
    pub(in crate::cluster) annotations: Arc<BTreeMap<String, String>>,
    /// JSON text.
    status: Option<Arc<str>>,
    pub(in crate::cluster) mentions_unions: bool,
    /// Memory to compile the CRD as it is stored, in bytes.
    pub(in crate::cluster) compiling_cost: usize,
}

impl StoredDefinition {
    /// Returns the kind that an accepted CRD defines.
    pub(in crate::cluster) fn kind(&self) -> Option<&GroupKind> {
        match &self.acceptance {
            Ok(Acceptance::Accepted(claim)) => Some(&claim.kind),
            Ok(Acceptance::Pending | Acceptance::Ignored(..)) | Err(_) => None,
        }
    }

    fn new(raw: &RawDefinition, fingerprint: u64, acceptance: Result<Acceptance, String>) -> Self {
        let Ok(ObjectParts { annotations, spec, status }) = raw.parts() else {
            return Self {
                fingerprint,
                acceptance,
                spec: Arc::default(),
                annotations: Arc::default(),
                status: None,
                mentions_unions: false,
                compiling_cost: 0,
            };
        };
        // kubectl keeps the whole CRD in an annotation. Few mention unions there.
        let declares = |(name, text): &(&String, &String)| {
            *name == ANNOTATION || (*name == LAST_APPLIED && text.contains(EXTENSION))
        };
        let declaring = annotations.iter().filter(declares);
        Self {
            fingerprint,
            acceptance,
            spec: compact(spec.get()).into(),
            annotations: Arc::new(declaring.map(|(name, text)| (name.clone(), text.clone())).collect()),
            status: status.as_ref().map(|status| status.get().into()),
            mentions_unions: mentions_unions(annotations, spec.get()),
            compiling_cost: compiling_cost(spec.get(), annotations.values().map(String::len).sum()),
        }
    }
}

impl Inputs {
    /// Stores a CRD. Returns false if nothing changed that matters.
    pub(in crate::cluster) fn put_definition(&mut self, raw: &RawDefinition) -> bool {
        let fingerprint = self.hasher.hash_one(raw.parts().map(|parts| (&parts.annotations, parts.spec.get())));
        let acceptance = raw.acceptance(&self.builtin_groups);
        let unchanged =
            |stored: &Arc<StoredDefinition>| stored.fingerprint == fingerprint && stored.acceptance == acceptance;
        if self.definitions.get(raw.name()).is_some_and(unchanged) {
            return false;
        }
        self.set_definition(raw.name(), Some(StoredDefinition::new(raw, fingerprint, acceptance)));
        true
    }

    /// Forgets a CRD. Returns false if the table does not have it.
    pub(in crate::cluster) fn remove_definition(&mut self, name: &str) -> bool {
        let known = self.has_definition(name);
        self.set_definition(name, None);
        known
    }

    /// Replaces the groups that the API server serves from its own code. Returns the CRDs whose acceptance that changes, each
    /// with the kind that it defined before.
    pub(in crate::cluster) fn set_builtin_groups(
        &mut self,
        groups: BuiltinGroups,
    ) -> Vec<(Box<str>, Option<GroupKind>)> {
        if *self.builtin_groups == groups {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (name, stored) in self.definitions.iter().filter(|(_, stored)| stored.acceptance.is_ok()) {
            let acceptance = Acceptance::read(&stored.spec, stored.status.as_deref(), &groups);
            let acceptance = acceptance.map_err(|error| with_causes(&error));
            if acceptance != stored.acceptance {
                changed.push((name.clone(), StoredDefinition { acceptance, ..(**stored).clone() }));
            }
        }
        self.builtin_groups = Arc::new(groups);
        let mut names = Vec::with_capacity(changed.len());
        for (name, stored) in changed {
            names.push((name.clone(), self.defined_by(&name).cloned()));
            self.set_definition(&name, Some(stored));
        }
        names
    }

    pub(in crate::cluster) fn has_definition(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    /// Returns the names of all CRDs.
    pub(in crate::cluster) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(AsRef::as_ref)
    }

    /// Returns the kind that a CRD defines, if it is accepted.
    pub(in crate::cluster) fn defined_by(&self, name: &str) -> Option<&GroupKind> {
        self.definitions.get(name)?.kind()
    }

    /// Returns the name of the CRD that defines a kind.
    pub(in crate::cluster) fn definition_of(&self, kind: &GroupKind) -> Option<&str> {
        self.definers.get(kind)?.first().map(AsRef::as_ref)
    }

    fn set_definition(&mut self, name: &str, stored: Option<StoredDefinition>) {
        if let Some(kind) = self.defined_by(name).cloned()
            && let Some(names) = self.definers.get_mut(&kind)
        {
            names.remove(name);
            if names.is_empty() {
                self.definers.remove(&kind);
            }
        }
        let Some(stored) = stored else {
            self.definitions.remove(name);
            return;
        };
        if let Some(kind) = stored.kind() {
            self.definers.entry(kind.clone()).or_default().insert(name.into());
        }
        self.definitions.insert(name.into(), Arc::new(stored));
    }
}
