//! Proposes the unions that the validations of a schema enforce already.
//!
//! [`candidates`](crate::candidates) finds fields that a validation names together. A truth table confirms each group: every
//! pair of members is rejected together, and each member alone is not. A group that is not confirmed is a doubt.

use crate::candidates::{self, CandidateFields};
use crate::env::CelEnv;
use crate::exclusion_graph::ExclusionGraph;
use crate::limits::MOST_PROPOSALS;
use crate::metadata;
use crate::node::SchemaNode;
use crate::place::Evidence;
use crate::pod_template;
use crate::proposed_union::{ProposedChoice, ProposedMember, ProposedUnion};
use crate::table::{Decision, OtherMembers, TableRow, TruthTable, with_stack};
use crate::transition;
use crate::union_fields::{Combination, UnionFields};
use serde_json::Value;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The unions that a schema enforces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// The confirmed unions, in the order of the schema.
    pub unions: Vec<ProposedUnion>,
    /// The paths of the pod templates, known by their shape. None is in another one.
    pub pod_templates: Vec<String>,
    /// The groups that are not confirmed.
    pub doubts: Vec<DoubtfulGroup>,
    /// False if places were left out, because of a limit.
    pub complete: bool,
}

/// Fields that a validation names together, and that are no union, or not surely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtfulGroup {
    /// The path of the object.
    pub path: String,
    /// The fields.
    pub fields: Vec<String>,
    /// The reason.
    pub why: String,
}

/// The truth table of a group of fields without a discriminator.
struct Exclusions {
    table: TruthTable,
    /// The pairs of fields that are rejected together, though neither is alone.
    graph: ExclusionGraph,
    /// The same pairs, and those that follow: a field that requires another one excludes what that one excludes.
    implied: ExclusionGraph,
    /// The validations by which a field requires another one.
    requirements: Vec<((usize, usize), Vec<Evidence>)>,
}

/// A field that some values of a discriminator select.
struct CandidateMember<'f> {
    name: &'f str,
    /// The table of the field alone.
    table: TruthTable,
    /// The tables of the members without which the field is rejected.
    requires: Vec<(&'f str, TruthTable)>,
}

impl Proposals {
    /// Proposes the unions of a schema. Nothing is proposed if the schema is nested too deeply for memory.
    pub fn of(schema: &Value) -> Self {
        with_stack(|| Self::find(schema)).unwrap_or_default()
    }

    fn find(schema: &Value) -> Self {
        let (env, schema) = (CelEnv::new(), metadata::with_names(schema));
        let (objects, complete) = candidates::objects(&schema);
        let mut candidates = candidates::of(&objects, &env);
        let complete = complete && candidates.len() <= MOST_PROPOSALS;
        let mut found = Self { complete, pod_templates: pod_template::paths(&objects), ..Self::default() };
        candidates.truncate(MOST_PROPOSALS);
        for candidate in &candidates {
            found.examine(candidate, &env);
        }
        found.complete &= !env.is_exhausted();
        found
    }

    fn examine(&mut self, candidate: &CandidateFields<'_>, env: &Rc<CelEnv>) {
        let mut rest = candidate.fields.clone();
        let mut with_discriminator = Vec::new();
        for discriminator in &candidate.discriminators {
            let fields: Vec<String> = rest.iter().filter(|field| *field != discriminator).cloned().collect();
            if let Some((union, doubt)) = candidate.discriminated(discriminator, &fields, env) {
                if let Some(why) = doubt {
                    self.doubt(candidate, union.members, why);
                    continue;
                }
                if union.members.len() > 1 {
                    rest.retain(|field| !union.members.contains(field) && field != discriminator);
                }
                with_discriminator.push(union);
            }
        }
        // A field that excludes another one is a member beside it, and not the only member of a discriminator.
        let (several, single): (Vec<_>, Vec<_>) = with_discriminator.into_iter().partition(|it| it.members.len() > 1);
        for union in several {
            self.propose(candidate, union, env);
        }
        let before = self.unions.len();
        self.examine_pairs(candidate, rest, env);
        let paired: BTreeSet<String> = self.unions.iter().skip(before).flat_map(|it| it.members.clone()).collect();
        for union in single.into_iter().filter(|union| !union.members.iter().any(|member| paired.contains(member))) {
            self.propose(candidate, union, env);
        }
    }

