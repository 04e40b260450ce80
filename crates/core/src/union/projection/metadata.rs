//! Reads the name of an object from its metadata.

use super::reader::ProjectionReader;
use crate::union::shape::Stored;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Reads `name` from the metadata of an object.
pub(super) struct MetadataSeed<'r, 'p, 'a>(pub(super) &'r mut ProjectionReader<'p, 'a>);

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_, '_, 'de> {
    type Value = Option<Stored>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_, '_, 'de> {
    type Value = Option<Stored>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    ignore_scalars!(None);

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut name = None;
        while let Some(is_name) = map.next_key_seed(NameSeed)? {
            if is_name {
                name = self.0.scalar(map.next_value::<&RawValue>()?).map_err(A::Error::custom)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(name)
    }
}

/// Returns true if a key is `name`.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(name == b"name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(name == "name")
    }
}
