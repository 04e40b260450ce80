//! The decision of all validations of a place on one combination.

use crate::answer::{Evidence, EvidenceState, UnionFields};
use crate::combination::Combination;
use crate::facts::{Content, KnownField};
use crate::node::SchemaNode;
use crate::place::PlaceValidations;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The decision of the validations of a CRD on a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No validation rejects the combination as such. One may still reject some contents.
    Allowed,
    /// A validation rejects every object with this combination.
    Rejected {
        /// The positions of these validations in [`TruthTable::evidence`](crate::TruthTable::evidence).
        by: Vec<usize>,
        /// Those of them that are not false, but fail for every such object, for example because they read a field that is not set.
        fails: Vec<usize>,
    },
    /// A validation could not be evaluated.
    Undecided { why: String },
}

/// The members that a combination does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherMembers {
    /// They are not set.
    Absent,
    /// They may be set.
    Unknown,
}

/// The ways in which contents may change a decision.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContentDoubt {
    /// A validation may accept or reject.
    pub(crate) is_open: bool,
    /// A rule may fail.
    pub(crate) may_fail: bool,
}

/// Returns the decision on a combination whose members have some content, and how it depends on contents.
pub(crate) fn decision(
    place: &PlaceValidations<'_>,
    union: &UnionFields,
    combination: &Combination,
    content: impl Fn(&str) -> Content,
    rest: OtherMembers,
    evidence: &mut [Evidence],
) -> (Decision, ContentDoubt) {
    let node = place.node();
    let mut fields = BTreeMap::new();
    for member in &union.members {
        let set = combination.members.contains(member);
        let unset = combination.unset.get(member);
        if !set && unset.is_none() && rest == OtherMembers::Unknown {
            continue;
        }
        if !set && unset.is_none() && node.property(member).is_some_and(|field| field.default().is_some()) {
            return (
                Decision::Undecided { why: format!("the member `{member}` has a default") },
                ContentDoubt::default(),
            );
        }
        let is_boolean = || node.property(member).and_then(SchemaNode::type_name) == Some("boolean");
        let field = match (set, unset, content(member)) {
            (false, None, _) => KnownField::Absent,
            (false, Some(unset), _) => KnownField::Value(unset.of(node.property(member).map(|field| field.0))),
            (true, _, Content::NotEmpty) if is_boolean() => KnownField::Value(Value::Bool(true)),
            (true, _, content @ (Content::Any | Content::NotEmpty)) => KnownField::Present(content),
        };
        fields.insert(Cow::Owned(member.clone()), field);
    }
    if let Some(discriminator) = &union.discriminator {
        let field = node.property(discriminator);
        let value = combination
            .value
            .as_ref()
            .map(|value| field.unwrap_or(SchemaNode(&Value::Null)).discriminator_value(value));
        let unset = combination.unset.get(discriminator).map(|unset| unset.of(field.map(|field| field.0)));
        let value = value.or(unset).or_else(|| field.and_then(SchemaNode::default).cloned());
        fields.insert(Cow::Owned(discriminator.clone()), value.map_or(KnownField::Absent, KnownField::Value));
    }
    let (mut by, mut fails, mut why, mut doubt) = (Vec::new(), Vec::new(), None, ContentDoubt::default());
    for (position, (outcomes, evidence)) in place.judge(fields).iter().zip(evidence).enumerate() {
        if outcomes.rejects() {
            by.push(position);
            fails.extend(outcomes.is_error().then_some(position));
            decided(evidence, EvidenceState::Decides);
        } else if let Some(reason) = outcomes.beyond_reason() {
            why.get_or_insert_with(|| reason.to_owned());
            decided(evidence, EvidenceState::Beyond(reason.to_owned()));
        } else {
            doubt.is_open |= outcomes.is_open();
            doubt.may_fail |= outcomes.may_fail();
        }
    }
    let decision = match why {
        _ if !by.is_empty() => Decision::Rejected { by, fails },
        Some(why) => Decision::Undecided { why },
        None => Decision::Allowed,
    };
    (decision, doubt)
}

/// Records what a validation does, unless it is known to do more.
fn decided(evidence: &mut Evidence, state: EvidenceState) {
    let keep = matches!(evidence.state, EvidenceState::Unreadable(_) | EvidenceState::Decides);
    if !keep {
        evidence.state = state;
    }
}