    /// Proposes unions without a discriminator.
    fn examine_pairs(&mut self, candidate: &CandidateFields<'_>, rest: Vec<String>, env: &Rc<CelEnv>) {
        let Some(exclusions) = Exclusions::of(candidate, rest, env) else { return };
        if !exclusions.table.is_complete() {
            let why = "there are too many fields or validations to try every pair".to_owned();
            return self.doubt(candidate, exclusions.graph.fields, why);
        }
        for connected in exclusions.implied.connected() {
            if let Some(groups) = exclusions.implied.split(&connected) {
                self.propose(candidate, exclusions.union(candidate, &groups, env), env);
                continue;
            }
            // A consequence of other rules may connect groups that are clear.
            let is_inside = |explicit: &Vec<usize>| explicit.iter().all(|field| connected.contains(field));
            for explicit in exclusions.graph.connected().into_iter().filter(is_inside) {
                match exclusions.graph.split(&explicit) {
                    Some(groups) => self.propose(candidate, exclusions.union(candidate, &groups, env), env),
                    None => self.examine_overlaps(candidate, &exclusions, explicit, env),
                }
            }
        }
        if let Some((fields, why)) = exclusions.undecided() {
            self.doubt(candidate, fields, why);
        }
    }

    /// Proposes the large groups of fields that exclude each other, and also others. A pair may be a part of any union, so it is a
    /// doubt.
    fn examine_overlaps(
        &mut self,
        candidate: &CandidateFields<'_>,
        exclusions: &Exclusions,
        connected: Vec<usize>,
        env: &Rc<CelEnv>,
    ) {
        let graph = &exclusions.graph;
        for group in graph.cliques(connected) {
            if group.len() > 2 {
                let members: Vec<Vec<usize>> = group.iter().map(|field| vec![*field]).collect();
                self.propose(candidate, exclusions.union(candidate, &members, env), env);
                continue;
            }
            let outside = graph.outside(&group).join(", ");
            let why = format!("some of them also exclude {outside}, and a field can be in one union only");
            self.doubt(candidate, graph.names(&group), why);
        }
    }

    /// Adds a union, or a doubt if a declaration of it would have a fault.
    fn propose(&mut self, candidate: &CandidateFields<'_>, union: ProposedUnion, env: &CelEnv) {
        let node = candidate.object.node;
        let fixed = union.members.iter().find(|member| node.always_has(member));
        let odd = |name: &str| name.contains(['.', '[', ']', '*']);
        let why = match fixed {
            Some(member) => format!("`{member}` is required or has a default, so it cannot be cleared"),
            None if candidate.object.odd => "a field on the path has a name that a path cannot have".to_owned(),
            None if union.members.iter().any(|member| odd(member)) => "a member has a name with a dot".to_owned(),
            None => {
                let fields = union.discriminator.iter().chain(&union.members).map(String::as_str);
                let immutable = transition::restricts(candidate.object.schema, &candidate.object.place, fields, env);
                return self.unions.push(ProposedUnion { immutable, ..union });
            }
        };
        self.doubt(candidate, union.members, why);
    }

    fn doubt(&mut self, candidate: &CandidateFields<'_>, fields: Vec<String>, why: String) {
        self.doubts.push(DoubtfulGroup { path: candidate.object.place.to_string(), fields, why });
    }
}

