//! Finds the pairs of fields that validations exclude.

use crate::candidates::CandidateFields;
use crate::env::CelEnv;
use crate::exclusion_graph::ExclusionGraph;
use crate::place::Evidence;
use crate::proposed_union::{ProposedChoice, ProposedUnion};
use crate::table::{Decision, OtherMembers, TableRow, TruthTable};
use crate::union_fields::UnionFields;
use std::collections::BTreeSet;
use std::rc::Rc;

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
    pub(crate) fn of(candidate: &CandidateFields<'_>, fields: Vec<String>, env: &Rc<CelEnv>) -> Option<Self> {
        if fields.len() < 2 {
            return None;
        }
        let union = UnionFields { members: fields.clone(), ..UnionFields::default() };
        let table =
            TruthTable::make(candidate.object.schema, &candidate.object.place, &union, OtherMembers::Unknown, env)?;
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
                let required = graph.fields.get(other).and_then(|other| candidate.requirement(name, other, env));
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

    /// Returns the union of groups that exclude each other.
    pub(crate) fn union(
        &self,
        candidate: &CandidateFields<'_>,
        groups: &[Vec<usize>],
        env: &Rc<CelEnv>,
    ) -> ProposedUnion {
        let mut positions = groups.concat();
        positions.sort_unstable();
        let members = self.graph.names(&positions);
        let pairs = self.table.rows().iter().filter(|row| {
            row.combination.members.len() == 2 && row.combination.members.iter().all(|member| members.contains(member))
        });
        let are_inside = |(one, other): (usize, usize)| positions.contains(&one) && positions.contains(&other);
        let requirements = self.requirements.iter().filter(|(pair, _)| are_inside(*pair));
        let pairs: Vec<&TableRow> = pairs.collect();
        let fields = UnionFields { members: members.clone(), ..UnionFields::default() };
        let choices = ProposedChoice::of_groups(groups.iter().map(|group| self.graph.names(group)).collect());
        let others = requirements.flat_map(|(_, evidence)| evidence.clone());
        let evidence = Evidence::with_others(CandidateFields::evidence(&self.table, &pairs), others);
        ProposedUnion {
            exactly_one: candidate.requires_one(&members, env),
            empty_is_unset: candidate.empty_is_unset(pairs.iter().copied(), fields, OtherMembers::Unknown, env),
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
