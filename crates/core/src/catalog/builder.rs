//! The working set behind a catalog.

use super::digest::digest;
use super::{Catalog, CatalogEntry};
use crate::declaration::{Definition, DefinitionVersion, Fault, Place, Resource, Severity, Source};
use crate::names::{GroupKind, GroupVersionKind};
use crate::union::{Plan, compile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The working set from which catalogs are built: it takes CRDs one at a time and keeps of each the compiled plans, never
/// the CRD. A catalog follows from what was put in last under each name and from nothing before.
#[derive(Debug, Default)]
pub struct Builder {
    definitions: BTreeMap<Box<str>, Held>,
    /// By the name of the `UnionDeclaration`.
    reported: BTreeMap<Box<str>, Vec<Fault>>,
}

/// A kind, compiled. Compiling takes time that grows with the size of the CRD; a [`Builder`] takes the result at once.
#[derive(Debug)]
pub struct CompiledDefinition {
    name: Box<str>,
    held: Held,
}

/// The part of a CRD that is kept.
#[derive(Debug)]
struct Held {
    claim: Claimed,
    versions: Vec<HeldVersion>,
    faults: Vec<Fault>,
}

/// The kind that a CRD is about.
#[derive(Debug)]
enum Claimed {
    /// It defines the kind; a built-in type has no CRD.
    Defined { kind: GroupKind, resource: Option<Arc<Resource>> },
    /// It claims the kind and does not count.
    Ignored { kind: GroupKind },
    /// It could not be read.
    Unknown,
}

#[derive(Debug)]
struct HeldVersion {
    name: Box<str>,
    plan: Arc<Plan>,
    digest: u64,
}

/// The CRDs that define each kind, by group and kind.
type Definers<'b> = BTreeMap<&'b GroupKind, Vec<&'b str>>;

impl CompiledDefinition {
    /// Compiles a CRD with everything that is declared on it. Nothing is in force of versions that are not served.
    pub fn new(mut definition: Definition) -> Self {
        let mut faults = definition.faults().to_vec();
        let mut versions = Vec::new();
        for version in definition.take_versions().into_iter().filter(|version| version.served) {
            let compiled = compile(&version.schema, version.status_subresource);
            faults.extend(compiled.faults.iter().map(|fault| {
                let (origin, message) = (fault.origin.as_ref(), fault.kind.to_string());
                version.fault(definition.name(), &fault.place, fault.source, origin, fault.severity(), message)
            }));
            versions.push(HeldVersion::new(version, compiled.plan));
        }
        if definition.is_exempt() {
            faults.extend(never_sent(&definition, &versions));
        }
        let faults = Fault::limited(faults.into_iter().map(Fault::bounded).collect());
        let claim = Claimed::Defined {
            kind: definition.group_kind().clone(),
            resource: definition.resource().cloned().map(Arc::new),
        };
        Self { name: definition.name().into(), held: Held { claim, versions, faults } }
    }
}

impl Builder {
    /// An empty working set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a CRD or replaces the one of that name, compiled at once.
    pub fn apply(&mut self, definition: Definition) {
        self.insert(CompiledDefinition::new(definition));
    }

    /// Adds a compiled CRD or replaces the one of that name.
    pub fn insert(&mut self, compiled: CompiledDefinition) {
        self.definitions.insert(compiled.name, compiled.held);
    }

    /// Notes that a CRD could not be read: nothing of it is in force, and the fault is reported.
    pub fn reject(&mut self, name: &str, fault: Fault) {
        self.reject_all(name, vec![fault]);
    }

    /// The same with several faults, as one of each declaration that is about the kind.
    pub fn reject_all(&mut self, name: &str, faults: Vec<Fault>) {
        let faults = Fault::limited(faults.into_iter().map(Fault::bounded).collect());
        self.definitions.insert(name.into(), Held { claim: Claimed::Unknown, versions: Vec::new(), faults });
    }

    /// Notes that a CRD does not speak for the kind that it claims: nothing of it is in force. `why` is reported; a CRD that
    /// declares no union needs none.
    pub fn ignore(&mut self, name: &str, kind: GroupKind, why: Option<String>) {
        let claim = Claimed::Ignored { kind };
        let faults = why.map(|why| Fault::unreadable(name, why).bounded()).into_iter().collect();
        self.definitions.insert(name.into(), Held { claim, versions: Vec::new(), faults });
    }

    /// Forgets a CRD. Tells whether it was known.
    pub fn remove(&mut self, name: &str) -> bool {
        self.definitions.remove(name).is_some()
    }

    /// Notes what is wrong with a `UnionDeclaration` by itself: what it says, or that its target is missing. Takes the place of
    /// what was noted of it before.
    pub fn report(&mut self, declaration: &str, faults: Vec<Fault>) {
        if faults.is_empty() {
            self.reported.remove(declaration);
        } else {
            let faults = Fault::limited(faults.into_iter().map(Fault::bounded).collect());
            self.reported.insert(declaration.into(), faults);
        }
    }

    /// The catalog of all that is known now.
    pub fn build(&self) -> Catalog {
        self.catalog(|_, _, _| true)
    }

    /// The same without the kinds that are never sent to a webhook.
    pub fn build_for_admission(&self) -> Catalog {
        self.catalog(|group, resource, kind| !crate::declaration::is_exempt(group, resource, kind))
    }

    fn catalog(&self, wanted: impl Fn(&str, Option<&str>, &str) -> bool) -> Catalog {
        let definers = self.definers();
        let mut faults: Vec<Fault> = self.reported.values().flatten().cloned().collect();
        let mut entries = Vec::new();
        for (name, held) in &self.definitions {
            match &held.claim {
                Claimed::Defined { kind, resource } => {
                    let definers = definers.get(kind).map_or(&[][..], Vec::as_slice);
                    if let [_, _, ..] = definers {
                        faults.push(contested(name, kind, definers));
                        continue;
                    }
                    faults.extend(held.faults.iter().cloned());
                    let is_custom = resource.as_ref().is_some_and(|resource| resource.custom);
                    let defined_elsewhere = !is_custom && !definers.is_empty();
                    if !defined_elsewhere && wanted(&kind.group, resource.as_ref().map(|it| &*it.plural), &kind.kind) {
                        entries.extend(held.entries(kind, resource.as_ref()));
                    }
                }
                Claimed::Ignored { kind } => {
                    let definer = definers.get(kind).and_then(|names| names.first());
                    faults.extend(held.faults.iter().cloned().map(|fault| match definer {
                        Some(definer) => {
                            let message = format!("{}; `{definer}` defines `{kind}`", fault.message);
                            Fault { message, ..fault }
                        }
                        None => fault,
                    }));
                }
                Claimed::Unknown => faults.extend(held.faults.iter().cloned()),
            }
        }
        Catalog::new(entries, faults)
    }

    fn definers(&self) -> Definers<'_> {
        let mut definers = Definers::new();
        for (name, held) in &self.definitions {
            if let Claimed::Defined { kind, resource: Some(resource) } = &held.claim
                && resource.custom
            {
                definers.entry(kind).or_default().push(name);
            }
        }
        definers
    }
}