impl Exclusions {
    fn of(candidate: &CandidateFields<'_>, fields: Vec<String>, env: &Rc<CelEnv>) -> Option<Self> {
        if fields.len() < 2 {
            return None;
        }
        let union = UnionFields { members: fields.clone(), ..UnionFields::default() };
        let table =
            TruthTable::make(candidate.object.schema, &candidate.object.place, &union, OtherMembers::Unknown, env)?;
        let rejects = |members: &[&str]| table.row(None, members).is_some_and(|row| is_rejection(&table, row));
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
    fn union(&self, candidate: &CandidateFields<'_>, groups: &[Vec<usize>], env: &Rc<CelEnv>) -> ProposedUnion {
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
        let evidence = with_others(CandidateFields::evidence(&self.table, &pairs), others);
        ProposedUnion {
            exactly_one: requires_one(candidate, &members, env),
            empty_is_unset: candidate.empty_is_unset(pairs.iter().copied(), fields, OtherMembers::Unknown, env),
            ..candidate.object.union(None, choices, evidence)
        }
    }

    /// Returns the fields if a rule that names them could not be evaluated.
    fn undecided(&self) -> Option<(Vec<String>, String)> {
        let why = self.table.rows().iter().find_map(|row| match &row.decision {
            Decision::Undecided { why } if row.combination.members.len() == 2 => Some(why.clone()),
            Decision::Allowed | Decision::Rejected { .. } | Decision::Undecided { .. } => None,
        });
        why.map(|why| (self.graph.fields.clone(), why))
    }
}

impl CandidateMember<'_> {
    fn is_allowed_with(&self, value: Option<&str>) -> bool {
        let alone = (self.name, &self.table);
        let mut tables = self.requires.iter().map(|(name, table)| (*name, table)).chain([alone]);
        tables.all(|(name, table)| table.row(value, &[name]).is_some_and(is_allowed))
    }
}

