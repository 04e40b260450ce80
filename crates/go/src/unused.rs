//! Markers without effect: misplaced in the sources, or on structs that no kind uses. And types that the parser cannot read.

use super::derivation::Derivation;
use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::packages::{Packages, TypeId};
use super::severity::FindingSeverity;
use std::collections::BTreeSet;

impl Packages {
    /// Returns a finding for each union marker that has no effect at its position. With `used_by`, looks only into the
    /// packages that these derivations use.
    pub fn misplaced_markers(&self, used_by: Option<&[&Derivation]>) -> Vec<GoFinding> {
        let used = used_by.map(|derivations| used_packages(&used_types(derivations)));
        let packages = self.packages().filter(|(index, _)| used.as_ref().is_none_or(|used| used.contains(index)));
        let misplaced = packages.flat_map(|(_, package)| &package.files).flat_map(|file| &file.misplaced);
        let finding = |marker: &super::types::MisplacedMarker| GoFinding {
            position: marker.at.clone(),
            path: String::new(),
            severity: marker.kind.severity(),
            kind: marker.kind,
            message: marker.message.clone(),
        };
        misplaced.map(finding).collect()
    }

    /// Returns a note for each declaration of types that the parser cannot read. With `used_by`, looks only into the packages
    /// that these derivations use. A declaration that a kind needs is also a finding of its derivation, at the same position.
    pub fn unread_types(&self, used_by: Option<&[&Derivation]>) -> Vec<GoFinding> {
        let used = used_by.map(|derivations| used_packages(&used_types(derivations)));
        let packages = self.packages().filter(|(index, _)| used.as_ref().is_none_or(|used| used.contains(index)));
        let broken = packages.flat_map(|(_, package)| &package.files).flat_map(|file| &file.broken);
        let finding = |broken: &super::types::BrokenDeclaration| {
            let name = broken.types.first()?;
            let message = format!("cannot read the declaration of `{name}`: {}", broken.message);
            let (severity, kind) = (FindingSeverity::Note, FindingKind::UnreadableType);
            Some(GoFinding { position: broken.at.clone(), path: String::new(), severity, kind, message })
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
            findings.extend(unused.map(|declaration| GoFinding {
                position: declaration.at.clone(),
                path: String::new(),
                severity: FindingSeverity::Note,
                kind: FindingKind::UnreachedStruct,
                message: format!(
                    "none of these kinds uses `{}` of the package `{}`, which has union markers",
                    declaration.name, package.name
                ),
            }));
        }
        findings
    }
}

fn used_types(derivations: &[&Derivation]) -> BTreeSet<TypeId> {
    derivations.iter().flat_map(|derivation| derivation.reached.iter().copied()).collect()
}

fn used_packages(types: &BTreeSet<TypeId>) -> BTreeSet<usize> {
    types.iter().map(|id| id.package).collect()
}
