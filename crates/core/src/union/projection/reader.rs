//! Collects the fields of objects that are being read, and stores complete objects in the arena.

use crate::meter::{Buffer, Exhausted, Meter};
use crate::seed::visit_as_seed;
use crate::union::MemberSet;
use crate::union::arena::{Arena, NONE, ScalarRef, TextRange, object_head};
use crate::union::plan::{ItemKeyDefault, Plan};
use serde::de::{DeserializeSeed, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A value after reading.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// The value is missing or null.
    Null,
    /// Nothing is stored: the value has an unexpected type, or no part of it matters.
    Other { empty: bool },
    /// A stored node. `says` is true if a union in it must be judged: a member or a discriminator is set, or the union is
    /// required.
    Node { at: u32, says: bool, empty: bool },
}

impl Read {
    /// Returns true for `false`, zero, `""`, `{}` and `[]`.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Other { empty: true } | Self::Node { empty: true, .. })
    }
}

/// The state of reading a projection. The drafts of incomplete objects are bounded by the plan, except for duplicate
/// fields, and charged like everything else.
pub(super) struct ProjectionReader<'p, 'a> {
    pub(super) plan: &'p Plan,
    pub(super) meter: &'a dyn Meter,
    pub(super) arena: Arena<'a>,
    pub(super) states: Buffer<'a, StateDraft>,
    pub(super) children: Buffer<'a, ChildDraft>,
    pub(super) children_read: u32,
    pub(super) keys: Buffer<'a, (u32, TextRange)>,
    /// The JSON text of `metadata`.
    pub(super) metadata: &'a str,
    /// True if `true` stands for all of an object, list or map that is owned as a whole.
    pub(super) wholes: bool,
}

#[derive(Clone, Copy)]
pub(super) struct StateDraft {
    pub(super) position: u8,
    pub(super) discriminator: Option<TextRange>,
    pub(super) members: MemberSet,
}

#[derive(Clone, Copy)]
pub(super) struct ChildDraft {
    position: u32,
    /// The order of reading. Of two drafts with the same position the later one counts.
    order: u32,
    node: Option<u32>,
    says: bool,
}

/// The position of a value in its parent.
#[derive(Clone, Copy)]
pub(super) enum Slot {
    Root,
    Field,
    Item(u32),
    Entry(TextRange),
}

