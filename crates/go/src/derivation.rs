//! Derives the unions of one version of a kind: the way through every other module.

use crate::finding::{FindingKind, GoFinding, Position};
use crate::marked_union::MarkedUnion;
use crate::marker::Meaning;
use crate::packages::{Packages, TypeId};
use crate::types::{BrokenDeclaration, GoFile, Type, TypeDeclaration};
use crate::walk::KindWalk;
use kube_unions_core::declaration::{Declared, DefinitionVersion, Severity};
use kube_unions_core::schema::{Place, Source};
use kube_unions_core::union::{PlaceFault, compile};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The unions of one version of a kind.
#[derive(Debug, Default)]
pub struct Derivation {
    /// Position of the kind's struct; `None` if there is none.
    pub source: Option<Position>,
    /// Unions that the schema allows.
    pub unions: Vec<MarkedUnion>,
    /// Omissions and warnings, sorted.
    pub findings: Vec<GoFinding>,
    /// Declared types that the kind uses.
    pub(super) reached: BTreeSet<TypeId>,
}

impl Packages {
    /// Derives the unions of one version of a kind.
    ///
    /// `schema` is the JSON of the version's schema: its validation rules are evidence of what a union requires. At the places of
    /// these unions, the markers replace the declarations that `version` already has.
    pub fn unions(&self, kind: KindVersion<'_>, mut version: DefinitionVersion, schema: &Value) -> Derivation {
        let id = match find_struct(self, kind) {
            Ok(Some(id)) => id,
            Ok(None) => return Derivation::default(),
            Err(finding) => return Derivation { findings: vec![finding], ..Derivation::default() },
        };
        let KindWalk { unions, mut findings, reached, .. } = KindWalk::of(self, id, &version.schema, schema);
        let (unions, faults) = allowed(&mut version, unions);
        findings.extend(faults);
        findings.sort();
        findings.dedup();
        let source = self.declaration(id).map(|declaration| declaration.at.clone());
        Derivation { source, unions, findings, reached }
    }
}

impl Derivation {
    /// Returns the values of `x-kubernetes-unions` that declare the unions, by schema node.
    pub fn declarations(&self) -> BTreeMap<Place, Value> {
        let mut declarations: BTreeMap<Place, Option<Value>> = BTreeMap::new();
        for union in &self.unions {
            union.add_to(declarations.entry(union.declared_at()).or_default());
        }
        declarations.into_iter().filter_map(|(place, value)| Some((place, value?))).collect()
    }
}

/// Returns the unions that the schema allows and the faults of the others.
///
/// Unions are added one by one, so that a faulty one does not affect the rest. Declarations that the schema already has at
/// their places are dropped.
fn allowed(version: &mut DefinitionVersion, unions: Vec<MarkedUnion>) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
    let (mut allowed, mut findings) = (Vec::new(), Vec::new());
    for union in &unions {
        version.put(&union.declared_at(), Vec::new());
    }
    let mut known = faults(version);
    for union in unions {
        let place = union.declared_at();
        let before = version.declared_at(&place).to_vec();
        let mut with = before.first().map(|declared| declared.value.clone());
        union.add_to(&mut with);
        version.put(&place, with.into_iter().map(|value| Declared::new(value, Source::Annotation)).collect());
        let after = faults(version);
        let new = after.iter().filter(|fault| !known.contains(fault) && fault.source == Source::Annotation);
        let (errors, warnings): (Vec<&PlaceFault>, Vec<&PlaceFault>) =
            new.partition(|fault| fault.severity() == Severity::Error);
        let at = |fault: &PlaceFault| union.position_of(fault.member.as_deref()).clone();
        if errors.is_empty() {
            let finding =
                |fault: &PlaceFault| GoFinding::new(&at(fault), FindingKind::SurprisingUnion, fault.message.clone());
            findings.extend(warnings.into_iter().map(|fault| finding(fault).about(&union.place)));
            known = after;
            allowed.push(union);
        } else {
            let finding =
                |fault: &PlaceFault| GoFinding::left_out(&at(fault), FindingKind::RefusedUnion, &fault.message);
            findings.extend(errors.into_iter().map(|fault| finding(fault).about(&union.place)));
            version.put(&place, before);
        }
    }
    (allowed, findings)
}

fn faults(version: &DefinitionVersion) -> Vec<PlaceFault> {
    compile(&version.schema, version.status_subresource).faults
}

impl Packages {
    /// Returns a finding for each union marker that has no effect at its position. With `used_by`, looks only into the
    /// packages that these derivations use.
    pub fn misplaced_markers(&self, used_by: Option<&[&Derivation]>) -> Vec<GoFinding> {
        self.files_used_by(used_by).flat_map(|file| &file.misplaced).cloned().collect()
    }

    /// Returns a note for each declaration of types that the parser cannot read. With `used_by`, looks only into the packages
    /// that these derivations use. A declaration that a kind needs is also a finding of its derivation, at the same position.
    pub fn unread_types(&self, used_by: Option<&[&Derivation]>) -> Vec<GoFinding> {
        let broken = self.files_used_by(used_by).flat_map(|file| &file.broken);
        let finding = |broken: &BrokenDeclaration| {
            let message = broken.describe(broken.types.first()?);
            let finding = GoFinding::new(&broken.at, FindingKind::UnreadableType, message);
            Some(GoFinding { severity: Severity::Note, ..finding })
        };
        broken.filter_map(finding).collect()
    }

