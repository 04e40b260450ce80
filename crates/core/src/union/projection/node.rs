//! Reads the value at one node of the plan.

use super::emptiness::is_empty;
use super::names::{FieldSeed, PlannedField, TextSeed};
use super::reader::{Drafts, ProjectionReader, Read, Slot};
use crate::union::arena::{ENTRY, ITEM, NONE};
use crate::union::plan::{ListNode, Node, NodeIndex, ObjectNode, Role};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Reads the value at a node. The depth of the plan bounds the recursion, not the depth of the text.
pub(super) struct NodeSeed<'r, 'p, 'a> {
    pub(super) reader: &'r mut ProjectionReader<'p, 'a>,
    /// The node, `None` if the plan names nothing here. Then only the type of the value matters.
    pub(super) node: Option<&'p Node>,
    pub(super) slot: Slot,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_, '_, 'de> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_, '_, 'de> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Read::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        if value && self.reader.wholes && self.node.is_some_and(Node::is_atomic) {
            return self.reader.store_whole(self.slot).map_err(E::custom);
        }
        Ok(Read::Other { empty: !value })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Read::Other { empty: value == 0 })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Read::Other { empty: value == 0 })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Read::Other { empty: value == 0.0 })
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Read::Other { empty: value.is_empty() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if let Some(Node::List(node)) = self.node {
            return self.read_list(node, list);
        }
        let mut empty = true;
        while list.next_element::<IgnoredAny>()?.is_some() {
            empty = false;
        }
        Ok(Read::Other { empty })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.node {
            Some(Node::Object(node)) => self.read_object(node, map),
            Some(Node::Map(node)) => self.read_map(node.values, map),
            other => {
                let mut empty = true;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    empty = false;
                }
                if other.is_some() {
                    return Ok(Read::Other { empty });
                }
                let Self { reader, slot, .. } = self;
                let none =
                    Drafts { states: reader.states.len(), children: reader.children.len(), keys: reader.keys.len() };
                let stored = reader.store_object(slot, none, empty).map_err(A::Error::custom)?;
                Ok(stored.unwrap_or(Read::Other { empty }))
            }
        }
    }
}

