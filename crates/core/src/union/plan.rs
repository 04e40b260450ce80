//! The plan: which places of an object hold unions, as an immutable trie.

use super::Union;

/// All unions of one kind at one version, and the way to each: what the request path reads of an object.
///
/// Plain data, built once by [`compile`](super::compile()), shared between threads as it is.
#[derive(Debug, Default)]
pub struct Plan {
    pub(super) nodes: Box<[Node]>,
    // The unions of one object stand together, in the order that `ObjectNode::unions` counts them.
    pub(super) unions: Box<[Union]>,
    pub(super) main: Option<NodeId>,
    pub(super) status: Option<NodeId>,
}

/// Which part of an object a request can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The object itself: all of it, but for `status` where the version has a status subresource.
    Main,
    /// The `status` subresource: what is below `.status`.
    Status,
}

/// A position in [`Plan::nodes`].
pub(super) type NodeId = u32;

/// A place on the way to a union.
#[derive(Debug)]
pub(super) enum Node {
    Object(ObjectNode),
    List(ListNode),
    /// A map; every value has this shape.
    Map(NodeId),
}

#[derive(Debug)]
pub(super) struct ObjectNode {
    // INVARIANT: sorted by name, distinct.
    pub(super) fields: Box<[FieldNode]>,
    /// The position of this object's first union in [`Plan::unions`].
    pub(super) first_union: u32,
    pub(super) union_count: u8,
}

/// A field that is worth reading.
#[derive(Debug)]
pub(super) struct FieldNode {
    pub(super) name: Box<str>,
    pub(super) role: Role,
    /// The position among the keys of the list that the object is an item of.
    pub(super) key: Option<u8>,
    pub(super) child: Option<NodeId>,
}

/// What a field is to the unions of its object; unions are counted from the object's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Bystander,
    Discriminator { union: u8 },
    Member { union: u8, index: u8 },
}

#[derive(Debug)]
pub(super) struct ListNode {
    pub(super) items: NodeId,
    pub(super) keyed: bool,
}

impl Plan {
    /// Every union, by the place of its object and in the order of declaration within one.
    pub fn unions(&self) -> &[Union] {
        &self.unions
    }

    /// Whether a part of the object holds any union.
    pub fn has(&self, part: Part) -> bool {
        self.root(part).is_some()
    }

    pub(super) fn root(&self, part: Part) -> Option<NodeId> {
        match part {
            Part::Main => self.main,
            Part::Status => self.status,
        }
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id).ok()?)
    }

    pub(super) fn unions_of(&self, object: &ObjectNode) -> &[Union] {
        let first = usize::try_from(object.first_union).unwrap_or(usize::MAX);
        let rest = self.unions.get(first..).unwrap_or_default();
        rest.get(..usize::from(object.union_count)).unwrap_or_default()
    }
}

impl ObjectNode {
    /// The position of the field of that name, if it is worth reading.
    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        // Most objects on the way to a union have one or two such fields; a search costs more than it saves.
        if self.fields.len() <= 8 {
            return self.fields.iter().position(|field| field.name.as_bytes() == name);
        }
        self.fields.binary_search_by(|field| field.name.as_bytes().cmp(name)).ok()
    }
}
