//! Judging an object: the walk over new and old side by side, and what comes of it.

use super::correlate::{Old, Pair, Witnesses, pair};
use super::normalize::{Cause, Normalized, normalize};
use super::plan::{ListNode, Node, NodeId, ObjectNode, Part, Plan, Role};
use super::projection::{ObjectShape, Projection, Scalar, Shape, State};
use super::validate::validate;
use super::violation::Violation;
use super::{MemberSet, Union};
use crate::field_path::{FieldPath, Printable, Step, Trail};
use crate::json_patch::Operation;
use crate::schema::Action;
use std::borrow::Cow;
use std::fmt;

/// Longest discriminator value that a change shows.
const LONGEST_VALUE: usize = 64;

/// What to do with an object.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Normalise, and validate the result. Else the object is validated as it stands.
    pub normalize: bool,
    /// Let an invalid union through whose choice the request did not touch.
    pub ratchet: bool,
}

/// What was found. Everything is in the order of paths, whatever the order of keys in the JSON.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What normalisation changes.
    pub changes: Vec<Change>,
    /// What is wrong with the object, normalised if that was asked for.
    pub violations: Vec<Violation>,
    /// Whether a violation is one that normalisation found: the request contradicts itself.
    pub contradicted: bool,
    /// Violations that don't count, and why.
    pub let_through: Vec<(Violation, LetThrough)>,
}

/// Why a violation doesn't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LetThrough {
    /// It was there before and the request did not touch it.
    Unchanged,
    /// The declaration only warns.
    WarnOnly,
}

/// One change that normalisation makes. Displays as a sentence for the user, without any value but a discriminator's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The field that changes.
    pub path: FieldPath,
    /// How and why.
    pub reason: ChangeReason,
}

/// How and why normalisation changes a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeReason {
    /// A member is cleared since the discriminator was changed to a value that does not select it.
    ClearedByDiscriminator {
        /// The discriminator's name.
        discriminator: Box<str>,
        /// Its new value.
        value: Box<str>,
    },
    /// A member is cleared since another one was set.
    ClearedByMember {
        /// The member that was set.
        member: Box<str>,
    },
    /// The discriminator is set since a member is.
    Deduced {
        /// The value it gets.
        value: Box<str>,
        /// The member that is set.
        member: Box<str>,
    },
}

impl Change {
    /// The operation that makes the change.
    pub fn operation(&self) -> Operation {
        match &self.reason {
            ChangeReason::ClearedByDiscriminator { .. } | ChangeReason::ClearedByMember { .. } => {
                Operation::Remove(self.path.clone())
            }
            ChangeReason::Deduced { value, .. } => Operation::Set(self.path.clone(), value.clone()),
        }
    }

    /// Whether it clears a member.
    pub fn clears(&self) -> bool {
        !matches!(self.reason, ChangeReason::Deduced { .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl fmt::Display for ChangeReason {
    /// Everything but the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClearedByDiscriminator { discriminator, value } => {
                let value = Printable::new(value, LONGEST_VALUE);
                write!(f, "cleared because `{discriminator}` changed to \"{value}\"")
            }
            Self::ClearedByMember { member } => write!(f, "cleared because `{member}` was set"),
            Self::Deduced { value, member } => write!(f, "set to \"{value}\" because `{member}` is set"),
        }
    }
}

/// Judges one part of an object. `old` is what is stored, `None` on create.
pub fn judge(plan: &Plan, part: Part, new: &Projection<'_>, old: Option<&Projection<'_>>, rules: Rules) -> Judgement {
    let mut walk = Walk { plan, rules, judgement: Judgement::default() };
    if let Some(root) = plan.root(part) {
        let old = old.map_or(Old::None, |old| Old::Known(&old.root));
        walk.shape(root, &new.root, old, &Trail::ROOT);
    }
    let mut judgement = walk.judgement;
    judgement.changes.sort();
    judgement.violations.sort();
    judgement.let_through.sort();
    judgement
}

struct Walk<'p> {
    plan: &'p Plan,
    rules: Rules,
    judgement: Judgement,
}

