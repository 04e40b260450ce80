//! Reads the value at one node of the plan.

use super::drafts::{Occupancy, Projector, Slot};
use super::emptiness::is_empty;
use super::read::Read;
use crate::json::{TextReader, Unreadable};
use crate::meter::Exhausted;
use crate::union::arena::{NodeAt, RecordChain};
use crate::union::plan::{ListNode, Node, NodeIndex, ObjectNode, Role};

impl<'p, 'a> Projector<'p, 'a> {
    /// Reads the value at a node, `None` if the plan names nothing here. Then only the type of the value matters. The depth of the
    /// plan bounds the recursion, not the depth of the text.
    pub(super) fn value(
        &mut self,
        reader: &mut TextReader<'a>,
        node: Option<&'p Node>,
        slot: Slot,
    ) -> Result<Read, Unreadable> {
        let mut empty = true;
        let before = self.before.take();
        match (reader.peek()?, node) {
            (b'{', Some(Node::Object(node))) => return self.read_object(reader, node, slot),
            (b'{', Some(Node::Map(node))) => return self.within(|it| it.read_map(reader, node.values, slot)),
            (b'[', Some(Node::List(node))) => return self.within(|it| it.read_list(reader, node, slot, before)),
            (b'{', _) => {
                let mut fields = reader.enter();
                while reader.name(&mut fields)?.is_some() {
                    empty = false;
                    reader.skip()?;
                }
                if node.is_none() {
                    let stored = self.store_object(slot, self.drafts(), Occupancy::of(usize::from(!empty), 0))?;
                    return Ok(stored.unwrap_or(Read::Other { empty }));
                }
            }
            (b'[', _) => {
                let mut items = reader.enter();
                while reader.item(&mut items)? {
                    empty = false;
                    reader.skip()?;
                }
            }
            (b'"', _) => {
                let text = reader.string()?;
                empty = reader.unicode(text, str::is_empty)?;
            }
            (b'-' | b'0'..=b'9', _) => empty = reader.number()? == 0.0,
            _ => match reader.skip()? {
                "null" => return Ok(Read::Null),
                "true" if self.wholes && node.is_some_and(Node::is_atomic) => return Ok(self.store_whole(slot)?),
                text => empty = text == "false",
            },
        }
        Ok(Read::Other { empty })
    }

    /// Reads a list or a map. A value inside may be dropped, so that no other can share it.
    fn within(&mut self, read: impl FnOnce(&mut Self) -> Result<Read, Unreadable>) -> Result<Read, Unreadable> {
        self.lists = self.lists.saturating_add(1);
        let read = read(self);
        self.lists = self.lists.saturating_sub(1);
        read
    }

    /// Reads the value of a field, or shares that of an object before, if it has the same text.
    fn child(&mut self, reader: &mut TextReader<'a>, id: NodeIndex) -> Result<Read, Unreadable> {
        let node = self.plan.node(id);
        if self.lists > 0 {
            return self.value(reader, node, Slot::Field);
        }
        reader.peek()?;
        match self.repeats.skip(reader, Some(id)) {
            Ok((_, read)) => return Ok(read),
            Err(Some(Read::Node { at, .. })) => self.before = Some(at),
            Err(_) => {}
        }
        let (place, start) = (self.repeats.reserve(), reader.position());
        let read = self.value(reader, node, Slot::Field)?;
        self.repeats.remember(place, reader.since(start), Some(id), read);
        Ok(read)
    }

