//! Groups of fields of which each excludes every other one.

use std::collections::BTreeSet;

/// Fields of an object, and the pairs of them that exclude each other.
#[derive(Debug)]
pub(crate) struct ExclusionGraph {
    pub(crate) fields: Vec<String>,
    /// Each pair is in both orders.
    pairs: BTreeSet<(usize, usize)>,
}

impl ExclusionGraph {
    pub(crate) fn new(fields: Vec<String>) -> Self {
        Self { fields, pairs: BTreeSet::new() }
    }

    pub(crate) fn add(&mut self, one: usize, other: usize) {
        self.pairs.extend([(one, other), (other, one)]);
    }

    /// Returns groups of fields that exclude each other, the large ones first. No field is in two of them.
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        let mut open: Vec<usize> = (0..self.fields.len()).collect();
        while let Some(group) = self.largest(&open) {
            open.retain(|field| !group.contains(field));
            groups.push(group);
        }
        groups
    }

    /// Returns a large group of fields that exclude each other, in the order of the schema.
    fn largest(&self, open: &[usize]) -> Option<Vec<usize>> {
        let grow = |first: usize| {
            let mut group = vec![first];
            for &field in open {
                if group.iter().all(|&member| self.pairs.contains(&(member, field))) {
                    group.push(field);
                }
            }
            group
        };
        let groups = open.iter().map(|&first| grow(first)).filter(|group| group.len() > 1);
        // The first of the largest groups wins.
        let mut largest = groups.reduce(|best, group| if group.len() > best.len() { group } else { best })?;
        largest.sort_unstable();
        Some(largest)
    }

    pub(crate) fn names(&self, group: &[usize]) -> Vec<String> {
        group.iter().filter_map(|&field| self.fields.get(field)).cloned().collect()
    }

    /// Returns the fields outside of a group that a member excludes, quoted.
    pub(crate) fn outside(&self, group: &[usize]) -> Vec<String> {
        let others = self.fields.iter().enumerate().filter(|(field, _)| !group.contains(field));
        let excluded = others.filter(|(other, _)| group.iter().any(|&member| self.pairs.contains(&(member, *other))));
        excluded.map(|(_, field)| format!("`{field}`")).collect()
    }
}