impl CandidateFields<'_> {
    /// Returns the union of a discriminator, if each member is allowed with some values and rejected with all others. The text is
    /// the reason why it is in doubt.
    fn discriminated(
        &self,
        discriminator: &str,
        fields: &[String],
        env: &Rc<CelEnv>,
    ) -> Option<(ProposedUnion, Option<String>)> {
        let related: Vec<&String> = fields.iter().filter(|field| self.are_related(discriminator, field)).collect();
        if related.is_empty() {
            return None;
        }
        let (all, values) = self.values_of(discriminator, env)?;
        let is_only_value = values.len() == 1 && all.len() > 1;
        let table_of = |members: Vec<String>| {
            let union = UnionFields {
                discriminator: Some(discriminator.to_owned()),
                values: values.clone(),
                members,
                ..UnionFields::default()
            };
            TruthTable::make(self.object.schema, &self.object.place, &union, OtherMembers::Absent, env)
                .filter(TruthTable::has_all_validations)
        };
        // A table of one field has only the rules that name it, so an unreadable rule about others does no harm. The other
        // fields are unknown there.
        let mut found = Vec::new();
        for field in related {
            let table = table_of(vec![field.clone()])?;
            let rows = || values.iter().filter_map(|value| table.row(Some(value), &[field]));
            let allowed = rows().filter(|row| is_allowed(row)).count();
            let rejected = rows().filter(|row| is_rejection(&table, row)).count();
            let is_required = || values.iter().all(|value| is_rejected(&table, Some(value), &[]));
            if allowed > 0
                && allowed.saturating_add(rejected) == values.len()
                && (rejected > 0 || (is_only_value && is_required()))
            {
                found.push(CandidateMember { name: field, table, requires: Vec::new() });
            }
        }
        let (mut satellites, mut requirements) = (Vec::new(), Vec::new());
        for field in fields.iter().filter(|field| found.iter().all(|member| member.name != *field)) {
            let mut requires = Vec::new();
            for member in &found {
                let Some(evidence) = self.requirement(field, member.name, env) else { continue };
                requirements.extend(evidence);
                requires.push((member.name, member.table.clone()));
            }
            if requires.is_empty() {
                continue;
            }
            let table = table_of(vec![field.clone()])?;
            if values.iter().all(|value| table.row(Some(value), &[field]).is_some_and(is_allowed)) {
                satellites.push(CandidateMember { name: field, table, requires });
            }
        }
        found.extend(satellites);
        // In the order of the schema.
        found.sort_by_key(|member| fields.iter().position(|field| field == member.name));
        let members: Vec<String> = found.iter().map(|member| member.name.to_owned()).collect();
        let table = table_of(members.clone()).filter(|_| !members.is_empty())?;
        let mut choices = Vec::new();
        for value in &all {
            // A declaration has every value of the enum, also one that a rule rejects.
            let is_kept = values.contains(value);
            let members = if is_kept { selected(&found, &table, Some(value))? } else { Vec::new() };
            choices.push(ProposedChoice { value: value.clone(), members });
        }
        let node = self.object.node;
        let without = found.iter().find(|it| !node.always_has(discriminator) && it.is_allowed_with(None));
        let doubt = without.map(|CandidateMember { name, .. }| {
            format!("`{name}` is also allowed without `{discriminator}`, and a union requires it beside a member")
        });
        // Only a boolean has a value that stands for the missing one.
        let is_boolean = node.property(discriminator).and_then(SchemaNode::type_name) == Some("boolean");
        let doubt = doubt.filter(|_| !is_boolean);
        if is_boolean && without.is_some() {
            let members = selected(&found, &table, None)?;
            choices.insert(0, ProposedChoice { value: String::new(), members });
        }
        let decisive: Vec<&TableRow> = table.rows().iter().filter(|row| row.combination.members.len() == 1).collect();
        let fields =
            UnionFields { discriminator: Some(discriminator.to_owned()), values, members, ..UnionFields::default() };
        let empty_is_unset = self.empty_is_unset(table.rows().iter(), fields, OtherMembers::Absent, env);
        let evidence = with_others(Self::evidence(&table, &decisive), requirements.into_iter());
        let union = self.object.union(Some(discriminator), choices, evidence);
        Some((ProposedUnion { empty_is_unset, ..union }, doubt))
    }

    /// Returns the validations that reject a field without another one, if they accept both.
    fn requirement(&self, field: &str, other: &str, env: &Rc<CelEnv>) -> Option<Vec<Evidence>> {
        if !self.are_related(field, other) {
            return None;
        }
        let union = UnionFields { members: vec![field.to_owned(), other.to_owned()], ..UnionFields::default() };
        let table = TruthTable::make(self.object.schema, &self.object.place, &union, OtherMembers::Absent, env)?;
        let (alone, both) = (table.row(None, &[field])?, table.row(None, &[field, other])?);
        let is_required = is_rejection(&table, alone) && is_allowed(both);
        is_required.then(|| Self::evidence(&table, &[alone]))
    }

    /// Returns the values of a discriminator, its `enum`, and those of them that are not rejected whatever else is set.
    fn values_of(&self, discriminator: &str, env: &Rc<CelEnv>) -> Option<(Vec<String>, Vec<String>)> {
        let values = self.object.node.property(discriminator)?.discriminator_values();
        let discriminator = Some(discriminator.to_owned());
        let union = UnionFields { discriminator, values: values.clone(), ..UnionFields::default() };
        let place = &self.object.place;
        let table = TruthTable::make(self.object.schema, place, &union, OtherMembers::Unknown, env)?;
        let kept: Vec<String> = values.iter().filter(|value| !is_rejected(&table, Some(value), &[])).cloned().collect();
        (!kept.is_empty()).then_some((values, kept))
    }

    /// Returns the members that matter only if they are not empty, by the rows of a table that count.
    fn empty_is_unset<'t>(
        &self,
        rows: impl Iterator<Item = &'t TableRow>,
        union: UnionFields,
        rest: OtherMembers,
        env: &Rc<CelEnv>,
    ) -> BTreeSet<String> {
        let open: BTreeSet<&Combination> =
            rows.filter(|row| !row.rejected_unless_empty.is_empty()).map(|row| &row.combination).collect();
        let mut union = UnionFields { empty_is_unset: BTreeSet::new(), ..union };
        union.empty_is_unset.extend(open.iter().flat_map(|combination| combination.members.iter().cloned()));
        for member in union.empty_is_unset.clone() {
            let mut fewer = union.clone();
            fewer.empty_is_unset.remove(&member);
            let table = TruthTable::make(self.object.schema, &self.object.place, &fewer, rest, env).unwrap_or_default();
            let is_open = |row: &TableRow| open.contains(&row.combination) && !row.rejected_unless_empty.is_empty();
            if !table.rows().iter().any(is_open) {
                union = fewer;
            }
        }
        union.empty_is_unset
    }

    /// Returns the validations that reject these combinations.
    fn evidence(table: &TruthTable, rows: &[&TableRow]) -> Vec<Evidence> {
        let positions: BTreeSet<usize> = rows.iter().flat_map(|row| rejecting(row)).copied().collect();
        let evidence = positions.into_iter().filter_map(|at| table.evidence().get(at));
        evidence.filter(|evidence| evidence.is_about_fields()).cloned().collect()
    }
}

