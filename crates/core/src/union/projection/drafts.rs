//! Collects the fields of objects that are being read, and stores complete objects in the arena.

use super::read::Read;
use super::repeats::Repeats;
use crate::json::{JsonString, TextReader, Unreadable};
use crate::meter::{Buffer, Exhausted, Meter};
use crate::union::MemberSet;
use crate::union::arena::{Arena, NodeAt, ObjectCounts, TextRange};
use crate::union::plan::{ItemKeyDefault, Part, Plan};

/// Reads the unions of objects of one text into one arena. The drafts of incomplete objects are bounded by the plan, except for
/// duplicate fields, and charged like everything else.
#[derive(Debug)]
pub(crate) struct Projector<'p, 'a> {
    pub(super) plan: &'p Plan,
    pub(super) part: Part,
    pub(super) meter: &'a dyn Meter,
    pub(super) arena: Arena<'a>,
    pub(super) states: Buffer<'a, StateDraft>,
    pub(super) children: Buffer<'a, ChildDraft>,
    children_read: u32,
    pub(super) keys: Buffer<'a, (u32, TextRange)>,
    pub(super) repeats: Repeats<'a>,
    /// The list that another object had in the place of the value that is read next.
    pub(super) before: Option<NodeAt>,
    /// The number of lists and maps around the value that is read.
    pub(super) lists: u32,
    /// The JSON text of `metadata`.
    pub(super) metadata: &'a str,
    /// True if `true` stands for all of an object, list or map that is owned as a whole.
    pub(super) wholes: bool,
    /// True for a manifest, of which members without an owner and empty objects are told.
    pub(super) is_manifest: bool,
}

impl<'p, 'a> Projector<'p, 'a> {
    /// Returns a projector of one part of the objects in the text of a reader.
    pub(crate) fn new(plan: &'p Plan, part: Part, reader: &TextReader<'a>) -> Self {
        let meter = reader.meter();
        Self {
            plan,
            part,
            meter,
            arena: Arena::new(reader.text(), meter),
            states: Buffer::new(meter),
            children: Buffer::new(meter),
            children_read: 0,
            keys: Buffer::new(meter),
            repeats: Repeats::default(),
            before: None,
            lists: 0,
            metadata: "",
            wholes: false,
            is_manifest: false,
        }
    }

    /// Returns a projector that reads `true` in place of an object, list or map that is owned as a whole as
    /// [all of it](crate::union::arena::NodeRef::is_whole).
    pub(crate) fn with_wholes(self) -> Self {
        Self { wholes: true, ..self }
    }

