//! Reads single parts of a JSON text, and skips the rest.

use super::text::Text;
use crate::seed::{NameSeed, visit_as_seed};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Returns the value of a field of an object, the last one if the field occurs twice. Returns `None` if there is none, or if the
/// text is not an object.
pub(super) fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    NamedFieldSeed(name).deserialize(&mut serde_json::Deserializer::from_str(object)).ok()?
}

/// Calls a function for each item of a list, up to the first that is not JSON.
pub(super) fn for_each_item<'a>(list: &'a str, call: impl FnMut(&'a str)) {
    // The items after a broken one cannot be read.
    let _ = ItemsSeed(call).deserialize(&mut serde_json::Deserializer::from_str(list));
}

/// Returns a string, `None` if the text is not one. A string with escapes must be short.
pub(super) fn string(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(text).ok().map(|text| text.0)
}

struct NamedFieldSeed<'n>(&'n str);

visit_as_seed!([] NamedFieldSeed<'_>, deserialize_map);

impl<'de> Visitor<'de> for NamedFieldSeed<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = map.next_key_seed(NameSeed(|name: &[u8]| name == self.0.as_bytes()))? {
            if is_wanted {
                found = Some(map.next_value::<&RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct ItemsSeed<F>(F);

visit_as_seed!([F: FnMut(&'de str)] ItemsSeed<F>, deserialize_seq);

impl<'de, F: FnMut(&'de str)> Visitor<'de> for ItemsSeed<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(item) = list.next_element::<&RawValue>()? {
            (self.0)(item.get());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_and_the_rest_is_skipped() {
        assert_eq!(field(r#"{"a": [1], "\u0062": {"c": 1}, "b": 2}"#, "b"), Some("2"));
        assert_eq!(field(r#"{"a": {"b": 1}}"#, "b"), None);
        for text in ["", "[]", "null", "\"b\"", r#"{"b": 1"#, r#"{"b": }"#] {
            assert_eq!(field(text, "b"), None, "{text}");
        }
        let deep = format!(r#"{{"a": {}{}, "b": 1}}"#, "[".repeat(9000), "]".repeat(9000));
        assert_eq!(field(&deep, "b"), Some("1"));
    }

    #[test]
    fn items_are_read_up_to_a_broken_one() {
        let items = |list| {
            let mut items = Vec::new();
            for_each_item(list, |item| items.push(item));
            items
        };
        assert_eq!(items(r#"[1, {"a": []}, nul, 2]"#), ["1", r#"{"a": []}"#]);
        assert_eq!(items(r#"{"a": 1}"#), [""; 0]);
    }
}
