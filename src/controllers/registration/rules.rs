//! The rules of the entries for objects, made from a catalog: they name exactly the resources that have unions.

mod entries;

pub(super) use self::entries::{EntryConditions, EntryRules, KindCondition, rule};

use self::entries::{EntryMaker, RegisteredKind};

use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::is_exempt;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of all rules of a configuration, as JSON. etcd stores at most 1.5 MiB.
const MOST_BYTES: usize = 1 << 20;

/// The rules for a catalog. The same catalog always gives the same rules in the same order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RegistrationRules {
    /// Entries for custom resources.
    pub(super) custom: Vec<EntryRules>,
    /// Entries for built-in types and for the types of aggregated API servers.
    pub(super) builtin: Vec<EntryRules>,
    /// Kinds that have unions and are never registered, sorted, each with the reason.
    pub(super) excluded: Vec<(GroupVersionKind, &'static str)>,
    /// Kinds that the rules name.
    pub(super) kinds: BTreeSet<GroupKind>,
    /// The number of kinds with each condition.
    pub(super) conditions: BTreeMap<KindCondition, usize>,
}

impl RegistrationRules {
    pub(super) fn of(catalog: &Catalog, conditions: EntryConditions<'_>) -> Self {
        Self::without(&BTreeSet::new(), catalog, conditions)
    }

    /// Returns the rules for all kinds of a catalog but `covered`. If they are more than an API server stores, the kinds with the
    /// largest rules have none: those with the most versions.
    pub(super) fn without(covered: &BTreeSet<GroupKind>, catalog: &Catalog, conditions: EntryConditions<'_>) -> Self {
        let mut rules = Self::default();
        let mut kinds: BTreeMap<GroupKind, RegisteredKind<'_>> = BTreeMap::new();
        for entry in catalog.entries() {
            let gvk = entry.gvk();
            let plural = entry.resource().map(|resource| &*resource.plural);
            if is_exempt(&gvk.group, plural, &gvk.kind) {
                rules.excluded.push((gvk.clone(), "the webhook must not block the repair of a cluster"));
                continue;
            }
            let Some(resource) = entry.resource() else {
                rules.excluded.push((gvk.clone(), "the cluster names no resource for this kind"));
                continue;
            };
            let kind = gvk.group_kind();
            if covered.contains(&kind) {
                continue;
            }
            let registered = kinds.entry(kind).or_insert_with(|| RegisteredKind {
                gvk,
                plural: &resource.plural,
                custom: resource.custom,
                plans: Vec::new(),
                scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
                paths: BTreeSet::new(),
                versions: entry.versions_without_unions().iter().map(|version| &**version).collect(),
            });
            registered.paths.extend(entry.written_through());
            registered.versions.insert(&gvk.version);
            registered.plans.push(entry.plan());
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, registered)| registered.bytes());
        let mut room = MOST_BYTES;
        let (mut custom, mut builtin) = (Vec::new(), Vec::new());
        for (kind, registered) in kinds {
            let Some(rest) = room.checked_sub(registered.bytes()) else {
                let why = "the rules of all kinds are more than an API server stores";
                rules.excluded.push((registered.gvk.clone(), why));
                continue;
            };
            room = rest;
            rules.kinds.insert(kind);
            if registered.custom { &mut custom } else { &mut builtin }.push(registered);
        }
        rules.excluded.sort();
        let mut maker = EntryMaker::new(conditions);
        // Built-in kinds have few conditions and most writes, so they come first.
        [rules.builtin, rules.custom] = [builtin, custom].map(|kinds| maker.entries(kinds));
        rules.conditions = maker.counts;
        rules
    }

    /// Returns the number of rules for custom resources and for built-in types.
    pub(super) fn counts(&self) -> [usize; 2] {
        [&self.custom, &self.builtin].map(|entries| entries.iter().map(|entry| entry.rules.len()).sum())
    }
}

#[cfg(test)]
mod tests;