/// Adds evidence, each piece once.
fn with_others(mut evidence: Vec<Evidence>, others: impl Iterator<Item = Evidence>) -> Vec<Evidence> {
    for other in others {
        if evidence.iter().all(|known| known.position() != other.position()) {
            evidence.push(other);
        }
    }
    evidence
}

/// Returns true if an object without any of these members is rejected, whatever else it has.
fn requires_one(candidate: &CandidateFields<'_>, members: &[String], env: &Rc<CelEnv>) -> bool {
    let union = UnionFields { members: members.to_vec(), ..UnionFields::default() };
    let table = TruthTable::make(candidate.object.schema, &candidate.object.place, &union, OtherMembers::Absent, env);
    table.is_some_and(|table| table.row(None, &[]).is_some_and(|row| is_rejection(&table, row)))
}

/// Returns the validations that reject a combination whose members are not empty.
fn rejecting(row: &TableRow) -> &[usize] {
    match &row.decision {
        Decision::Rejected { by } => by,
        Decision::Allowed => &row.rejected_unless_empty,
        Decision::Undecided { .. } => &[],
    }
}

/// Returns the members that a value selects, or a missing value. `None` if some of them are never accepted together.
fn selected(found: &[CandidateMember<'_>], table: &TruthTable, value: Option<&str>) -> Option<Vec<ProposedMember>> {
    let selected: Vec<_> = found.iter().filter(|member| member.is_allowed_with(value)).collect();
    let names: Vec<&str> = selected.iter().map(|member| member.name).collect();
    let is_required = |member: &CandidateMember<'_>| {
        is_rejected(&member.table, value, &[]) || (names.len() == 1 && is_rejected(table, value, &[]))
    };
    let members = selected.iter().map(|it| ProposedMember { name: it.name.to_owned(), optional: !is_required(it) });
    (!excludes_a_pair(table, value, &names)).then(|| members.collect())
}

/// Returns true if some two of the fields that a value selects are never accepted together with it.
fn excludes_a_pair(table: &TruthTable, value: Option<&str>, selected: &[&str]) -> bool {
    let known = table.rows().iter().filter(|row| {
        let Combination { value: of_row, members } = &row.combination;
        of_row.as_deref() == value && members.iter().all(|member| selected.contains(&member.as_str()))
    });
    let accepted: Vec<&TableRow> = known.filter(|row| !is_rejection(table, row)).collect();
    let together = |one: &str, other: &str| {
        accepted.iter().any(|row| row.combination.members.contains(one) && row.combination.members.contains(other))
    };
    let mut pairs =
        selected.iter().enumerate().flat_map(|(length, one)| selected.iter().take(length).map(move |it| (one, it)));
    pairs.any(|(one, other)| !together(one, other))
}

/// Returns true if a rule or keyword about several fields rejects a combination whose members are not empty.
fn is_rejection(table: &TruthTable, row: &TableRow) -> bool {
    rejecting(row).iter().filter_map(|&at| table.evidence().get(at)).any(Evidence::is_about_fields)
}

fn is_rejected(table: &TruthTable, value: Option<&str>, members: &[&str]) -> bool {
    table.row(value, members).is_some_and(|row| is_rejection(table, row))
}

/// Returns true if no validation rejects a combination, whatever its members are.
fn is_allowed(row: &TableRow) -> bool {
    row.decision == Decision::Allowed && row.rejected_unless_empty.is_empty()
}
