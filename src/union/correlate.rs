//! Which old object belongs to which new one.
//!
//! Fields and map values belong together by name, items of keyed lists by their keys, whatever the order. Items of other
//! lists have no identity: nothing tells which old item a new one was, only whether one like it stood there.

use super::MemberSet;
use super::plan::{Node, NodeId, ObjectNode, Plan};
use super::projection::{ObjectShape, Scalar, Shape, State};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// Below this many items a list is searched, above it is indexed.
const SCANNED: usize = 16;

/// What is known of the past of a place.
#[derive(Debug)]
pub(super) enum Old<'o, T> {
    /// It did not exist.
    None,
    /// It was this.
    Known(&'o T),
    /// It stands in a list whose items have no identity, which held these before.
    Lost(&'o Witnesses<'o>),
}

// Not derived: that would ask for `T: Copy`.
impl<T> Clone for Old<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Old<'_, T> {}

impl<'o> Old<'o, Shape<'o>> {
    /// The past of the object at this place.
    pub(super) fn object(self) -> Old<'o, ObjectShape<'o>> {
        match self {
            Old::Known(Shape::Object(object)) => Old::Known(object),
            Old::Known(_) | Old::None => Old::None,
            Old::Lost(witnesses) => Old::Lost(witnesses),
        }
    }

    /// The past of a value of the map at this place.
    pub(super) fn value(self, key: &str) -> Self {
        match self {
            Old::Known(Shape::Map(entries)) => {
                let found = entries.binary_search_by(|(known, _)| (**known).cmp(key)).ok();
                found.and_then(|at| entries.get(at)).map_or(Old::None, |(_, shape)| Old::Known(shape))
            }
            Old::Known(_) | Old::None => Old::None,
            Old::Lost(witnesses) => Old::Lost(witnesses),
        }
    }
}

impl<'o> Old<'o, ObjectShape<'o>> {
    /// The past of one of the object's unions.
    pub(super) fn state(self, union: usize) -> Option<&'o State<'o>> {
        match self {
            Old::Known(object) => object.states.get(union),
            Old::None | Old::Lost(_) => None,
        }
    }

    /// The past of the field at a position of the node.
    pub(super) fn child(self, position: usize) -> Old<'o, Shape<'o>> {
        match self {
            Old::Known(object) => {
                let found = object.children.binary_search_by_key(&position, |(known, _)| *known).ok();
                found.and_then(|at| object.children.get(at)).map_or(Old::None, |(_, shape)| Old::Known(shape))
            }
            Old::None => Old::None,
            Old::Lost(witnesses) => Old::Lost(witnesses),
        }
    }
}

/// The old items of a list whose items have no identity.
#[derive(Debug)]
pub(super) struct Witnesses<'o> {
    plan: &'o Plan,
    items: NodeId,
    old: &'o [Shape<'o>],
    // Only a violation asks, so it is gathered on the first question.
    stood: OnceCell<HashSet<(usize, &'o str, MemberSet)>>,
}

impl<'o> Witnesses<'o> {
    pub(super) fn new(plan: &'o Plan, items: NodeId, old: &'o [Shape<'o>]) -> Self {
        Self { plan, items, old, stood: OnceCell::new() }
    }

    /// Whether a union (by its position in the plan) stood in the old list with this very choice.
    pub(super) fn stood(&self, union: usize, state: &State<'_>) -> bool {
        let gather = || {
            let mut stood = HashSet::new();
            for shape in self.old {
                self.gather(self.items, shape, &mut stood);
            }
            stood
        };
        self.stood.get_or_init(gather).contains(&(union, state.value(), state.members))
    }

    fn gather(&self, node: NodeId, shape: &'o Shape<'o>, stood: &mut HashSet<(usize, &'o str, MemberSet)>) {
        match (self.plan.node(node), shape) {
            (Some(Node::Object(node)), Shape::Object(object)) => {
                for (position, state) in object.states.iter().enumerate() {
                    stood.insert((node.union(position), state.value(), state.members));
                }
                for (position, child) in &object.children {
                    if let Some(id) = node.child(*position) {
                        self.gather(id, child, stood);
                    }
                }
            }
            (Some(Node::List(list)), Shape::List(items)) => {
                for item in items {
                    self.gather(list.items, item, stood);
                }
            }
            (Some(Node::Map(values)), Shape::Map(entries)) => {
                for (_, value) in entries {
                    self.gather(*values, value, stood);
                }
            }
            _ => {}
        }
    }
}

impl ObjectNode {
    /// The position in the plan of one of the object's unions.
    pub(super) fn union(&self, position: usize) -> usize {
        usize::try_from(self.first_union).unwrap_or(usize::MAX).saturating_add(position)
    }

    /// What the field at a position leads to.
    pub(super) fn child(&self, position: usize) -> Option<NodeId> {
        self.fields.get(position)?.child
    }
}

/// What an item of a keyed list was before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pair<'o> {
    /// The item with these keys.
    Same(&'o Shape<'o>),
    /// There was none with these keys.
    New,
    /// Its keys are unusable or stand twice on either side.
    Uncertain,
}

/// Pairs each new item of a keyed list with its old one, whatever the order.
pub(super) fn pair<'o>(new: &[Shape<'_>], old: &'o [Shape<'o>]) -> Vec<Pair<'o>> {
    if new.len() <= SCANNED && old.len() <= SCANNED {
        return new.iter().map(|shape| pair_by_scan(shape, new, old)).collect();
    }
    let (new_by_keys, old_by_keys) = (index(new), index(old));
    let pair = |shape| {
        let Some(keys) = keys_of(shape) else { return Pair::Uncertain };
        match (new_by_keys.get(keys), old_by_keys.get(keys)) {
            (Some(Some(_)), Some(Some(old))) => Pair::Same(old),
            (Some(Some(_)), None) => Pair::New,
            _ => Pair::Uncertain,
        }
    };
    new.iter().map(pair).collect()
}

fn pair_by_scan<'o>(shape: &Shape<'_>, new: &[Shape<'_>], old: &'o [Shape<'o>]) -> Pair<'o> {
    let Some(keys) = keys_of(shape) else { return Pair::Uncertain };
    let twice = new.iter().filter(|other| keys_of(other) == Some(keys)).nth(1).is_some();
    let mut same = old.iter().filter(|other| keys_of(other) == Some(keys));
    match (same.next(), same.next()) {
        (Some(old), None) if !twice => Pair::Same(old),
        (None, _) if !twice => Pair::New,
        _ => Pair::Uncertain,
    }
}

/// The items by their keys; `None` for keys that stand twice.
fn index<'s>(shapes: &'s [Shape<'s>]) -> HashMap<&'s [Scalar<'s>], Option<&'s Shape<'s>>> {
    let mut by_keys = HashMap::with_capacity(shapes.len());
    for shape in shapes {
        if let Some(keys) = keys_of(shape) {
            by_keys.entry(keys).and_modify(|once| *once = None).or_insert(Some(shape));
        }
    }
    by_keys
}

/// The keys of an item, if they can identify it. A key that is missing counts as a value of its own, for the API server
/// fills in defaults; an item without any key has no identity.
fn keys_of<'s>(shape: &'s Shape<'_>) -> Option<&'s [Scalar<'s>]> {
    let Shape::Object(object) = shape else { return None };
    let usable =
        object.keys.iter().all(|key| *key != Scalar::Unfit) && object.keys.iter().any(|key| *key != Scalar::Absent);
    usable.then_some(&*object.keys)
}
