//! Compiles the unions to admission policies.

use kube_unions_core::catalog::Catalog;
use kube_unions_policies::{CompiledKinds, PolicyObject, PolicyOptions};
use serde_json::{Value, json};

/// Compiles the unions of a catalog: the policies and bindings of all kinds as `kube-unions compile --to policies` prints them, and
/// the unions that are left out, each with the reason. `None` without unions.
pub(crate) fn compiled(catalog: &Catalog) -> Option<Value> {
    if catalog.entries().is_empty() {
        return None;
    }
    let CompiledKinds { objects, refusals, kinds: _ } = CompiledKinds::of(catalog, &PolicyOptions::default());
    let documents: Vec<String> = objects.iter().map(PolicyObject::to_yaml).collect();
    let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    Some(json!({"yaml": documents.join("---\n"), "refusals": refusals}))
}