impl<'a> ProjectionReader<'_, 'a> {
    /// Returns the offsets at which the drafts of the next object begin.
    pub(super) fn drafts(&self) -> Drafts {
        Drafts { states: self.states.len(), children: self.children.len(), keys: self.keys.len() }
    }

    /// Returns the draft of a union of the object whose drafts begin at `first`.
    pub(super) fn state(&mut self, first: usize, position: u8) -> Result<&mut StateDraft, Exhausted> {
        let known = self.states.iter().skip(first).position(|draft| draft.position == position);
        let at = if let Some(known) = known {
            first.saturating_add(known)
        } else {
            self.states.push(StateDraft { position, discriminator: None, members: MemberSet::EMPTY })?;
            self.states.len().saturating_sub(1)
        };
        self.states.get_mut(at).ok_or(Exhausted)
    }

    /// Adds a field that leads to a node. If a field occurs twice, the last one counts, as for the API server.
    pub(super) fn put_child(&mut self, first: usize, position: u32, read: Read) -> Result<(), Exhausted> {
        let (node, says) = match read {
            Read::Node { at, says, .. } => (Some(at), says),
            Read::Null | Read::Other { .. } => (None, false),
        };
        self.children_read = self.children_read.checked_add(1).ok_or(Exhausted)?;
        let draft = ChildDraft { position, order: self.children_read, node, says };
        let known = self.children.len();
        match self.children.last_mut() {
            Some(last) if known > first && last.position == position => {
                *last = draft;
                Ok(())
            }
            _ if known == first && node.is_none() => Ok(()),
            _ => self.children.push(draft),
        }
    }

    pub(super) fn put_key(&mut self, first: usize, position: u32, key: Option<TextRange>) -> Result<(), Exhausted> {
        let known = self.keys.iter().skip(first).position(|(known, _)| *known == position);
        if let Some(known) = known {
            // The last key moves into the gap.
            let at = first.saturating_add(known);
            let last = self.keys.len().saturating_sub(1);
            self.keys.swap(at, last);
            self.keys.truncate(last);
        }
        match key {
            Some(key) => self.keys.push((position, key)),
            None => Ok(()),
        }
    }

    /// Adds the defaults of keys that the item does not have, as the API server does.
    pub(super) fn put_default_keys(
        &mut self,
        first: usize,
        defaults: &[(u8, ItemKeyDefault)],
    ) -> Result<(), Exhausted> {
        for (position, default) in defaults {
            let position = u32::from(*position);
            if self.keys.iter().skip(first).all(|(known, _)| *known != position) {
                let key = match default {
                    ItemKeyDefault::Text(text) => self.arena.store_text(text)?,
                    ItemKeyDefault::Literal(text) => self.arena.store_literal(text)?,
                };
                self.keys.push((position, key))?;
            }
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, slot: Slot) -> Result<u32, Exhausted> {
        match slot {
            Slot::Root | Slot::Field => {}
            Slot::Item(index) => self.arena.push_item(index)?,
            Slot::Entry(key) => self.arena.push_entry(key, true)?,
        }
        self.arena.end()
    }

    /// Stores an object, list or map that is whole.
    pub(super) fn store_whole(&mut self, slot: Slot) -> Result<Read, Exhausted> {
        let at = self.begin(slot)?;
        self.arena.push(&[NONE])?;
        Ok(Read::Node { at, says: true, empty: false })
    }

    /// Stores an object and removes its drafts, which begin at `first`. `empty` tells if the object has no fields. Returns
    /// `None` if it has too many fields to be stored.
    pub(super) fn store_object(&mut self, slot: Slot, first: Drafts, empty: bool) -> Result<Option<Read>, Exhausted> {
        let says = self.settle(first);
        let counts =
            (self.states.len() - first.states, self.keys.len() - first.keys, self.children.len() - first.children);
        let Some(head) = object_head(counts.0, counts.1, counts.2) else { return Ok(None) };
        let at = self.begin(slot)?;
        let Self { arena, states, children, keys, .. } = self;
        arena.push(&[head])?;
        for (position, key) in keys.iter().skip(first.keys) {
            arena.push_key(*position, *key)?;
        }
        for draft in states.iter().skip(first.states) {
            arena.push_state(draft.position, draft.discriminator, draft.members)?;
        }
        for draft in children.iter().skip(first.children) {
            debug_assert!(draft.node.is_some(), "a draft without a node is dropped before");
            arena.push(&[draft.position, draft.node.unwrap_or(NONE)])?;
        }
        keys.truncate(first.keys);
        states.truncate(first.states);
        children.truncate(first.children);
        Ok(Some(Read::Node { at, says, empty }))
    }

    /// Sorts the drafts of an object and drops the empty ones. Returns true if a member or a discriminator is set.
    fn settle(&mut self, first: Drafts) -> bool {
        let Self { states, children, keys, arena, .. } = self;
        let own = keys.get_mut(first.keys..).unwrap_or_default();
        own.sort_unstable_by_key(|(position, _)| *position);
        if own.iter().any(|(_, key)| arena.scalar(*key) == ScalarRef::Unfit) {
            keys.truncate(first.keys);
        }
        let own = states.get_mut(first.states..).unwrap_or_default();
        own.sort_unstable_by_key(|draft| draft.position);
        let is_set = |draft: &StateDraft| draft.discriminator.is_some() || !draft.members.is_empty();
        let kept = compact(own, |draft, _| is_set(draft));
        states.truncate(first.states.saturating_add(kept));
        let own = children.get_mut(first.children..).unwrap_or_default();
        own.sort_unstable_by_key(|draft| (draft.position, draft.order));
        let last_of_its_field = |draft: &ChildDraft, next: Option<&ChildDraft>| {
            draft.node.is_some() && next.is_none_or(|next| next.position != draft.position)
        };
        let children_kept = compact(own, last_of_its_field);
        children.truncate(first.children.saturating_add(children_kept));
        kept > 0 || children.iter().skip(first.children).any(|draft| draft.says)
    }

    /// Stores a discriminator or a key. Returns `None` for null.
    pub(super) fn scalar(&mut self, raw: &'a RawValue) -> Result<Option<TextRange>, Exhausted> {
        let text = raw.get();
        Ok(Some(match text.as_bytes().first() {
            Some(b'"') if !text.as_bytes().contains(&b'\\') => {
                self.arena.store_text(text.get(1..text.len().saturating_sub(1)).unwrap_or_default())?
            }
            Some(b'"') => self.unescaped(text)?,
            Some(b'[' | b'{') => TextRange::UNFIT,
            _ if text == "null" => return Ok(None),
            _ => self.arena.store_literal(text)?,
        }))
    }

    /// Stores a discriminator that is a boolean, as the text of its value. Returns `None` for null. The fields of a manifest can be known
    /// without their values.
    pub(super) fn boolean(&mut self, raw: &'a RawValue) -> Result<Option<TextRange>, Exhausted> {
        Ok(match raw.get() {
            "null" => None,
            text @ ("true" | "false") if !self.wholes => Some(self.arena.store_text(text)?),
            _ => Some(TextRange::UNFIT),
        })
    }

    fn unescaped(&mut self, text: &str) -> Result<TextRange, Exhausted> {
        // The JSON reader unescapes into a buffer of its own, which doubles.
        let scratch = text.len().saturating_mul(2);
        self.meter.charge(scratch)?;
        let mut string = serde_json::Deserializer::from_str(text);
        let stored = TextSeed(&mut self.arena).deserialize(&mut string);
        drop(string);
        self.meter.release(scratch);
        match stored {
            Ok(stored) => stored,
            // A string with lone surrogates is not Unicode. Store it as it is written, with quotes, so that it equals no
            // declared value.
            Err(_) => self.arena.store_text(text),
        }
    }
}

/// Reads a string into the arena. A string without escapes is stored as a range of the body, others are copied.
pub(super) struct TextSeed<'r, 'a>(pub(super) &'r mut Arena<'a>);

visit_as_seed!([] TextSeed<'_, '_>, deserialize_str);

impl<'de> Visitor<'de> for TextSeed<'_, '_> {
    type Value = Result<TextRange, Exhausted>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.0.store_text(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.store_text(text))
    }
}

/// Moves the items that `keep` accepts to the front of a sorted slice, and returns their number. `keep` gets the next item
/// as well.
fn compact<T: Copy>(items: &mut [T], keep: impl Fn(&T, Option<&T>) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..items.len() {
        let Some(item) = items.get(at).copied() else { break };
        if keep(&item, items.get(at.saturating_add(1)))
            && let Some(slot) = items.get_mut(kept)
        {
            *slot = item;
            kept = kept.saturating_add(1);
        }
    }
    kept
}

/// The offsets at which the drafts of an object begin.
#[derive(Clone, Copy)]
pub(super) struct Drafts {
    pub(super) states: usize,
    pub(super) children: usize,
    pub(super) keys: usize,
}