impl Held {
    fn entries(&self, kind: &GroupKind, resource: Option<&Arc<Resource>>) -> impl Iterator<Item = CatalogEntry> {
        let with_unions = self.versions.iter().filter(|version| !version.plan.unions().is_empty());
        with_unions.map(move |version| CatalogEntry {
            gvk: GroupVersionKind { group: kind.group.clone(), version: version.name.clone(), kind: kind.kind.clone() },
            ordinal: 0,
            plan: Arc::clone(&version.plan),
            resource: resource.cloned(),
            digest: version.digest,
        })
    }
}

impl HeldVersion {
    fn new(version: DefinitionVersion, plan: Plan) -> Self {
        Self { name: version.name, digest: digest(&plan), plan: Arc::new(plan) }
    }
}

/// Most CRDs that are named where several define one kind.
const NAMED: usize = 8;

/// Several CRDs define one kind. None of them counts: which one is meant is nobody's to guess, and a union of the wrong one
/// would reject good objects. An API server never accepts two.
fn contested(name: &str, kind: &GroupKind, definers: &[&str]) -> Fault {
    let named: Vec<String> = definers.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let more = definers.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message =
        format!("{}{more} define one kind, `{kind}`, so that no union of them counts; keep one", named.join(", "));
    Fault::unreadable(name, message).bounded()
}

/// The CRD itself declares unions of a kind that is never sent.
fn never_sent(definition: &Definition, versions: &[HeldVersion]) -> Option<Fault> {
    let mut unions = versions.iter().flat_map(|version| version.plan.unions());
    let source = unions.find(|union| union.source() != Source::Declaration)?.source();
    Some(Fault {
        severity: Severity::Warning,
        source: Some(source),
        path: Place::root().to_string(),
        ..Fault::unreadable(definition.name(), NEVER_SENT.to_owned())
    })
}

const NEVER_SENT: &str = "objects of this group or resource are never sent to the webhook, or it could keep the cluster from \
                          being repaired; only the command line applies its unions";
