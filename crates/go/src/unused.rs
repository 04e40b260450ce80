//! Markers without effect: misplaced in the sources, or on structs that no kind uses. And types that the parser cannot read.

use super::derivation::Derivation;
use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::packages::{Packages, TypeId};
use super::types::{BrokenDeclaration, GoFile};
use kube_unions_core::declaration::Severity;
use std::collections::BTreeSet;

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
