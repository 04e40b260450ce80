//! Kinds and their plans: what the request path looks up.
//!
//! A [`Catalog`] is immutable and published whole; readers never wait. A [`Builder`] is the working set behind it.

mod builder;
mod cost;
mod digest;
mod kind_names;

pub use builder::{Builder, CompiledDefinition};
pub use cost::compiling_cost;
pub use kind_names::KindNames;

use crate::declaration::{Definition, Fault, Resource};
use crate::names::GroupVersionKind;
use crate::union::{Part, Plan};
use digest::digest_of_all;
use hashbrown::HashMap;
use std::sync::Arc;

/// Returns everything that would be wrong with a CRD, given as the JSON text of the whole object, if it were in force alone.
///
/// A CRD that can't be read has one fault, an error that says why. The result is sorted and has each fault once.
pub fn definition_faults(text: &str) -> Vec<Fault> {
    match Definition::from_json(text) {
        Ok(definition) => {
            let mut builder = Builder::new();
            builder.apply(definition);
            builder.build().faults
        }
        Err(error) => vec![Fault::unreadable("CustomResourceDefinition", error.to_string())],
    }
}

/// The kinds that have unions, each with its plan.
#[derive(Debug, Default)]
pub struct Catalog {
    // INVARIANT: sorted by kind; `index` maps each kind to its position.
    entries: Vec<CatalogEntry>,
    index: HashMap<GroupVersionKind, usize>,
    faults: Vec<Fault>,
    digest: u64,
}

/// One kind that has unions.
#[derive(Debug)]
pub struct CatalogEntry {
    gvk: GroupVersionKind,
    ordinal: usize,
    plan: Arc<Plan>,
    resource: Option<Arc<Resource>>,
    /// Digest of the plan.
    digest: u64,
}

impl Catalog {
    /// Of two plans for one kind the first counts.
    fn new(entries: impl IntoIterator<Item = CatalogEntry>, mut faults: Vec<Fault>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by(|one, other| one.gvk.cmp(&other.gvk));
        entries.dedup_by(|next, kept| next.gvk == kept.gvk);
        for (ordinal, entry) in entries.iter_mut().enumerate() {
            entry.ordinal = ordinal;
        }
        faults.sort();
        faults.dedup();
        let in_force = entries.iter().map(|entry| (&entry.gvk, &entry.resource, entry.digest));
        let digest = digest_of_all([digest_of_all(in_force), digest_of_all(&faults)]);
        let index = entries.iter().map(|entry| (entry.gvk.clone(), entry.ordinal)).collect();
        Self { entries, index, faults, digest }
    }

    /// The kind, if it has unions.
    pub fn lookup(&self, group: &str, version: &str, kind: &str) -> Option<&CatalogEntry> {
        self.entries.get(*self.index.get(&(group, version, kind))?)
    }

    /// Every kind that has unions, sorted.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Everything that is wrong with declarations, sorted.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// A number that says whether two replicas of one version have the same catalog, faults included. It has 48 bits, so that
    /// a metric holds it exactly.
    pub fn digest(&self) -> u64 {
        self.digest >> 16
    }

    /// How many unions are in force.
    pub fn union_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.plan.unions().len()).sum()
    }
}

impl CatalogEntry {
    /// The kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    /// The position in [`Catalog::entries`]: an index for tables that are kept beside a catalog.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Its unions.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Through which resource it is written, if that is known.
    pub fn resource(&self) -> Option<&Resource> {
        self.resource.as_deref()
    }

    /// The paths of its resource through which a union can be changed, as an API server's rules name them: `deployments`,
    /// `deployments/status`. Without the subresource a union in `status` is changed through the object.
    pub fn written_through(&self) -> impl Iterator<Item = String> {
        let parts = [(Part::Main, ""), (Part::Status, "/status")].into_iter().filter(|(part, _)| self.plan.has(*part));
        let plural = self.resource.as_deref().map(|resource| &resource.plural);
        plural.into_iter().flat_map(move |plural| parts.clone().map(move |(_, suffix)| format!("{plural}{suffix}")))
    }
}
