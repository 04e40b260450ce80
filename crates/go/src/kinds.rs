//! Finds the struct of a kind.

use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::marker::Meaning;
use super::packages::{Packages, TypeId};
use super::position::Position;
use super::types::{Type, TypeDeclaration};

/// A version of a kind, as its CRD names it.
#[derive(Debug, Clone, Copy)]
pub struct KindVersion<'a> {
    /// API group.
    pub group: &'a str,
    /// Kind, which is also the name of its struct.
    pub kind: &'a str,
    /// Version.
    pub version: &'a str,
    /// All versions of the CRD.
    pub versions: &'a [&'a str],
}

/// Returns the struct of a kind, or `None` if no package has it. Fails if two fit equally well.
pub(super) fn find(packages: &Packages, kind: KindVersion<'_>) -> Result<Option<TypeId>, GoFinding> {
    let mut found: Vec<(Fit, TypeId, &Position)> = Vec::new();
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
                let fit = Fit { root: is_root(declaration), version, grouped: package.group().is_some() };
                found.push((fit, id, &declaration.at));
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

/// The fit of a struct for a kind. The most important criterion comes first; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// The struct has the marks of a kind. A nested type may have the name of a kind.
    root: bool,
    /// The package has the version of the kind.
    version: bool,
    /// The package has the group of the kind.
    grouped: bool,
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
    marked || fields.fields.iter().any(|field| field.embedded && &*field.name == "TypeMeta")
}
