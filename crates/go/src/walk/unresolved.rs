//! Types on the way that cannot be followed: the sources lack them, or the parser cannot read them.

use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::packages::{Packages, Underlying};
use crate::position::Position;
use crate::types::BrokenDeclaration;
use kube_unions_core::schema::Place;
use std::collections::BTreeMap;

/// Packages that nearly every kind imports and that declare no unions.
const WITHOUT_UNIONS: [&str; 2] = ["k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/"];

/// The types that a walk needs and cannot follow.
#[derive(Debug, Default)]
pub(super) struct Unresolved<'p> {
    /// Packages whose sources were not given.
    not_given: BTreeMap<&'p str, Needed<'p>>,
    /// Types that their package, by index, does not declare.
    undeclared: BTreeMap<(usize, &'p str), Needed<'p>>,
    /// Types whose declaration is broken, by name and by the position of the error.
    broken: BTreeMap<(&'p str, &'p Position), (Needed<'p>, &'p BrokenDeclaration)>,
}

/// A type that is needed: its first place, and the number of places.
#[derive(Debug)]
struct Needed<'p> {
    name: &'p str,
    path: String,
    at: &'p Position,
    times: usize,
}

impl<'p> Unresolved<'p> {
    /// Adds a type if it cannot be followed.
    pub(super) fn add(&mut self, underlying: &Underlying<'p>, at: &'p Position, place: &Place) {
        let needed = |name| Needed { name, path: place.to_string(), at, times: 0 };
        match underlying {
            Underlying::NotGiven { package, name } => {
                if !WITHOUT_UNIONS.iter().any(|known| package.starts_with(known)) {
                    self.not_given.entry(package).or_insert_with(|| needed(name)).times += 1;
                }
            }
            Underlying::Undeclared { package, name } => {
                self.undeclared.entry((*package, name)).or_insert_with(|| needed(name)).times += 1;
            }
            Underlying::Broken { declaration, name } => {
                let entry = self.broken.entry((name, &declaration.at));
                entry.or_insert_with(|| (needed(name), declaration)).0.times += 1;
            }
            Underlying::Struct { .. }
            | Underlying::List(_)
            | Underlying::Map(_)
            | Underlying::Plain
            | Underlying::Cycle => {}
        }
    }

    /// Returns a finding for each package and type.
    pub(super) fn findings(self, packages: &Packages) -> Vec<GoFinding> {
        let Self { not_given, undeclared, broken } = self;
        let mut findings = Vec::new();
        for (package, needed) in not_given {
            let message = format!(
                "the sources of the package `{package}` were not given: unions in `{}` are not declared here{}; give them",
                needed.name,
                needed.more()
            );
            findings.push(needed.finding(None, FindingKind::MissingPackage, message));
        }
        for ((package, name), needed) in undeclared {
            let package = packages.package(package).map_or("", |package| &package.name);
            let message = format!(
                "the package `{package}` does not declare `{name}`: unions in it are not declared here{}; give all of its \
                 files, or select the build by its tags",
                needed.more()
            );
            findings.push(needed.finding(None, FindingKind::MissingType, message));
        }
        for ((name, at), (needed, declaration)) in broken {
            let unread = declaration.describe(name);
            let message = format!("{unread}; unions in it are not declared here{}", needed.more());
            findings.push(needed.finding(Some(at), FindingKind::UnreadableType, message));
        }
        findings
    }
}

impl Needed<'_> {
    /// Returns a finding at the first place, or at the error in the sources.
    fn finding(self, at: Option<&Position>, kind: FindingKind, message: String) -> GoFinding {
        GoFinding { path: self.path, ..GoFinding::new(at.unwrap_or(self.at), kind, message) }
    }

    fn more(&self) -> String {
        match self.times {
            0 | 1 => String::new(),
            2 => ", nor at one more place".to_owned(),
            times => format!(", nor at {} more places", times - 1),
        }
    }
}
