//! Members that every object has, because they are required or have a default: no declaration can clear them.
//!
//! A validation that excludes such a member from the others rejects each of the others alone, so its table has no union. The table of
//! a schema in which they may be missing has it.

use crate::answer::ProposedUnion;
use crate::candidates::{self, CandidateFields};
use crate::env::CelEnv;
use crate::node::SchemaNode;
use crate::proposal::Proposals;
use kube_unions_core::union::is_empty_value;
use serde_json::Value;
use std::collections::BTreeSet;
use std::rc::Rc;

impl Proposals {
    /// Doubts the groups of fields that would be unions if no object had to have their members.
    pub(crate) fn examine_fixed(&mut self, schema: &Value, candidates: &[CandidateFields<'_>], env: &Rc<CelEnv>) {
        let is_fixed = |it: &&CandidateFields<'_>| it.fields.iter().any(|field| it.object.node.always_has(field));
        let fixed: Vec<&CandidateFields<'_>> = candidates.iter().filter(is_fixed).collect();
        if fixed.is_empty() {
            return;
        }
        let mut loose = schema.clone();
        for candidate in &fixed {
            if let Some(node) = loose.pointer_mut(&candidate.object.place.to_pointer()) {
                free(node, &candidate.fields);
            }
        }
        let (objects, _) = candidates::objects(&loose);
        let found = candidates::of(&objects, env);
        for candidate in fixed {
            let Some(loose) = found.iter().find(|it| it.object.place == candidate.object.place) else { continue };
            let mut others = Self::default();
            others.examine(loose);
            let node = candidate.object.node;
            let unions = others.unions.into_iter().filter_map(|union| {
                let why = union.reason_of_fixed(union.fixed_member(node)?, node);
                Some((union.members, why))
            });
            let doubts = others.doubts.into_iter().filter(|doubt| doubt.fields.iter().any(|it| node.always_has(it)));
            let doubts = doubts.map(|doubt| (doubt.fields, doubt.why));
            for (fields, why) in unions.chain(doubts) {
                if !self.knows(&candidate.object.place.to_string(), &fields) {
                    self.doubt(candidate, fields, why);
                }
            }
        }
    }

    /// Returns true if all fields of a group are in one union or doubt.
    pub(crate) fn knows(&self, path: &str, fields: &[String]) -> bool {
        let of_unions =
            self.unions.iter().filter(|it| it.path == path).map(|it| it.discriminator.iter().chain(&it.members));
        let mut of_unions = of_unions.map(Iterator::collect::<BTreeSet<_>>);
        let has_all = |known: &BTreeSet<&String>| fields.iter().all(|field| known.contains(field));
        let mut of_doubts = self.doubts.iter().filter(|it| it.path == path).map(|it| it.fields.iter().collect());
        of_unions.any(|known| has_all(&known)) || of_doubts.any(|known| has_all(&known))
    }
}

impl ProposedUnion {
    /// Returns the first member that cannot be cleared. One with an empty default can be, if its empty value counts as not set.
    pub(crate) fn fixed_member(&self, node: SchemaNode<'_>) -> Option<&str> {
        let is_empty = |member: &str| node.property(member).and_then(SchemaNode::default).is_none_or(is_empty_value);
        let may_stay =
            |member: &str| self.empty_is_unset.contains(member) && !node.requires(member) && is_empty(member);
        self.members.iter().map(String::as_str).find(|member| node.always_has(member) && !may_stay(member))
    }

    /// Returns the reason why a member that every object has makes the union a doubt.
    pub(crate) fn reason_of_fixed(&self, member: &str, node: SchemaNode<'_>) -> String {
        let cause = if node.requires(member) { "is required" } else { "has a default" };
        let is_apart = |other: &&String| {
            let of_other = self.choices.iter().filter(|it| it.members.iter().any(|it| it.name == **other));
            of_other.flat_map(|choice| &choice.members).all(|it| it.name != member)
        };
        let others: Vec<String> = self.members.iter().filter(is_apart).map(|other| format!("`{other}`")).collect();
        let may_be_empty = self.empty_is_unset.contains(member);
        if self.discriminator.is_some() || may_be_empty || others.is_empty() {
            return format!("`{member}` {cause}, so it cannot be cleared");
        }
        format!("`{member}` {cause}, so {} can never be set", others.join(", "))
    }
}

/// Makes an object valid without fields.
fn free(node: &mut Value, fields: &[String]) {
    if let Some(required) = node.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !fields.iter().any(|field| name == field));
    }
    for field in fields {
        let property = node.get_mut("properties").and_then(|properties| properties.get_mut(field));
        if let Some(property) = property.and_then(Value::as_object_mut) {
            property.shift_remove("default");
        }
    }
}
