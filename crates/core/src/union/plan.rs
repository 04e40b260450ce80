//! Plans: the places of an object that have unions, as an immutable trie.

use super::Union;
use crate::schema::Unowned;
use std::sync::Arc;

/// The unions of one kind at one version, and the paths to them.
///
/// A plan is built once by [`compile`](super::compile()) and shared between threads.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) nodes: Box<[Node]>,
    // INVARIANT: the unions of one object are contiguous.
    pub(super) unions: Box<[Union]>,
    pub(super) main: Option<NodeIndex>,
    pub(super) status: Option<NodeIndex>,
}

/// A part of an object that a request can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The object itself, without `status` if that is a subresource.
    Main,
    /// The `status` subresource: the fields below `.status`.
    Status,
}

/// A position in [`Plan::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct NodeIndex(pub(super) u32);

/// A place that has a union, or leads to one.
#[derive(Debug)]
pub(super) enum Node {
    Object(ObjectNode),
    List(ListNode),
    Map(MapNode),
}

#[derive(Debug, Default)]
pub(super) struct ObjectNode {
    // INVARIANT: sorted by name, distinct.
    pub(super) fields: Box<[FieldNode]>,
    /// The position of this object's first union in [`Plan::unions`].
    pub(super) first_union: u32,
    pub(super) union_count: u8,
    /// The unions that are judged even if nothing of them is set. Sorted, numbered from the object's first.
    pub(super) required: Box<[u8]>,
    /// The keys that have a default, if the object is an item of a keyed list: the position among the keys, and the default.
    pub(super) key_defaults: Box<[(u8, ItemKeyDefault)]>,
    /// True if a field manager owns the object as a whole.
    pub(super) atomic: bool,
    /// True if the object may be null.
    pub(super) nullable: bool,
    pub(super) known: KnownFields,
}

/// The fields of an object that its schema names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum KnownFields {
    /// None, and not even its type.
    Nothing,
    /// The fields of its unions and the keys that identify it in its list, and no other field.
    Unions,
    /// Fields of no union, too.
    #[default]
    OtherFields,
}

/// The default of a key of list items.
#[derive(Debug)]
pub(super) enum ItemKeyDefault {
    Text(Box<str>),
    /// A number or boolean, as JSON text.
    Literal(Box<str>),
}

/// A field that a projection reads.
#[derive(Debug)]
pub(super) struct FieldNode {
    pub(super) name: Box<str>,
    pub(super) role: Role,
    pub(super) values: ValueRules,
    /// The position of the field among the keys of the list, if the object is an item of a keyed list.
    pub(super) key: Option<u8>,
    /// True for a discriminator that is a boolean.
    pub(super) is_boolean: bool,
    /// True if the schema says that the field is a string.
    pub(super) is_string: bool,
    pub(super) child: Option<NodeIndex>,
}

/// The meaning of a field's empty values and nulls.
#[derive(Debug, Clone)]
pub(super) struct ValueRules {
    /// True for a member whose empty value counts as not set.
    pub(super) empty_is_unset: bool,
    /// The value of a member that nobody can own, if there is one.
    pub(super) unowned: Option<Arc<Unowned>>,
    /// True unless the field is a member that cannot be null.
    pub(super) nullable: bool,
}

impl Default for ValueRules {
    fn default() -> Self {
        Self { empty_is_unset: false, unowned: None, nullable: true }
    }
}

/// The role of a field in the unions of its object. Unions are numbered from the object's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Bystander,
    Discriminator { union: u8 },
    Member { union: u8, index: u8 },
}

#[derive(Debug)]
pub(super) struct ListNode {
    pub(super) items: NodeIndex,
    pub(super) keyed: bool,
    /// True if a field manager owns the list as a whole.
    pub(super) atomic: bool,
    /// True if the list may be null.
    pub(super) nullable: bool,
}

#[derive(Debug)]
pub(super) struct MapNode {
    pub(super) values: NodeIndex,
    /// True if a field manager owns the map as a whole.
    pub(super) atomic: bool,
    /// True if the map may be null.
    pub(super) nullable: bool,
}

impl Node {
    /// Returns true if a field manager that applies a value here owns all of it.
    pub(super) fn is_atomic(&self) -> bool {
        match self {
            Self::Object(object) => object.atomic,
            Self::List(list) => list.atomic,
            Self::Map(map) => map.atomic,
        }
    }
}

impl Plan {
    /// Returns every union, by the place of its object and then in the order of declaration.
    pub fn unions(&self) -> &[Union] {
        &self.unions
    }

    /// Returns true if a part of the object has unions.
    pub fn has(&self, part: Part) -> bool {
        self.root(part).is_some()
    }

    pub(super) fn root(&self, part: Part) -> Option<NodeIndex> {
        match part {
            Part::Main => self.main,
            Part::Status => self.status,
        }
    }

    pub(super) fn node(&self, id: NodeIndex) -> Option<&Node> {
        let node = self.nodes.get(usize::try_from(id.0).ok()?);
        debug_assert!(node.is_some(), "{id:?} is outside the plan");
        node
    }

    pub(super) fn unions_of(&self, object: &ObjectNode) -> &[Union] {
        let first = usize::try_from(object.first_union).unwrap_or(usize::MAX);
        let unions = self.unions.get(first..).and_then(|rest| rest.get(..usize::from(object.union_count)));
        debug_assert!(unions.is_some(), "unions outside the plan");
        unions.unwrap_or_default()
    }
}

impl FieldNode {
    /// Returns a field that leads nowhere.
    pub(super) fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.into(),
            role,
            values: ValueRules::default(),
            key: None,
            is_boolean: false,
            is_string: false,
            child: None,
        }
    }
}

impl ObjectNode {
    /// Returns the position of a field, `None` if a projection does not read it.
    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        // Most objects have one or two such fields. For few fields a scan is faster than a search.
        if self.fields.len() <= 8 {
            return self.fields.iter().position(|field| field.name.as_bytes() == name);
        }
        self.fields.binary_search_by(|field| field.name.as_bytes().cmp(name)).ok()
    }
}
