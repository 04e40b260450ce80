//! A set of paths, as one entry of `managedFields` owns them.

use super::path::{PathElement, PathElementFault};
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

/// A set that is not `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsFault {
    /// A value is not an object.
    #[error("`{0}` must be an object")]
    NotAnObject(Box<str>),
    /// A key is not a step of a path.
    #[error("cannot read `{0}` as a path element: {1}")]
    Element(Box<str>, PathElementFault),
    /// Paths are too long.
    #[error("nested deeper than {DEEPEST} levels")]
    TooDeep,
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
            match self.nodes.get_mut(element) {
                Some(own) => own.union(node),
                None => {
                    self.nodes.insert(element.clone(), node.clone());
                }
            }
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
    pub(super) fn from_json(fields: &Json, depth: usize) -> Result<Self, FieldsFault> {
        if depth > DEEPEST {
            return Err(FieldsFault::TooDeep);
        }
        let mut set = Self::default();
        let Json::Object(fields) = fields else { return Ok(set) };
        for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
            let element = PathElement::parse(key).map_err(|fault| FieldsFault::Element(key.as_str().into(), fault))?;
            let Some(element) = element else { continue };
            if !value.is_object() && !value.is_null() {
                return Err(FieldsFault::NotAnObject(key.as_str().into()));
            }
            let children = Self::from_json(value, depth + 1)?;
            set.add(element, SetNode { member: value.get(".").is_some() || children.is_empty(), children });
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
