//! Finds a kind by the name that a user gives, like kubectl.

use super::CatalogEntry;
use crate::declaration::{Definition, Resource};
use crate::names::GroupVersionKind;
use crate::near::{nearest, one_edit_off};
use std::collections::BTreeSet;

/// The names of one version of a kind. A name that is not known is empty.
#[derive(Debug, Clone, Copy)]
pub struct KindNames<'n> {
    /// The API group, empty for the core group.
    pub group: &'n str,
    /// The version.
    pub version: &'n str,
    /// The kind.
    pub kind: &'n str,
    /// The plural name, as in API paths.
    pub plural: &'n str,
    /// The singular name.
    pub singular: &'n str,
    /// The short names.
    pub short_names: &'n [String],
}

impl<'n> KindNames<'n> {
    /// Returns the names of an entry, as far as its definition has them.
    pub fn of(entry: &'n CatalogEntry) -> Self {
        let GroupVersionKind { group, version, kind } = entry.gvk();
        Self::new(group, version, kind, entry.resource())
    }

    /// Returns the names of a version of a definition.
    pub fn of_version(definition: &'n Definition, version: &'n str) -> Self {
        Self::new(definition.group(), version, definition.kind(), definition.resource())
    }

    fn new(group: &'n str, version: &'n str, kind: &'n str, resource: Option<&'n Resource>) -> Self {
        let (plural, singular) = resource.map_or(("", ""), |resource| (&resource.plural, &resource.singular));
        let short_names = resource.map_or(&[][..], |resource| &resource.short_names);
        Self { group, version, kind, plural, singular, short_names }
    }

    /// Returns the position of the kind that a user asked for by plural, singular, short name or kind, alone or followed by
    /// `.group`, `.version.group` or `.group/version`. Full names win over short names, then the first match wins.
    pub fn find(all: &[Self], asked: &str) -> Option<usize> {
        Self::find_all(all, asked).first().copied()
    }

    /// Returns the positions of all kinds and versions that a user may mean, see [`Self::find`]. None of them is a worse match
    /// than the first.
    pub fn find_all(all: &[Self], asked: &str) -> Vec<usize> {
        let Some(asked) = KindQuery::new(asked) else { return Vec::new() };
        let named: [&dyn Fn(&Self) -> bool; 2] =
            [&|it| it.is_named(&asked.name), &|it| it.short_names.contains(&asked.name)];
        // The readings of the part after the name, in kubectl's order.
        let readings: [&dyn Fn(&Self) -> bool; 3] =
            [&|it| asked.suffix.is_empty() || asked.names_version(it), &|it| it.group == asked.suffix, &|it| {
                it.group.starts_with(&asked.suffix)
            }];
        let fitting = |named: &dyn Fn(&Self) -> bool, fits: &dyn Fn(&Self) -> bool| {
            let found = all.iter().enumerate().filter(|(_, it)| named(it) && fits(it));
            found.map(|(position, _)| position).collect::<Vec<_>>()
        };
        let all = named.iter().flat_map(|named| readings.iter().map(|fits| fitting(named, fits)));
        all.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns the name that a user probably meant who asked for a kind that is not there.
    pub fn suggest(all: &[Self], asked: &str) -> Option<String> {
        let KindQuery { name, suffix } = KindQuery::new(asked)?;
        let is_meant = |it: &Self, name: &str| it.is_named(name) || it.short_names.iter().any(|short| short == name);
        let name = if all.iter().any(|it| is_meant(it, &name)) {
            name
        } else {
            let kinds: BTreeSet<String> = all.iter().map(|it| it.kind.to_lowercase()).collect();
            let names = all.iter().flat_map(|it| {
                let full = [it.plural, it.singular].into_iter().filter(|name| !name.is_empty());
                full.chain(it.short_names.iter().map(String::as_str))
            });
            let names: BTreeSet<&str> = names.chain(kinds.iter().map(String::as_str)).collect();
            // Kinds often have similar names: a widget is not a gadget.
            one_edit_off(&name, names)?.to_owned()
        };
        let named = || all.iter().filter(|it| is_meant(it, &name));
        if suffix.is_empty() || named().any(|it| it.group == suffix) {
            let dot = if suffix.is_empty() { "" } else { "." };
            return Some(format!("{name}{dot}{suffix}"));
        }
        let ends: BTreeSet<String> =
            named().flat_map(|it| [it.group.to_owned(), format!("{}.{}", it.version, it.group)]).collect();
        nearest(&suffix, ends.iter().map(String::as_str)).map(|end| format!("{name}.{end}"))
    }

    /// Returns true if the user asked for this version of the kind.
    pub fn is_versioned_in(&self, asked: &str) -> bool {
        KindQuery::new(asked).is_some_and(|asked| asked.names_version(self))
    }

    fn is_named(&self, lower: &str) -> bool {
        self.plural == lower || self.singular == lower || self.kind.to_lowercase() == lower
    }
}

/// The words of a user, in lower case. `kind.group/version`, as messages name kinds, is `kind.version.group`.
struct KindQuery {
    name: String,
    /// The part after the first dot.
    suffix: String,
}

impl KindQuery {
    fn new(asked: &str) -> Option<Self> {
        let lower = asked.to_lowercase();
        let (kind, version) = lower.split_once('/').unwrap_or((&lower, ""));
        let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
        let suffix: Vec<&str> = [version, group].into_iter().filter(|part| !part.is_empty()).collect();
        (!name.is_empty()).then(|| Self { name: name.to_owned(), suffix: suffix.join(".") })
    }

