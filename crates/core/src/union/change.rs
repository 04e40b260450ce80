//! The changes of normalisation, in a compact form: an object can have a change for every few bytes of its text.

use super::Union;
use super::plan::{Node, NodeIndex, Plan};
use super::violation::shown;
use crate::field_path::{FieldPath, Printable, Segment};
use crate::json_patch::PatchOperation;
use crate::meter::{Buffer, Exhausted, Meter};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Longest discriminator value that a change displays, in bytes.
const LONGEST_VALUE: usize = 64;

/// A change of normalisation. Displays as a sentence with no value except the discriminator's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The field that changes.
    pub path: FieldPath,
    /// The kind of change and its reason.
    pub reason: ChangeReason,
}

/// The kind of a change and its reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeReason {
    /// A member is cleared because the discriminator was changed to a value that does not select it.
    ClearedByDiscriminator {
        /// The name of the discriminator.
        discriminator: Arc<str>,
        /// Its new value, cut if it is long.
        value: Arc<str>,
    },
    /// A member is cleared because another member was set.
    ClearedByMember {
        /// The member that was set.
        member: Arc<str>,
    },
    /// The discriminator is set because a member is set.
    Deduced {
        /// The new value of the discriminator.
        value: Arc<str>,
        /// The member that is set.
        member: Arc<str>,
        /// True if the discriminator is a boolean.
        boolean: bool,
    },
}

impl Change {
    /// Returns the patch operation that makes the change.
    pub fn operation(&self) -> PatchOperation {
        match &self.reason {
            ChangeReason::ClearedByDiscriminator { .. } | ChangeReason::ClearedByMember { .. } => {
                PatchOperation::Remove(self.path.clone())
            }
            ChangeReason::Deduced { value, boolean, .. } => {
                let value = if *boolean { (&**value == "true").into() } else { (&**value).into() };
                PatchOperation::Set(self.path.clone(), value)
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl fmt::Display for ChangeReason {
    /// Displays the reason without the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClearedByDiscriminator { discriminator, value } => {
                let value = Printable::new(value, LONGEST_VALUE);
                write!(f, "cleared because `{discriminator}` changed to \"{value}\"")
            }
            Self::ClearedByMember { member } => write!(f, "cleared because `{member}` was set"),
            Self::Deduced { value, member, .. } => write!(f, "set to \"{value}\" because `{member}` is set"),
        }
    }
}

/// The changes of an object, in the order of paths. Names and values are shared with the plan.
#[derive(Debug, Default)]
pub struct Changes {
    plan: Option<Arc<Plan>>,
    places: Vec<u32>,
    text: Vec<u8>,
    records: Vec<Record>,
    cleared: usize,
}

/// A change in compact form.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// The place of the object with the union.
    place: u32,
    /// The position of the union in the plan.
    union: u32,
    /// The offset of the new value of the discriminator.
    value: u32,
    value_length: u8,
    member: u8,
    reason: ReasonCode,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ReasonCode {
    ClearedByDiscriminator,
    ClearedByMember(u8),
    Deduced,
}

impl Changes {
    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the number of members that are cleared.
    pub fn cleared(&self) -> usize {
        self.cleared
    }

    /// Returns the bytes that are charged for the changes.
    pub(super) fn memory(&self) -> usize {
        let records = self.records.capacity().saturating_mul(size_of::<Record>());
        let places = self.places.capacity().saturating_mul(size_of::<u32>());
        records.saturating_add(places).saturating_add(self.text.capacity())
    }

    /// Returns the changes, built one at a time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Change> {
        self.records.iter().map(|record| self.change(*record))
    }

    /// Returns true for each change that clears a member, without building the change.
    pub(crate) fn clears(&self) -> impl Iterator<Item = bool> {
        self.records.iter().map(|record| !matches!(record.reason, ReasonCode::Deduced))
    }

    pub(crate) fn get(&self, position: usize) -> Option<Change> {
        self.records.get(position).map(|record| self.change(*record))
    }

