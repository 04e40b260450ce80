//! The working set of definitions that a catalog is built from.

use super::{Catalog, CatalogEntry, digest};
use crate::declaration::{Definition, DefinitionVersion, Fault, FaultKind, Place, Resource, Severity, Source, fault};
use crate::listed::quoted;
use crate::names::{GroupKind, VersionPriority};
use crate::union::{PlaceFault, Plan, Union, compile};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A working set of definitions. It keeps the compiled plans of each CRD and not the CRD.
///
/// A catalog depends only on the last definition under each name, not on the order in which they came.
#[derive(Debug, Default)]
pub struct Builder {
    definitions: BTreeMap<Box<str>, CompiledDefinition>,
    /// Faults by the name of the `UnionDeclaration`.
    reported: BTreeMap<Box<str>, Vec<Fault>>,
}

/// A compiled CRD or built-in type, without its schemas. Compiling takes time in proportion to the size of the schemas; a
/// [`Builder`] takes the result at once.
#[derive(Debug)]
pub struct CompiledDefinition {
    name: Box<str>,
    state: DefinitionState,
    /// The versions that have unions.
    entries: Vec<CatalogEntry>,
    faults: Vec<Fault>,
}

/// The relation of a CRD to its kind.
#[derive(Debug)]
enum DefinitionState {
    /// The definition speaks for the kind. A built-in type has no CRD.
    Defined { kind: GroupKind, resource: Option<Arc<Resource>> },
    /// The CRD does not speak for the kind that it names.
    Ignored { kind: GroupKind },
    /// The CRD could not be read.
    Unreadable,
}

impl CompiledDefinition {
    /// Compiles a CRD with its declarations. Skips versions that are not served.
    pub fn new(mut definition: Definition) -> Self {
        let mut faults = definition.faults().to_vec();
        let (kind, resource) = (definition.group_kind().clone(), definition.resource().cloned().map(Arc::new));
        let mut versions = Vec::new();
        for version in definition.take_versions().into_iter().filter(|version| version.served) {
            let compiled = compile(&version.schema, version.status_subresource);
            faults.extend(compiled.faults.into_iter().map(|found| {
                let PlaceFault { place, source, origin, kind, message, entry, member: _ } = found;
                let by = (source, origin.as_ref());
                let mut fault = fault(kind, definition.name(), Some(&version), &place, by, message);
                fault.pointer.push_str(&entry);
                fault
            }));
            let plan = compiled.plan;
            faults.extend(scaled_members(definition.name(), &version, &plan));
            versions.push(CatalogEntry {
                gvk: kind.at(&version.name),
                ordinal: 0,
                resource: resource.clone(),
                versions_without_unions: Arc::default(),
                alike: 0,
                digest: digest(&plan),
                plan: Arc::new(plan),
            });
        }
        faults.extend(limited(definition.name(), &mut versions));
        let is_custom = resource.as_ref().is_some_and(|resource| resource.custom);
        // A version whose unions have errors has none in force.
        if is_custom && faults.iter().all(|fault| fault.severity() != Severity::Error) {
            faults.extend(unjudged(definition.name(), &versions));
        }
        if definition.is_exempt() {
            faults.extend(exempt_with_unions(&definition, &versions));
        }
        let without_unions = versions.iter().filter(|version| is_custom && !version.has_unions());
        let without_unions: Arc<[_]> = without_unions.map(|version| version.gvk.version.clone()).collect();
        versions.retain(CatalogEntry::has_unions);
        let mut distinct: Vec<Arc<Plan>> = Vec::new();
        for version in &mut versions {
            version.versions_without_unions = Arc::clone(&without_unions);
            let alike = distinct.iter().position(|plan| plan.has_same_unions(&version.plan));
            version.alike = alike.unwrap_or(distinct.len());
            distinct.extend(alike.is_none().then(|| Arc::clone(&version.plan)));
        }
        let state = DefinitionState::Defined { kind, resource };
        Self { entries: versions, ..Self::without_unions(definition.name(), state, faults) }
    }

    /// Returns a CRD that could not be read, with its faults, for example one of each declaration of the kind. None of its unions
    /// is in force.
    pub fn unreadable(name: &str, faults: Vec<Fault>) -> Self {
        Self::without_unions(name, DefinitionState::Unreadable, faults)
    }

    /// Returns a CRD that does not speak for its kind. None of its unions is in force. `why` is reported as a fault; pass `None`
    /// for a CRD without unions.
    pub fn ignored(name: &str, kind: GroupKind, why: Option<String>) -> Self {
        let faults = why.map(|why| Fault::new(FaultKind::IgnoredCrd, name, why)).into_iter().collect();
        Self::without_unions(name, DefinitionState::Ignored { kind }, faults)
    }

    fn without_unions(name: &str, state: DefinitionState, faults: Vec<Fault>) -> Self {
        Self { name: name.into(), state, entries: Vec::new(), faults: Fault::limited(faults) }
    }
}