    fn names_version(&self, names: &KindNames<'_>) -> bool {
        let (version, group) = self.suffix.split_once('.').unwrap_or((&self.suffix, ""));
        !version.is_empty() && (names.version, names.group) == (version, group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nothing_has_resembles_one() {
        let short = ["ro".to_owned(), "rol".to_owned()];
        let names = |group, version, kind, plural, singular, short_names| KindNames {
            group,
            version,
            kind,
            plural,
            singular,
            short_names,
        };
        let all = [
            names("argoproj.io", "v1", "Rollout", "rollouts", "rollout", &short[..]),
            names("argoproj.io", "v1beta1", "Rollout", "rollouts", "rollout", &short),
            names("", "v1", "Service", "services", "", &[]),
        ];
        for (asked, suggested) in [
            ("rolout", Some("rollout")),
            ("Rolouts", Some("rollouts")),
            ("rolout.argoproj.io", Some("rollout.argoproj.io")),
            ("rollout.argoprj.io", Some("rollout.argoproj.io")),
            ("rollouts.v1beta2.argoproj.io", Some("rollouts.v1beta1.argoproj.io")),
            ("rollout.example.com", None),
            ("servise", Some("service")),
            ("gadget", None),
            ("", None),
            (".argoproj.io", None),
        ] {
            assert_eq!(KindNames::suggest(&all, asked).as_deref(), suggested, "{asked}");
        }
    }

    #[test]
    fn all_versions_of_a_kind_are_found_unless_one_is_asked_for() {
        let names = |group, version| KindNames {
            group,
            version,
            kind: "Widget",
            plural: "widgets",
            singular: "widget",
            short_names: &[],
        };
        let all = [names("a.example", "v1"), names("a.example", "v2"), names("b.example", "v1")];
        for (asked, found) in [
            ("widget", &[0, 1, 2][..]),
            ("WIDGETS.a.example", &[0, 1]),
            ("widgets.v1.a.example", &[0]),
            ("Widget.a.example/v2", &[1]),
            ("Widget.a.example/v3", &[]),
            ("widgets.b", &[2]),
            ("widgets.c", &[]),
        ] {
            assert_eq!(KindNames::find_all(&all, asked), found, "{asked}");
        }
    }
}
