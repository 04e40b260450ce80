//! Lists the merge rules of a kind, for tools that merge objects themselves.

use super::{FieldSchema, MergeSchema, NodeId, SchemaShape, Strategy};
use kube_unions_core::schema::{Place, PlaceStep};
use std::collections::VecDeque;

/// A place of a custom resource that does not merge in the usual way: objects merge, lists are replaced.
///
/// In a list or an object that is replaced, no rule counts, so none is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeRule {
    /// The list or the object.
    pub place: Place,
    /// The way it merges.
    pub strategy: MergeStrategy,
    /// A union is declared on the object, or on the items of the list: a patch has to tell the fields that stay.
    pub retain_keys: bool,
}

/// The way in which a list or an object merges.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeStrategy {
    /// The object merges field by field.
    Fields,
    /// The items of the list merge by these keys, the default key first.
    Keys(Vec<Box<str>>),
    /// The list is a set of scalars, to which a patch adds.
    Set,
    /// The object is replaced.
    Replace,
}

impl MergeSchema {
    /// Returns the rules of a kind whose types do not refer to each other, sorted by place.
    pub(crate) fn rules(&self) -> Vec<MergeRule> {
        let mut rules = Vec::new();
        // Embedded resources share the type of `metadata`. They have the rules of their own kinds.
        let mut seen = vec![false; self.nodes.len()];
        let mut queue = VecDeque::from([(NodeId::ROOT, Place::root())]);
        while let Some((id, place)) = queue.pop_front() {
            let (Some(node), Some(seen)) = (self.node(id), seen.get_mut(id.0)) else { continue };
            if id == NodeId::OPEN || std::mem::replace(seen, true) {
                continue;
            }
            let fields = node.fields.iter().map(|(name, field)| (PlaceStep::Property(name.clone()), field));
            let values = node.values.as_deref().map(|field| (PlaceStep::Values, field));
            for (step, field) in fields.chain(values) {
                let place = place.then(step);
                let strategy = field.merge_strategy();
                match &strategy {
                    Some(MergeStrategy::Fields) => queue.push_back((field.object, place.clone())),
                    Some(MergeStrategy::Keys(_)) => queue.push_back((field.items, place.then(PlaceStep::Items))),
                    Some(MergeStrategy::Set | MergeStrategy::Replace) | None => {}
                }
                let rule = strategy.map(|strategy| MergeRule { place, strategy, retain_keys: field.retain_keys });
                rules.extend(rule.filter(|rule| rule.retain_keys || rule.strategy != MergeStrategy::Fields));
            }
        }
        if self.union_at_root {
            rules.push(MergeRule { place: Place::root(), strategy: MergeStrategy::Fields, retain_keys: true });
        }
        rules.sort_by(|one, other| one.place.cmp(&other.place));
        rules
    }
}

impl FieldSchema {
    /// Returns the strategy of an object, or of a list that is not replaced. `None` for anything else.
    fn merge_strategy(&self) -> Option<MergeStrategy> {
        // A list that only a `UnionDeclaration` describes has no type, but it has keys.
        let is_list = self.shape == Some(SchemaShape::List) || self.shape.is_none() && self.keys.is_some();
        match (self.strategy, &self.keys) {
            (Strategy::Merge, Some(keys)) if is_list => {
                Some(MergeStrategy::Keys(keys.all().iter().map(|key| key.name.clone()).collect()))
            }
            (Strategy::Merge, None) if is_list && self.items == NodeId::OPEN => Some(MergeStrategy::Set),
            _ if is_list || self.shape == Some(SchemaShape::Scalar) => None,
            (Strategy::Replace, _) => Some(MergeStrategy::Replace),
            (Strategy::Merge | Strategy::Unsaid, _) => Some(MergeStrategy::Fields),
        }
    }
}
