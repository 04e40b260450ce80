//! What a plan needs to know of one object, read from its JSON text in one pass.
//!
//! Only what the plan names is stored: which members are set, discriminators, list and map keys. Everything else is skipped
//! as bytes, so that its depth and size cost a scan and no memory. What is stored is charged before it is allocated, and
//! is a small multiple of the text that it was read from.

mod metadata;
mod names;

use super::MemberSet;
use super::meter::{Buffer, Exhausted, Meter};
use super::plan::{ListNode, Node, NodeId, ObjectNode, Part, Plan, Role};
use super::shape::{ENTRY, ITEM, NONE, Scalar, Shape, Shapes, Stored, object_head};
use metadata::MetadataSeed;
use names::{Field, FieldSeed, TextSeed};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The unions of one object as they stand.
#[derive(Debug)]
pub(crate) struct Projection<'a> {
    shapes: Shapes<'a>,
    root: Read,
    name: Option<Stored>,
}

/// A value that was read.
#[derive(Debug, Clone, Copy)]
enum Read {
    /// Missing or null.
    Null,
    /// A value of which nothing is stored: of a type that the plan does not expect there, or without anything that matters.
    Other,
    /// A stored node. `says`: a member or a discriminator is set in it.
    Node { at: u32, says: bool },
}

impl Projection<'_> {
    /// Whether the object was a JSON object at all.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.root, Read::Node { .. })
    }

    /// Whether it was missing or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.root, Read::Null)
    }

    /// `metadata.name`, empty where there is none.
    pub(crate) fn name(&self) -> &str {
        match self.name.map(|name| self.shapes.scalar(name)) {
            Some(Scalar::Text(name)) => name,
            Some(Scalar::Absent | Scalar::Literal(_) | Scalar::Unfit) | None => "",
        }
    }

    pub(super) fn root(&self) -> Option<Shape<'_>> {
        match self.root {
            Read::Node { at, .. } => Some(Shape { shapes: &self.shapes, at }),
            Read::Null | Read::Other => None,
        }
    }
}

/// Reads a [`Projection`] from any place in a JSON text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectionSeed<'p, 'a> {
    plan: &'p Plan,
    part: Part,
    text: &'a str,
    meter: &'a dyn Meter,
}

impl<'p, 'a> ProjectionSeed<'p, 'a> {
    /// Reads what `plan` names of one part of an object that stands in `text`.
    pub(crate) fn new(plan: &'p Plan, part: Part, text: &'a str, meter: &'a dyn Meter) -> Self {
        Self { plan, part, text, meter }
    }
}

impl<'de> DeserializeSeed<'de> for ProjectionSeed<'_, 'de> {
    type Value = Projection<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Self { plan, part, text, meter } = self;
        let mut reader = Reader {
            plan,
            meter,
            shapes: Shapes::new(text, meter),
            states: Buffer::new(meter),
            children: Buffer::new(meter),
            children_read: 0,
            keys: Buffer::new(meter),
            name: None,
        };
        let node = plan.root(part).and_then(|id| plan.node(id));
        let root = ShapeSeed { reader: &mut reader, node, place: Place::Root }.deserialize(deserializer)?;
        let Reader { shapes, name, .. } = reader;
        Ok(Projection { shapes, root, name })
    }
}

/// What is read so far. The scratch space of objects that are not complete yet is bounded by the plan, but for fields that
/// stand twice, and charged like everything else.
struct Reader<'p, 'a> {
    plan: &'p Plan,
    meter: &'a dyn Meter,
    shapes: Shapes<'a>,
    states: Buffer<'a, StateDraft>,
    children: Buffer<'a, ChildDraft>,
    children_read: u32,
    keys: Buffer<'a, (u32, Stored)>,
    name: Option<Stored>,
}

#[derive(Clone, Copy)]
struct StateDraft {
    position: u8,
    discriminator: Option<Stored>,
    members: MemberSet,
}

#[derive(Clone, Copy)]
struct ChildDraft {
    position: u32,
    /// Of two with one position the one with the higher order counts.
    order: u32,
    node: Option<u32>,
    says: bool,
}

