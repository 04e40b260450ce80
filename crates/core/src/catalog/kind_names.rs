//! Finds a kind by the name that a user gives, like kubectl.

use super::CatalogEntry;

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
        let (gvk, resource) = (entry.gvk(), entry.resource());
        Self {
            group: &gvk.group,
            version: &gvk.version,
            kind: &gvk.kind,
            plural: resource.map_or("", |resource| &resource.plural),
            singular: resource.map_or("", |resource| &resource.singular),
            short_names: resource.map_or(&[], |resource| &resource.short_names),
        }
    }

    /// Returns the position of the kind that a user asked for by plural, singular, short name or kind, alone or followed by
    /// `.group` or `.version.group`. Full names win over short names, then the first match wins.
    pub fn find(all: &[Self], asked: &str) -> Option<usize> {
        let asked = Asked::new(asked)?;
        let named: [&dyn Fn(&Self) -> bool; 2] =
            [&|it| it.is_named(&asked.name), &|it| it.short_names.contains(&asked.name)];
        // The readings of the part after the name, in kubectl's order.
        let readings: [&dyn Fn(&Self) -> bool; 3] =
            [&|it| asked.rest.is_empty() || asked.names_version(it), &|it| it.group == asked.rest, &|it| {
                it.group.starts_with(&asked.rest)
            }];
        named.iter().find_map(|named| readings.iter().find_map(|fits| all.iter().position(|it| named(it) && fits(it))))
    }

    /// Returns true if the user asked for this version of the kind.
    pub fn is_versioned_in(&self, asked: &str) -> bool {
        Asked::new(asked).is_some_and(|asked| asked.names_version(self))
    }

    fn is_named(&self, lower: &str) -> bool {
        self.plural == lower || self.singular == lower || self.kind.to_lowercase() == lower
    }
}

/// The words of a user, in lower case.
struct Asked {
    name: String,
    /// The part after the first dot.
    rest: String,
}

impl Asked {
    fn new(asked: &str) -> Option<Self> {
        let lower = asked.to_lowercase();
        let (name, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        (!name.is_empty()).then(|| Self { name: name.to_owned(), rest: rest.to_owned() })
    }

    fn names_version(&self, names: &KindNames<'_>) -> bool {
        let (version, group) = self.rest.split_once('.').unwrap_or((&self.rest, ""));
        !version.is_empty() && (names.version, names.group) == (version, group)
    }
}
