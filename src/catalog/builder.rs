//! The working set behind a catalog.

use super::{Catalog, Entry, GroupVersionKind};
use crate::declaration::{Declared, Definition, Fault, Origin, Place, Resource, Severity, Source, Version};
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
    resource: Option<Arc<Resource>>,
    versions: Vec<HeldVersion>,
    faults: Vec<Fault>,
}

#[derive(Debug)]
struct HeldVersion {
    name: Box<str>,
    plan: Arc<Plan>,
    /// The declarations in force.
    good: BTreeMap<Key, Declared>,
}

/// What makes a declaration the same one when it has changed: its place, its source, and which `UnionDeclaration` it is of.
type Key = (Place, Source, Option<Origin>);

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
        Catalog::new(self.definitions.values().flat_map(Held::entries), faults)
    }
}

/// What a fault adds when the declaration's last good version is kept.
const KEPT: &str = "; the last good version stays in force";

impl Held {
    fn compile(mut definition: Definition, before: Option<&Self>) -> Self {
        let (group, kind) = (definition.group().into(), definition.kind().into());
        let resource = definition.resource().cloned().map(Arc::new);
        let mut faults = definition.faults().to_vec();
        let mut versions = Vec::new();
        for version in definition.take_versions() {
            let known = before.and_then(|held| held.versions.iter().find(|known| known.name == version.name));
            let before = known.map(|known| &known.good);
            versions.push(HeldVersion::compile(&definition, version, before, &mut faults));
        }
        Self { group, kind, resource, versions, faults }
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        let with_unions = self.versions.iter().filter(|version| !version.plan.unions().is_empty());
        with_unions.map(|version| {
            let (group, kind) = (self.group.clone(), self.kind.clone());
            let gvk = GroupVersionKind { group, version: version.name.clone(), kind };
            Entry { gvk, ordinal: 0, plan: Arc::clone(&version.plan), resource: self.resource.clone() }
        })
    }
}

impl HeldVersion {
    fn compile(
        definition: &Definition,
        mut version: Version,
        before: Option<&BTreeMap<Key, Declared>>,
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut attempt = Attempt::new(&version);
        let mut found = attempt.faults(definition, &version);
        for (key, good) in before.into_iter().flatten() {
            let Some(restored) = restored(definition, &version, &attempt, key, good) else { continue };
            let now = version.declared_at(&key.0).to_vec();
            version.put(&key.0, restored);
            let again = Attempt::new(&version);
            // An old declaration must not push aside one that is good now.
            if again.failed.contains(key) || !again.failed.is_subset(&attempt.failed) {
                version.put(&key.0, now);
                continue;
            }
            let here = found.iter_mut().filter(|(of, _)| of == key).map(|(_, fault)| fault);
            let unplaced = faults.iter_mut().filter(|fault| may_be_about(fault, key));
            here.chain(unplaced).for_each(note_kept);
            attempt = again;
        }
        faults.extend(found.into_iter().map(|(_, fault)| fault));
        let good = version
            .declarations()
            .into_iter()
            .flat_map(|(place, all)| all.into_iter().map(move |one| (key_at(&place, &one), one)))
            .filter(|(key, _)| !attempt.failed.contains(key))
            .collect();
        Self { name: version.name, plan: Arc::new(attempt.compiled.plan), good }
    }
}

/// A version compiled, and which of its declarations are not in force.
struct Attempt {
    compiled: Compiled,
    failed: BTreeSet<Key>,
}

impl Attempt {
    fn new(version: &Version) -> Self {
        let compiled = compile(&version.schema, version.status_subresource);
        let errors = compiled.faults.iter().filter(|fault| fault.severity() == Severity::Error);
        let failed = errors.map(key_of).collect();
        Self { compiled, failed }
    }

    fn faults(&self, definition: &Definition, version: &Version) -> Vec<(Key, Fault)> {
        let report = |fault: &PlaceFault| {
            let (origin, message) = (fault.origin.as_ref(), fault.kind.to_string());
            version.fault(definition.name(), &fault.place, fault.source, origin, fault.severity(), message)
        };
        self.compiled.faults.iter().map(|fault| (key_of(fault), report(fault))).collect()
    }
}

/// What a place would declare with one declaration as it last was good; `None` where nothing is to be restored.
fn restored(
    definition: &Definition,
    version: &Version,
    attempt: &Attempt,
    key: &Key,
    good: &Declared,
) -> Option<Vec<Declared>> {
    let (place, source, origin) = key;
    let mut all = version.declared_at(place).to_vec();
    match all.iter_mut().find(|one| (one.source, &one.origin) == (*source, origin)) {
        // What fails as it was before has nothing to fall back to.
        Some(one) => (attempt.failed.contains(key) && one != good).then(|| one.clone_from(good))?,
        None => definition.has_lost(*source, origin.as_ref()).then(|| all.push(good.clone()))?,
    }
    Some(all)
}

/// Whether a fault that was found before anything was compiled is why a declaration is not where it was.
fn may_be_about(fault: &Fault, (_, source, origin): &Key) -> bool {
    match origin {
        None => fault.path.is_empty() && fault.source == Some(*source),
        Some(Origin { declaration, union }) => {
            fault.declaration.as_deref() == Some(declaration) && fault.pointer == format!("/spec/unions/{union}")
        }
    }
}

fn note_kept(fault: &mut Fault) {
    if fault.severity == Severity::Error && !fault.message.ends_with(KEPT) {
        fault.message.push_str(KEPT);
    }
}

fn key_at(place: &Place, declared: &Declared) -> Key {
    (place.clone(), declared.source, declared.origin.clone())
}

fn key_of(fault: &PlaceFault) -> Key {
    (fault.place.clone(), fault.source, fault.origin.clone())
}
