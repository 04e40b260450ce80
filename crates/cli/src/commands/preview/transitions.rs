//! Updates that the rules of a CRD refuse, because they compare a union with the old object.

use super::kind_rules::PreviewedKind;
use crate::commands::lint::rules::subjects::{fields_of, schema_step};
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::schema::Place;
use kube_unions_core::union::UnionStep;
use kube_unions_evidence::{ObjectUpdate, RefusedTransition};
use serde_json::Value;

/// A change of a union that a rule refuses, or perhaps refuses.
#[derive(Debug, PartialEq)]
pub(super) struct RefusedChange {
    /// The path of the value with the rule.
    pub(super) field: FieldPath,
    /// The message of the API server.
    pub(super) message: String,
    /// The reason why the rule cannot be evaluated. `None`: it refuses the change.
    pub(super) undecided: Option<String>,
}

/// The objects on the way to a union that were there before an update and still are, from that of the kind on.
#[derive(Debug, Clone)]
struct WayUpdates<'v> {
    path: Vec<Segment>,
    updates: Vec<ObjectUpdate<'v>>,
}

impl WayUpdates<'_> {
    /// Follows the steps of a place to each union of the new object, as far as the old one has the same objects.
    fn follow(self, steps: &[UnionStep<'_>], found: &mut Vec<Self>) {
        let below = match (steps.split_first(), self.updates.last()) {
            (Some((step, rest)), Some(update)) => children(step, *update).into_iter().map(|it| (it, rest)).collect(),
            _ => Vec::new(),
        };
        if below.is_empty() {
            found.push(self);
            return;
        }
        for ((segment, update), rest) in below {
            let mut inner = self.clone();
            inner.path.push(segment);
            inner.updates.push(update);
            inner.follow(rest, found);
        }
    }

    /// Returns true if the update changes one of these fields of the last object, or an object that is not in both.
    fn changes<'n>(&self, steps: usize, mut fields: impl Iterator<Item = &'n str>) -> bool {
        let Some([old, new]) = self.updates.last() else { return false };
        if self.updates.len() <= steps { old != new } else { fields.any(|name| old.get(name) != new.get(name)) }
    }
}

/// Returns the values at a step that are in both objects. Items without keys have no identity.
fn children<'v>(step: &UnionStep<'_>, [old, new]: ObjectUpdate<'v>) -> Vec<(Segment, ObjectUpdate<'v>)> {
    match step {
        UnionStep::Field(name) => {
            let both = old.get(name).zip(new.get(name));
            both.map(|(old, new)| (Segment::Field((*name).into()), [old, new])).into_iter().collect()
        }
        UnionStep::Values => {
            let values = new.as_object().into_iter().flatten();
            values.filter_map(|(key, new)| Some((Segment::Key(key.as_str().into()), [old.get(key)?, new]))).collect()
        }
        UnionStep::Items { keys } => {
            let items = |list: &'v Value| list.as_array().into_iter().flatten().filter(|_| !keys.is_empty());
            let same = |one: &Value, other: &Value| keys.iter().all(|key| one.get(key.name) == other.get(key.name));
            let pair = |(position, new)| {
                let old = items(old).find(|old| same(old, new))?;
                Some((Segment::Index(position), [old, new]))
            };
            items(new).enumerate().filter_map(pair).collect()
        }
    }
}

impl PreviewedKind<'_> {
    /// Returns the changes of unions that the CRD's rules with `oldSelf` refuse, or perhaps refuse.
    pub(super) fn refused_transitions(self, old: &Value, new: &Value) -> Vec<RefusedChange> {
        let Some(schema) = self.schema_with_transitions() else { return Vec::new() };
        let mut refused: Vec<RefusedChange> = Vec::new();
        for place in self.places() {
            let mut ways = Vec::new();
            WayUpdates { path: Vec::new(), updates: vec![[old, new]] }.follow(&place.steps, &mut ways);
            let at: Place = place.steps.iter().map(schema_step).collect();
            for (way, union) in ways.iter().flat_map(|way| place.unions.iter().map(move |union| (way, union))) {
                let fields = fields_of(union);
                let is_changed =
                    way.changes(place.steps.len(), union.discriminator().into_iter().chain(union.members()));
                let found = RefusedTransition::find(schema, &at, &fields, &way.updates).into_iter();
                for RefusedTransition { level, field, message, undecided } in found {
                    let own = field.map(|name| Segment::Field(name.into()));
                    let field = way.path.iter().take(level).cloned().chain(own).collect();
                    let change = RefusedChange { field, message, undecided };
                    // A rule that is not evaluated matters only where it may be about what happens.
                    if (change.undecided.is_none() || is_changed) && !refused.contains(&change) {
                        refused.push(change);
                    }
                }
            }
        }
        refused
    }
}
