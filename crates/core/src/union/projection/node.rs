//! Reads the value at one node of the plan.

use super::emptiness::is_empty;
use super::reader::{ProjectionReader, Read, Slot, TextSeed};
use crate::seed::{NameSeed, visit_as_seed};
use crate::union::arena::{ENTRY, ITEM, NONE, RecordChain};
use crate::union::plan::{ListNode, Node, NodeIndex, ObjectNode, Role};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Reads the value at a node. The depth of the plan bounds the recursion, not the depth of the text.
pub(super) struct NodeSeed<'r, 'p, 'a> {
    pub(super) reader: &'r mut ProjectionReader<'p, 'a>,
    /// The node, `None` if the plan names nothing here. Then only the type of the value matters.
    pub(super) node: Option<&'p Node>,
    pub(super) slot: Slot,
}

visit_as_seed!([] NodeSeed<'_, '_, 'de>, deserialize_any);

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
                let stored = reader.store_object(slot, reader.drafts(), empty).map_err(A::Error::custom)?;
                Ok(stored.unwrap_or(Read::Other { empty }))
            }
        }
    }
}

impl<'p, 'de> NodeSeed<'_, 'p, 'de> {
    fn read_object<A: MapAccess<'de>>(self, node: &'p ObjectNode, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, slot, .. } = self;
        let first = reader.drafts();
        let is_root = matches!(slot, Slot::Root);
        let mut empty = true;
        // No plan names the `metadata` of the root.
        let lookup = |name: &[u8]| (node.position(name), is_root && name == b"metadata");
        while let Some((position, is_metadata)) = map.next_key_seed(NameSeed(lookup))? {
            empty = false;
            let Some((position, field)) = position.and_then(|at| Some((at, node.fields.get(at)?))) else {
                if is_metadata {
                    reader.metadata = map.next_value::<&RawValue>()?.get();
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
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
                    let value = if field.is_boolean { reader.boolean(raw) } else { Ok(scalar) };
                    let value = value.map_err(A::Error::custom)?;
                    reader.state(first.states, union).map_err(A::Error::custom)?.discriminator = value;
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
        let (mut chain, mut count, mut list_says, mut empty) = (RecordChain::EMPTY, 0_u32, false, true);
        for index in 0.. {
            let (start, side) = (reader.arena.end().map_err(A::Error::custom)?, reader.arena.side_end());
            let seed = NodeSeed { reader: &mut *reader, node: item, slot: Slot::Item(index) };
            let Some(read) = items.next_element_seed(seed)? else { break };
            empty = false;
            match read {
                // Keep all items of a keyed list, because they are paired. Keep other items only if a union in them must be
                // judged.
                Read::Node { at, says, .. } if says || (node.keyed && reader.arena.has_keys(at)) => {
                    reader.arena.append(&mut chain, at.saturating_sub(ITEM));
                    count = count.saturating_add(1);
                    list_says |= says;
                }
                Read::Node { .. } | Read::Null | Read::Other { .. } => reader.arena.truncate(start, side),
            }
        }
        if chain.first == NONE {
            return Ok(Read::Other { empty });
        }
        let at = reader.begin(slot).map_err(A::Error::custom)?;
        reader.arena.push(&[chain.first, count]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: list_says, empty })
    }

    fn read_map<A: MapAccess<'de>>(self, values: NodeIndex, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, slot, .. } = self;
        let node = reader.plan.node(values);
        let (start, side) = (reader.arena.end().map_err(A::Error::custom)?, reader.arena.side_end());
        let (mut chain, mut sorted, mut map_says, mut empty) = (RecordChain::EMPTY, true, false, true);
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
            sorted &= chain.last == NONE || reader.arena.entry_key(chain.last) < reader.arena.entry_key(entry);
            reader.arena.append(&mut chain, entry);
        }
        if !sorted {
            chain = reader.arena.sorted_entries(chain, reader.meter).map_err(A::Error::custom)?;
        }
        let first = reader.arena.settle_entries(chain, sorted);
        if first == NONE {
            reader.arena.truncate(start, side);
            return Ok(Read::Other { empty });
        }
        let at = reader.begin(slot).map_err(A::Error::custom)?;
        reader.arena.push(&[first]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: map_says, empty })
    }
}
