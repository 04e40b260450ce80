//! The kinds to compile policies for.

use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Plan;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A kind at the version that its policies are written for.
///
/// A policy sees objects of one version. The API server converts objects of other versions to it (`matchPolicy:
/// Equivalent`), so one version covers all.
#[derive(Debug, Clone, Copy)]
pub struct PolicyTarget<'p> {
    /// The kind and the version.
    pub gvk: &'p GroupVersionKind,
    /// The plural name of the resource, empty if it is not known.
    pub plural: &'p str,
    /// True if a CRD defines the kind. Otherwise the API server validates the objects itself.
    pub custom: bool,
    /// The unions of the kind at this version.
    pub plan: &'p Plan,
}

impl<'p> PolicyTarget<'p> {
    /// Returns the kinds of a catalog, sorted, each at one version: the storage version if it has unions, otherwise the
    /// version that Kubernetes would prefer.
    pub fn of_catalog(catalog: &'p Catalog) -> Vec<Self> {
        let mut kinds: BTreeMap<_, Vec<&CatalogEntry>> = BTreeMap::new();
        for entry in catalog.entries() {
            kinds.entry(entry.gvk().group_kind()).or_default().push(entry);
        }
        let best = |entries: Vec<&'p CatalogEntry>| {
            entries.into_iter().max_by_key(|entry| (entry.is_storage_version(), priority(&entry.gvk().version)))
        };
        kinds.into_values().filter_map(best).map(Self::of_entry).collect()
    }

    fn of_entry(entry: &'p CatalogEntry) -> Self {
        let resource = entry.resource();
        Self {
            gvk: entry.gvk(),
            plural: resource.map_or("", |resource| &resource.plural),
            custom: resource.is_some_and(|resource| resource.custom),
            plan: entry.plan(),
        }
    }
}

/// Returns the priority of a version as Kubernetes orders them: stable versions before beta before alpha, newer before
/// older, and names of another form last, in reverse alphabetical order.
fn priority(version: &str) -> impl Ord + '_ {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(end)?;
        let stage = |name, rank: u8| Some((rank, rest.strip_prefix(name)?.parse::<u32>().ok()?));
        let (rank, minor) = if rest.is_empty() { (2, 0) } else { stage("beta", 1).or_else(|| stage("alpha", 0))? };
        Some((rank, major.parse::<u32>().ok()?, minor))
    });
    (parsed, Reverse(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        for pair in order.windows(2) {
            assert!(priority(pair[0]) > priority(pair[1]), "{pair:?}");
        }
    }
}
