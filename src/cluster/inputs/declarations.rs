//! `UnionDeclaration`s as inputs.

use super::super::raw::RawDeclaration;
use super::super::verdict::StoredStatus;
use super::Inputs;
use crate::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Fault, FaultKind, Source};
use kube_unions_core::names::GroupKind;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::Arc;

/// A `UnionDeclaration`.
#[derive(Debug)]
pub(in crate::cluster) struct StoredDeclaration {
    /// Hash of the `spec`: the version of this input.
    fingerprint: u64,
    pub(in crate::cluster) generation: Option<i64>,
    /// `None` if it cannot be read.
    pub(in crate::cluster) target: Option<GroupKind>,
    /// The faults of the declaration alone, whatever the schema of its target.
    pub(in crate::cluster) faults: Vec<Fault>,
    /// The number of declared unions, `None` if it cannot be read.
    pub(in crate::cluster) declared: Option<usize>,
    pub(in crate::cluster) status: StoredStatus,
}

/// The consequence of a changed declaration.
#[derive(Debug)]
pub(in crate::cluster) struct DeclarationChange {
    /// The kinds whose declarations changed: the old target and the new one.
    pub(in crate::cluster) kinds: BTreeSet<GroupKind>,
    /// True if the declaration had or has faults of its own.
    pub(in crate::cluster) has_faults: bool,
}

impl Inputs {
    /// Stores a declaration. Returns `None` if its `spec` is unchanged.
    pub(in crate::cluster) fn put_declaration(&mut self, raw: &RawDeclaration) -> Option<DeclarationChange> {
        let name = raw.name();
        let fingerprint = self.hasher.hash_one(raw.parts().map(|parts| parts.spec.get()));
        let (generation, status) = (raw.generation(), raw.parts().map(StoredStatus::read).unwrap_or_default());
        if let Some(stored) = self.declarations.get_mut(name)
            && stored.fingerprint == fingerprint
        {
            (stored.generation, stored.status) = (generation, status);
            return None;
        }
        let mut change = self.remove_declaration(name);
        let (target, declared, faults) = match read(raw) {
            Ok((declaration, faults)) => {
                let (kind, declared) = (declaration.target().group_kind(), declaration.declared());
                self.targeting.entry(kind.clone()).or_default().insert(name.into(), Arc::new(declaration));
                (Some(kind), Some(declared), faults)
            }
            Err(message) => (None, None, vec![unreadable(name, message)]),
        };
        change.kinds.extend(target.clone());
        change.has_faults |= !faults.is_empty();
        let stored = StoredDeclaration { fingerprint, generation, target, faults, declared, status };
        self.declarations.insert(name.into(), stored);
        Some(change)
    }

    /// Forgets a declaration.
    pub(in crate::cluster) fn remove_declaration(&mut self, name: &str) -> DeclarationChange {
        let Some(stored) = self.declarations.remove(name) else {
            return DeclarationChange { kinds: BTreeSet::new(), has_faults: false };
        };
        if let Some(target) = &stored.target
            && let Some(targeting) = self.targeting.get_mut(target)
        {
            targeting.remove(name);
            if targeting.is_empty() {
                self.targeting.remove(target);
            }
        }
        DeclarationChange { has_faults: !stored.faults.is_empty(), kinds: stored.target.into_iter().collect() }
    }

    pub(in crate::cluster) fn declaration(&self, name: &str) -> Option<&StoredDeclaration> {
        self.declarations.get(name)
    }

    /// Returns the names of all declarations.
    pub(in crate::cluster) fn declarations(&self) -> impl ExactSizeIterator<Item = &Box<str>> {
        self.declarations.keys()
    }

    /// Returns the readable declarations that target a kind, ordered by name.
    pub(in crate::cluster) fn declarations_of(&self, kind: &GroupKind) -> Vec<Arc<Declaration>> {
        self.targeting.get(kind).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Returns the versions that the declarations of a kind name, `None` if one of them is about all versions.
    pub(in crate::cluster) fn versions_of(&self, kind: &GroupKind) -> Option<BTreeSet<String>> {
        versions(self.targeting.get(kind).into_iter().flat_map(BTreeMap::values).map(AsRef::as_ref))
    }
}

/// Returns the versions that declarations name, `None` if one of them is about all versions.
pub(in crate::cluster) fn versions<'d>(
    declarations: impl IntoIterator<Item = &'d Declaration>,
) -> Option<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for declaration in declarations {
        if declaration.versions().is_empty() {
            return None;
        }
        named.extend(declaration.versions().iter().cloned());
    }
    Some(named)
}

/// Reads a declaration and its own faults.
///
/// # Errors
/// The reason why it cannot be read at all.
fn read(raw: &RawDeclaration) -> Result<(Declaration, Vec<Fault>), String> {
    let parts = raw.parts()?;
    Declaration::from_json(&document(raw.name(), &parts.spec)).map_err(|error| with_causes(&error))
}

fn unreadable(name: &str, message: String) -> Fault {
    Fault {
        declaration: Some(name.to_owned()),
        source: Some(Source::Declaration),
        pointer: "/spec".to_owned(),
        ..Fault::new(FaultKind::UnreadableDeclaration, "UnionDeclaration", message)
    }
}

fn document(name: &str, spec: &RawValue) -> String {
    let (metadata, spec) = (json!({"name": name}), spec.get());
    format!(
        r#"{{"apiVersion":"kube-unions.dev/v1alpha1","kind":"UnionDeclaration","metadata":{metadata},"spec":{spec}}}"#
    )
}
