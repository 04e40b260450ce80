//! Compiles the unions to admission policies.

use kube_unions_core::catalog::Catalog;
use kube_unions_manifests::to_folded_yaml;
use kube_unions_policies::{PolicyOptions, PolicyTarget, compile};
use serde::Serialize;
use std::collections::BTreeSet;

/// The policies and bindings of all kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoliciesOfKinds {
    /// A stream of YAML documents, as `kube-unions compile --to policies` prints it.
    pub yaml: String,
    /// The unions that are left out, each with the reason.
    pub refusals: Vec<String>,
}

/// Compiles the unions of a catalog. `None` without unions.
pub(crate) fn compiled(catalog: &Catalog) -> Option<PoliciesOfKinds> {
    if catalog.entries().is_empty() {
        return None;
    }
    let (mut objects, mut refusals) = (Vec::new(), BTreeSet::new());
    for target in PolicyTarget::of_catalog(catalog) {
        let compiled = compile(&target, &PolicyOptions::default());
        objects.extend(compiled.objects);
        refusals.extend(compiled.refusals);
    }
    objects.sort_by(|one, other| (one.kind(), one.name()).cmp(&(other.kind(), other.name())));
    let documents: Vec<String> = objects.iter().filter_map(|object| to_folded_yaml(&object.to_json()).ok()).collect();
    Some(PoliciesOfKinds {
        yaml: documents.join("---\n"),
        refusals: refusals.iter().map(ToString::to_string).collect(),
    })
}
