//! Finds the old counterpart of each part of a new object.
//!
//! Fields and map values correspond by name, and items of keyed lists by their keys, in any order. Items of other lists
//! have no identity: the old list only tells whether it had an equal union somewhere.

use super::arena::{Arena, KeyedNode, NodeRef, ObjectRef, StateAt, UnionState};
use super::plan::{FieldNode, Node, NodeIndex, ObjectNode, Plan};
use crate::meter::{Buffer, Exhausted, Meter};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::OnceCell;
use std::hash::{BuildHasher, Hash, Hasher};

/// The old counterpart of a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Old<'o, T> {
    /// The place did not exist.
    None,
    /// The place had this value.
    Known(T),
    /// The place is in a list whose items have no identity. These are the old items.
    Uncertain(&'o OldItems<'o>),
}

impl<'o, T> Old<'o, T> {
    /// Returns the counterpart, if the place had a value that is known.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Old::Known(known) => Some(known),
            Old::None | Old::Uncertain(_) => None,
        }
    }

    /// Returns the counterpart of a part of this place. `find` finds the part if the value is known.
    pub(super) fn inside<P>(self, find: impl FnOnce(T) -> Option<P>) -> Old<'o, P> {
        match self {
            Old::Known(known) => find(known).map_or(Old::None, Old::Known),
            Old::None => Old::None,
            Old::Uncertain(items) => Old::Uncertain(items),
        }
    }
}

/// The old items of a list whose items have no identity.
#[derive(Debug)]
pub(super) struct OldItems<'o> {
    plan: &'o Plan,
    items: NodeIndex,
    old: NodeRef<'o>,
    meter: &'o dyn Meter,
    // Only violations need them, so they are gathered on demand.
    choices: OnceCell<OldChoices>,
}

/// The unions of the old items.
#[derive(Debug, Default)]
struct OldChoices {
    /// Those with something set, sorted.
    set: Vec<OldChoice>,
    /// A bit for each union of the plan, true if an item has no choice of it although it is required. Empty if there is no
    /// such item.
    unset: Vec<u64>,
}

/// A union of an old item, by its position in the plan.
#[derive(Debug, Clone, Copy)]
struct OldChoice {
    union: u32,
    state: StateAt,
}

impl<'o> OldItems<'o> {
    /// Returns the items of the old list.
    pub(super) fn new(plan: &'o Plan, items: NodeIndex, old: NodeRef<'o>, meter: &'o dyn Meter) -> Self {
        Self { plan, items, old, meter, choices: OnceCell::new() }
    }

    /// Returns true if the old list had this union, given by its position in the plan, with the same choice. The union must
    /// have something set, or be required.
    pub(super) fn had_same_choice(&self, union: u32, state: &UnionState<'_>) -> Result<bool, Exhausted> {
        let choices = if let Some(choices) = self.choices.get() {
            choices
        } else {
            let gathered = self.gather()?;
            self.choices.get_or_init(|| gathered)
        };
        if state.is_unset() {
            let (word, bit) = OldChoices::unset_bit(union);
            return Ok(choices.unset.get(word).is_some_and(|word| word & bit != 0));
        }
        let wanted = (union, state.choice());
        let arena = self.old.arena;
        let found = choices.set.binary_search_by(|old| (old.union, arena.state(old.state).choice()).cmp(&wanted));
        Ok(found.is_ok())
    }

    fn gather(&self) -> Result<OldChoices, Exhausted> {
        let mut choices = Gathered { set: Buffer::new(self.meter), unset: Buffer::new(self.meter) };
        for (_, item) in self.old.items() {
            self.gather_from(self.items, item, &mut choices)?;
        }
        let arena = self.old.arena;
        let choice = |old: &OldChoice| (old.union, arena.state(old.state).choice());
        choices.set.sort_unstable_by(|one, other| choice(one).cmp(&choice(other)));
        Ok(OldChoices { set: choices.set.keep(), unset: choices.unset.keep() })
    }

