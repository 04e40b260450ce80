//! The names of fields, and the keys of maps.

use crate::meter::Exhausted;
use crate::union::plan::ObjectNode;
use crate::union::shape::{Shapes, Stored};
use serde::de::{DeserializeSeed, Deserializer, Visitor};
use std::fmt;

/// The name of a field, looked up.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// The position in the plan's node.
    Planned(usize),
    /// The root's `metadata`, of which the plan names nothing.
    Metadata,
    Other,
}

/// Reads the name of a field as bytes, which need not be Unicode, and looks it up.
pub(super) struct FieldSeed<'p> {
    pub(super) node: &'p ObjectNode,
    pub(super) is_root: bool,
}

impl FieldSeed<'_> {
    fn field(&self, name: &[u8]) -> Field {
        match self.node.position(name) {
            Some(position) => Field::Planned(position),
            None if self.is_root && name == b"metadata" => Field::Metadata,
            None => Field::Other,
        }
    }
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.field(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.field(name.as_bytes()))
    }
}

/// Reads a string into an arena: as a part of the body where it has no escapes, else beside it.
pub(super) struct TextSeed<'r, 'a>(pub(super) &'r mut Shapes<'a>);

impl<'de> DeserializeSeed<'de> for TextSeed<'_, '_> {
    type Value = Result<Stored, Exhausted>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_, '_> {
    type Value = Result<Stored, Exhausted>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.0.store_text(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.store_beside(text))
    }
}
