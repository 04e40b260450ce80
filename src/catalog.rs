//! Kinds and their plans: what the request path looks up.
//!
//! A [`Catalog`] is immutable and published whole; readers never wait. A [`Builder`] is the working set behind it: it takes
//! CRDs one at a time and keeps of each the compiled plans and the small declarations that were last good, never the CRD.

use crate::declaration::{Definition, Fault, Severity, Source, Version};
use crate::schema::{Declared, Place, Schema};
use crate::union::{Compiled, Plan, compile};
use hashbrown::{Equivalent, HashMap};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A kind at one version. Displays as `group/version, Kind=Kind`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The API group, empty for the core group.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

/// The kinds that have unions, each with its plan.
#[derive(Debug, Default)]
pub struct Catalog {
    // INVARIANT: sorted by kind; `index` maps each kind to its position.
    entries: Vec<Entry>,
    index: HashMap<GroupVersionKind, usize>,
    faults: Vec<Fault>,
}

/// One kind that has unions.
#[derive(Debug)]
pub struct Entry {
    gvk: GroupVersionKind,
    ordinal: usize,
    plan: Arc<Plan>,
}

impl Catalog {
    /// The kind, if it has unions.
    pub fn lookup(&self, group: &str, version: &str, kind: &str) -> Option<&Entry> {
        self.entries.get(*self.index.get(&(group, version, kind))?)
    }

    /// Every kind that has unions, sorted.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Everything that is wrong with declarations, sorted.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many unions are in force.
    pub fn union_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.plan.unions().len()).sum()
    }
}

impl Entry {
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
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        let slash = if group.is_empty() { "" } else { "/" };
        write!(f, "{group}{slash}{version}, Kind={kind}")
    }
}

/// Looks up without building a key: a tuple hashes as the three fields do.
impl Equivalent<GroupVersionKind> for (&str, &str, &str) {
    fn equivalent(&self, key: &GroupVersionKind) -> bool {
        (&*key.group, &*key.version, &*key.kind) == *self
    }
}

/// The working set from which catalogs are built.
#[derive(Debug, Default)]
pub struct Builder {
    definitions: BTreeMap<Box<str>, Held>,
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
    good: BTreeMap<Place, Declared>,
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

    /// The catalog of all that is known now.
    pub fn build(&self) -> Catalog {
        let mut entries = Vec::new();
        let mut faults = Vec::new();
        for held in self.definitions.values() {
            faults.extend(held.faults.iter().cloned());
            for version in held.versions.iter().filter(|version| !version.plan.unions().is_empty()) {
                let (group, kind) = (held.group.clone(), held.kind.clone());
                let gvk = GroupVersionKind { group, version: version.name.clone(), kind };
                entries.push(Entry { gvk, ordinal: 0, plan: Arc::clone(&version.plan) });
            }
        }
        entries.sort_by(|one, other| one.gvk.cmp(&other.gvk));
        entries.dedup_by(|one, other| one.gvk == other.gvk);
        for (ordinal, entry) in entries.iter_mut().enumerate() {
            entry.ordinal = ordinal;
        }
        faults.sort();
        let index = entries.iter().map(|entry| (entry.gvk.clone(), entry.ordinal)).collect();
        Catalog { entries, index, faults }
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
        let versions = definition
            .into_versions()
            .into_iter()
            .map(|version| {
                let good = before.and_then(|held| held.versions.iter().find(|known| known.name == version.name));
                let good = good.map(|known| &known.good);
                HeldVersion::compile(&name, version, good, &broken, &mut faults)
            })
            .collect();
        Self { group, kind, versions, faults }
    }
}

impl HeldVersion {
    fn compile(
        definition: &str,
        mut version: Version,
        before: Option<&BTreeMap<Place, Declared>>,
        broken: &[Source],
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut compiled = compile(&version.schema, version.status_subresource);
        let mut new_faults = faults_of(definition, &version, &compiled);
        let failed = failed_places(&compiled);
        let fallback: Vec<(Place, Declared)> = before
            .into_iter()
            .flatten()
            .filter(|(place, declared)| {
                let lost = broken.contains(&declared.source) && declared_at(&version.schema, place).is_none();
                lost || failed.contains(place)
            })
            .map(|(place, declared)| (place.clone(), declared.clone()))
            .collect();
        if !fallback.is_empty() {
            for (place, declared) in &fallback {
                if let Some(node) = version.schema.at_mut(place) {
                    node.unions = Some(declared.clone());
                }
            }
            compiled = compile(&version.schema, version.status_subresource);
            let still_failed = failed_places(&compiled);
            let kept = |path: &str| {
                fallback.iter().any(|(place, _)| place.to_string() == path && !still_failed.contains(place))
            };
            for fault in new_faults.iter_mut().filter(|fault| fault.severity == Severity::Error && kept(&fault.path)) {
                fault.message.push_str(KEPT);
            }
            let whole = |fault: &&mut Fault| {
                fault.path.is_empty() && fault.source.is_some_and(|source| broken.contains(&source))
            };
            for fault in faults.iter_mut().filter(whole).filter(|fault| !fault.message.ends_with(KEPT)) {
                fault.message.push_str(KEPT);
            }
        }
        faults.append(&mut new_faults);
        let failed = failed_places(&compiled);
        let mut good = BTreeMap::new();
        version.schema.walk(&mut |place, node| {
            if let Some(declared) = node.unions.as_ref().filter(|_| !failed.contains(place)) {
                good.insert(place.clone(), declared.clone());
            }
        });
        Self { name: version.name, plan: Arc::new(compiled.plan), good }
    }
}

fn declared_at<'s>(schema: &'s Schema, place: &Place) -> Option<&'s Declared> {
    schema.at(place)?.unions.as_ref()
}

fn failed_places(compiled: &Compiled) -> Vec<Place> {
    let errors = compiled.faults.iter().filter(|fault| fault.severity() == Severity::Error);
    errors.map(|fault| fault.place.clone()).collect()
}

fn faults_of(definition: &str, version: &Version, compiled: &Compiled) -> Vec<Fault> {
    let report = |fault: &crate::union::PlaceFault| {
        let source = declared_at(&version.schema, &fault.place).map(|declared| declared.source);
        Fault {
            definition: definition.to_owned(),
            version: Some(version.name.to_string()),
            path: fault.place.to_string(),
            severity: fault.severity(),
            source,
            pointer: Definition::pointer(Some(version), &fault.place, source.unwrap_or(Source::Schema)),
            message: fault.kind.to_string(),
        }
    };
    compiled.faults.iter().map(report).collect()
}