    /// Skips the value of a field.
    fn skip(&mut self, reader: &mut TextReader<'a>) -> Result<&'a str, Unreadable> {
        if self.lists > 0 || !matches!(reader.peek()?, b'{' | b'[' | b'"') {
            return reader.skip();
        }
        if let Ok((text, _)) = self.repeats.skip(reader, None) {
            return Ok(text);
        }
        let place = self.repeats.reserve();
        let text = reader.skip()?;
        self.repeats.remember(place, text, None, Read::Null);
        Ok(text)
    }

    fn read_object(
        &mut self,
        reader: &mut TextReader<'a>,
        node: &'p ObjectNode,
        slot: Slot,
    ) -> Result<Read, Unreadable> {
        let first = self.drafts();
        let is_root = matches!(slot, Slot::Root);
        let (mut all, mut members) = (0_usize, 0_usize);
        let mut fields = reader.enter();
        while let Some(name) = reader.any_name(&mut fields)? {
            all = all.saturating_add(1);
            // No plan names the `metadata` of the root.
            let lookup = |name: &[u8]| (node.position(name), is_root && name == b"metadata");
            let (position, is_metadata) = reader.unescaped(name, lookup)?;
            let Some((position, field)) = position.and_then(|at| Some((at, node.fields.get(at)?))) else {
                let text = self.skip(reader)?;
                self.metadata = if is_metadata { text } else { self.metadata };
                continue;
            };
            let rules = &field.values;
            reader.peek()?;
            let start = reader.position();
            let (null, empty) = if let Some(child) = field.child {
                let read = self.child(reader, child)?;
                self.put_child(first.children, u32::try_from(position).map_err(|_| Exhausted)?, read)?;
                (matches!(read, Read::Null), read.is_empty())
            } else {
                let text = self.skip(reader)?;
                if let Some(key) = field.key {
                    let key_value = self.scalar(reader, text)?;
                    self.put_key(first.keys, key.into(), key_value)?;
                }
                if let Role::Discriminator { union } = field.role {
                    let value = if field.is_boolean { self.boolean(text)? } else { self.scalar(reader, text)? };
                    self.state(first.states, union)?.discriminator = value;
                }
                (text == "null", rules.empty_is_unset && is_empty(text))
            };
            if let Role::Member { union, index } = field.role {
                let present = !(null || rules.empty_is_unset && empty);
                let text = reader.since(start);
                let is_unowned = self.is_manifest
                    && if present {
                        rules.unowned.as_ref().is_some_and(|unowned| unowned.is(text))
                    } else {
                        empty && text.starts_with('{')
                    };
                let state = self.state(first.states, union)?;
                state.members.put(index, present);
                state.unowned.put(index, is_unowned);
                state.nulls.put(index, null && !rules.nullable);
                members = members.saturating_add(present.into());
            }
        }
        self.put_default_keys(first.keys, &node.key_defaults)?;
        let is_whole = self.wholes && node.atomic;
        let occupancy = if is_whole { Occupancy::Whole } else { Occupancy::of(all, members) };
        let Some(Read::Node { at, judged, empty }) = self.store_object(slot, first, occupancy)? else {
            let reason = "an object has too many fields that lead to unions";
            return Err(reader.malformed(reader.position(), &reason));
        };
        Ok(Read::Node { at, judged: judged || !node.required.is_empty(), empty })
    }

    /// Reads a list. Items of a keyed list that repeat those of the list `before`, in its order, are compared and not read.
    fn read_list(
        &mut self,
        reader: &mut TextReader<'a>,
        node: &'p ListNode,
        slot: Slot,
        before: Option<NodeAt>,
    ) -> Result<Read, Unreadable> {
        let item = self.plan.node(node.items);
        let (mut chain, mut count, mut any_judged, mut empty) = (RecordChain::default(), 0_u32, false, true);
        let mut known = before.filter(|_| node.keyed).and_then(|list| self.arena.first_record(list));
        let (mut items, mut index) = (reader.enter(), 0_u32);
        while reader.item(&mut items)? {
            empty = false;
            let slot = Slot::Item(index, Some(reader.position()).filter(|_| node.keyed));
            let next = known.and_then(|item| self.arena.next_record(item));
            if let Some((item, next)) = std::mem::replace(&mut known, next).zip(next) {
                let text = self.arena.item_text(item)..self.arena.item_text(next);
                if let Some(first) = reader.skip_repeated_item(reader.text().get(text).unwrap_or_default()) {
                    items = first;
                    let at = self.begin(slot)?;
                    self.arena.push_again(item.node())?;
                    self.arena.append(&mut chain, at.record());
                    count = count.saturating_add(1);
                    any_judged = true;
                    let skipped = self.arena.item_index(next).saturating_sub(self.arena.item_index(item));
                    index = index.saturating_add(skipped);
                    continue;
                }
            }
            let size = self.arena.size();
            match self.value(reader, item, slot)? {
                // Keep all items of a keyed list, because they are paired. Keep other items only if a union in them must be
                // judged.
                Read::Node { at, judged, .. } if judged || (node.keyed && self.arena.has_keys(at)) => {
                    self.arena.append(&mut chain, at.record());
                    count = count.saturating_add(1);
                    any_judged |= judged;
                }
                Read::Node { .. } | Read::Null | Read::Other { .. } => self.arena.truncate(size),
            }
            index = index.saturating_add(1);
        }
        let Some(first) = chain.first else { return Ok(Read::Other { empty }) };
        let at = self.begin(slot)?;
        self.arena.push_list(first, count)?;
        Ok(Read::Node { at, judged: any_judged, empty })
    }

    fn read_map(&mut self, reader: &mut TextReader<'a>, values: NodeIndex, slot: Slot) -> Result<Read, Unreadable> {
        let node = self.plan.node(values);
        let size = self.arena.size();
        let (mut chain, mut sorted, mut any_judged, mut empty) = (RecordChain::default(), true, false, true);
        let mut fields = reader.enter();
        while let Some(name) = reader.name(&mut fields)? {
            empty = false;
            let key = reader.unicode(name, |key| self.arena.store_text(key))??;
            let at = match self.value(reader, node, Slot::Entry(key))? {
                Read::Node { at, judged, .. } => {
                    any_judged |= judged;
                    at
                }
                // The entry may replace an earlier one with the same key.
                Read::Null | Read::Other { .. } => {
                    self.arena.push_entry(key)?;
                    self.arena.end()?
                }
            };
            let entry = at.record();
            sorted &= chain.last.is_none_or(|last| self.arena.entry_key(last) < self.arena.entry_key(entry));
            self.arena.append(&mut chain, entry);
        }
        if !sorted {
            chain = self.arena.sorted_entries(chain, self.meter)?;
        }
        let Some(first) = self.arena.settle_entries(chain, sorted) else {
            self.arena.truncate(size);
            return Ok(Read::Other { empty });
        };
        let at = self.begin(slot)?;
        self.arena.push_map(first)?;
        Ok(Read::Node { at, judged: any_judged, empty })
    }
}
