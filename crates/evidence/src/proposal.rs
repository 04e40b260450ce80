//! Proposes the unions that the validations of a schema enforce already.
//!
//! [`candidates`](crate::candidates) finds fields that a validation names together. A truth table confirms each group: every
//! pair of members is rejected together, and each member alone is not. A group that is not confirmed is a doubt. So is one with a
//! member that every object has: [`fixed`](crate::fixed) finds these.

use crate::answer::{ProposedUnion, UnionFields};
use crate::candidates::{self, CandidateFields};
use crate::decision::OtherMembers;
use crate::env::CelEnv;
use crate::exclusions::Exclusions;
use crate::limits::MOST_PROPOSALS;
use crate::node::SchemaNode;
use crate::table::{TableRow, with_names, with_stack};
use crate::transition::ComparingRule;
use serde_json::Value;
use std::collections::BTreeSet;

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
    pub fields: Vec<String>,
    pub why: String,
}

impl Proposals {
    /// Proposes the unions of a schema. Nothing is proposed if the schema is nested too deeply for memory.
    pub fn of(schema: &Value) -> Self {
        with_stack(|| Self::find(schema)).unwrap_or_default()
    }

    fn find(schema: &Value) -> Self {
        let (env, schema) = (CelEnv::new(), with_names(schema));
        let (objects, complete) = candidates::objects(&schema);
        let mut candidates = candidates::of(&objects, &env);
        let complete = complete && candidates.len() <= MOST_PROPOSALS;
        let mut found = Self { complete, pod_templates: candidates::pod_template_paths(&objects), ..Self::default() };
        candidates.truncate(MOST_PROPOSALS);
        for candidate in &candidates {
            found.examine(candidate);
        }
        found.examine_fixed(&schema, &candidates, &env);
        found.examine_choices(&candidates);
        found.complete &= !env.is_exhausted();
        found
    }

