//! The fields of a union, and their combinations.

use crate::limits::{MOST_COMBINATIONS, MOST_FREE_MEMBERS, MOST_PAIRED_MEMBERS};
use std::collections::BTreeSet;

/// The fields of a union.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnionFields {
    /// The discriminator, if the union has one.
    pub discriminator: Option<String>,
    /// The values of the discriminator. Without a discriminator, they are ignored.
    pub values: Vec<String>,
    /// The members.
    pub members: Vec<String>,
    /// The members whose `false`, `0`, `""`, `{}` and `[]` count as not set.
    pub empty_is_unset: BTreeSet<String>,
}

/// A value of the discriminator and a set of members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// The value of the discriminator. `None` if it is not set, or the union has none.
    pub value: Option<String>,
    /// The members that are set.
    pub members: BTreeSet<String>,
}

impl UnionFields {
    /// Returns the fields of a union without a discriminator.
    pub(crate) fn of_members(members: &[impl AsRef<str>]) -> Self {
        Self { members: members.iter().map(|member| member.as_ref().to_owned()).collect(), ..Self::default() }
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.discriminator.iter().chain(&self.members).map(String::as_str)
    }

    /// Returns the combinations, smallest first, and true if none was left out.
    pub(crate) fn combinations(&self) -> (Vec<Combination>, bool) {
        let mut all = BTreeSet::new();
        let values: Vec<Option<&String>> = match &self.discriminator {
            Some(_) => [None].into_iter().chain(self.values.iter().map(Some)).collect(),
            None => vec![None],
        };
        let pairs_of_all = self.discriminator.is_none() || self.members.len() <= MOST_PAIRED_MEMBERS;
        for value in values {
            let mut add = |members: &[&String]| {
                let members = members.iter().map(|&member| member.clone()).collect();
                all.insert(Combination { value: value.cloned(), members });
            };
            if self.members.len() <= MOST_FREE_MEMBERS {
                let mut subsets = vec![Vec::new()];
                for member in &self.members {
                    let with_member: Vec<Vec<&String>> =
                        subsets.iter().map(|subset| subset.iter().copied().chain([member]).collect()).collect();
                    subsets.extend(with_member);
                }
                for subset in &subsets {
                    add(subset);
                }
                continue;
            }
            add(&[]);
            add(&self.members.iter().collect::<Vec<_>>());
            for (position, one) in self.members.iter().enumerate() {
                add(&[one]);
                if pairs_of_all {
                    self.members.iter().skip(position.saturating_add(1)).for_each(|other| add(&[one, other]));
                }
            }
        }
        let mut all: Vec<Combination> = all.into_iter().collect();
        all.sort_by_key(|it| it.members.len());
        let complete = pairs_of_all && all.len() <= MOST_COMBINATIONS;
        all.truncate(MOST_COMBINATIONS);
        (all, complete)
    }
}
