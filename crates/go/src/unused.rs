//! Markers without effect: misplaced in the sources, or on structs that no kind uses.

use super::derivation::Derivation;
use super::finding::{FindingReason, GoFinding};
use super::packages::{Packages, TypeId};
use super::severity::Severity;
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
            severity: marker.severity,
            reason: FindingReason::Marker,
            message: marker.message.clone(),
        };
        misplaced.map(finding).collect()
    }

    /// Returns a note for each package that these derivations use and that has union markers on structs which they do not use.
    pub fn unreached_structs(&self, derivations: &[&Derivation]) -> Vec<GoFinding> {
        let used = used_types(derivations);
        let mut findings = Vec::new();
        for index in used_packages(&used) {
            let Some(package) = self.package(index) else { continue };
            let is_used = |name: &str| self.declared(index, name).iter().any(|id| used.contains(id));
            let marked = package.types().filter(|declaration| declaration.has_union_markers());
            let unused: Vec<_> = marked.filter(|declaration| !is_used(&declaration.name)).collect();
            let Some(first) = unused.first() else { continue };
            let names: Vec<_> = unused.iter().take(3).map(|declaration| format!("`{}`", declaration.name)).collect();
            let more = unused.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            findings.push(GoFinding {
                position: first.at.clone(),
                path: String::new(),
                severity: Severity::Note,
                reason: FindingReason::Unreached,
                message: format!(
                    "none of these kinds uses {}{more} of the package `{}`, which have union markers",
                    names.join(", "),
                    package.name
                ),
            });
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