impl Builder {
    /// Returns an empty working set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compiles a CRD and adds it, or replaces the CRD of that name.
    pub fn apply(&mut self, definition: Definition) {
        self.insert(CompiledDefinition::new(definition));
    }

    /// Adds a compiled CRD, or replaces the CRD of that name.
    pub fn insert(&mut self, compiled: CompiledDefinition) {
        self.definitions.insert(compiled.name.clone(), compiled);
    }

    /// Removes a CRD. Returns true if it was known.
    pub fn remove(&mut self, name: &str) -> bool {
        self.definitions.remove(name).is_some()
    }

    /// Records the faults of a `UnionDeclaration` itself, for example a missing target. Replaces the faults recorded
    /// before.
    pub fn report(&mut self, declaration: &str, faults: Vec<Fault>) {
        if faults.is_empty() {
            self.reported.remove(declaration);
        } else {
            self.reported.insert(declaration.into(), Fault::limited(faults));
        }
    }

    /// Builds the catalog of all definitions.
    pub fn build(&self) -> Catalog {
        self.catalog(|_, _, _| true)
    }

    /// Builds the catalog of all definitions without exempt kinds, see [`is_exempt`](crate::declaration::is_exempt()).
    pub fn build_for_admission(&self) -> Catalog {
        self.catalog(|group, resource, kind| !crate::declaration::is_exempt(group, resource, kind))
    }

    fn catalog(&self, wanted: impl Fn(&str, Option<&str>, &str) -> bool) -> Catalog {
        let definers = self.definers();
        let mut faults: Vec<Fault> = self.reported.values().flatten().cloned().collect();
        let mut entries = Vec::new();
        for (name, kept) in &self.definitions {
            match &kept.state {
                DefinitionState::Defined { kind, resource } => {
                    let definers = definers.get(kind).map_or(&[][..], Vec::as_slice);
                    if let [_, _, ..] = definers {
                        faults.push(contested(name, kind, definers));
                        continue;
                    }
                    faults.extend(kept.faults.iter().cloned());
                    let is_custom = resource.as_ref().is_some_and(|resource| resource.custom);
                    let defined_elsewhere = !is_custom && !definers.is_empty();
                    if !defined_elsewhere && wanted(&kind.group, resource.as_ref().map(|it| &*it.plural), &kind.kind) {
                        entries.extend(kept.entries.iter().cloned());
                    }
                }
                DefinitionState::Ignored { kind } => {
                    let definer = definers.get(kind).and_then(|names| names.first());
                    faults.extend(kept.faults.iter().cloned().map(|fault| match definer {
                        Some(definer) => {
                            let message = format!("{}; `{definer}` defines `{kind}`", fault.message);
                            Fault { message, ..fault }
                        }
                        None => fault,
                    }));
                }
                DefinitionState::Unreadable => faults.extend(kept.faults.iter().cloned()),
            }
        }
        Catalog::new(entries, faults)
    }

    /// Returns the CRDs that define each kind.
    fn definers(&self) -> BTreeMap<&GroupKind, Vec<&str>> {
        let mut definers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (name, kept) in &self.definitions {
            if let DefinitionState::Defined { kind, resource: Some(resource) } = &kept.state
                && resource.custom
            {
                definers.entry(kind).or_default().push(&**name);
            }
        }
        definers
    }
}

/// Returns the faults of a CRD, given as the JSON text of the whole object, as if no other CRD existed.
///
/// A CRD that cannot be read has one fault. The result is sorted and without duplicates.
pub fn definition_faults(text: &str) -> Vec<Fault> {
    match Definition::from_json(text) {
        Ok(definition) => {
            let mut builder = Builder::new();
            builder.apply(definition);
            builder.build().faults
        }
        Err(error) => vec![Fault::new(FaultKind::UnreadableCrd, "CustomResourceDefinition", error.to_string())],
    }
}

/// Returns a note for each union with a member that the scale subresource sets. The API server shows a webhook or a policy there
/// only an object of the kind Scale.
fn scaled_members(definition: &str, version: &DefinitionVersion, plan: &Plan) -> Vec<Fault> {
    let Some(scaled) = &version.scaled else { return Vec::new() };
    let is_set = |union: &Union, member: &str| {
        let below = || scaled.strip_prefix(union.path())?.strip_prefix('.');
        let fields = if union.path().is_empty() { Some(&**scaled) } else { below() };
        fields.and_then(|fields| fields.split('.').next()) == Some(member)
    };
    let note = |(union, member): (&Union, &str)| {
        let message = format!(
            "`kubectl scale` and autoscalers set `{scaled}` through the scale subresource, which sets the member `{member}` unjudged; \
             rules in the CRD judge it there: see `kube-unions compile --to cel`"
        );
        let place = Place::from_path(union.path()).ok()?;
        let by = (union.source(), union.origins().next());
        Some(fault(FaultKind::ScaledMember, definition, Some(version), &place, by, message))
    };
    let unions = plan.unions().iter();
    let set = unions.flat_map(|union| union.members().map(move |member| (union, member)));
    set.filter(|(union, member)| is_set(union, member)).filter_map(note).collect()
}

