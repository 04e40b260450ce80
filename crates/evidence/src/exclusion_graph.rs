//! Groups of fields that exclude each other.

use std::collections::BTreeSet;

/// Fields of an object, and the pairs of them that exclude each other.
#[derive(Debug, Clone)]
pub struct ExclusionGraph {
    pub(crate) fields: Vec<String>,
    /// Each pair is in both orders.
    pairs: BTreeSet<(usize, usize)>,
}

impl ExclusionGraph {
    pub(crate) fn new(fields: Vec<String>) -> Self {
        Self { fields, pairs: BTreeSet::new() }
    }

    /// Makes the graph of pairs.
    pub fn of<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)> + Clone) -> Self {
        let names: BTreeSet<&str> = pairs.clone().flat_map(|(one, other)| [one, other]).collect();
        let mut graph = Self::new(names.into_iter().map(str::to_owned).collect());
        let position = |graph: &Self, name: &str| graph.fields.binary_search_by(|field| field.as_str().cmp(name)).ok();
        for (one, other) in pairs.filter(|(one, other)| one != other) {
            if let (Some(one), Some(other)) = (position(&graph, one), position(&graph, other)) {
                graph.add(one, other);
            }
        }
        graph
    }

    /// Returns the groups of all fields, so that two fields exclude each other exactly if they are in different groups. `None` if
    /// there are no such groups.
    pub fn groups(&self) -> Option<Vec<Vec<String>>> {
        let all: Vec<usize> = (0..self.fields.len()).collect();
        Some(self.split(&all)?.iter().map(|group| self.names(group)).collect())
    }

    pub(crate) fn add(&mut self, one: usize, other: usize) {
        self.pairs.extend([(one, other), (other, one)]);
    }

    pub(crate) fn has(&self, one: usize, other: usize) -> bool {
        self.pairs.contains(&(one, other))
    }

    /// Returns the fields that are connected by pairs, in the order of the schema.
    pub(crate) fn connected(&self) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        let mut open: BTreeSet<usize> = self.pairs.iter().map(|(field, _)| *field).collect();
        while let Some(first) = open.pop_first() {
            let mut connected = BTreeSet::from([first]);
            let mut waiting = vec![first];
            while let Some(field) = waiting.pop() {
                let reached: Vec<usize> = open.iter().copied().filter(|&other| self.has(field, other)).collect();
                open.retain(|other| !reached.contains(other));
                connected.extend(reached.iter().copied());
                waiting.extend(reached);
            }
            found.push(connected.into_iter().collect());
        }
        found
    }

    /// Splits connected fields into groups, so that two fields exclude each other exactly if they are in different groups. `None`
    /// if there are no such groups.
    pub(crate) fn split(&self, connected: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &field in connected {
            let excludes = |group: &Vec<usize>| group.iter().filter(|&&other| self.has(field, other)).count();
            let mut own = groups.iter_mut().filter(|group| excludes(group) < group.len());
            match (own.next(), own.next()) {
                (None, _) => groups.push(vec![field]),
                (Some(group), None) if excludes(group) == 0 => group.push(field),
                (Some(_), _) => return None,
            }
        }
        Some(groups)
    }

    /// Returns groups of fields of which each excludes every other one, the large ones first. No field is in two of them.
    pub(crate) fn cliques(&self, mut open: Vec<usize>) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
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
                if group.iter().all(|&member| self.has(member, field)) {
                    group.push(field);
                }
            }
            group
        };
        let groups = open.iter().map(|&first| grow(first)).filter(|group| group.len() > 1);
        // The first of the largest groups wins.
        let mut largest = groups.rev().max_by_key(Vec::len)?;
        largest.sort_unstable();
        Some(largest)
    }

    pub(crate) fn names(&self, group: &[usize]) -> Vec<String> {
        group.iter().filter_map(|&field| self.fields.get(field)).cloned().collect()
    }

    /// Returns the fields outside of a group that a member excludes, quoted.
    pub(crate) fn outside(&self, group: &[usize]) -> Vec<String> {
        let others = self.fields.iter().enumerate().filter(|(field, _)| !group.contains(field));
        let excluded = others.filter(|(other, _)| group.iter().any(|&member| self.has(member, *other)));
        excluded.map(|(_, field)| format!("`{field}`")).collect()
    }
}