    pub(crate) fn examine(&mut self, candidate: &CandidateFields<'_>) {
        let mut rest = candidate.fields.clone();
        let mut with_discriminator = Vec::new();
        for discriminator in &candidate.discriminators {
            let fields: Vec<String> = rest.iter().filter(|field| *field != discriminator).cloned().collect();
            if let Some((union, doubt)) = candidate.discriminated(discriminator, &fields) {
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
        self.examine_taken(candidate, &several);
        for union in several {
            self.propose(candidate, union);
        }
        let before = self.unions.len();
        self.examine_pairs(candidate, rest);
        let paired: BTreeSet<String> = self.unions.iter().skip(before).flat_map(|it| it.members.clone()).collect();
        for union in single {
            // A boolean that excludes the field is a member beside it.
            let is_said = |known: &ProposedUnion| {
                union.discriminator.iter().chain(&union.members).all(|field| known.members.contains(field))
            };
            if self.unions.iter().skip(before).any(is_said) {
                continue;
            }
            let taken = union.members.iter().find(|member| paired.contains(*member));
            if let Some(why) = taken.map(|member| taken_twice(&union, member, "a union without a discriminator")) {
                self.doubt(candidate, union.discriminator.into_iter().chain(union.members).collect(), why);
            } else {
                self.propose(candidate, union);
            }
        }
    }

    /// Doubts the fields of which each part of `oneOf` requires another one, if an object may have two of them all the same.
    fn examine_choices(&mut self, candidates: &[CandidateFields<'_>]) {
        for candidate in candidates {
            let node = candidate.object.node;
            let parts: Vec<SchemaNode<'_>> = node.list("oneOf").iter().map(SchemaNode).collect();
            let is_own = |name: &&str| {
                let is_free = candidate.fields.iter().any(|field| field == name) && !node.always_has(name);
                is_free && parts.iter().filter(|part| part.requires(name)).count() == 1
            };
            let own: Option<Vec<&str>> = parts.iter().map(|part| part.required().find(is_own)).collect();
            let Some(fields) = own.filter(|fields| fields.len() > 1) else { continue };
            let union = UnionFields::of_members(&fields);
            let Some(table) = candidate.table(&union, OtherMembers::Absent) else { continue };
            let is_pair = |row: &&TableRow| row.combination.members.len() == 2 && row.is_allowed();
            let Some(row) = table.rows().iter().find(is_pair) else { continue };
            let pair: Vec<String> = row.combination.members.iter().map(|field| format!("`{field}`")).collect();
            let pair = pair.join(" and ");
            if !self.knows(&candidate.object.place.to_string(), &union.members) {
                self.doubt(
                    candidate,
                    union.members,
                    format!("`oneOf` allows {pair} together; let each part refuse the others"),
                );
            }
        }
    }

    /// Doubts the pairs of fields that exclude each other, of which a discriminator selects one.
    fn examine_taken(&mut self, candidate: &CandidateFields<'_>, unions: &[ProposedUnion]) {
        let union_of = |field: &String| unions.iter().position(|union| union.members.contains(field));
        for (length, one) in candidate.fields.iter().enumerate() {
            for other in candidate.fields.iter().take(length) {
                let (of_one, of_other) = (union_of(one), union_of(other));
                let taken = of_other.map(|union| (union, other)).or(of_one.map(|union| (union, one)));
                let Some((union, member)) = taken.filter(|_| of_one != of_other) else { continue };
                if let Some(union) = unions.get(union).filter(|_| candidate.excludes(one, other)) {
                    self.doubt(candidate, vec![other.clone(), one.clone()], taken_twice(union, member, "this pair"));
                }
            }
        }
    }

    fn examine_pairs(&mut self, candidate: &CandidateFields<'_>, rest: Vec<String>) {
        let Some(exclusions) = Exclusions::of(candidate, rest) else { return };
        if !exclusions.table.is_complete() {
            let why = "there are too many fields or validations to try every pair".to_owned();
            return self.doubt(candidate, exclusions.graph.fields, why);
        }
        for connected in exclusions.implied.connected() {
            if let Some(groups) = exclusions.implied.split(&connected) {
                self.propose(candidate, exclusions.union(candidate, &groups));
                continue;
            }
            // A consequence of other rules may connect groups that are clear.
            let is_inside = |explicit: &Vec<usize>| explicit.iter().all(|field| connected.contains(field));
            for explicit in exclusions.graph.connected().into_iter().filter(is_inside) {
                match exclusions.graph.split(&explicit) {
                    Some(groups) => self.propose(candidate, exclusions.union(candidate, &groups)),
                    None => self.examine_overlaps(candidate, &exclusions, explicit),
                }
            }
        }
        if let Some((fields, why)) = exclusions.undecided() {
            self.doubt(candidate, fields, why);
        }
    }

    /// Proposes the large groups of fields that exclude each other, and also others. A pair may be a part of any union, so it is a
    /// doubt.
    fn examine_overlaps(&mut self, candidate: &CandidateFields<'_>, exclusions: &Exclusions, connected: Vec<usize>) {
        let graph = &exclusions.graph;
        for group in graph.cliques(connected) {
            if group.len() > 2 {
                let members: Vec<Vec<usize>> = group.iter().map(|field| vec![*field]).collect();
                self.propose(candidate, exclusions.union(candidate, &members));
                continue;
            }
            let outside = graph.outside(&group).join(", ");
            let why = format!("some of them also exclude {outside}, and a field can be in one union only");
            self.doubt(candidate, graph.names(&group), why);
        }
    }

    /// Adds a union, or a doubt if a declaration of it would have a fault.
    fn propose(&mut self, candidate: &CandidateFields<'_>, union: ProposedUnion) {
        let node = candidate.object.node;
        let fixed = union.fixed_member(node);
        let odd = |name: &str| name.contains(['.', '[', ']', '*']);
        let why = match fixed {
            Some(member) => union.reason_of_fixed(member, node),
            None if candidate.object.odd => "a field on the path has a name that a path cannot have".to_owned(),
            None if union.members.iter().any(|member| odd(member)) => "a member has a name with a dot".to_owned(),
            None => {
                let fields: Vec<&str> = union.discriminator.iter().chain(&union.members).map(String::as_str).collect();
                let object = &candidate.object;
                let rules = ComparingRule::find(object.schema, &object.place, &fields, candidate.env);
                let immutable = rules.iter().any(|rule| rule.restricts);
                return self.unions.push(ProposedUnion { immutable, ..union });
            }
        };
        self.doubt(candidate, union.members, why);
    }

    pub(crate) fn doubt(&mut self, candidate: &CandidateFields<'_>, fields: Vec<String>, why: String) {
        self.doubts.push(DoubtfulGroup { path: candidate.object.place.to_string(), fields, why });
    }
}

/// Returns the reason why a member of a union with a discriminator is not a member of another one.
fn taken_twice(union: &ProposedUnion, member: &str, other: &str) -> String {
    let discriminator = union.discriminator.as_deref().unwrap_or_default();
    format!(
        "`{member}` is a member of the union of `{discriminator}` and of {other}, and a field can be in one union only"
    )
}
