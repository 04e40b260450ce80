//! Which struct is a kind's.

use super::finding::{FindingReason, GoFinding, Severity};
use super::marker::Meaning;
use super::packages::{Packages, TypeId};
use super::types::{Type, TypeDeclaration};

/// A version of a kind, as a CRD names it.
#[derive(Debug, Clone, Copy)]
pub struct KindVersion<'a> {
    /// The API group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The version.
    pub version: &'a str,
    /// All versions of the CRD.
    pub versions: &'a [&'a str],
}

/// The struct of a kind. `Ok(None)` where none is there.
pub(super) fn find(packages: &Packages, asked: KindVersion<'_>) -> Result<Option<TypeId>, Box<GoFinding>> {
    let mut found: Vec<(TypeId, Fit)> = Vec::new();
    for (index, package) in packages.packages() {
        if package.group().is_some_and(|group| group != asked.group) {
            continue;
        }
        let Some(version) = version_fit(package.version(), asked) else { continue };
        for id in packages.declared(index, asked.kind) {
            let Some(declaration) = packages.declaration(id) else { continue };
            if !matches!(declaration.definition, Type::Struct(_) | Type::Named { .. }) {
                continue;
            }
            found.push((id, Fit { version, grouped: package.group().is_some(), root: is_root(declaration) }));
        }
    }
    let Some(best) = found.iter().map(|(_, fit)| *fit).max() else { return Ok(None) };
    let mut best = found.into_iter().filter(|(_, fit)| *fit == best).map(|(id, _)| id);
    match (best.next(), best.next()) {
        (Some(one), Some(other)) => Err(Box::new(twice(packages, asked, one, other))),
        (one, _) => Ok(one),
    }
}

/// How well a struct fits; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// Whether it says by itself that it is a kind: an inner type may be called as a kind is.
    root: bool,
    version: bool,
    grouped: bool,
}

/// Whether a package is of the version; `None` where it is of another.
fn version_fit(version: &str, asked: KindVersion<'_>) -> Option<bool> {
    if version == asked.version {
        return Some(true);
    }
    let other = asked.versions.contains(&version) || is_version(version);
    (!other).then_some(false)
}

/// `v1`, `v2beta3`.
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

fn twice(packages: &Packages, asked: KindVersion<'_>, one: TypeId, other: TypeId) -> GoFinding {
    let position = |id| packages.declaration(id).map(|declaration| declaration.at.clone());
    let first = position(one).map(|at| at.to_string()).unwrap_or_default();
    GoFinding {
        position: position(other),
        path: String::new(),
        severity: Severity::Error,
        reason: FindingReason::Kind,
        message: format!(
            "the kind `{}` is here and at {first}; give the sources of one of them, or say which is meant by `+groupName` and `+versionName`",
            asked.kind
        ),
    }
}
