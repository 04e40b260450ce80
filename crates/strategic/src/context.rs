//! The inputs that every step of every operation shares.

use crate::error::BrokenAt;
use crate::schema::MergeSchema;
use crate::value::{MapEntry, Value};
use bumpalo::Bump;
use kube_unions_core::field_path::Segment;
use std::cell::RefCell;

/// The schema, the arena that owns intermediate values, and the options of one operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) schema: &'a MergeSchema,
    pub(crate) arena: &'a Bump,
    /// Refuse what the format otherwise decides by the order of items.
    pub(crate) strict: bool,
    /// The objects so far that `$patch: delete` left without fields.
    pub(crate) emptied: &'a Emptied,
}

/// The places of objects that `$patch: delete` left without fields.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    /// The steps of each place from the object upwards.
    places: RefCell<Vec<Vec<Segment>>>,
}

impl<'a> Context<'a> {
    /// Stores an object in the arena.
    pub(crate) fn map(&self, entries: &[MapEntry<'a>]) -> Value<'a> {
        Value::map_in(self.arena, entries)
    }

    /// Stores a list in the arena.
    pub(crate) fn list(&self, items: &[Value<'a>]) -> Value<'a> {
        Value::list_in(self.arena, items)
    }

    /// Does something one step below. Adds the step to the place of an error and of each object that is emptied there.
    pub(crate) fn below<T>(
        &self,
        step: impl Fn() -> Segment,
        work: impl FnOnce() -> Result<T, BrokenAt>,
    ) -> Result<T, BrokenAt> {
        let before = self.emptied.places.borrow().len();
        let done = work().map_err(|broken| broken.inside(step()));
        for place in self.emptied.places.borrow_mut().iter_mut().skip(before) {
            place.push(step());
        }
        done
    }
}

impl Emptied {
    /// Adds the object at hand.
    pub(crate) fn add(&self) {
        self.places.borrow_mut().push(Vec::new());
    }

    /// Returns the steps of each place from the root downwards.
    pub(crate) fn into_places(self) -> impl Iterator<Item = impl Iterator<Item = Segment>> {
        self.places.into_inner().into_iter().map(|place| place.into_iter().rev())
    }
}