impl Walk<'_> {
    fn shape(&mut self, node: NodeId, new: &Shape<'_>, old: Old<'_, Shape<'_>>, trail: &Trail<'_>) {
        match (self.plan.node(node), new) {
            (Some(Node::Object(node)), Shape::Object(new)) => self.object(node, new, old.object(), trail),
            (Some(Node::List(node)), Shape::List(new)) => self.list(node, new, old, trail),
            (Some(Node::Map(values)), Shape::Map(new)) => {
                for (key, value) in new {
                    self.shape(*values, value, old.value(key), &trail.then(Step::Key(key)));
                }
            }
            // Null, or of another type than the schema has: not ours.
            _ => {}
        }
    }

    fn object(&mut self, node: &ObjectNode, new: &ObjectShape<'_>, old: Old<'_, ObjectShape<'_>>, trail: &Trail<'_>) {
        let plan = self.plan;
        // Empty, and so without an allocation, unless something is cleared.
        let mut cleared = Vec::new();
        for (position, (union, state)) in plan.unions_of(node).iter().zip(&new.states).enumerate() {
            let clear = self.union(union, node.union(position), state, old, position, trail);
            if !clear.is_empty() {
                cleared.push((position, clear));
            }
        }
        let goes = |role| match role {
            Role::Member { union, index } => {
                cleared.iter().any(|(position, clear)| *position == usize::from(union) && clear.contains(index))
            }
            Role::Bystander | Role::Discriminator { .. } => false,
        };
        for (position, shape) in &new.children {
            let Some(field) = node.fields.get(*position) else { continue };
            // What is below a member that is cleared goes with it.
            if let Some(child) = field.child.filter(|_| !goes(field.role)) {
                self.shape(child, shape, old.child(*position), &trail.then(Step::Field(&field.name)));
            }
        }
    }

    fn list(&mut self, node: &ListNode, new: &[Shape<'_>], old: Old<'_, Shape<'_>>, trail: &Trail<'_>) {
        let before = match old {
            Old::Known(Shape::List(before)) => before,
            Old::Known(_) | Old::None => &Vec::new(),
            // Already below a list without identities: its witnesses stand for everything in it.
            Old::Lost(_) => {
                for (index, item) in new.iter().enumerate() {
                    self.shape(node.items, item, old, &trail.then(Step::Index(index)));
                }
                return;
            }
        };
        let witnesses = Witnesses::new(self.plan, node.items, before);
        let pairs = if node.keyed { pair(new, before) } else { vec![Pair::Uncertain; new.len()] };
        for (index, (item, pair)) in new.iter().zip(pairs).enumerate() {
            let old = match pair {
                Pair::Same(old) => Old::Known(old),
                Pair::New => Old::None,
                Pair::Uncertain => Old::Lost(&witnesses),
            };
            self.shape(node.items, item, old, &trail.then(Step::Index(index)));
        }
    }

    /// Judges one union; gives the members that are cleared.
    fn union(
        &mut self,
        union: &Union,
        ordinal: usize,
        state: &State<'_>,
        old: Old<'_, ObjectShape<'_>>,
        position: usize,
        trail: &Trail<'_>,
    ) -> MemberSet {
        let before = old.state(position);
        let normalized = normalize(union, before, state);
        let contradicted = !normalized.contradictions.is_empty();
        let mut clear = MemberSet::EMPTY;
        let violations = if contradicted {
            let violation = |(index, kind)| Violation { path: trail.field(union.member(index)), kind };
            normalized.contradictions.into_iter().map(violation).collect()
        } else if self.rules.normalize {
            clear = normalized.clear;
            self.record(union, state, &normalized, trail);
            validate(union, before, &normalized.applied_to(union, state), trail)
        } else {
            validate(union, before, state, trail)
        };
        if violations.is_empty() {
            return clear;
        }
        let untouched = match old {
            Old::Known(_) => before.is_some_and(|before| before.same_choice(state)),
            Old::Lost(witnesses) => witnesses.stood(ordinal, state),
            Old::None => false,
        };
        let let_through = if union.action() == Action::Warn {
            Some(LetThrough::WarnOnly)
        } else {
            (untouched && self.rules.ratchet).then_some(LetThrough::Unchanged)
        };
        if let Some(reason) = let_through {
            self.judgement.let_through.extend(violations.into_iter().map(|violation| (violation, reason)));
        } else {
            self.judgement.contradicted |= contradicted;
            self.judgement.violations.extend(violations);
        }
        clear
    }

    fn record(&mut self, union: &Union, state: &State<'_>, normalized: &Normalized, trail: &Trail<'_>) {
        for index in normalized.clear.iter() {
            let reason = match normalized.cause {
                Some(Cause::MemberSet(member)) => ChangeReason::ClearedByMember { member: union.member(member).into() },
                Some(Cause::DiscriminatorChanged) | None => ChangeReason::ClearedByDiscriminator {
                    discriminator: union.discriminator().unwrap_or_default().into(),
                    value: state.value().into(),
                },
            };
            self.judgement.changes.push(Change { path: trail.field(union.member(index)), reason });
        }
        if let Some((member, value, discriminator)) = normalized.deduced(union) {
            let reason = ChangeReason::Deduced { value: value.into(), member: member.into() };
            self.judgement.changes.push(Change { path: trail.field(discriminator), reason });
        }
    }
}

impl Normalized {
    /// The member that is set, the value that says so, and the discriminator that gets it.
    fn deduced<'u>(&self, union: &'u Union) -> Option<(&'u str, &'u str, &'u str)> {
        let index = self.deduce?;
        Some((union.member(index), union.values_of(index).next()?, union.discriminator()?))
    }

    fn applied_to<'s>(&self, union: &'s Union, state: &State<'s>) -> State<'s> {
        let discriminator = match self.deduced(union) {
            Some((_, value, _)) => Scalar::Text(Cow::Borrowed(value)),
            None => state.discriminator.clone(),
        };
        State { discriminator, members: state.members.less(self.clear) }
    }
}
