//! Finds the pairs of fields that validations exclude.

use crate::answer::{Evidence, ProposedChoice, ProposedUnion, UnionFields};
use crate::candidates::CandidateFields;
use crate::decision::{Decision, OtherMembers};
use crate::table::{TableRow, TruthTable};
use std::collections::BTreeSet;

/// The truth table of a group of fields without a discriminator.
pub(crate) struct Exclusions {
    pub(crate) table: TruthTable,
    /// The pairs of fields that are rejected together, though neither is alone.
    pub(crate) graph: ExclusionGraph,
    /// The same pairs, and those that follow: a field that requires another one excludes what that one excludes.
    pub(crate) implied: ExclusionGraph,
    /// The validations by which a field requires another one.
    requirements: Vec<((usize, usize), Vec<Evidence>)>,
}

impl Exclusions {
    pub(crate) fn of(candidate: &CandidateFields<'_>, fields: Vec<String>) -> Option<Self> {
        if fields.len() < 2 {
            return None;
        }
        let union = UnionFields::of_members(&fields);
        let table = candidate.table(&union, OtherMembers::Unknown)?;
        let rejects = |members: &[&str]| table.row(None, members).is_some_and(|row| table.is_rejection(row));
        let mut graph = ExclusionGraph::new(fields);
        // A table of too many fields does not have every pair.
        if table.is_complete() {
            let free = graph.fields.iter().enumerate().filter(|(_, field)| !rejects(&[field]));
            let free: Vec<(usize, String)> = free.map(|(field, name)| (field, name.clone())).collect();
            for (length, (other, other_name)) in free.iter().enumerate() {
                let before = free.iter().take(length);
                before.filter(|(_, name)| rejects(&[name, other_name])).for_each(|(one, _)| graph.add(*one, *other));
            }
        }
        let (mut implied, mut requirements) = (graph.clone(), Vec::new());
        let mut waiting: Vec<usize> = graph.connected().into_iter().flatten().collect();
        let mut reached: BTreeSet<usize> = waiting.iter().copied().collect();
        while let Some(other) = waiting.pop() {
            for (field, name) in
                graph.fields.iter().enumerate().filter(|(it, _)| *it != other && !graph.has(*it, other))
            {
                let required = graph.fields.get(other).and_then(|other| candidate.requirement(name, other));
                let Some(evidence) = required else { continue };
                requirements.push(((field, other), evidence));
                waiting.extend(reached.insert(field).then_some(field));
            }
        }
        // A requirement may lead to another one.
        for _ in 0..requirements.len() {
            for ((field, required), _) in &requirements {
                let excluded = (0..graph.fields.len()).filter(|&it| it != *field && implied.has(*required, it));
                excluded.collect::<Vec<_>>().into_iter().for_each(|excluded| implied.add(*field, excluded));
            }
        }
        Some(Self { table, graph, implied, requirements })
    }

    pub(crate) fn union(&self, candidate: &CandidateFields<'_>, groups: &[Vec<usize>]) -> ProposedUnion {
        let mut positions = groups.concat();
        positions.sort_unstable();
        let members = self.graph.names(&positions);
        let pairs = self.table.rows().iter().filter(|row| {
            row.combination.members.len() == 2 && row.combination.members.iter().all(|member| members.contains(member))
        });
        let are_inside = |(one, other): (usize, usize)| positions.contains(&one) && positions.contains(&other);
        let requirements = self.requirements.iter().filter(|(pair, _)| are_inside(*pair));
        let pairs: Vec<&TableRow> = pairs.collect();
        let fields = UnionFields::of_members(&members);
        let choices = ProposedChoice::of_groups(groups.iter().map(|group| self.graph.names(group)).collect());
        let others = requirements.flat_map(|(_, evidence)| evidence.clone());
        let evidence = Evidence::with_others(CandidateFields::evidence(&self.table, &pairs), others);
        ProposedUnion {
            exactly_one: candidate.requires_one(&members),
            empty_is_unset: candidate.empty_is_unset(pairs.iter().copied(), fields, OtherMembers::Unknown),
            ..candidate.object.union(None, choices, evidence)
        }
    }

    /// Returns the fields if a rule that names them could not be evaluated.
    pub(crate) fn undecided(&self) -> Option<(Vec<String>, String)> {
        let why = self.table.rows().iter().find_map(|row| match &row.decision {
            Decision::Undecided { why } if row.combination.members.len() == 2 => Some(why.clone()),
            Decision::Allowed | Decision::Rejected { .. } | Decision::Undecided { .. } => None,
        });
        why.map(|why| (self.graph.fields.clone(), why))
    }
}

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
