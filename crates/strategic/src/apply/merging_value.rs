//! Values into which patches are being merged.

use crate::value::{MapEntry, Value};
use bumpalo::Bump;
use hashbrown::HashMap;

/// A value into which patches may be merged.
#[derive(Debug)]
pub(super) enum MergingValue<'a> {
    /// As it is in a document or in the arena.
    Closed(Value<'a>),
    Open(Box<OpenObject<'a>>),
}

/// An object into which patches are being merged. A patch costs its own size, not the size of the object, so many patches of one
/// object stay linear.
#[derive(Debug, Default)]
pub(super) struct OpenObject<'a> {
    /// The fields in order, `None` for a removed one.
    fields: Vec<(&'a str, Option<MergingValue<'a>>)>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> MergingValue<'a> {
    /// Opens an object. `None` for another value.
    pub(super) fn open(&mut self) -> Option<&mut OpenObject<'a>> {
        if let Self::Closed(Value::Map(entries)) = self {
            *self = Self::Open(Box::new(OpenObject::of(entries)));
        }
        if let Self::Open(object) = self { Some(object) } else { None }
    }

    /// Stores an open object in the arena. Returns the value.
    pub(super) fn close(&mut self, arena: &'a Bump) -> Value<'a> {
        let value = match self {
            Self::Closed(value) => *value,
            Self::Open(object) => object.close(arena),
        };
        *self = Self::Closed(value);
        value
    }
}

impl<'a> OpenObject<'a> {
    pub(super) fn of(entries: &[MapEntry<'a>]) -> Self {
        let fields: Vec<_> = entries.iter().map(|(key, value)| (*key, Some(MergingValue::Closed(*value)))).collect();
        let positions = positions(&fields);
        Self { fields, positions }
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut MergingValue<'a>> {
        self.fields.get_mut(*self.positions.get(key)?)?.1.as_mut()
    }

    /// Sets a field, or removes it.
    pub(super) fn set(&mut self, key: &'a str, value: Option<Value<'a>>) {
        match (
            self.positions.get(key).and_then(|position| self.fields.get_mut(*position)),
            value.map(MergingValue::Closed),
        ) {
            (Some((_, field @ Some(_))), value) => *field = value,
            (_, None) => {}
            (_, value) => {
                self.positions.insert(key, self.fields.len());
                self.fields.push((key, value));
            }
        }
    }

    /// Removes the fields that are not to be kept.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.fields.retain(|(key, value)| value.is_some() && keep(key));
        self.positions = positions(&self.fields);
    }

    pub(super) fn close(&mut self, arena: &'a Bump) -> Value<'a> {
        let fields = self.fields.iter_mut();
        let entries: Vec<_> = fields.filter_map(|(key, part)| Some((*key, part.as_mut()?.close(arena)))).collect();
        Value::map_in(arena, &entries)
    }
}

fn positions<'a>(fields: &[(&'a str, Option<MergingValue<'a>>)]) -> HashMap<&'a str, usize> {
    fields.iter().enumerate().map(|(position, (key, _))| (*key, position)).collect()
}