/// Most served versions of a kind that are told apart. Every version has its place in the webhook configurations, which have a
/// greatest size.
const MOST_VERSIONS: usize = 64;

/// Leaves out versions beyond [`MOST_VERSIONS`], and returns their fault. Versions with unions stay rather than others, and
/// then those that Kubernetes prefers. The API server converts an object of a version that is left out to one of those that stay.
fn limited(definition: &str, versions: &mut Vec<CatalogEntry>) -> Option<Fault> {
    let count = versions.len();
    if count <= MOST_VERSIONS || !versions.iter().any(CatalogEntry::has_unions) {
        return None;
    }
    let rank = |version: &CatalogEntry| (version.has_unions(), VersionPriority::of(&version.gvk.version));
    versions.sort_by_cached_key(|version| Reverse(rank(version)));
    versions.truncate(MOST_VERSIONS);
    let message = format!(
        "{count} versions are served, and {MOST_VERSIONS} are told apart: an object of another one is judged by the unions of the version \
         to which the API server converts it; serve fewer versions"
    );
    let pointer = "/spec/versions".to_owned();
    Some(Fault { pointer, ..Fault::new(FaultKind::TooManyVersions, definition, message) })
}

/// Returns a note if the CRD declares unions in some versions, and others have none. What a `UnionDeclaration` leaves out is noted by
/// itself.
fn unjudged(definition: &str, versions: &[CatalogEntry]) -> Option<Fault> {
    let declares =
        |version: &&CatalogEntry| version.plan.unions().iter().any(|union| union.source() != Source::Declaration);
    let with = versions.iter().find(declares)?;
    let without = versions.iter().find(|version| !version.has_unions())?;
    let message = format!(
        "version `{}` is served without the unions of `{}`, so an object that is sent at it is not judged; declare its unions, or stop \
         serving it",
        without.gvk.version, with.gvk.version
    );
    let pointer = "/spec/versions".to_owned();
    Some(Fault { pointer, ..Fault::new(FaultKind::UnjudgedVersion, definition, message) })
}

/// Most CRDs that the fault of a contested kind names.
const MOST_NAMED: usize = 8;

/// Returns the fault of a kind that several CRDs define. None of them is used: a guess could reject valid objects. An API
/// server never accepts two such CRDs.
fn contested(name: &str, kind: &GroupKind, definers: &[&str]) -> Fault {
    let named = quoted(definers.iter(), MOST_NAMED);
    let message = format!("{named} define the same kind `{kind}`, so none of their unions is in force; keep one");
    Fault::new(FaultKind::DuplicateKind, name, message).bounded()
}

/// Returns a warning if the CRD of an exempt kind declares unions itself.
fn exempt_with_unions(definition: &Definition, versions: &[CatalogEntry]) -> Option<Fault> {
    let mut unions = versions.iter().flat_map(|version| version.plan.unions());
    let source = unions.find(|union| union.source() != Source::Declaration)?.source();
    let message = "objects of this group or resource are never sent to the webhook, which must not block the repair of a \
                   cluster; only the command line applies their unions";
    Some(Fault { source: Some(source), ..Fault::new(FaultKind::ExemptKind, definition.name(), message.to_owned()) })
}

/// Bytes of one node of a schema: the node, its key, and its share of a map that is half full.
const NODE: usize = 800;

/// Bytes of one item of a list, for example a value of an `enum`.
const ITEM: usize = 72;

/// Bytes for each byte of an annotation: its declarations and their faults.
const ANNOTATION: usize = 64;

/// Returns an upper bound, within an eighth, of the bytes that compiling a CRD takes. `schemas` is the JSON text of its
/// schemas, `annotation` the length of its annotation.
///
/// An ordinary schema takes less than ten times the size of its text, a hostile one more than a hundred times.
pub fn compiling_cost(schemas: &str, annotation: usize) -> usize {
    let (mut nodes, mut items) = (0_usize, 0_usize);
    // Braces inside strings count as well. An upper bound needs no parser.
    for byte in schemas.bytes() {
        nodes += usize::from(byte == b'{');
        items += usize::from(byte == b',');
    }
    let annotation = annotation.saturating_mul(ANNOTATION);
    nodes.saturating_mul(NODE).saturating_add(items.saturating_mul(ITEM)).saturating_add(annotation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_costs_by_what_is_in_it() {
        assert_eq!(compiling_cost("", 0), 0);
        assert_eq!(compiling_cost(&"x".repeat(1 << 20), 0), 0);
        assert_eq!(compiling_cost(r#"{"a":{},"b":[1,2]}"#, 10), 2 * NODE + 2 * ITEM + 10 * ANNOTATION);
    }
}
