//! Proposes the unions that the validations of a schema enforce already.
//!
//! [`candidates`](crate::candidates) finds fields that a validation names together. A truth table confirms each group: every
//! pair of members is rejected together, and each member alone is not. A group that is not confirmed is a doubt.

use crate::candidates::{self, CandidateFields};
use crate::env::CelEnv;
use crate::exclusion_graph::ExclusionGraph;
use crate::limits::MOST_PROPOSALS;
use crate::metadata;
use crate::place::Evidence;
use crate::pod_template;
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

/// A union that validations enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedUnion {
    /// The path of the object, as in a `UnionDeclaration`: `spec.filters[*]`. Empty for the root.
    pub path: String,
    /// True if the place is in a list whose items have no keys.
    pub keyless: bool,
    /// The discriminator, if the validations have one.
    pub discriminator: Option<String>,
    /// The values of the discriminator. Empty without one.
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

/// A value of a proposed discriminator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedChoice {
    /// The value.
    pub value: String,
    /// The member that may be set with it.
    pub member: Option<String>,
    /// True if the member may be missing.
    pub optional: bool,
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
            if let Some(union) = candidate.discriminated(discriminator, &fields, env) {
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
        for group in exclusions.graph.groups() {
            let outside = exclusions.graph.outside(&group);
            if outside.is_empty() {
                self.propose(candidate, exclusions.union(candidate, &group, env), env);
                continue;
            }
            let why = format!("some of them also exclude {}, and a field can be in one union only", outside.join(", "));
            let fields = exclusions.graph.names(&group);
            self.doubt(candidate, fields, why);
        }
        if let Some((fields, why)) = exclusions.undecided() {
            self.doubt(candidate, fields, why);
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
        Some(Self { table, graph })
    }

    fn union(&self, candidate: &CandidateFields<'_>, group: &[usize], env: &Rc<CelEnv>) -> ProposedUnion {
        let members = self.graph.names(group);
        let pairs = self.table.rows().iter().filter(|row| {
            row.combination.members.len() == 2 && row.combination.members.iter().all(|member| members.contains(member))
        });
        let pairs: Vec<&TableRow> = pairs.collect();
        let fields = UnionFields { members: members.clone(), ..UnionFields::default() };
        ProposedUnion {
            path: candidate.object.place.to_string(),
            keyless: candidate.object.keyless,
            discriminator: None,
            choices: Vec::new(),
            exactly_one: requires_one(candidate, &members, env),
            empty_is_unset: candidate.empty_is_unset(pairs.iter().copied(), fields, OtherMembers::Unknown, env),
            evidence: CandidateFields::evidence(&self.table, &pairs),
            members,
            immutable: false,
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

impl CandidateFields<'_> {
    /// Returns the union of a discriminator, if every value allows at most one member, and rejects the others.
    fn discriminated(&self, discriminator: &str, fields: &[String], env: &Rc<CelEnv>) -> Option<ProposedUnion> {
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
        // A table of one field has only the rules that name it, so an unreadable rule about others does no harm.
        let mut members = Vec::new();
        for field in fields {
            let table = table_of(vec![field.clone()])?;
            let rows = || values.iter().filter_map(|value| table.row(Some(value), &[field]));
            let allowed = rows().filter(|row| is_allowed(row)).count();
            let rejected = rows().filter(|row| is_rejection(&table, row)).count();
            let is_required = || values.iter().all(|value| is_rejected(&table, value, &[]));
            // A member is allowed alone with some values, and rejected with all others.
            if allowed > 0
                && allowed.saturating_add(rejected) == values.len()
                && (rejected > 0 || (is_only_value && is_required()))
            {
                members.push(field.clone());
            }
        }
        let table = table_of(members.clone())?;
        let allows = |value: &str, members: &[&str]| table.row(Some(value), members).is_some_and(is_allowed);
        let mut choices = Vec::new();
        for value in &all {
            // A declaration has every value of the enum, also one that a rule rejects.
            if !values.contains(value) {
                choices.push(ProposedChoice { value: value.clone(), member: None, optional: false });
                continue;
            }
            let mut selected = members.iter().filter(|member| allows(value, &[member]));
            let member = selected.next().cloned();
            if selected.next().is_some() {
                return None;
            }
            let optional = member.is_some() && !is_rejected(&table, value, &[]);
            choices.push(ProposedChoice { value: value.clone(), member, optional });
        }
        let selected: BTreeSet<&String> = choices.iter().filter_map(|choice| choice.member.as_ref()).collect();
        // One field that several values allow is no choice between members.
        let is_choice = selected.len() > 1 || choices.iter().filter(|choice| choice.member.is_some()).count() == 1;
        if !is_choice || selected.len() < members.len() {
            return None;
        }
        let decisive: Vec<&TableRow> = table.rows().iter().filter(|row| row.combination.members.len() == 1).collect();
        let fields = UnionFields {
            discriminator: Some(discriminator.to_owned()),
            values,
            members: members.clone(),
            ..UnionFields::default()
        };
        let empty_is_unset = self.empty_is_unset(table.rows().iter(), fields, OtherMembers::Absent, env);
        let evidence = Self::evidence(&table, &decisive);
        Some(ProposedUnion {
            path: self.object.place.to_string(),
            keyless: self.object.keyless,
            discriminator: Some(discriminator.to_owned()),
            choices,
            members,
            exactly_one: false,
            empty_is_unset,
            immutable: false,
            evidence,
        })
    }

    /// Returns the values of a discriminator, its `enum`, and those of them that are not rejected whatever else is set.
    fn values_of(&self, discriminator: &str, env: &Rc<CelEnv>) -> Option<(Vec<String>, Vec<String>)> {
        let values = self.object.node.property(discriminator)?.list("enum").iter().filter_map(Value::as_str);
        let values: Vec<String> = values.map(str::to_owned).collect();
        let discriminator = Some(discriminator.to_owned());
        let union = UnionFields { discriminator, values: values.clone(), ..UnionFields::default() };
        let place = &self.object.place;
        let table = TruthTable::make(self.object.schema, place, &union, OtherMembers::Unknown, env)?;
        let kept: Vec<String> = values.iter().filter(|value| !is_rejected(&table, value, &[])).cloned().collect();
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

/// Returns true if a rule or keyword about several fields rejects a combination whose members are not empty.
fn is_rejection(table: &TruthTable, row: &TableRow) -> bool {
    rejecting(row).iter().filter_map(|&at| table.evidence().get(at)).any(Evidence::is_about_fields)
}

fn is_rejected(table: &TruthTable, value: &str, members: &[&str]) -> bool {
    table.row(Some(value), members).is_some_and(|row| is_rejection(table, row))
}

/// Returns true if no validation rejects a combination, whatever its members are.
fn is_allowed(row: &TableRow) -> bool {
    row.decision == Decision::Allowed && row.rejected_unless_empty.is_empty()
}
