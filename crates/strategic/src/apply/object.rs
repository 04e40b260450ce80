//! Merges patches into one object: one patch, or those of the items of a list that have the same keys.
//!
//! All patches are merged in one pass, each by the fields that it names, so that many patches of one object cost their own size
//! and not each time that of the object. A field that merges is left to a level of its own, with all its patches. May not know
//! lists; see `keyed` for these.

use super::{Fate, Level, Opened, Out, Pending, Step, Work, fate, field_patches};
use crate::Context;
use crate::directive::{Retained, Whole, retained, whole};
use crate::error::Fault;
use crate::schema::NodeId;
use crate::settle::{Mode, settle};
use crate::value::{Entry, Fields, Value};
use hashbrown::HashMap;

/// Merges patches, in order, into an object.
pub(super) fn open<'a>(
    context: &Context<'a>,
    live: &'a [Entry<'a>],
    patches: &[&'a [Entry<'a>]],
    node: NodeId,
) -> Result<Opened<'a>, Fault> {
    let mut object = Object {
        node,
        fields: live.iter().map(|(key, value)| (*key, State::Is(*value))).collect(),
        lookup: Lookup::InOrder(Fields::of(live)),
        replaced: Vec::new(),
    };
    for (position, patch) in patches.iter().enumerate() {
        if position > 0 {
            object.index();
        }
        object.merge(context, patch)?;
    }
    Ok(object.finish(context))
}

/// An object while patches are merged into it.
struct Object<'a> {
    node: NodeId,
    /// The fields in order, those that are gone included.
    fields: Vec<(&'a str, State<'a>)>,
    lookup: Lookup<'a>,
    /// Fields that were to merge before a later patch took their place: their faults still count.
    replaced: Vec<(&'a str, Value<'a>, Work<'a>)>,
}

/// One field.
#[derive(Debug)]
enum State<'a> {
    Is(Value<'a>),
    Gone,
    Merges(Value<'a>, Work<'a>),
}

/// Finds fields that are there.
enum Lookup<'a> {
    /// Those of the object as it was.
    InOrder(Fields<'a>),
    Hashed(HashMap<&'a str, usize>),
}

impl<'a> Object<'a> {
    /// Finds fields by a hash table from now on, those that a patch added included.
    fn index(&mut self) {
        if matches!(self.lookup, Lookup::InOrder(_)) {
            self.compact(|_| true);
        }
    }

    /// Takes away the fields that are gone and those that are not to be kept.
    fn compact(&mut self, keep: impl Fn(&str) -> bool) {
        let mut fields = Vec::with_capacity(self.fields.len());
        for (key, state) in std::mem::take(&mut self.fields) {
            match state {
                State::Gone => {}
                state if keep(key) => fields.push((key, state)),
                State::Is(_) => {}
                State::Merges(live, work) => self.replaced.push((key, live, work)),
            }
        }
        self.lookup = Lookup::Hashed(fields.iter().enumerate().map(|(position, (key, _))| (*key, position)).collect());
        self.fields = fields;
    }

    fn merge(&mut self, context: &Context<'a>, patch: &'a [Entry<'a>]) -> Result<(), Fault> {
        match whole(patch)? {
            Some(Whole::Delete) => {
                self.compact(|_| false);
                return Ok(());
            }
            Some(Whole::Replace) => {
                let settled = settle(context, Value::Map(patch), Some(self.node), Mode::Literal)?;
                self.compact(|_| false);
                for (key, value) in settled.and_then(Value::entries).unwrap_or_default() {
                    self.add(key, State::Is(*value));
                }
                return Ok(());
            }
            None => {}
        }
        if let Some(retained) = retained(patch, &[])? {
            self.retain(&retained);
        }
        for (key, said) in field_patches(context, patch, self.node)? {
            let found = self.find(key);
            let live = found.and_then(|position| self.fields.get(position)).and_then(|(_, state)| state.value());
            let fate = fate(context, self.node, key, live, said)
                .map_err(|fault| fault.inside(context.meta.step(self.node, key)))?;
            let state = match fate {
                Fate::Kept => continue,
                Fate::Dropped => State::Gone,
                Fate::Set(value) => State::Is(value),
                Fate::Pending(live, work) => State::Merges(live, work),
            };
            match found {
                Some(position) => self.put(position, state),
                None if matches!(state, State::Gone) => {}
                None => self.add(key, state),
            }
        }
        Ok(())
    }

    fn retain(&mut self, retained: &Retained<'_>) {
        if matches!(self.lookup, Lookup::Hashed(_)) {
            self.compact(|key| retained.has(key));
            return;
        }
        // Places stay as they are, since the fields are found by them.
        for (key, state) in &mut self.fields {
            if !retained.has(key) {
                *state = State::Gone;
            }
        }
    }

    /// The position of a field that is there.
    fn find(&mut self, key: &str) -> Option<usize> {
        let position = match &mut self.lookup {
            Lookup::InOrder(fields) => fields.get(key)?.0,
            Lookup::Hashed(positions) => *positions.get(key)?,
        };
        self.fields.get(position).filter(|(_, state)| !matches!(state, State::Gone)).map(|_| position)
    }

    /// Puts a field in place of the one that is there, or merges both.
    fn put(&mut self, position: usize, state: State<'a>) {
        let Some((key, there)) = self.fields.get_mut(position) else { return };
        match (there, state) {
            (State::Merges(_, Work::Map(_, before)), State::Merges(_, Work::Map(_, patches))) => before.extend(patches),
            (State::Merges(_, Work::List(_, before)), State::Merges(_, Work::List(_, patches))) => {
                // Lists take their first patch from the end; `finish` turns them round.
                before.extend(patches);
            }
            (there, state) => {
                if let State::Merges(live, work) = std::mem::replace(there, state) {
                    self.replaced.push((key, live, work));
                }
            }
        }
    }

    fn add(&mut self, key: &'a str, state: State<'a>) {
        if let Lookup::Hashed(positions) = &mut self.lookup {
            positions.insert(key, self.fields.len());
        }
        self.fields.push((key, state));
    }

    fn finish(self, context: &Context<'a>) -> Opened<'a> {
        let mut out = Vec::with_capacity(self.fields.len());
        let mut pending = Vec::new();
        let node = self.node;
        let mut pend = |slot, key, live, mut work| {
            if let Work::List(_, patches) = &mut work {
                patches.reverse();
            }
            pending.push(Pending { slot, step: Step::Field(node, key), live, work });
        };
        for (key, live, work) in self.replaced {
            pend(Pending::NOWHERE, key, live, work);
        }
        for (key, state) in self.fields {
            match state {
                State::Gone => {}
                State::Is(value) => out.push((key, value)),
                State::Merges(live, work) => {
                    pend(out.len(), key, live, work);
                    out.push((key, Value::Null));
                }
            }
        }
        if pending.is_empty() {
            return Opened::Done(context.map(&out));
        }
        pending.reverse();
        Opened::Level(Level { out: Out::Map(out), pending })
    }
}

impl<'a> State<'a> {
    /// The value, or one of the same kind while the patches of before are still to merge.
    fn value(&self) -> Option<Value<'a>> {
        match self {
            Self::Is(value) => Some(*value),
            Self::Gone => None,
            Self::Merges(live @ (Value::Map(_) | Value::List(_)), _) => Some(*live),
            Self::Merges(..) => Some(Value::List(&[])),
        }
    }
}
