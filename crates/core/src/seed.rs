//! The parts of serde visitors that all readers of JSON texts share.

use serde::de::Visitor;
use std::fmt;

/// Makes a visitor a seed: the value is deserialized by a method, for example `deserialize_map`, with the visitor itself.
macro_rules! visit_as_seed {
    ([$($generics:tt)*] $visitor:ty, $method:ident) => {
        impl<'de, $($generics)*> serde::de::DeserializeSeed<'de> for $visitor {
            type Value = <Self as serde::de::Visitor<'de>>::Value;

            fn deserialize<D: serde::de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                deserializer.$method(self)
            }
        }
    };
}

pub(crate) use visit_as_seed;

/// Reads the name of a field and passes it to a function. Names are bytes, since they need not be Unicode.
pub(crate) struct NameSeed<F>(pub(crate) F);

visit_as_seed!([T, F: FnOnce(&[u8]) -> T] NameSeed<F>, deserialize_bytes);

impl<T, F: FnOnce(&[u8]) -> T> Visitor<'_> for NameSeed<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<T, E> {
        Ok((self.0)(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name.as_bytes()))
    }
}