    fn gather_from(&self, node: NodeIndex, value: NodeRef<'o>, choices: &mut Gathered<'o>) -> Result<(), Exhausted> {
        match self.plan.node(node) {
            Some(Node::Object(node)) => {
                let object = value.object();
                for (position, state) in object.state_offsets() {
                    choices.set.push(OldChoice { union: node.union(position), state })?;
                }
                if !node.required.is_empty() {
                    for (position, _) in object.states_with(&node.required).filter(|(_, state)| state.is_unset()) {
                        choices.mark_unset(node.union(position), self.plan.unions.len())?;
                    }
                }
                for (position, child) in object.children() {
                    if let Some(id) = node.child(position) {
                        self.gather_from(id, child, choices)?;
                    }
                }
            }
            Some(Node::List(list)) => {
                for (_, item) in value.items() {
                    self.gather_from(list.items, item, choices)?;
                }
            }
            Some(Node::Map(map)) => {
                for (_, value) in value.entries() {
                    self.gather_from(map.values, value, choices)?;
                }
            }
            None => {}
        }
        Ok(())
    }
}

impl Drop for OldItems<'_> {
    fn drop(&mut self) {
        let OldChoices { set, unset } = self.choices.take().unwrap_or_default();
        self.meter.release(set.capacity().saturating_mul(size_of::<OldChoice>()));
        self.meter.release(unset.capacity().saturating_mul(size_of::<u64>()));
    }
}

/// [`OldChoices`] while it is gathered.
struct Gathered<'m> {
    set: Buffer<'m, OldChoice>,
    unset: Buffer<'m, u64>,
}

impl Gathered<'_> {
    /// Sets the bit of a union of a plan with this number of unions.
    fn mark_unset(&mut self, union: u32, unions: usize) -> Result<(), Exhausted> {
        if self.unset.is_empty() {
            let words = unions.div_ceil(64);
            self.unset.reserve(words)?;
            (0..words).try_for_each(|_| self.unset.push(0))?;
        }
        let (word, bit) = OldChoices::unset_bit(union);
        debug_assert!(word < self.unset.len(), "union {union} is outside the plan");
        if let Some(word) = self.unset.get_mut(word) {
            *word |= bit;
        }
        Ok(())
    }
}

impl OldChoices {
    /// Returns the word and the bit of a union.
    fn unset_bit(union: u32) -> (usize, u64) {
        (usize::try_from(union / 64).unwrap_or(usize::MAX), 1 << (union % 64))
    }
}

impl ObjectNode {
    /// Returns the position in the plan of one of the object's unions.
    pub(super) fn union(&self, position: u8) -> u32 {
        self.first_union.saturating_add(position.into())
    }

    pub(super) fn field(&self, position: u32) -> Option<&FieldNode> {
        self.fields.get(usize::try_from(position).ok()?)
    }

    /// Returns the node of the field at a position.
    pub(super) fn child(&self, position: u32) -> Option<NodeIndex> {
        self.field(position)?.child
    }
}

/// The old counterpart of an item of a keyed list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pair<'o> {
    /// The old item with the same keys.
    Same(NodeRef<'o>),
    /// No old item has these keys.
    New,
    /// The keys are unusable, or occur twice in one of the lists.
    Uncertain,
}

/// The items of two keyed lists.
#[derive(Debug)]
pub(super) enum Pairs<'s> {
    /// The keys of the items are the same, in the same order, and distinct.
    InOrder,
    InAnyOrder {
        new: KeyedItems<'s>,
        old: KeyedItems<'s>,
    },
}

impl<'s> Pairs<'s> {
    /// Pairs the items of two lists.
    pub(super) fn new(new: NodeRef<'s>, old: NodeRef<'s>, meter: &'s dyn Meter) -> Result<Self, Exhausted> {
        let mut both = new.items().zip(old.items());
        let in_order = new.count() == old.count()
            && both.all(|((_, new), (_, old))| new.object().has_keys() && new.object().has_keys_of(old.object()));
        let new = KeyedItems::new(new, meter)?;
        if in_order && new.are_distinct {
            return Ok(Self::InOrder);
        }
        Ok(Self::InAnyOrder { new, old: KeyedItems::new(old, meter)? })
    }

