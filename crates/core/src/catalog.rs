//! The plans of all kinds, which reviews look up.
//!
//! A [`Catalog`] is immutable and replaced as a whole, so readers never wait. A [`Builder`] is the working set that builds
//! it. This module must not know where definitions come from.

mod builder;
mod kind_names;

pub use builder::{Builder, CompiledDefinition, compiling_cost, definition_faults};
pub use kind_names::KindNames;

use crate::declaration::{Fault, OriginEntry, Resource, Severity};
use crate::names::GroupVersionKind;
use crate::union::{Part, Plan, Union};
use hashbrown::{Equivalent, HashMap};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

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
#[derive(Debug, Clone)]
pub struct CatalogEntry {
    gvk: GroupVersionKind,
    ordinal: usize,
    plan: Arc<Plan>,
    resource: Option<Arc<Resource>>,
    versions_without_unions: Arc<[Box<str>]>,
    /// Versions of a kind with the same unions have the same number.
    alike: usize,
    /// Digest of the plan, see [`Catalog::digest`].
    digest: u64,
}

/// Group, version and kind. Looks up a [`GroupVersionKind`] without building one: both have the same hash.
#[derive(Hash)]
struct LookedUpKind<'k>(&'k str, &'k str, &'k str);

impl Equivalent<GroupVersionKind> for LookedUpKind<'_> {
    fn equivalent(&self, key: &GroupVersionKind) -> bool {
        (self.0, self.1, self.2) == (&*key.group, &*key.version, &*key.kind)
    }
}

impl Catalog {
    /// If two entries have the same kind, the first one wins.
    fn new(entries: impl IntoIterator<Item = CatalogEntry>, mut faults: Vec<Fault>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by(|one, other| one.gvk.cmp(&other.gvk));
        entries.dedup_by(|next, kept| next.gvk == kept.gvk);
        for (ordinal, entry) in entries.iter_mut().enumerate() {
            entry.ordinal = ordinal;
        }
        faults.sort();
        faults.dedup();
        let in_force = entries.iter().map(|it| (&it.gvk, &it.resource, &it.versions_without_unions, it.digest));
        let digest = digest_of_all([digest_of_all(in_force), digest_of_all(&faults)]);
        let index = entries.iter().map(|entry| (entry.gvk.clone(), entry.ordinal)).collect();
        Self { entries, index, faults, digest }
    }

    /// Returns the entry of a kind, `None` if the kind has no unions.
    pub fn lookup(&self, group: &str, version: &str, kind: &str) -> Option<&CatalogEntry> {
        self.entries.get(*self.index.get(&LookedUpKind(group, version, kind))?)
    }

    /// Returns every kind that has unions, sorted.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Returns the faults of all declarations, sorted.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns the number of faults that keep a declaration out of force.
    pub fn errors(&self) -> usize {
        self.faults.iter().filter(|fault| fault.severity() == Severity::Error).count()
    }

    /// Returns a digest of the plans, resources and faults. Two replicas of the same version have the same catalog if their
    /// digests are equal. The digest has 48 bits, so that a metric (a 64-bit float) holds it exactly.
    pub fn digest(&self) -> u64 {
        self.digest >> 16
    }

    /// Returns the unions in force, by the name of their `UnionDeclaration`. A union counts if it is in
    /// force in one version of its target, also if another source declares the same.
    pub fn in_force(&self) -> BTreeMap<&str, BTreeSet<OriginEntry>> {
        let mut in_force: BTreeMap<&str, BTreeSet<OriginEntry>> = BTreeMap::new();
        for origin in self.entries.iter().flat_map(|entry| entry.plan.unions()).flat_map(Union::origins) {
            in_force.entry(&*origin.declaration).or_default().insert(origin.entry);
        }
        in_force
    }

    /// Returns the number of unions in all plans.
    pub fn union_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.plan.unions().len()).sum()
    }
}

impl CatalogEntry {
    fn has_unions(&self) -> bool {
        !self.plan.unions().is_empty()
    }

    /// Returns the kind.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    /// Returns the position in [`Catalog::entries`], for tables that are indexed like a catalog.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Returns the plan of the kind.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the resource of the kind, `None` if it is not known.
    pub fn resource(&self) -> Option<&Resource> {
        self.resource.as_deref()
    }

    /// Returns the other served versions of a custom kind, which have no unions: an object that is sent at one of them is not judged.
    /// Empty for a built-in type.
    pub fn versions_without_unions(&self) -> &[Box<str>] {
        &self.versions_without_unions
    }

    /// Returns true if another version of the same kind has the same unions at the same places, whoever declares them.
    pub fn has_same_unions(&self, other: &Self) -> bool {
        self.alike == other.alike
    }

    /// Returns the resources that rules of a webhook configuration must name to catch every change of a union:
    /// `deployments`, `deployments/status`. A union in `status` is changed through the object if the status is not a
    /// subresource.
    pub fn written_through(&self) -> impl Iterator<Item = String> {
        let parts = [(Part::Main, ""), (Part::Status, "/status")].into_iter().filter(|(part, _)| self.plan.has(*part));
        let plural = self.resource.as_deref().map(|resource| &resource.plural);
        plural.into_iter().flat_map(move |plural| parts.clone().map(move |(_, suffix)| format!("{plural}{suffix}")))
    }
}

/// Returns a digest of the `Debug` output of a value. Equal values have equal digests in every process that runs the same
/// version of this program.
fn digest(value: &impl Debug) -> u64 {
    struct Into(DefaultHasher);

    impl Write for Into {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }

    // `DefaultHasher::new` has fixed keys.
    let mut into = Into(DefaultHasher::new());
    // Hashing cannot fail.
    let _ = write!(into, "{value:?}");
    into.0.finish()
}

/// Returns the digest of a sequence.
fn digest_of_all(things: impl IntoIterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    things.into_iter().for_each(|thing| thing.hash(&mut hasher));
    hasher.finish()
}
