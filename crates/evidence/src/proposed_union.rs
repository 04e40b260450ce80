//! A union that is proposed or suggested.

use crate::place::Evidence;
use std::collections::BTreeSet;

/// A union that validations enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedUnion {
    /// The path of the object, as in a `UnionDeclaration`: `spec.filters[*]`. Empty for the root.
    pub path: String,
    /// True if the place is in a list whose items have no keys.
    pub keyless: bool,
    /// The discriminator, if the validations have one.
    pub discriminator: Option<String>,
    /// The values of the discriminator. Without one, a group of members that may be set together has a value, which is only its
    /// name.
    pub choices: Vec<ProposedChoice>,
    /// The members, in the order of the schema.
    pub members: Vec<String>,
    /// True if an object without a member is rejected.
    pub exactly_one: bool,
    /// The members whose `false`, `0`, `""`, `{}` and `[]` count as not set.
    pub empty_is_unset: BTreeSet<String>,
    /// True if a rule compares the object or a field of the union with the old object, so that a change may be refused.
    pub immutable: bool,
    /// The validations that reject other combinations. Their pointers begin at the schema that was searched.
    pub evidence: Vec<Evidence>,
}

/// A value of a proposed union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedChoice {
    /// The value.
    pub value: String,
    /// The members that may be set with it.
    pub members: Vec<ProposedMember>,
}

/// A member that a value selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedMember {
    /// The name of the field.
    pub name: String,
    /// True if the member may be missing.
    pub optional: bool,
}

impl ProposedChoice {
    /// Returns a choice for each group of a union without a discriminator.
    pub(crate) fn of_groups(groups: Vec<Vec<String>>) -> Vec<Self> {
        let capital = |name: &str| {
            let mut letters = name.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        };
        let names = || groups.iter().filter_map(|group| group.first().cloned());
        let capitals: BTreeSet<String> = names().map(|name| capital(&name)).collect();
        let are_distinct = capitals.len() == names().count();
        let value = |name: String| if are_distinct { capital(&name) } else { name };
        let member = |name| ProposedMember { name, optional: true };
        let names: Vec<String> = names().map(value).collect();
        names
            .into_iter()
            .zip(groups)
            .map(|(value, group)| Self { value, members: group.into_iter().map(member).collect() })
            .collect()
    }
}
