//! Writes a field set, the `fieldsV1` of an entry of `managedFields`, as a manifest without values.
//!
//! The format is that of structured-merge-diff: a key `f:NAME` is a field or an entry of a map, `k:KEYS` an item of a list with
//! keys, and `.` the value itself. Other keys are values and positions, which have no unions. A value without keys is owned as a
//! whole, and written as `true`.

use crate::seed::visit_as_seed;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Returns the manifest as JSON text, no longer than the field set. Returns `None` if the text is not a field set, or is too deep.
pub(super) fn to_manifest(field_set: &str) -> Option<String> {
    let mut manifest = String::with_capacity(field_set.len());
    let mut deserializer = serde_json::Deserializer::from_str(field_set);
    let written = FieldSetSeed(&mut manifest).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    written.is_ok().then_some(manifest)
}

struct FieldSetSeed<'m>(&'m mut String);

/// The kind of a value, which its first key tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    List,
}

visit_as_seed!([] FieldSetSeed<'_>, deserialize_map);

impl<'de> Visitor<'de> for FieldSetSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field set")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let manifest = self.0;
        let mut kind = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let (of, rest) = match key.split_once(':') {
                Some(("f", name)) => (Kind::Object, name),
                Some(("k", keys)) => (Kind::List, keys),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            match kind {
                None => manifest.push(if of == Kind::Object { '{' } else { '[' }),
                Some(kind) if kind == of => manifest.push(','),
                Some(_) => {
                    return Err(A::Error::custom("fields beside items"));
                }
            }
            kind = Some(of);
            match of {
                Kind::Object => {
                    manifest.push_str(&serde_json::to_string(rest).map_err(A::Error::custom)?);
                    manifest.push(':');
                    map.next_value_seed(FieldSetSeed(&mut *manifest))?;
                }
                Kind::List => {
                    let keys = inside(rest).ok_or_else(|| A::Error::custom("keys of an item"))?;
                    let start = manifest.len();
                    map.next_value_seed(FieldSetSeed(&mut *manifest))?;
                    // The values of the keys come last, so that they count.
                    if manifest.get(start..).is_some_and(|item| item.starts_with('{')) {
                        manifest.pop();
                        manifest.push(',');
                    } else {
                        manifest.truncate(start);
                        manifest.push('{');
                    }
                    manifest.push_str(keys);
                    manifest.push('}');
                }
            }
        }
        manifest.push_str(match kind {
            None => "true",
            Some(Kind::Object) => "}",
            Some(Kind::List) => "]",
        });
        Ok(())
    }
}

/// Returns the text between the braces of a JSON object that is not empty.
fn inside(object: &str) -> Option<&str> {
    serde_json::from_str::<IgnoredAny>(object).ok()?;
    let inside = object.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inside.is_empty()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_items_and_entries_become_a_manifest() {
        for (field_set, manifest) in [
            ("{}", "true"),
            (r#"{"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}}"#, r#"{"spec":{"a":true,"b":{"c":true}}}"#),
            (
                r#"{"f:env": {"k:{\"name\":\"a\\\"b\"}": {".": {}, "f:name": {}, "f:value": {}}, "k:{\"name\":\"c\"}": {}}}"#,
                r#"{"env":[{"name":true,"value":true,"name":"a\"b"},{"name":"c"}]}"#,
            ),
            (r#"{"f:list": {"v:\"x\"": {}, "i:0": {}}, "f:a\"b": {}}"#, r#"{"list":true,"a\"b":true}"#),
        ] {
            assert_eq!(to_manifest(field_set).as_deref(), Some(manifest), "{field_set}");
        }
    }

    #[test]
    fn other_texts_are_no_field_sets() {
        let deep = "{\"f:a\":".repeat(1000) + "{}" + &"}".repeat(1000);
        let texts =
            ["", "null", "[]", "{\"f:a\": null}", "{\"f:a\": {}", "{} {}", r#"{"f:a": {}, "k:{\"b\":1}": {}}"#, &deep];
        for text in texts {
            assert_eq!(to_manifest(text), None, "{}", text.get(..20).unwrap_or(text));
        }
        for keys in ["", "{", "{}", "[1]", "{}}", "1", "{} {}"] {
            let text = serde_json::json!({ format!("k:{keys}"): {} }).to_string();
            assert_eq!(to_manifest(&text), None, "{text}");
        }
    }

    #[test]
    fn a_manifest_is_no_longer_than_its_field_set() {
        let names = ["a", "\"", "\u{1}", "é", "a\\b", ""];
        for name in names {
            let text = serde_json::json!({ format!("f:{name}"): {format!("k:{}", serde_json::json!({"n": name})): {"f:x": {}}} });
            let text = text.to_string();
            assert!(to_manifest(&text).unwrap().len() <= text.len(), "{text}");
        }
    }
}
