//! Compiles the unions to admission policies.

use crate::inputs::{InputName, PlaygroundProblem};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::causes::with_causes;
use kube_unions_manifests::to_folded_yaml;
use kube_unions_policies::{CompiledKinds, PolicyOptions};
use serde_json::{Value, json};

/// Compiles the unions of a catalog: the policies and bindings of all kinds as `kube-unions compile --to policies` prints them, and
/// the unions that are left out, each with the reason. `None` without unions.
pub(crate) fn compiled(catalog: &Catalog) -> Option<Result<Value, PlaygroundProblem>> {
    if catalog.entries().is_empty() {
        return None;
    }
    let CompiledKinds { objects, refusals, kinds: _ } = CompiledKinds::of(catalog, &PolicyOptions::default());
    let documents: Result<Vec<String>, _> = objects.iter().map(|object| to_folded_yaml(&object.to_json())).collect();
    let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    let policies = documents.map(|documents| json!({"yaml": documents.join("---\n"), "refusals": refusals}));
    Some(policies.map_err(|error| PlaygroundProblem::error(InputName::Definitions, with_causes(&error))))
}