    fn change(&self, record: Record) -> Change {
        let union = self.union(record.union);
        let discriminator = || union.and_then(|union| union.discriminator.clone()).unwrap_or_default();
        let member =
            |index: u8| union.and_then(|union| union.member(index)).map(|it| Arc::clone(&it.name)).unwrap_or_default();
        let (field, reason) = match record.reason {
            ReasonCode::ClearedByDiscriminator => {
                let value = self.text(record.value, record.value_length.into()).into();
                let reason = ChangeReason::ClearedByDiscriminator { discriminator: discriminator(), value };
                (member(record.member), reason)
            }
            ReasonCode::ClearedByMember(other) => {
                (member(record.member), ChangeReason::ClearedByMember { member: member(other) })
            }
            ReasonCode::Deduced => {
                let value = union.and_then(|union| union.values_of(record.member).first()).cloned().unwrap_or_default();
                let boolean = union.is_some_and(Union::is_boolean);
                (discriminator(), ChangeReason::Deduced { value, member: member(record.member), boolean })
            }
        };
        let mut path = self.path(record.place);
        path.push(Segment::Field((*field).into()));
        Change { path, reason }
    }

    fn path(&self, place: u32) -> FieldPath {
        let mut segments = Vec::new();
        let mut at = place;
        while at != ROOT {
            debug_assert!(index(at) + 1 < self.places.len(), "a place outside the buffer");
            let word = |offset: u32| self.places.get(index(at.saturating_add(offset))).copied().unwrap_or_default();
            segments.push(match word(1) >> TAG {
                FIELD => Segment::Field(self.field_name(word(2), word(1) & NUMBER).into()),
                INDEX => Segment::Index(index(word(1) & NUMBER)),
                _ => Segment::Key(self.text(word(2), word(1) & NUMBER).into()),
            });
            at = word(0);
        }
        segments.into_iter().rev().collect()
    }

    fn field_name(&self, node: NodeIndex, position: u32) -> &str {
        match self.plan.as_ref().and_then(|plan| plan.node(node)) {
            Some(Node::Object(node)) => node.fields.get(index(position)).map_or("", |field| &*field.name),
            Some(Node::List(_) | Node::Map(_)) | None => "",
        }
    }

    fn union(&self, ordinal: u32) -> Option<&Union> {
        self.plan.as_ref()?.unions.get(index(ordinal))
    }

    fn text(&self, offset: u32, length: u32) -> &str {
        let range = index(offset)..index(offset).saturating_add(index(length));
        let text = self.text.get(range).and_then(|text| str::from_utf8(text).ok());
        debug_assert!(text.is_some(), "a text outside the buffer");
        text.unwrap_or_default()
    }
}

/// The place of the root.
const ROOT: u32 = u32::MAX;

// A place is stored as the enclosing place and a step. The two highest bits of the step are its tag. A field has its
// position and its node, an item its index, an entry the length and the offset of its key.
const TAG: u32 = 30;
const NUMBER: u32 = (1 << TAG) - 1;
const FIELD: u32 = 0;
const INDEX: u32 = 1;
const KEY: u32 = 2;

/// The position of a walk. Its place is stored with the first change there.
#[derive(Debug)]
pub(super) struct Here<'t> {
    around: Option<(&'t Here<'t>, Inwards<'t>)>,
    place: Cell<Option<u32>>,
}

/// A step of the walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inwards<'t> {
    Field { node: NodeIndex, position: u32, name: &'t str },
    Index(u32),
    Key(&'t str),
}

impl<'t> Here<'t> {
    pub(super) fn root() -> Self {
        Self { around: None, place: Cell::new(Some(ROOT)) }
    }

    pub(super) fn then(&'t self, step: Inwards<'t>) -> Self {
        Self { around: Some((self, step)), place: Cell::new(None) }
    }

    /// Returns the steps, innermost first.
    fn outwards(&self) -> impl Iterator<Item = Inwards<'t>> {
        std::iter::successors(self.around, |(here, _)| here.around).map(|(_, step)| step)
    }

    /// Returns the path of this position.
    pub(super) fn path(&self) -> FieldPath {
        let segments = self.outwards().map(|step| match step {
            Inwards::Field { name, .. } => Segment::Field(name.into()),
            Inwards::Index(at) => Segment::Index(index(at)),
            Inwards::Key(key) => Segment::Key(key.into()),
        });
        let mut segments: Vec<_> = segments.collect();
        segments.reverse();
        segments.into_iter().collect()
    }

    /// Returns the path of a field of the object at this position.
    pub(super) fn path_of_field(&self, name: &str) -> FieldPath {
        let mut path = self.path();
        path.push(Segment::Field(name.into()));
        path
    }

    /// Returns an upper bound of the bytes that the path of a field takes.
    pub(super) fn size_of_field(&self, name: &str) -> usize {
        let (mut names, mut steps) = (name.len(), 2_usize);
        for step in self.outwards() {
            steps = steps.saturating_add(1);
            names = names.saturating_add(match step {
                Inwards::Field { name, .. } | Inwards::Key(name) => name.len(),
                Inwards::Index(_) => 0,
            });
        }
        // A growing vector doubles its capacity.
        names.saturating_add(steps.saturating_mul(2 * size_of::<Segment>()))
    }
}

