//! The merge rules of a kind, read from its schema once. They form a graph, because types may refer to themselves.
//!
//! `x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key` and `x-kubernetes-recommended-patch-merge-key` are explicit
//! rules. A CRD cannot carry them, so without them the rules follow from the rest of the schema: a list of type `map` merges by
//! its keys, a `set` merges its scalars, a map of type `atomic` is replaced, and an object that declares a union retains only the
//! keys of a patch. `view` resolves references, `build` reads the schema.

mod build;
mod rules;
mod view;

pub(crate) use build::RootKind;
pub use rules::{MergeRule, MergeStrategy};
pub use view::SchemaError;
pub(crate) use view::{SchemaReader, View};

use crate::error::{BrokenRule, SchemaShape};
use crate::value::ValueKind;
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;

/// All types that a kind can contain.
#[derive(Debug)]
pub(crate) struct MergeSchema {
    // INVARIANT: has `NodeId::OPEN` and `NodeId::ROOT`, and every `NodeId` in it is a position.
    nodes: Vec<ObjectSchema>,
    /// A union is declared on the object of the kind itself.
    union_at_root: bool,
}

/// The position of an object type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(usize);

/// An object type.
#[derive(Debug, Default)]
struct ObjectSchema {
    /// The name in error messages.
    name: Box<str>,
    fields: HashMap<Box<str>, FieldSchema>,
    /// The schema of the values of a map.
    values: Option<Box<FieldSchema>>,
    /// The object may have fields that the schema does not describe.
    open: bool,
}

/// The merge rules of a field.
#[derive(Debug, Default)]
pub(crate) struct FieldSchema {
    /// The declared type; `None` if the schema declares none.
    shape: Option<SchemaShape>,
    pub(crate) strategy: Strategy,
    /// A created patch lists the keys to retain, of the object or of each item.
    pub(crate) retain_keys: bool,
    /// The merge keys of the items of a list.
    pub(crate) keys: Option<MergeKeys>,
    /// The type of the value, for an object.
    pub(crate) object: NodeId,
    /// The type of the items, for a list.
    pub(crate) items: NodeId,
}

/// The patch strategy of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Strategy {
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
pub(crate) struct MergeKeys {
    // INVARIANT: at least one and at most `MergeKeys::MOST`, distinct, the default key first.
    all: Box<[MergeKey]>,
    /// The default key alone, if `x-kubernetes-patch-merge-key` says it: an API server merges the list by it and does not know
    /// `$patchMergeKey`.
    // INVARIANT: has only the default key.
    published: Option<Box<Self>>,
}

#[derive(Debug, Clone)]
pub(crate) struct MergeKey {
    pub(crate) name: Box<str>,
    /// The value of an absent key; never set for the default key.
    pub(crate) default: Option<KeyDefault>,
}

/// The default value of a merge key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeyDefault {
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
    /// An object without a schema.
    pub(crate) const OPEN: Self = Self(0);
    /// The object of the kind.
    pub(crate) const ROOT: Self = Self(1);
}

impl MergeKeys {
    /// Largest number of keys of one list, since a `KeySet` has one bit for each.
    pub(crate) const MOST: usize = 64;

    /// Returns the name of the key that every item has.
    pub(crate) fn default_key(&self) -> &str {
        self.all.first().map_or("", |key| &key.name)
    }

    /// Returns all keys, the default key first.
    pub(crate) fn all(&self) -> &[MergeKey] {
        &self.all
    }

    /// Returns the keys by which the list merges where no item has `$patchMergeKey`.
    pub(crate) fn published(&self) -> &Self {
        self.published.as_deref().unwrap_or(self)
    }

    /// Returns true if the default key is the only key.
    pub(crate) fn is_single(&self) -> bool {
        self.all.len() == 1
    }
}

static UNKNOWN: FieldSchema = FieldSchema {
    shape: None,
    strategy: Strategy::Unsaid,
    retain_keys: false,
    keys: None,
    object: NodeId::OPEN,
    items: NodeId::OPEN,
};

impl MergeSchema {
    fn node(&self, id: NodeId) -> Option<&ObjectSchema> {
        self.nodes.get(id.0)
    }

    /// Returns the rules of a field whose values are lists, or objects, on both sides.
    pub(crate) fn field(&self, id: NodeId, name: &str, found: ValueKind) -> Result<&FieldSchema, BrokenRule> {
        let unknown = || {
            let kind = self.node(id).map(|node| node.name.clone()).unwrap_or_default();
            BrokenRule::UnknownField { field: name.into(), kind }
        };
        let field = self.known(id, name).ok_or_else(unknown)?;
        let fits = match field.shape {
            None => true,
            Some(SchemaShape::Object) => found == ValueKind::Object,
            Some(SchemaShape::List) => found == ValueKind::List,
            Some(SchemaShape::Scalar) => false,
        };
        match field.shape {
            Some(wanted) if !fits => Err(BrokenRule::WrongShape { found, wanted }),
            _ => Ok(field),
        }
    }

    /// Returns the rules of a field, or `None` if the type has no such field.
    pub(crate) fn known(&self, id: NodeId, name: &str) -> Option<&FieldSchema> {
        let Some(node) = self.node(id) else { return Some(&UNKNOWN) };
        node.fields.get(name).or(node.values.as_deref()).or_else(|| node.open.then_some(&UNKNOWN))
    }

    /// Returns the step to a field as a path writes it.
    pub(crate) fn step(&self, id: NodeId, name: &str) -> Segment {
        let is_map = self.node(id).is_some_and(|node| node.values.is_some() && !node.fields.contains_key(name));
        if is_map { Segment::Key(name.into()) } else { Segment::Field(name.into()) }
    }
}
