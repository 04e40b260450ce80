//! The kinds to compile policies for, and the pod templates that several of them have in common.

use crate::root::PodOwner;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::names::{GroupVersionKind, VersionPriority};
use kube_unions_core::union::{Part, Plan, UnionPlace, UnionStep};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A kind at the version that its policies are written for.
///
/// A policy sees objects of one version. If the unions of all served versions are the same, and so are their types and owners, the API
/// server converts objects of other versions to it (`matchPolicy: Equivalent`), so one version covers all. Otherwise each group of
/// versions that are alike is a target of its own.
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
    /// Returns the kinds of a catalog, sorted. The first target of a kind is at the version with unions that Kubernetes would prefer. Further
    /// targets of a kind are for the versions whose unions differ. Neither the order of the versions in a CRD nor the version at which
    /// objects are stored decides: the names of policies depend on the targets.
    pub fn of_catalog(catalog: &'p Catalog) -> Vec<Self> {
        let mut kinds: BTreeMap<_, Vec<&CatalogEntry>> = BTreeMap::new();
        for entry in catalog.entries() {
            kinds.entry(entry.gvk().group_kind()).or_default().push(entry);
        }
        kinds.into_values().flat_map(Self::of_kind).collect()
    }

    fn of_kind(mut entries: Vec<&'p CatalogEntry>) -> Vec<Self> {
        entries.sort_by_cached_key(|entry| Reverse(VersionPriority::of(&entry.gvk().version)));
        let without_unions = entries.first().map_or(&[][..], |entry| entry.versions_without_unions());
        let mut groups: Vec<(&CatalogEntry, Vec<&str>)> = Vec::new();
        for entry in entries {
            let version = &*entry.gvk().version;
            match groups.iter_mut().find(|(first, _)| have_same_policies(first, entry)) {
                Some((_, versions)) => versions.push(version),
                None => groups.push((entry, vec![version])),
            }
        }
        let more: usize = groups.iter().skip(MOST_GROUPS).map(|(_, versions)| versions.len()).sum();
        let others = groups.iter().skip(1).flat_map(|(_, versions)| versions.iter().copied());
        let mut differing: Vec<&str> = others.chain(without_unions.iter().map(|version| &**version)).collect();
        differing.sort_unstable();
        let whole = match more {
            0 => VersionScope::AllExcept(differing),
            more => VersionScope::TooMany(MOST_GROUPS.saturating_add(more)),
        };
        let only = |mut versions: Vec<&'p str>| {
            versions.sort_unstable();
            VersionScope::Only(versions)
        };
        let mut groups = groups.into_iter();
        let first = groups.next().map(|(entry, _)| Self::of_entry(entry, whole));
        let others = groups.filter(|_| more == 0).map(|(entry, versions)| Self::of_entry(entry, only(versions)));
        first.into_iter().chain(others).collect()
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

/// Returns true if one policy can judge objects of both versions of a kind. It reads what the API server does not convert: a null, and who owns
/// an object as a whole.
fn have_same_policies(one: &CatalogEntry, other: &CatalogEntry) -> bool {
    let are_alike = |part| are_expressed_alike(&one.plan().places(part), &other.plan().places(part));
    one.has_same_unions(other) && [Part::Main, Part::Status].into_iter().all(are_alike)
}

/// Returns true if the places are the same, have the same unions, and are the same expressions.
fn are_expressed_alike(ones: &[UnionPlace<'_>], others: &[UnionPlace<'_>]) -> bool {
    let types = |place: &UnionPlace<'_>| (place.typed, place.nullable, place.owned_at);
    UnionPlace::are_alike(ones, others) && ones.iter().map(types).eq(others.iter().map(types))
}

#[derive(Debug)]
pub(crate) struct PodTemplates<'p> {
    /// The kinds that have them, and where. At least two.
    pub(crate) owners: Vec<(&'p PolicyTarget<'p>, PodOwner<'p>)>,
    /// The places of the unions in the specification of a pod.
    pub(crate) places: Vec<UnionPlace<'p>>,
}

impl<'p> PodTemplates<'p> {
    /// Returns the pod templates of which most kinds have the same unions.
    pub(crate) fn of_most(targets: &'p [PolicyTarget<'p>]) -> Option<Self> {
        let mut found: Vec<Self> = Vec::new();
        for target in targets.iter().filter(|target| can_share(target)) {
            let Some((owner, places)) = template_of(target) else { continue };
            match found.iter_mut().find(|it| are_expressed_alike(&it.places, &places)) {
                Some(same) => same.owners.push((target, owner)),
                None => found.push(Self { owners: vec![(target, owner)], places }),
            }
        }
        found.into_iter().filter(|it| it.owners.len() > 1).max_by_key(|it| it.owners.len())
    }

    /// Returns true if a place of a kind is in one of these templates.
    pub(crate) fn contain(&self, target: &PolicyTarget<'_>, place: &UnionPlace<'_>) -> bool {
        let mut owners = self.owners.iter().filter(|(owner, _)| owner.gvk == target.gvk);
        owners.any(|(_, owner)| pod_fields(place).as_ref() == Some(&owner.fields))
    }
}

/// Returns true for a built-in kind whose policies are for all versions.
fn can_share(target: &PolicyTarget<'_>) -> bool {
    !target.custom
        && !target.plural.is_empty()
        && target.scope == VersionScope::AllExcept(Vec::new())
        && !is_exempt(&target.gvk.group, Some(target.plural), &target.gvk.kind)
}

/// Returns the pod template of a kind, and its unions.
fn template_of<'p>(target: &'p PolicyTarget<'p>) -> Option<(PodOwner<'p>, Vec<UnionPlace<'p>>)> {
    let places = target.plan.places(Part::Main);
    let fields = places.iter().find_map(pod_fields)?;
    let inside = places.into_iter().filter(|place| pod_fields(place).as_ref() == Some(&fields));
    let inside = inside.map(|place| {
        let steps = place.steps.get(fields.len()..).unwrap_or_default().to_vec();
        // No built-in type has its template in an object that is owned as a whole.
        let owned_at = place.owned_at.and_then(|steps| steps.checked_sub(fields.len()));
        UnionPlace { steps, owned_at, ..place }
    });
    Some((PodOwner { kind: &target.gvk.kind, fields: fields.clone() }, inside.collect()))
}

/// Returns the fields to the specification of the pods, if a place is in it.
fn pod_fields<'p>(place: &UnionPlace<'p>) -> Option<Vec<&'p str>> {
    let fields: Vec<&str> = place
        .steps
        .iter()
        .map_while(|step| if let UnionStep::Field(name) = step { Some(*name) } else { None })
        .collect();
    let start = fields.windows(2).position(|pair| pair == ["template", "spec"])?;
    fields.get(..start.checked_add(2)?).map(<[_]>::to_vec)
}
