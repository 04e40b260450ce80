//! The declarations that are enforced otherwise than as they say: by the API server itself, or never.

use crate::built_in::BuiltInKinds;
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Union;
use kube_unions_manifests::Document;
use std::collections::BTreeSet;

/// The names of presets.
#[derive(Debug, Default)]
pub struct PresetNames {
    /// The API server refuses what violates them.
    refusing: BTreeSet<String>,
    /// kube-unions never enforces them on a cluster.
    offline: BTreeSet<String>,
}

impl PresetNames {
    /// Returns the names of the presets among documents.
    pub fn of(built_in: &BuiltInKinds, documents: &[Document]) -> Self {
        let refusing = documents.iter().filter(|document| built_in.is_preset(document));
        Self {
            refusing: refusing.filter_map(|document| document.name.clone()).collect(),
            offline: built_in.offline().map(str::to_owned).collect(),
        }
    }

    /// Returns true if the API server itself refuses what violates a union of a built-in kind.
    pub fn is_refusing(&self, union: &Union) -> bool {
        union.declaration().is_some_and(|name| self.refusing.contains(name))
    }

    /// Returns true if kube-unions never enforces a union of a kind on a cluster.
    pub fn is_never_enforced(&self, GroupVersionKind { group, kind, .. }: &GroupVersionKind, union: &Union) -> bool {
        is_exempt(group, None, kind) || union.declaration().is_some_and(|name| self.offline.contains(name))
    }
}