    /// Returns the counterpart of an item of the new list. `beside` is the old item at the same position.
    pub(super) fn of(&self, item: ObjectRef<'_>, beside: Option<NodeRef<'s>>) -> Pair<'s> {
        let (new, old) = match self {
            Self::InOrder => return beside.map_or(Pair::Uncertain, Pair::Same),
            Self::InAnyOrder { new, old } => (new, old),
        };
        if !item.has_keys() {
            return Pair::Uncertain;
        }
        match (new.find(item), old.find(item)) {
            (KeyMatch::Once(_), KeyMatch::Once(old)) => Pair::Same(old),
            (KeyMatch::Once(_), KeyMatch::Never) => Pair::New,
            _ => Pair::Uncertain,
        }
    }
}

/// The items of one list that have keys.
#[derive(Debug)]
pub(super) struct KeyedItems<'s> {
    arena: &'s Arena<'s>,
    items: HashTable<KeyedNode>,
    hasher: DefaultHashBuilder,
    are_distinct: bool,
    meter: &'s dyn Meter,
    charged: usize,
}

pub(super) enum KeyMatch<'s> {
    Never,
    Once(NodeRef<'s>),
    Twice,
}

impl<'s> KeyedItems<'s> {
    /// Indexes the items of a list.
    pub(super) fn new(list: NodeRef<'s>, meter: &'s dyn Meter) -> Result<Self, Exhausted> {
        let (arena, count) = (list.arena, list.count());
        // An eighth of the places stays free, their number is a power of two, and each has a byte more.
        let places = count.saturating_add(count / 7).max(16).next_power_of_two();
        let charged = places.saturating_mul(size_of::<KeyedNode>().saturating_add(1)).saturating_add(32);
        meter.charge(charged)?;
        let items = HashTable::with_capacity(count);
        debug_assert!(items.allocation_size() <= charged, "{} bytes for {count} items", items.allocation_size());
        // The seed is random, so that no client can make keys whose hashes are the same.
        let hasher = DefaultHashBuilder::default();
        let mut keyed = Self { arena, items, hasher, are_distinct: true, meter, charged };
        for (_, item) in list.items() {
            keyed.insert(item);
        }
        Ok(keyed)
    }

    fn insert(&mut self, item: NodeRef<'s>) {
        let Self { arena, items, hasher, .. } = self;
        let object = item.object();
        if !object.has_keys() {
            return;
        }
        let same = |known: &KeyedNode| item_at(arena, *known).object().has_keys_of(object);
        match items.entry(hash(hasher, object), same, |known| hash(hasher, item_at(arena, *known).object())) {
            Entry::Vacant(place) => drop(place.insert(KeyedNode::new(item.at))),
            Entry::Occupied(mut known) => {
                known.get_mut().mark_repeated();
                self.are_distinct = false;
            }
        }
    }

    /// Returns the item that has the keys of `wanted`.
    pub(super) fn find(&self, wanted: ObjectRef<'_>) -> KeyMatch<'s> {
        let same = |known: &KeyedNode| item_at(self.arena, *known).object().has_keys_of(wanted);
        match self.items.find(hash(&self.hasher, wanted), same) {
            None => KeyMatch::Never,
            Some(known) if known.is_repeated() => KeyMatch::Twice,
            Some(known) => KeyMatch::Once(item_at(self.arena, *known)),
        }
    }
}

impl Drop for KeyedItems<'_> {
    fn drop(&mut self) {
        self.meter.release(self.charged);
    }
}

fn item_at<'s>(arena: &'s Arena<'s>, known: KeyedNode) -> NodeRef<'s> {
    NodeRef { arena, at: known.node() }
}

fn hash(hasher: &DefaultHashBuilder, object: ObjectRef<'_>) -> u64 {
    let mut hasher = hasher.build_hasher();
    object.keys().for_each(|key| key.hash(&mut hasher));
    hasher.finish()
}
