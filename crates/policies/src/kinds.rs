//! Compiles the unions of all kinds of a catalog.

use crate::object::PolicyObject;
use crate::options::PolicyOptions;
use crate::policy::compile;
use crate::refusal::Refusal;
use crate::target::PolicyTarget;
use kube_unions_core::catalog::Catalog;
use std::collections::BTreeSet;

/// The policies of all kinds, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledKinds {
    /// The policies and their bindings, sorted by kind and name.
    pub objects: Vec<PolicyObject>,
    /// Everything that is left out, with the reason, sorted.
    pub refusals: Vec<Refusal>,
    /// The number of kinds that have policies.
    pub kinds: usize,
}

impl CompiledKinds {
    /// Compiles the kinds of a catalog.
    pub fn of(catalog: &Catalog, options: &PolicyOptions) -> Self {
        let mut all = Self::default();
        let mut kinds = BTreeSet::new();
        for target in PolicyTarget::of_catalog(catalog) {
            let compiled = compile(&target, options);
            if !compiled.objects.is_empty() {
                kinds.insert(target.gvk.group_kind());
            }
            all.objects.extend(compiled.objects);
            all.refusals.extend(compiled.refusals);
        }
        all.kinds = kinds.len();
        all.objects.sort_by(|one, other| (one.kind(), one.name()).cmp(&(other.kind(), other.name())));
        all.refusals.sort();
        all.refusals.dedup();
        all
    }
}
