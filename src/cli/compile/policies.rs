//! Compiles the unions of a catalog to policies, and prints them.

use crate::cli::manifest;
use crate::cli::output;
use kube_unions_core::catalog::Catalog;
use kube_unions_policies::{PolicyObject, PolicyOptions, PolicyTarget, Refusal, compile};

/// The policies of all kinds.
#[derive(Debug, Default)]
pub(super) struct CompiledKinds {
    /// The policies and their bindings, sorted by kind and name.
    pub(super) objects: Vec<PolicyObject>,
    /// Everything that is left out, sorted.
    refusals: Vec<Refusal>,
    /// The number of kinds that have policies.
    pub(super) kinds: usize,
}

impl CompiledKinds {
    /// Compiles the kinds of a catalog.
    pub(super) fn of(catalog: &Catalog, options: &PolicyOptions) -> Self {
        let mut all = Self::default();
        for target in PolicyTarget::of_catalog(catalog) {
            let compiled = compile(&target, options);
            all.kinds += usize::from(!compiled.objects.is_empty());
            all.objects.extend(compiled.objects);
            all.refusals.extend(compiled.refusals);
        }
        all.objects.sort_by(|one, other| (one.kind(), one.name()).cmp(&(other.kind(), other.name())));
        all.refusals.sort();
        all.refusals.dedup();
        all
    }

    /// Returns true if something is left out.
    pub(super) fn is_partial(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Prints everything that is left out, each on a line of standard error.
    pub(super) fn print_refusals(&self) {
        self.refusals.iter().for_each(output::note);
    }

    /// Returns the objects as a stream of YAML documents.
    pub(super) fn to_yaml(&self) -> anyhow::Result<String> {
        let documents: Result<Vec<String>, _> =
            self.objects.iter().map(|object| manifest::to_folded_yaml(&object.to_json())).collect();
        Ok(documents?.join("---\n"))
    }
}