/// The place of a value in what holds it.
#[derive(Clone, Copy)]
enum Place {
    Root,
    Field,
    Item(u32),
    Entry(Stored),
}

impl<'a> Reader<'_, 'a> {
    /// The draft of one of the unions of the object whose drafts begin at `first`.
    fn state(&mut self, first: usize, position: u8) -> Result<&mut StateDraft, Exhausted> {
        let known = self.states.iter().skip(first).position(|draft| draft.position == position);
        let at = if let Some(known) = known {
            first.saturating_add(known)
        } else {
            self.states.push(StateDraft { position, discriminator: None, members: MemberSet::EMPTY })?;
            self.states.len().saturating_sub(1)
        };
        self.states.get_mut(at).ok_or(Exhausted)
    }

    /// Of a field that stands twice, the last one counts, as it does for the API server.
    fn put_child(&mut self, first: usize, position: u32, read: Read) -> Result<(), Exhausted> {
        let (node, says) = match read {
            Read::Node { at, says } => (Some(at), says),
            Read::Null | Read::Other => (None, false),
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

    fn put_key(&mut self, first: usize, position: u32, key: Option<Stored>) -> Result<(), Exhausted> {
        let known = self.keys.iter().skip(first).position(|(known, _)| *known == position);
        if let Some(known) = known {
            // The last one takes its place.
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

    fn begin(&mut self, place: Place) -> Result<u32, Exhausted> {
        match place {
            Place::Root | Place::Field => {}
            Place::Item(index) => self.shapes.push_item(index)?,
            Place::Entry(key) => self.shapes.push_entry(key, true)?,
        }
        self.shapes.end()
    }

    /// Stores an object from the drafts since `first`, which are gone then. `None`: it has more fields than can be stored.
    fn store_object(&mut self, place: Place, first: Drafts) -> Result<Option<Read>, Exhausted> {
        let says = self.settle(first);
        let counts =
            (self.states.len() - first.states, self.keys.len() - first.keys, self.children.len() - first.children);
        let Some(head) = object_head(counts.0, counts.1, counts.2) else { return Ok(None) };
        let at = self.begin(place)?;
        let Self { shapes, states, children, keys, .. } = self;
        shapes.push(&[head])?;
        for (position, key) in keys.iter().skip(first.keys) {
            shapes.push_key(*position, *key)?;
        }
        for draft in states.iter().skip(first.states) {
            shapes.push_state(draft.position, draft.discriminator, draft.members)?;
        }
        for draft in children.iter().skip(first.children) {
            shapes.push(&[draft.position, draft.node.unwrap_or(NONE)])?;
        }
        keys.truncate(first.keys);
        states.truncate(first.states);
        children.truncate(first.children);
        Ok(Some(Read::Node { at, says }))
    }

    /// Sorts the drafts of an object and drops those that say nothing. Returns whether a member or a discriminator is set.
    fn settle(&mut self, first: Drafts) -> bool {
        let Self { states, children, keys, shapes, .. } = self;
        let own = keys.get_mut(first.keys..).unwrap_or_default();
        own.sort_unstable_by_key(|(position, _)| *position);
        if own.iter().any(|(_, key)| shapes.scalar(*key) == Scalar::Unfit) {
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

    /// Stores a discriminator or key; `None` for null.
    fn scalar(&mut self, raw: &'a RawValue) -> Result<Option<Stored>, Exhausted> {
        let text = raw.get();
        Ok(Some(match text.as_bytes().first() {
            Some(b'"') if !text.as_bytes().contains(&b'\\') => {
                self.shapes.store_text(text.get(1..text.len().saturating_sub(1)).unwrap_or_default())?
            }
            Some(b'"') => self.unescaped(text)?,
            Some(b'[' | b'{') => Stored::UNFIT,
            _ if text == "null" => return Ok(None),
            _ => self.shapes.store_literal(text)?,
        }))
    }

    fn unescaped(&mut self, text: &str) -> Result<Stored, Exhausted> {
        // The reader of JSON unescapes into a buffer of its own, which doubles.
        let scratch = text.len().saturating_mul(2);
        self.meter.charge(scratch)?;
        let mut string = serde_json::Deserializer::from_str(text);
        let stored = TextSeed(&mut self.shapes).deserialize(&mut string);
        drop(string);
        self.meter.release(scratch);
        match stored {
            Ok(stored) => stored,
            // With lone surrogates it is not Unicode: it stands for itself as it is written, quotes included, and so for a
            // value that nobody declared.
            Err(_) => self.shapes.store_text(text),
        }
    }
}

/// Keeps the items of a sorted slice that `keep` holds for, given the one after, at its beginning. Returns their number.
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

/// Where the drafts of an object begin.
#[derive(Clone, Copy)]
struct Drafts {
    states: usize,
    children: usize,
    keys: usize,
}

/// Reads what stands at one node of the plan. Recursion is bounded by the plan's depth, never by the text's.
struct ShapeSeed<'r, 'p, 'a> {
    reader: &'r mut Reader<'p, 'a>,
    /// `None` where the plan names nothing: whether it is an object is all that counts.
    node: Option<&'p Node>,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for ShapeSeed<'_, '_, 'de> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ShapeSeed<'_, '_, 'de> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Read::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Read::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Read::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Read::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Read::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Read::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if let Some(Node::List(node)) = self.node {
            return self.read_list(node, list);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Read::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.node {
            Some(Node::Object(node)) => self.read_object(node, map),
            Some(Node::Map(values)) => self.read_map(*values, map),
            other => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                if other.is_some() {
                    return Ok(Read::Other);
                }
                let Self { reader, place, .. } = self;
                let empty =
                    Drafts { states: reader.states.len(), children: reader.children.len(), keys: reader.keys.len() };
                Ok(reader.store_object(place, empty).map_err(A::Error::custom)?.unwrap_or(Read::Other))
            }
        }
    }
}

impl<'p, 'de> ShapeSeed<'_, 'p, 'de> {
    fn read_object<A: MapAccess<'de>>(self, node: &'p ObjectNode, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, place, .. } = self;
        let first = Drafts { states: reader.states.len(), children: reader.children.len(), keys: reader.keys.len() };
        let is_root = matches!(place, Place::Root);
        while let Some(key) = map.next_key_seed(FieldSeed { node, is_root })? {
            let field = match key {
                Field::Planned(position) => node.fields.get(position).map(|field| (position, field)),
                Field::Metadata => {
                    reader.name = map.next_value_seed(MetadataSeed(&mut *reader))?;
                    continue;
                }
                Field::Other => None,
            };
            let Some((position, field)) = field else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let present = if let Some(child) = field.child {
                let node = reader.plan.node(child);
                let read = map.next_value_seed(ShapeSeed { reader: &mut *reader, node, place: Place::Field })?;
                let position = u32::try_from(position).map_err(A::Error::custom)?;
                reader.put_child(first.children, position, read).map_err(A::Error::custom)?;
                !matches!(read, Read::Null)
            } else if field.key.is_none() && matches!(field.role, Role::Member { .. }) {
                map.next_value::<Option<IgnoredAny>>()?.is_some()
            } else {
                let scalar = reader.scalar(map.next_value::<&RawValue>()?).map_err(A::Error::custom)?;
                if let Some(key) = field.key {
                    reader.put_key(first.keys, key.into(), scalar).map_err(A::Error::custom)?;
                }
                if let Role::Discriminator { union } = field.role {
                    reader.state(first.states, union).map_err(A::Error::custom)?.discriminator = scalar;
                }
                scalar.is_some()
            };
            if let Role::Member { union, index } = field.role {
                reader.state(first.states, union).map_err(A::Error::custom)?.members.put(index, present);
            }
        }
        let stored = reader.store_object(place, first).map_err(A::Error::custom)?;
        stored.ok_or_else(|| A::Error::custom("an object has too many fields that lead to unions"))
    }

    fn read_list<A: SeqAccess<'de>>(self, node: &ListNode, mut items: A) -> Result<Read, A::Error> {
        let Self { reader, place, .. } = self;
        let item = reader.plan.node(node.items);
        let (mut first, mut last, mut count, mut list_says) = (NONE, NONE, 0_u32, false);
        for index in 0.. {
            let (start, side) = (reader.shapes.end().map_err(A::Error::custom)?, reader.shapes.side_end());
            let seed = ShapeSeed { reader: &mut *reader, node: item, place: Place::Item(index) };
            let Some(read) = items.next_element_seed(seed)? else { break };
            match read {
                // Items of keyed lists are paired, those that say nothing included. Others are only searched.
                Read::Node { at, says } if says || (node.keyed && reader.shapes.has_keys(at)) => {
                    let record = at.saturating_sub(ITEM);
                    if last == NONE {
                        first = record;
                    } else {
                        reader.shapes.link(last, record);
                    }
                    last = record;
                    count = count.saturating_add(1);
                    list_says |= says;
                }
                Read::Node { .. } | Read::Null | Read::Other => reader.shapes.truncate(start, side),
            }
        }
        if first == NONE {
            return Ok(Read::Other);
        }
        let at = reader.begin(place).map_err(A::Error::custom)?;
        reader.shapes.push(&[first, count]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: list_says })
    }

    fn read_map<A: MapAccess<'de>>(self, values: NodeId, mut map: A) -> Result<Read, A::Error> {
        let Self { reader, place, .. } = self;
        let node = reader.plan.node(values);
        let (start, side) = (reader.shapes.end().map_err(A::Error::custom)?, reader.shapes.side_end());
        let (mut first, mut last, mut sorted, mut map_says) = (NONE, NONE, true, false);
        while let Some(key) = map.next_key_seed(TextSeed(&mut reader.shapes))? {
            let key = key.map_err(A::Error::custom)?;
            let read = map.next_value_seed(ShapeSeed { reader: &mut *reader, node, place: Place::Entry(key) })?;
            let entry = match read {
                Read::Node { at, says } => {
                    map_says |= says;
                    at.saturating_sub(ENTRY)
                }
                // It may stand in the place of one that was read before.
                Read::Null | Read::Other => {
                    let end = reader.shapes.end().map_err(A::Error::custom)?;
                    reader.shapes.push_entry(key, false).map_err(A::Error::custom)?;
                    end
                }
            };
            if last == NONE {
                first = entry;
            } else {
                sorted &= reader.shapes.entry_key(last) < reader.shapes.entry_key(entry);
                reader.shapes.link(last, entry);
            }
            last = entry;
        }
        let first = reader.shapes.settle_entries(first, sorted);
        if first == NONE {
            reader.shapes.truncate(start, side);
            return Ok(Read::Other);
        }
        let at = reader.begin(place).map_err(A::Error::custom)?;
        reader.shapes.push(&[first]).map_err(A::Error::custom)?;
        Ok(Read::Node { at, says: map_says })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use crate::union::meter::Unmetered;
    use serde_json::json;

    fn plan() -> Plan {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"type": {"type": "string"}, "a": {"type": "object"}, "b": {"type": "object"}},
                "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}}))
        .unwrap();
        super::super::compile(&schema, false).plan
    }

    fn spec_of(text: &str) -> Option<(String, Vec<u8>)> {
        let plan = plan();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = ProjectionSeed::new(&plan, Part::Main, text, &Unmetered);
        let projection = seed.deserialize(&mut deserializer).unwrap();
        let (_, spec) = projection.root()?.object().children().next()?;
        let state = spec.object().state(0);
        Some((state.value().to_owned(), state.members.iter().collect()))
    }

    #[test]
    fn reads_presence_and_discriminator_and_nothing_else() {
        assert_eq!(spec_of(r#"{"x": [1], "spec": {"type": "A", "a": 0, "b": null}}"#), Some(("A".into(), vec![0])));
        assert_eq!(spec_of(r#"{"spec": {"type": 5, "b": ""}}"#), Some((String::new(), vec![1])));
        assert_eq!(spec_of(r#"{"spec": {"\u0061": {}, "t\u0079pe": "\u0041"}}"#), Some(("A".into(), vec![0])));
        assert_eq!(spec_of(r#"{"spec": null}"#), None);
        assert_eq!(spec_of(r#"{"spec": [1, {"a": 1}]}"#), None);
    }

    #[test]
    fn of_a_field_that_stands_twice_the_last_counts() {
        assert_eq!(spec_of(r#"{"spec": {"a": 1, "a": null, "b": null, "b": 1}}"#), Some((String::new(), vec![1])));
        assert_eq!(spec_of(r#"{"spec": {"a": 1}, "spec": {"b": 1}}"#), Some((String::new(), vec![1])));
    }

    #[test]
    fn what_is_skipped_may_be_of_any_depth_and_any_size() {
        let deep = "[".repeat(9000) + &"]".repeat(9000);
        let text = format!(r#"{{"spec": {{"a": {deep}, "x": 123456789012345678901234567890}}}}"#);
        assert_eq!(spec_of(&text), Some((String::new(), vec![0])));
        let lone = r#"{"spec": {"\ud800": 1, "a": "\ud800", "type": "\ud800"}}"#;
        assert_eq!(spec_of(lone), Some((r#""\ud800""#.to_owned(), vec![0])));
    }

    #[derive(Debug, Default)]
    struct Counting(std::cell::Cell<usize>);

    impl Meter for Counting {
        fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
            self.0.set(self.0.get() + bytes);
            Ok(())
        }

        fn release(&self, bytes: usize) {
            self.0.set(self.0.get() - bytes);
        }
    }

    #[test]
    fn a_projection_takes_four_and_a_half_bytes_at_most_for_a_byte_of_text() {
        let members: serde_json::Map<_, _> = (0..128).map(|at| (format!("m{at}"), json!({}))).collect();
        let values: serde_json::Map<_, _> = (0..128).map(|at| (format!("m{at}"), json!(format!("M{at}")))).collect();
        let mut union = json!({"type": "object", "properties": members, "x-kubernetes-unions": [
            {"discriminator": "t", "fields-to-discriminateBy": values}]});
        union["properties"]["t"] = json!({"type": "string"});
        union["properties"]["k"] = json!({"type": "string"});
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "list": {"type": "array", "items": union},
            "lists": {"type": "array", "items": {"type": "array", "items": union}},
            "map": {"type": "object", "additionalProperties": union},
            "keyed": {"type": "array", "items": union, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}))
        .unwrap();
        let plan = super::super::compile(&schema, false).plan;
        for (place, item) in [
            (r#""list":["#, "{}"),
            (r#""list":["#, "0"),
            (r#""list":["#, r#"{"t":0}"#),
            (r#""list":["#, r#"{"m9":1}"#),
            (r#""list":["#, r#"{"m127":1,"m0":1,"m64":1,"m33":1}"#),
            (r#""lists":["#, "[]"),
            (r#""lists":["#, r#"[{"m9":1}]"#),
            (r#""map":{"#, r#""":{}"#),
            (r#""map":{"#, r#""":0"#),
            (r#""map":{"#, r#""a":{"m9":1}"#),
            (r#""keyed":["#, r#"{"k":0}"#),
            (r#""keyed":["#, r#"{"k":"","m9":1}"#),
        ] {
            let close = if place.ends_with('[') { "]" } else { "}" };
            let text = format!("{{{place}{}{close}}}", vec![item; 100_000].join(","));
            let meter = Counting::default();
            let seed = ProjectionSeed::new(&plan, Part::Main, &text, &meter);
            let projection = seed.deserialize(&mut serde_json::Deserializer::from_str(&text)).unwrap();
            let charged = meter.0.get();
            assert!(2 * charged <= 9 * text.len(), "{item}: {charged} bytes for {}", text.len());
            drop(projection);
            assert_eq!(meter.0.get(), 0, "all of it is released");
        }
    }
}
