//! A set of paths, as one entry of `managedFields` owns them.

use super::path::PathElement;
use crate::value::DEEPEST;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A set of paths, as a tree. The root is never a member.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet {
    // INVARIANT: no node is empty.
    nodes: BTreeMap<PathElement, SetNode>,
}

/// A path and the paths below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SetNode {
    /// The path itself is in the set.
    pub(super) member: bool,
    pub(super) children: FieldSet,
}

/// `metadata.managedFields` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("metadata.managedFields{place}: {problem}")]
pub struct ManagedFieldsError {
    place: String,
    problem: &'static str,
}

impl ManagedFieldsError {
    pub(super) fn new(problem: &'static str) -> Self {
        Self { place: String::new(), problem }
    }

    /// Extends the place by one step upwards.
    pub(super) fn inside(self, step: &str) -> Self {
        Self { place: format!("{step}{}", self.place), ..self }
    }
}

impl SetNode {
    /// A path without paths below it.
    pub(super) const LEAF: Self = Self { member: true, children: FieldSet { nodes: BTreeMap::new() } };

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    fn union(&mut self, other: &Self) {
        self.member |= other.member;
        self.children.union(&other.children);
    }
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of paths.
    pub(super) fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Returns a path and the paths below it.
    pub(super) fn get(&self, element: &PathElement) -> Option<&SetNode> {
        self.nodes.get(element)
    }

    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = (&PathElement, &mut SetNode)> {
        self.nodes.iter_mut()
    }

    /// Adds a path and the paths below it.
    pub(super) fn add(&mut self, element: PathElement, node: SetNode) {
        if node.is_empty() {
            return;
        }
        match self.nodes.entry(element) {
            Entry::Vacant(place) => {
                place.insert(node);
            }
            Entry::Occupied(place) => place.into_mut().union(&node),
        }
    }

    /// Adds all paths of another set.
    pub(super) fn union(&mut self, other: &Self) {
        for (element, node) in &other.nodes {
            self.nodes.entry(element.clone()).or_default().union(node);
        }
    }

    /// Removes the paths of another set. Paths below them stay.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.nodes.retain(|element, node| {
            if let Some(gone) = other.nodes.get(element) {
                node.member &= !gone.member;
                node.children.subtract(&gone.children);
            }
            !node.is_empty()
        });
    }

    /// Keeps only the paths that are in another set, too.
    pub(super) fn intersect(&mut self, other: &Self) {
        self.nodes.retain(|element, node| {
            let Some(kept) = other.nodes.get(element) else { return false };
            node.member &= kept.member;
            node.children.intersect(&kept.children);
            !node.is_empty()
        });
    }

    /// Returns the set of paths through fields only.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let leaf = path.iter().rev().fold(SetNode::LEAF, |inner, name| {
                let mut outer = SetNode::default();
                outer.children.add(PathElement::Field((*name).into()), inner);
                outer
            });
            set.union(&leaf.children);
        }
        set
    }

    /// Calls `found` with each path as the API server prints it: the members of a level first, then the paths below them.
    pub(super) fn for_each_path(&self, prefix: &str, found: &mut impl FnMut(String)) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            found(format!("{prefix}{element}"));
        }
        for (element, node) in self.nodes.iter().filter(|(_, node)| !node.children.is_empty()) {
            node.children.for_each_path(&format!("{prefix}{element}"), found);
        }
    }

    /// Reads `fieldsV1`.
    pub(super) fn from_json(fields: &Json, depth: usize) -> Result<Self, ManagedFieldsError> {
        if depth > DEEPEST {
            return Err(ManagedFieldsError::new("nested deeper than 512 levels"));
        }
        let mut set = Self::default();
        let fields = match fields {
            Json::Object(fields) => fields,
            Json::Null => return Ok(set),
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                return Err(ManagedFieldsError::new("it must be an object"));
            }
        };
        for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
            let inside = |error: ManagedFieldsError| error.inside(&format!("[{key:?}]"));
            let element = PathElement::parse(key).map_err(|problem| inside(ManagedFieldsError::new(problem)))?;
            if let Some(element) = element {
                let children = Self::from_json(value, depth + 1).map_err(inside)?;
                set.add(element, SetNode { member: value.get(".").is_some() || children.is_empty(), children });
            }
        }
        Ok(set)
    }

    /// Writes `fieldsV1`.
    pub(super) fn to_json(&self) -> Json {
        let node = |(element, node): (&PathElement, &SetNode)| {
            let mut fields = Map::new();
            if node.member && !node.children.is_empty() {
                fields.insert(".".to_owned(), Json::Object(Map::new()));
            }
            if let Json::Object(children) = node.children.to_json() {
                fields.extend(children);
            }
            (element.to_text(), Json::Object(fields))
        };
        Json::Object(self.nodes.iter().map(node).collect())
    }
}
