//! Compiles the unions to admission policies.

use crate::inputs::{InputName, PlaygroundProblem};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::causes::with_causes;
use kube_unions_manifests::to_folded_yaml;
use kube_unions_policies::{CompiledKinds, PolicyOptions};
use serde::Serialize;

/// The policies and bindings of all kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoliciesOfKinds {
    /// A stream of YAML documents, as `kube-unions compile --to policies` prints it.
    pub yaml: String,
    /// The unions that are left out, each with the reason.
    pub refusals: Vec<String>,
}

/// Compiles the unions of a catalog. `None` without unions.
pub(crate) fn compiled(catalog: &Catalog) -> Option<Result<PoliciesOfKinds, PlaygroundProblem>> {
    if catalog.entries().is_empty() {
        return None;
    }
    let CompiledKinds { objects, refusals, kinds: _ } = CompiledKinds::of(catalog, &PolicyOptions::default());
    let documents: Result<Vec<String>, _> = objects.iter().map(|object| to_folded_yaml(&object.to_json())).collect();
    let policies = documents.map(|documents| PoliciesOfKinds {
        yaml: documents.join("---\n"),
        refusals: refusals.iter().map(ToString::to_string).collect(),
    });
    Some(policies.map_err(|error| PlaygroundProblem::error(InputName::Definitions, with_causes(&error))))
}
