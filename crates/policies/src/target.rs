//! The kinds to compile policies for.

use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Part, Plan, Union};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A kind at the version that its policies are written for.
///
/// A policy sees objects of one version. If the unions of all served versions are the same, the API server converts objects of
/// other versions to it (`matchPolicy: Equivalent`), so one version covers all. Otherwise each group of versions with the same
/// unions is a target of its own.
#[derive(Debug, Clone)]
pub struct PolicyTarget<'p> {
    /// The kind and the version.
    pub gvk: &'p GroupVersionKind,
    /// The plural name of the resource, empty if it is not known.
    pub plural: &'p str,
    /// True if a CRD defines the kind. Otherwise the API server validates the objects itself.
    pub custom: bool,
    /// The unions of the kind at this version.
    pub plan: &'p Plan,
    /// The requests that the policies are for, by the version of the object that was sent.
    pub scope: VersionScope<'p>,
}

/// The versions of a kind whose requests a policy judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionScope<'p> {
    /// Every version except these, sorted: their unions differ, or they have none. The API server converts objects to the version of
    /// the target.
    AllExcept(Vec<&'p str>),
    /// These versions, sorted. Their unions are the same.
    Only(Vec<&'p str>),
    /// The served versions have more different unions than policies are written for.
    TooMany(usize),
}

/// Most groups of versions of a kind that have policies of their own.
pub(crate) const MOST_GROUPS: usize = 16;

impl<'p> PolicyTarget<'p> {
    /// Returns the kinds of a catalog, sorted. The first target of a kind is at the storage version if it has unions, otherwise at
    /// the version that Kubernetes would prefer. Further targets of a kind are for the versions whose unions differ.
    pub fn of_catalog(catalog: &'p Catalog) -> Vec<Self> {
        let mut kinds: BTreeMap<_, Vec<&CatalogEntry>> = BTreeMap::new();
        for entry in catalog.entries() {
            kinds.entry(entry.gvk().group_kind()).or_default().push(entry);
        }
        kinds.into_values().flat_map(Self::of_kind).collect()
    }

    fn of_kind(mut entries: Vec<&'p CatalogEntry>) -> Vec<Self> {
        entries.sort_by_key(|entry| Reverse((entry.is_storage_version(), priority(&entry.gvk().version))));
        let mut targets: Vec<Self> = Vec::new();
        let without_unions = entries.first().map_or(&[][..], |entry| entry.versions_without_unions());
        let mut differing: Vec<&str> = without_unions.iter().map(|version| &**version).collect();
        let mut more = 0_usize;
        for entry in entries {
            let version = &*entry.gvk().version;
            match targets.iter_mut().position(|target| have_same_places(target.plan, entry.plan())) {
                None if targets.is_empty() => targets.push(Self::of_entry(entry, VersionScope::AllExcept(Vec::new()))),
                Some(0) => {}
                Some(position) => {
                    differing.push(version);
                    if let Some(VersionScope::Only(versions)) =
                        targets.get_mut(position).map(|target| &mut target.scope)
                    {
                        versions.push(version);
                    }
                }
                None if targets.len() == MOST_GROUPS => more = more.saturating_add(1),
                None => {
                    differing.push(version);
                    targets.push(Self::of_entry(entry, VersionScope::Only(vec![version])));
                }
            }
        }
        if more > 0 {
            targets.truncate(1);
        }
        differing.sort_unstable();
        for target in &mut targets {
            match &mut target.scope {
                VersionScope::Only(versions) => versions.sort_unstable(),
                scope @ (VersionScope::AllExcept(_) | VersionScope::TooMany(_)) => {
                    *scope = match more {
                        0 => VersionScope::AllExcept(std::mem::take(&mut differing)),
                        more => VersionScope::TooMany(MOST_GROUPS.saturating_add(more)),
                    };
                }
            }
        }
        targets
    }

    fn of_entry(entry: &'p CatalogEntry, scope: VersionScope<'p>) -> Self {
        let resource = entry.resource();
        Self {
            gvk: entry.gvk(),
            plural: resource.map_or("", |resource| &resource.plural),
            custom: resource.is_some_and(|resource| resource.custom),
            plan: entry.plan(),
            scope,
        }
    }
}

/// Returns true if policies for the two plans would be the same.
fn have_same_places(one: &Plan, other: &Plan) -> bool {
    [Part::Main, Part::Status].into_iter().all(|part| {
        let (ones, others) = (one.places(part), other.places(part));
        ones.len() == others.len()
            && ones
                .iter()
                .zip(&others)
                .all(|(one, other)| one.steps == other.steps && have_same_unions(one.unions, other.unions))
    })
}

/// Returns true if two places have the same unions, whoever declares them.
pub(crate) fn have_same_unions(ones: &[Union], others: &[Union]) -> bool {
    ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| is_same_union(one, other))
}

/// Returns true if two unions of the same place say the same, whoever declares them.
fn is_same_union(one: &Union, other: &Union) -> bool {
    one.form() == other.form()
        && one.discriminator() == other.discriminator()
        && one.members().eq(other.members())
        && one.empty_is_unset().eq(other.empty_is_unset())
        && one.choices().iter().eq(other.choices())
        && one.is_boolean() == other.is_boolean()
        && one.is_required() == other.is_required()
        && one.actions() == other.actions()
        && one.normalization() == other.normalization()
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