/// A recorder of changes.
#[derive(Debug)]
pub(super) struct Recorder<'m> {
    places: Buffer<'m, u32>,
    text: Buffer<'m, u8>,
    records: Buffer<'m, Record>,
    /// The place, union, offset and length of the last discriminator value. The members of one union share it.
    last_value: Option<(u32, u32, u32, u8)>,
    cleared: usize,
}

impl<'m> Recorder<'m> {
    pub(super) fn new(meter: &'m dyn Meter) -> Self {
        let (places, text, records) = (Buffer::new(meter), Buffer::new(meter), Buffer::new(meter));
        Self { places, text, records, last_value: None, cleared: 0 }
    }

    /// Records a change of a union, given by its position in the plan. `value` is the new value of the discriminator.
    pub(super) fn record(
        &mut self,
        here: &Here<'_>,
        union: u32,
        member: u8,
        reason: ReasonCode,
        value: &str,
    ) -> Result<(), Exhausted> {
        let place = self.place(here)?;
        let (value, value_length) = match reason {
            ReasonCode::ClearedByDiscriminator => self.value(place, union, value)?,
            ReasonCode::ClearedByMember(_) | ReasonCode::Deduced => (0, 0),
        };
        self.cleared = self.cleared.saturating_add((!matches!(reason, ReasonCode::Deduced)).into());
        self.records.push(Record { place, union, value, value_length, member, reason })
    }

    pub(super) fn finish(self, plan: &Arc<Plan>) -> Changes {
        let Self { places, text, records, cleared, .. } = self;
        let plan = Some(Arc::clone(plan));
        Changes { plan, places: places.keep(), text: text.keep(), records: records.keep(), cleared }
    }

    fn value(&mut self, place: u32, union: u32, value: &str) -> Result<(u32, u8), Exhausted> {
        if let Some((_, _, offset, length)) = self.last_value.filter(|last| (last.0, last.1) == (place, union)) {
            return Ok((offset, length));
        }
        let (offset, length) = self.store_text(shown(value))?;
        let length = u8::try_from(length).map_err(|_| Exhausted)?;
        self.last_value = Some((place, union, offset, length));
        Ok((offset, length))
    }

    fn place(&mut self, here: &Here<'_>) -> Result<u32, Exhausted> {
        if let Some(place) = here.place.get() {
            return Ok(place);
        }
        let Some((around, step)) = here.around else { return Ok(ROOT) };
        // The depth of the plan bounds the recursion.
        let around = self.place(around)?;
        let place = u32::try_from(self.places.len()).map_err(|_| Exhausted)?;
        match step {
            Inwards::Field { node, position, .. } => self.places.extend(&[around, FIELD << TAG | position, node])?,
            Inwards::Index(at) => self.places.extend(&[around, INDEX << TAG | at])?,
            Inwards::Key(key) => {
                let (offset, length) = self.store_text(key)?;
                self.places.extend(&[around, KEY << TAG | length, offset])?;
            }
        }
        here.place.set(Some(place));
        Ok(place)
    }

    fn store_text(&mut self, text: &str) -> Result<(u32, u32), Exhausted> {
        let offset = u32::try_from(self.text.len()).map_err(|_| Exhausted)?;
        self.text.extend(text.as_bytes())?;
        Ok((offset, u32::try_from(text.len()).map_err(|_| Exhausted)?))
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
