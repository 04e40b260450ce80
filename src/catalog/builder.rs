//! The working set behind a catalog.

use super::{Catalog, GroupVersionKind};
use crate::declaration::{Declared, Definition, Fault, Origin, Place, Severity, Source, Version};
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
        Catalog::new(self.definitions.values().flat_map(Held::plans), faults)
    }
}

/// What a fault adds when the declaration's last good version is kept.
const KEPT: &str = "; the last good version stays in force";

impl Held {
    fn compile(mut definition: Definition, before: Option<&Self>) -> Self {
        let (group, kind) = (definition.group().into(), definition.kind().into());
        let mut faults = definition.faults().to_vec();
        let mut versions = Vec::new();
        for version in definition.take_versions() {
            let known = before.and_then(|held| held.versions.iter().find(|known| known.name == version.name));
            let before = known.map(|known| &known.good);
            versions.push(HeldVersion::compile(&definition, version, before, &mut faults));
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
        definition: &Definition,
        mut version: Version,
        before: Option<&BTreeMap<Key, Declared>>,
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut compiled = compile(&version.schema, version.status_subresource);
        let mut found: Vec<_> =
            compiled.faults.iter().map(|fault| (key_of(fault), fault_of(definition, &version, fault))).collect();
        let mut failed = failed(&compiled);
        for (key, good) in before.into_iter().flatten() {
            let (place, source, origin) = key;
            let now = version.declared_at(place).to_vec();
            let mut restored = now.clone();
            match restored.iter_mut().find(|one| (one.source, &one.origin) == (*source, origin)) {
                // What fails as it was before has nothing to fall back to.
                Some(one) if failed.contains(key) && one != good => one.clone_from(good),
                None if definition.has_lost(*source, origin.as_ref()) => restored.push(good.clone()),
                Some(_) | None => continue,
            }
            version.put(place, restored);
            let again = compile(&version.schema, version.status_subresource);
            let still_failed = self::failed(&again);
            // An old declaration must not push aside one that is good now.
            if still_failed.contains(key) || !still_failed.is_subset(&failed) {
                version.put(place, now);
                continue;
            }
            let of_union = origin.as_ref().map(|origin| format!("/spec/unions/{}", origin.union));
            let of_source = faults.iter_mut().filter(|fault| match &of_union {
                None => fault.path.is_empty() && fault.source == Some(*source),
                Some(pointer) => {
                    fault.pointer == *pointer
                        && fault.declaration.as_deref() == origin.as_ref().map(|origin| &*origin.declaration)
                }
            });
            let here = found.iter_mut().filter(|(of, _)| of == key).map(|(_, fault)| fault);
            for fault in here.chain(of_source).filter(|fault| fault.severity == Severity::Error) {
                if !fault.message.ends_with(KEPT) {
                    fault.message.push_str(KEPT);
                }
            }
            (compiled, failed) = (again, still_failed);
        }
        faults.extend(found.into_iter().map(|(_, fault)| fault));
        let mut good = BTreeMap::new();
        for (place, all) in version.declarations() {
            for declared in all {
                let key = (place.clone(), declared.source, declared.origin.clone());
                if !failed.contains(&key) {
                    good.insert(key, declared);
                }
            }
        }
        Self { name: version.name, plan: Arc::new(compiled.plan), good }
    }
}

fn key_of(fault: &PlaceFault) -> Key {
    (fault.place.clone(), fault.source, fault.origin.clone())
}

fn failed(compiled: &Compiled) -> BTreeSet<Key> {
    compiled.faults.iter().filter(|fault| fault.severity() == Severity::Error).map(key_of).collect()
}

fn fault_of(definition: &Definition, version: &Version, fault: &PlaceFault) -> Fault {
    let message = fault.kind.to_string();
    version.fault(definition.name(), &fault.place, fault.source, fault.origin.as_ref(), fault.severity(), message)
}