impl<'p, 'de> NodeSeed<'_, 'p, 'de> {
    fn read_object<A: MapAccess<'de>>(self, node: &'p ObjectNode, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, slot, .. } = self;
        let first = Drafts { states: reader.states.len(), children: reader.children.len(), keys: reader.keys.len() };
        let is_root = matches!(slot, Slot::Root);
        let mut empty = true;
        while let Some(key) = map.next_key_seed(FieldSeed { node, is_root })? {
            empty = false;
            let field = match key {
                PlannedField::Planned(position) => node.fields.get(position).map(|field| (position, field)),
                PlannedField::Metadata => {
                    reader.metadata = map.next_value::<&RawValue>()?.get();
                    continue;
                }
                PlannedField::Other => None,
            };
            let Some((position, field)) = field else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let present = if let Some(child) = field.child {
                let node = reader.plan.node(child);
                let read = map.next_value_seed(NodeSeed { reader: &mut *reader, node, slot: Slot::Field })?;
                let position = u32::try_from(position).map_err(A::Error::custom)?;
                reader.put_child(first.children, position, read).map_err(A::Error::custom)?;
                !(matches!(read, Read::Null) || field.empty_is_unset && read.is_empty())
            } else if field.key.is_none() && !field.empty_is_unset && matches!(field.role, Role::Member { .. }) {
                map.next_value::<Option<IgnoredAny>>()?.is_some()
            } else if field.key.is_none() && field.empty_is_unset {
                let text = map.next_value::<&RawValue>()?.get();
                text != "null" && !is_empty(text)
            } else {
                let raw = map.next_value::<&RawValue>()?;
                let scalar = reader.scalar(raw).map_err(A::Error::custom)?;
                if let Some(key) = field.key {
                    reader.put_key(first.keys, key.into(), scalar).map_err(A::Error::custom)?;
                }
                if let Role::Discriminator { union } = field.role {
                    reader.state(first.states, union).map_err(A::Error::custom)?.discriminator = scalar;
                }
                scalar.is_some() && !(field.empty_is_unset && is_empty(raw.get()))
            };
            if let Role::Member { union, index } = field.role {
                reader.state(first.states, union).map_err(A::Error::custom)?.members.put(index, present);
            }
        }
        reader.put_default_keys(first.keys, &node.key_defaults).map_err(A::Error::custom)?;
        let stored = reader.store_object(slot, first, empty).map_err(A::Error::custom)?;
        match stored {
            Some(Read::Node { at, says, empty }) => {
                Ok(Read::Node { at, says: says || !node.required.is_empty(), empty })
            }
            _ => Err(A::Error::custom("an object has too many fields that lead to unions")),
        }
    }

    fn read_list<A: SeqAccess<'de>>(self, node: &ListNode, mut items: A) -> Result<Read, A::Error> {
        let Self { reader, slot, .. } = self;
        let item = reader.plan.node(node.items);
        let (mut first, mut last, mut count, mut list_says, mut empty) = (NONE, NONE, 0_u32, false, true);
        for index in 0.. {
            let (start, side) = (reader.arena.end().map_err(A::Error::custom)?, reader.arena.side_end());
            let seed = NodeSeed { reader: &mut *reader, node: item, slot: Slot::Item(index) };
            let Some(read) = items.next_element_seed(seed)? else { break };
            empty = false;
            match read {
                // Keep all items of a keyed list, because they are paired. Keep other items only if a union in them must be
                // judged.
                Read::Node { at, says, .. } if says || (node.keyed && reader.arena.has_keys(at)) => {
                    let record = at.saturating_sub(ITEM);
                    if last == NONE {
                        first = record;
                    } else {
                        reader.arena.link(last, record);
                    }
                    last = record;
                    count = count.saturating_add(1);
                    list_says |= says;
                }
                Read::Node { .. } | Read::Null | Read::Other { .. } => reader.arena.truncate(start, side),
            }
        }
        if first == NONE {
            return Ok(Read::Other { empty });
        }
        let at = reader.begin(slot).map_err(A::Error::custom)?;
        reader.arena.push(&[first, count]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: list_says, empty })
    }

    fn read_map<A: MapAccess<'de>>(self, values: NodeIndex, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, slot, .. } = self;
        let node = reader.plan.node(values);
        let (start, side) = (reader.arena.end().map_err(A::Error::custom)?, reader.arena.side_end());
        let (mut first, mut last, mut sorted, mut map_says, mut empty) = (NONE, NONE, true, false, true);
        while let Some(key) = map.next_key_seed(TextSeed(&mut reader.arena))? {
            empty = false;
            let key = key.map_err(A::Error::custom)?;
            let read = map.next_value_seed(NodeSeed { reader: &mut *reader, node, slot: Slot::Entry(key) })?;
            let entry = match read {
                Read::Node { at, says, .. } => {
                    map_says |= says;
                    at.saturating_sub(ENTRY)
                }
                // The entry may replace an earlier one with the same key.
                Read::Null | Read::Other { .. } => {
                    let end = reader.arena.end().map_err(A::Error::custom)?;
                    reader.arena.push_entry(key, false).map_err(A::Error::custom)?;
                    end
                }
            };
            if last == NONE {
                first = entry;
            } else {
                sorted &= reader.arena.entry_key(last) < reader.arena.entry_key(entry);
                reader.arena.link(last, entry);
            }
            last = entry;
        }
        let first = reader.arena.settle_entries(first, sorted);
        if first == NONE {
            reader.arena.truncate(start, side);
            return Ok(Read::Other { empty });
        }
        let at = reader.begin(slot).map_err(A::Error::custom)?;
        reader.arena.push(&[first]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: map_says, empty })
    }
}
