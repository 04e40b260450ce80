//! Types on the way that cannot be followed: the sources lack them, or the parser cannot read them.

use crate::finding::{FindingKind, GoFinding, Position};
use crate::packages::{Packages, UnknownType};
use kube_unions_core::schema::Place;
use std::collections::BTreeMap;

/// Packages that nearly every kind imports and that declare no unions.
const WITHOUT_UNIONS: [&str; 2] = ["k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/"];

/// The types that a walk needs and cannot follow, by reason and name. The types of a package that was not given count as one.
#[derive(Debug, Default)]
pub(super) struct Unresolved<'p>(BTreeMap<(UnknownType<'p>, Option<&'p str>), Needed<'p>>);

/// A type that is needed: its first place, and the number of places.
#[derive(Debug)]
struct Needed<'p> {
    name: &'p str,
    path: String,
    at: &'p Position,
    times: usize,
}

impl<'p> Unresolved<'p> {
    /// Adds a type that cannot be followed.
    pub(super) fn add(&mut self, name: &'p str, reason: UnknownType<'p>, at: &'p Position, place: &Place) {
        let key = match reason {
            UnknownType::NotGiven(package) if WITHOUT_UNIONS.iter().any(|known| package.starts_with(known)) => return,
            UnknownType::NotGiven(_) => (reason, None),
            UnknownType::Undeclared(_) | UnknownType::Broken(_) => (reason, Some(name)),
        };
        let needed = || Needed { name, path: place.to_string(), at, times: 0 };
        self.0.entry(key).or_insert_with(needed).times += 1;
    }

    /// Returns a finding for each package and type.
    pub(super) fn findings(self, packages: &Packages) -> Vec<GoFinding> {
        self.0.into_iter().map(|((reason, _), needed)| needed.finding(reason, packages)).collect()
    }
}

impl Needed<'_> {
    /// Returns a finding at the first place, or at the error in the sources.
    fn finding(self, reason: UnknownType<'_>, packages: &Packages) -> GoFinding {
        let Self { name, path, at, times } = self;
        let more = match times {
            0 | 1 => String::new(),
            2 => ", nor at one more place".to_owned(),
            times => format!(", nor at {} more places", times - 1),
        };
        let (at, kind, message) = match reason {
            UnknownType::NotGiven(package) => {
                let message = format!(
                    "the sources of the package `{package}` were not given: unions in `{name}` are not declared here{more}; \
                     give them"
                );
                (at, FindingKind::MissingPackage, message)
            }
            UnknownType::Undeclared(package) => {
                let package = packages.package(package).map_or("", |package| &package.name);
                let message = format!(
                    "the package `{package}` does not declare `{name}`: unions in it are not declared here{more}; give all of \
                     its files, or select the build by its tags"
                );
                (at, FindingKind::MissingType, message)
            }
            UnknownType::Broken(declaration) => {
                let message = format!("{}; unions in it are not declared here{more}", declaration.describe(name));
                (&declaration.at, FindingKind::UnreadableType, message)
            }
        };
        GoFinding { path, ..GoFinding::new(at, kind, message) }
    }
}
