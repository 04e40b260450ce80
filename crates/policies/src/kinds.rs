//! Compiles the unions of all kinds of a catalog.

use crate::object::PolicyObject;
use crate::options::PolicyOptions;
use crate::pod_templates::PodTemplates;
use crate::policy::{CompiledPolicies, compile_except, compile_pod_templates};
use crate::refusal::Refusal;
use crate::target::PolicyTarget;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::union::UnionPlace;
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
        let targets = PolicyTarget::of_catalog(catalog);
        // Without functions for lists, each kind has its own refusals.
        let pods = PodTemplates::of_most(&targets).filter(|_| options.server.has_list_functions());
        let mut add = |compiled: CompiledPolicies, of: &[&PolicyTarget<'_>]| {
            if !compiled.objects.is_empty() {
                kinds.extend(of.iter().map(|target| target.gvk.group_kind()));
            }
            all.objects.extend(compiled.objects);
            all.refusals.extend(compiled.refusals);
        };
        for target in &targets {
            let is_shared = |place: &UnionPlace<'_>| pods.as_ref().is_some_and(|pods| pods.contain(target, place));
            add(compile_except(target, options, &is_shared), &[target]);
        }
        if let Some(pods) = &pods {
            let owners: Vec<&PolicyTarget<'_>> = pods.owners.iter().map(|(target, _)| *target).collect();
            add(compile_pod_templates(pods, options), &owners);
        }
        all.kinds = kinds.len();
        all.objects.sort_by(|one, other| (one.kind(), one.name()).cmp(&(other.kind(), other.name())));
        all.refusals.sort();
        all.refusals.dedup();
        all
    }
}