    /// Returns a projector of a manifest: it tells the members that nobody owns, and those that are empty objects and count as not set.
    pub(crate) fn of_manifest(self) -> Self {
        Self { is_manifest: true, ..self }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StateDraft {
    pub(super) position: u8,
    pub(super) discriminator: Option<TextRange>,
    pub(super) members: MemberSet,
    pub(super) unowned: MemberSet,
    pub(super) nulls: MemberSet,
}

impl StateDraft {
    fn new(position: u8) -> Self {
        let none = MemberSet::EMPTY;
        Self { position, discriminator: None, members: none, unowned: none, nulls: none }
    }

    fn is_set(&self) -> bool {
        self.discriminator.is_some() || ![self.members, self.unowned, self.nulls].iter().all(|set| set.is_empty())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChildDraft {
    position: u32,
    /// The order of reading. Of two drafts with the same position the later one counts.
    order: u32,
    node: Option<NodeAt>,
    judged: bool,
}

/// The position of a value in its parent.
#[derive(Clone, Copy)]
pub(super) enum Slot {
    Root,
    Field,
    /// The index, and the offset of the text if the list is keyed.
    Item(u32, Option<usize>),
    Entry(TextRange),
}

impl<'a> Projector<'_, 'a> {
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
            self.states.push(StateDraft::new(position))?;
            self.states.len().saturating_sub(1)
        };
        self.states.get_mut(at).ok_or(Exhausted)
    }

    /// Adds a field that leads to a node. If a field occurs twice, the last one counts, as for the API server.
    pub(super) fn put_child(&mut self, first: usize, position: u32, read: Read) -> Result<(), Exhausted> {
        let (node, judged) = match read {
            Read::Node { at, judged, .. } => (Some(at), judged),
            Read::Null | Read::Other { .. } => (None, false),
        };
        self.children_read = self.children_read.checked_add(1).ok_or(Exhausted)?;
        let draft = ChildDraft { position, order: self.children_read, node, judged };
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

    /// Returns the offset of a node that is stored next.
    pub(super) fn begin(&mut self, slot: Slot) -> Result<NodeAt, Exhausted> {
        match slot {
            Slot::Root | Slot::Field => {}
            Slot::Item(index, text) => self.arena.push_item(index, text)?,
            Slot::Entry(key) => self.arena.push_entry(key.before_node())?,
        }
        self.arena.end()
    }

    /// Stores an object, list or map that is whole.
    pub(super) fn store_whole(&mut self, slot: Slot) -> Result<Read, Exhausted> {
        let at = self.begin(slot)?;
        self.arena.push_whole()?;
        Ok(Read::Node { at, judged: true, empty: false })
    }

    /// Stores an object and removes its drafts, which begin at `first`. Returns `None` if it has too many fields to be stored.
    pub(super) fn store_object(
        &mut self,
        slot: Slot,
        first: Drafts,
        occupancy: Occupancy,
    ) -> Result<Option<Read>, Exhausted> {
        let judged = self.settle(first);
        let counts =
            (self.states.len() - first.states, self.keys.len() - first.keys, self.children.len() - first.children);
        let Some(counts) = ObjectCounts::new(counts.0, counts.1, counts.2) else { return Ok(None) };
        let counts = match occupancy {
            Occupancy::OnlyMembers => counts.with_only_members(),
            Occupancy::Whole => counts.as_whole(),
            Occupancy::Empty | Occupancy::Mixed => counts,
        };
        let at = self.begin(slot)?;
        let Self { arena, states, children, keys, .. } = self;
        arena.push_object(counts)?;
        for (position, key) in keys.iter().skip(first.keys) {
            arena.push_key(*position, *key)?;
        }
        for draft in states.iter().skip(first.states) {
            arena.push_state(draft.position, draft.discriminator, [draft.members, draft.unowned, draft.nulls])?;
        }
        for draft in children.iter().skip(first.children) {
            arena.push_child(draft.position, draft.node)?;
        }
        keys.truncate(first.keys);
        states.truncate(first.states);
        children.truncate(first.children);
        Ok(Some(Read::Node { at, judged, empty: occupancy == Occupancy::Empty }))
    }

    /// Sorts the drafts of an object and drops the empty ones. Returns true if a member or a discriminator is set, or a null that cannot
    /// be.
    fn settle(&mut self, first: Drafts) -> bool {
        let Self { states, children, keys, .. } = self;
        let own = keys.get_mut(first.keys..).unwrap_or_default();
        own.sort_unstable_by_key(|(position, _)| *position);
        if own.iter().any(|(_, key)| key.is_unfit()) {
            keys.truncate(first.keys);
        }
        let own = states.get_mut(first.states..).unwrap_or_default();
        own.sort_unstable_by_key(|draft| draft.position);
        let kept = compact(own, |draft, _| draft.is_set());
        states.truncate(first.states.saturating_add(kept));
        let own = children.get_mut(first.children..).unwrap_or_default();
        own.sort_unstable_by_key(|draft| (draft.position, draft.order));
        let last_of_its_field = |draft: &ChildDraft, next: Option<&ChildDraft>| {
            draft.node.is_some() && next.is_none_or(|next| next.position != draft.position)
        };
        let children_kept = compact(own, last_of_its_field);
        children.truncate(first.children.saturating_add(children_kept));
        kept > 0 || children.iter().skip(first.children).any(|draft| draft.judged)
    }

    /// Stores a discriminator or a key, which `reader` read. Returns `None` for null.
    pub(super) fn scalar(&mut self, reader: &TextReader<'a>, text: &'a str) -> Result<Option<TextRange>, Exhausted> {
        Ok(Some(match text.as_bytes().first() {
            Some(b'"') => match reader.unicode(JsonString::of(text), |text| self.arena.store_text(text)) {
                Ok(stored) => stored?,
                Err(Unreadable::Exhausted(exhausted)) => return Err(exhausted),
                // A string with lone surrogates is not Unicode. Store it as it is written, with quotes, so that it equals no
                // declared value.
                Err(Unreadable::Malformed(_)) => self.arena.store_text(text)?,
            },
            Some(b'[' | b'{') => TextRange::UNFIT,
            _ if text == "null" => return Ok(None),
            _ => self.arena.store_literal(text)?,
        }))
    }

    /// Stores a discriminator that is a boolean, as the text of its value. Returns `None` for null. The fields of a manifest can be known
    /// without their values.
    pub(super) fn boolean(&mut self, text: &str) -> Result<Option<TextRange>, Exhausted> {
        Ok(match text {
            "null" => None,
            "true" | "false" if !self.wholes => Some(self.arena.store_text(text)?),
            _ => Some(TextRange::UNFIT),
        })
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

/// The kinds of fields that an object has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupancy {
    Empty,
    /// Each is a member that is set.
    OnlyMembers,
    Mixed,
    /// Not listed: a field manager owns the object as a whole, with all of its fields.
    Whole,
}

impl Occupancy {
    /// Returns the kinds of this number of fields, some of which are members that are set.
    pub(super) fn of(fields: usize, members: usize) -> Self {
        match fields {
            0 => Self::Empty,
            _ if fields == members => Self::OnlyMembers,
            _ => Self::Mixed,
        }
    }
}

/// The offsets at which the drafts of an object begin.
#[derive(Clone, Copy)]
pub(super) struct Drafts {
    pub(super) states: usize,
    pub(super) children: usize,
    pub(super) keys: usize,
}
