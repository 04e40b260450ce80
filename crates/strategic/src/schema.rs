//! How the fields of a kind are merged: read from a schema once, as a graph, since types may hold themselves.
//!
//! What a schema says outright (`x-kubernetes-patch-strategy`, `-merge-key`, `-recommended-patch-merge-key`) counts. A CRD can't
//! say it, so that it is derived where it is absent: a list of type `map` merges by its keys, a `set` merges its scalars, a
//! map of type `atomic` is replaced, and an object that declares a union retains only the keys of a patch.

mod build;

pub(super) use build::Root;
pub use build::SchemaError;

use crate::error::{Fault, Reason, Shape};
use crate::value::ValueKind;
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;

/// The types that can be reached from a kind.
#[derive(Debug)]
pub(super) struct Meta {
    // INVARIANT: `OPEN` and `ROOT` are there, and every `NodeId` in it is a position.
    nodes: Vec<Node>,
}

/// A type, by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(usize);

/// A type of object.
#[derive(Debug, Default)]
struct Node {
    /// Its name in messages.
    name: Box<str>,
    fields: HashMap<Box<str>, Field>,
    /// What its values are, if it is a map.
    values: Option<Box<Field>>,
    /// Whether it may have fields that are not described.
    open: bool,
}

/// A field, and how it is merged.
#[derive(Debug, Default)]
pub(super) struct Field {
    /// What the schema says it is; `None` if it does not tell.
    shape: Option<Shape>,
    pub(super) strategy: Strategy,
    /// Whether a patch retains only the keys that it lists: of the object, or of each item.
    pub(super) retain_keys: bool,
    /// What tells apart the items of a list.
    pub(super) keys: Option<Keys>,
    /// The type of the value, if it is an object.
    pub(super) object: NodeId,
    /// The type of the items, if it is a list.
    pub(super) items: NodeId,
}

/// How two values of a field become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Strategy {
    /// Objects merge, lists are replaced.
    #[default]
    Unsaid,
    /// Objects and lists merge.
    Merge,
    /// The new value replaces the old one.
    Replace,
}

/// The merge keys of a list.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    // INVARIANT: not empty, the default key first, distinct, at most `Keys::MOST`.
    all: Box<[Key]>,
}

/// One merge key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: Box<str>,
    /// What an item has that does not say; never for the default key.
    pub(super) default: Option<KeyDefault>,
}

/// A default that is a scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyDefault {
    Bool(bool),
    Number(Box<str>),
    String(Box<str>),
}

impl Default for NodeId {
    fn default() -> Self {
        Self::OPEN
    }
}

impl NodeId {
    /// An object of which nothing is known.
    pub(super) const OPEN: Self = Self(0);
    /// The kind itself.
    pub(super) const ROOT: Self = Self(1);
}

impl Keys {
    /// Most keys of one list; a set of them is the bits of a number.
    pub(super) const MOST: usize = 64;

    /// The key that every item has.
    pub(super) fn default_key(&self) -> &str {
        self.all.first().map_or("", |key| &key.name)
    }

    /// All keys, the default key first.
    pub(super) fn all(&self) -> &[Key] {
        &self.all
    }

    /// Whether the default key is the only one.
    pub(super) fn is_single(&self) -> bool {
        self.all.len() == 1
    }
}

static UNKNOWN: Field = Field {
    shape: None,
    strategy: Strategy::Unsaid,
    retain_keys: false,
    keys: None,
    object: NodeId::OPEN,
    items: NodeId::OPEN,
};

impl Meta {
    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// How a field of a type is merged whose values are lists or objects on both sides.
    pub(super) fn field(&self, id: NodeId, name: &str, found: ValueKind) -> Result<&Field, Fault> {
        let unknown = || {
            let kind = self.node(id).map(|node| node.name.clone()).unwrap_or_default();
            Fault::from(Reason::UnknownField { field: name.into(), kind }).inside(self.step(id, name))
        };
        let field = self.known(id, name).ok_or_else(unknown)?;
        let fits = match field.shape {
            None => true,
            Some(Shape::Object) => found == ValueKind::Object,
            Some(Shape::List) => found == ValueKind::List,
            Some(Shape::Scalar) => false,
        };
        match field.shape {
            Some(wanted) if !fits => Err(Reason::WrongShape { found, wanted }.at([self.step(id, name)])),
            _ => Ok(field),
        }
    }

    /// What is known of a field, `None` if the type has no such field.
    pub(super) fn known(&self, id: NodeId, name: &str) -> Option<&Field> {
        let Some(node) = self.node(id) else { return Some(&UNKNOWN) };
        node.fields.get(name).or(node.values.as_deref()).or_else(|| node.open.then_some(&UNKNOWN))
    }

    /// Whether a key that starts with `$` can only be a directive there.
    pub(super) fn is_closed_to(&self, id: NodeId, name: &str) -> bool {
        self.known(id, name).is_none()
    }

    /// The step to a field, as paths write it.
    pub(super) fn step(&self, id: NodeId, name: &str) -> Segment {
        let is_map = self.node(id).is_some_and(|node| node.values.is_some() && !node.fields.contains_key(name));
        if is_map { Segment::Key(name.into()) } else { Segment::Field(name.into()) }
    }
}
