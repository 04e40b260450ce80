//! Reads the names of fields and the keys of maps.

use crate::meter::Exhausted;
use crate::union::arena::{Arena, TextRange};
use crate::union::plan::ObjectNode;
use serde::de::{DeserializeSeed, Deserializer, Visitor};
use std::fmt;

/// A field name after its lookup.
#[derive(Clone, Copy)]
pub(super) enum PlannedField {
    /// A field of the plan, by its position in the node.
    Planned(usize),
    /// The `metadata` of the root, which no plan names.
    Metadata,
    Other,
}

/// Looks up the name of a field. Names are bytes, since they need not be Unicode.
pub(super) struct FieldSeed<'p> {
    pub(super) node: &'p ObjectNode,
    pub(super) is_root: bool,
}

impl FieldSeed<'_> {
    fn field(&self, name: &[u8]) -> PlannedField {
        match self.node.position(name) {
            Some(position) => PlannedField::Planned(position),
            None if self.is_root && name == b"metadata" => PlannedField::Metadata,
            None => PlannedField::Other,
        }
    }
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = PlannedField;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = PlannedField;

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

/// Reads a string into the arena. A string without escapes is stored as a range of the body, others are copied.
pub(super) struct TextSeed<'r, 'a>(pub(super) &'r mut Arena<'a>);

impl<'de> DeserializeSeed<'de> for TextSeed<'_, '_> {
    type Value = Result<TextRange, Exhausted>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

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