    /// Returns a note for each struct with union markers that these derivations do not use, in the packages that they use.
    pub fn unreached_structs(&self, derivations: &[&Derivation]) -> Vec<GoFinding> {
        let used = used_types(derivations);
        let mut findings = Vec::new();
        for index in used_packages(&used) {
            let Some(package) = self.package(index) else { continue };
            let is_used = |name: &str| self.declared(index, name).iter().any(|id| used.contains(id));
            let marked = package.types().filter(|declaration| declaration.has_union_markers());
            let unused = marked.filter(|declaration| !is_used(&declaration.name));
            findings.extend(unused.map(|declaration| {
                let message = format!(
                    "none of these kinds uses `{}` of the package `{}`, which has union markers",
                    declaration.name, package.name
                );
                GoFinding::new(&declaration.at, FindingKind::UnreachedStruct, message)
            }));
        }
        findings
    }

    /// Returns the files of the packages that these derivations use, or all files.
    fn files_used_by(&self, derivations: Option<&[&Derivation]>) -> impl Iterator<Item = &GoFile> {
        let used = derivations.map(|derivations| used_packages(&used_types(derivations)));
        let packages = self.packages().filter(move |(index, _)| used.as_ref().is_none_or(|used| used.contains(index)));
        packages.flat_map(|(_, package)| &package.files)
    }
}

fn used_types(derivations: &[&Derivation]) -> BTreeSet<TypeId> {
    derivations.iter().flat_map(|derivation| derivation.reached.iter().copied()).collect()
}

fn used_packages(types: &BTreeSet<TypeId>) -> BTreeSet<usize> {
    types.iter().map(|id| id.package).collect()
}

/// A version of a kind, as its CRD names it.
#[derive(Debug, Clone, Copy)]
pub struct KindVersion<'a> {
    pub group: &'a str,
    /// Kind, which is also the name of its struct.
    pub kind: &'a str,
    pub version: &'a str,
    /// All versions of the CRD.
    pub versions: &'a [&'a str],
}

/// Returns the struct of a kind, or `None` if no package has it. Fails if two fit equally well.
fn find_struct(packages: &Packages, kind: KindVersion<'_>) -> Result<Option<TypeId>, GoFinding> {
    // The fit of a struct, the most important criterion first: it has the marks of a kind, since a nested type may have the name of
    // one; its package has the version; its package has the group.
    let mut found: Vec<([bool; 3], TypeId, &Position)> = Vec::new();
    let mut broken = None;
    for (index, package) in packages.packages() {
        if package.group().is_some_and(|group| group != kind.group) {
            continue;
        }
        let Some(version) = version_fit(package.version(), kind) else { continue };
        broken = broken.or_else(|| packages.broken(index, kind.kind));
        for id in packages.declared(index, kind.kind) {
            let Some(declaration) = packages.declaration(id) else { continue };
            if matches!(declaration.definition, Type::Struct(_) | Type::Named { .. }) {
                found.push(([is_root(declaration), version, package.group().is_some()], id, &declaration.at));
            }
        }
    }
    let Some(best) = found.iter().map(|(fit, ..)| *fit).max() else {
        return broken.map_or(Ok(None), |broken| {
            Err(GoFinding::new(&broken.at, FindingKind::UnreadableType, broken.describe(kind.kind)))
        });
    };
    let mut best = found.into_iter().filter(|(fit, ..)| *fit == best);
    match (best.next(), best.next()) {
        (Some((_, _, first)), Some((_, _, second))) => {
            let message = format!(
                "the kind `{}` is also declared at {first}: give the sources of one of them, or mark their packages with \
                 `+groupName` and `+versionName`",
                kind.kind
            );
            Err(GoFinding::new(second, FindingKind::DuplicateKind, message))
        }
        (first, _) => Ok(first.map(|(_, id, _)| id)),
    }
}

/// Returns true if a package has the version of the kind, false if its name is not a version, and `None` if it has another
/// version.
fn version_fit(version: &str, kind: KindVersion<'_>) -> Option<bool> {
    if version == kind.version {
        return Some(true);
    }
    let other = kind.versions.contains(&version) || is_version(version);
    (!other).then_some(false)
}

/// Returns true for `v1` and `v2beta3`.
fn is_version(name: &str) -> bool {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Some(rest) = name.strip_prefix('v').filter(|rest| digits(rest) > 0) else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let stage = ["alpha", "beta"].iter().find_map(|stage| rest.strip_prefix(stage));
    rest.is_empty() || stage.is_some_and(|number| digits(number) == number.len())
}

fn is_root(declaration: &TypeDeclaration) -> bool {
    let marked = declaration.markers.iter().any(|marker| marker.meaning == Meaning::Root);
    let Type::Struct(fields) = &declaration.definition else { return marked };
    marked || fields.iter().any(|field| field.embedded && &*field.name == "TypeMeta")
}
