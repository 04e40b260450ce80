//! The working set behind a catalog.

use super::{Catalog, GroupVersionKind};
use crate::declaration::{Declared, Definition, Fault, Place, Severity, Source, Version};
use crate::union::{Compiled, PlaceFault, Plan, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The working set from which catalogs are built: it takes CRDs one at a time and keeps of each the compiled plans and the
/// small declarations that were last good, never the CRD.
#[derive(Debug, Default)]
pub struct Builder {
    definitions: BTreeMap<Box<str>, Held>,
    /// By the name of the `UnionDeclaration`.
    reported: BTreeMap<Box<str>, Vec<Fault>>,
}

/// What is kept of a CRD.
#[derive(Debug, Default)]
struct Held {
    group: Box<str>,
    kind: Box<str>,
    versions: Vec<HeldVersion>,
    faults: Vec<Fault>,
}

#[derive(Debug)]
struct HeldVersion {
    name: Box<str>,
    plan: Arc<Plan>,
    /// The declarations in force.
    good: BTreeMap<Place, Vec<Declared>>,
}

impl Builder {
    /// An empty working set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a CRD or replaces the one of that name, compiled at once.
    ///
    /// A declaration that is faulty now and was good before stays in force as it was, if it still fits the schema.
    pub fn apply(&mut self, definition: Definition) {
        let before = self.definitions.remove(definition.name());
        let name: Box<str> = definition.name().into();
        let held = Held::compile(definition, before.as_ref());
        self.definitions.insert(name, held);
    }

    /// Notes that a CRD could not be read: what was good of it stays in force, and the fault is reported.
    pub fn reject(&mut self, name: &str, mut fault: Fault) {
        let held = self.definitions.entry(name.into()).or_default();
        if held.versions.iter().any(|version| !version.good.is_empty()) {
            fault.message.push_str(KEPT);
        }
        held.faults = vec![fault];
    }

    /// Forgets a CRD. Tells whether it was known.
    pub fn remove(&mut self, name: &str) -> bool {
        self.definitions.remove(name).is_some()
    }

    /// Forgets every CRD whose name `keep` refuses.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.definitions.retain(|name, _| keep(name));
    }

    /// Notes what is wrong with a `UnionDeclaration` by itself: what it says, or that its target is missing. Takes the place of
    /// what was noted of it before.
    pub fn report(&mut self, declaration: &str, faults: Vec<Fault>) {
        if faults.is_empty() {
            self.reported.remove(declaration);
        } else {
            self.reported.insert(declaration.into(), faults);
        }
    }

    /// The catalog of all that is known now.
    pub fn build(&self) -> Catalog {
        let of_kinds = self.definitions.values().flat_map(|held| &held.faults);
        let faults = of_kinds.chain(self.reported.values().flatten()).cloned().collect();
        Catalog::new(self.definitions.values().flat_map(Held::plans), faults)
    }
}

/// What a fault adds when the declaration's last good version is kept.
const KEPT: &str = "; the last good version stays in force";

impl Held {
    fn compile(definition: Definition, before: Option<&Self>) -> Self {
        let name = definition.name().to_owned();
        let (group, kind) = (definition.group().into(), definition.kind().into());
        let broken = definition.broken_sources().to_vec();
        let mut faults = definition.faults().to_vec();
        let mut versions = Vec::new();
        for version in definition.into_versions() {
            let known = before.and_then(|held| held.versions.iter().find(|known| known.name == version.name));
            let before = known.map(|known| &known.good);
            versions.push(HeldVersion::compile(&name, version, before, &broken, &mut faults));
        }
        Self { group, kind, versions, faults }
    }

    fn plans(&self) -> impl Iterator<Item = (GroupVersionKind, Arc<Plan>)> {
        let with_unions = self.versions.iter().filter(|version| !version.plan.unions().is_empty());
        with_unions.map(|version| {
            let (group, kind) = (self.group.clone(), self.kind.clone());
            (GroupVersionKind { group, version: version.name.clone(), kind }, Arc::clone(&version.plan))
        })
    }
}

impl HeldVersion {
    fn compile(
        definition: &str,
        mut version: Version,
        before: Option<&BTreeMap<Place, Vec<Declared>>>,
        broken: &[Source],
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut compiled = compile(&version.schema, version.status_subresource);
        let mut found = faults_of(definition, &version, &compiled);
        let mut failed = failed_places(&compiled);
        for (place, declared) in before.into_iter().flatten() {
            let now = version.declared_at(place).to_vec();
            let sources = || declared.iter().map(|one| one.source);
            let lost = now.is_empty() && sources().any(|source| broken.contains(&source));
            if !lost && !failed.contains(place) {
                continue;
            }
            version.put(place, declared.clone());
            let restored = compile(&version.schema, version.status_subresource);
            let still_failed = failed_places(&restored);
            // An old declaration must not push aside one that is good now.
            if still_failed.contains(place) || !still_failed.is_subset(&failed) {
                version.put(place, now);
                continue;
            }
            let whole = faults
                .iter_mut()
                .filter(|fault| lost && fault.path.is_empty() && sources().any(|source| fault.source == Some(source)));
            let kept = found.iter_mut().filter(|fault| fault.path == place.to_string()).chain(whole);
            for fault in kept.filter(|fault| fault.severity == Severity::Error && !fault.message.ends_with(KEPT)) {
                fault.message.push_str(KEPT);
            }
            (compiled, failed) = (restored, still_failed);
        }
        faults.append(&mut found);
        let mut good = version.declarations();
        good.retain(|place, _| !failed.contains(place));
        Self { name: version.name, plan: Arc::new(compiled.plan), good }
    }
}

fn failed_places(compiled: &Compiled) -> BTreeSet<Place> {
    let errors = compiled.faults.iter().filter(|fault| fault.severity() == Severity::Error);
    errors.map(|fault| fault.place.clone()).collect()
}

fn faults_of(definition: &str, version: &Version, compiled: &Compiled) -> Vec<Fault> {
    let report = |fault: &PlaceFault| {
        let (origin, message) = (fault.origin.as_ref(), fault.kind.to_string());
        version.fault(definition, &fault.place, fault.source, origin, fault.severity(), message)
    };
    compiled.faults.iter().map(report).collect()
}
