//! Writes a field set, the `fieldsV1` of an entry of `managedFields`, as a manifest without values.
//!
//! The format is that of structured-merge-diff: a key `f:NAME` is a field or an entry of a map, `k:KEYS` an item of a list with
//! keys, and `.` the value itself. Other keys are values and positions, which have no unions. A value without keys is owned as a
//! whole, and written as `true`.

use crate::json::{JsonString, TextReader, Unreadable};
use crate::meter::{Meter, Unmetered};
use std::borrow::Cow;

/// The most levels of a field set.
const DEEPEST: u32 = 127;

/// Returns the manifest as JSON text, no longer than the field set.
pub(super) fn to_manifest(field_set: &str, meter: &dyn Meter) -> Result<String, Unreadable> {
    let mut writer =
        ManifestWriter { reader: TextReader::new(field_set, meter), manifest: String::with_capacity(field_set.len()) };
    writer.value(DEEPEST)?;
    writer.reader.end()?;
    Ok(writer.manifest)
}

struct ManifestWriter<'a> {
    reader: TextReader<'a>,
    manifest: String,
}

/// The kind of a value, which its first key tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    List,
}
impl ManifestWriter<'_> {
    /// Writes a value of at most so many levels.
    fn value(&mut self, levels: u32) -> Result<(), Unreadable> {
        let levels = levels.checked_sub(1).ok_or_else(|| self.refused("too many levels"))?;
        let mut fields = self.reader.object("a field set")?;
        let mut kind = None;
        while let Some(key) = self.reader.name(&mut fields)? {
            let key = match key {
                JsonString::Plain(key) => Cow::Borrowed(key),
                JsonString::Escaped(_) => self.reader.unicode(key, |key| Cow::Owned(key.to_owned()))?,
            };
            let (of, rest) = match key.split_once(':') {
                Some(("f", name)) => (Kind::Object, name),
                Some(("k", keys)) => (Kind::List, keys),
                _ => {
                    self.reader.skip()?;
                    continue;
                }
            };
            match kind {
                None => self.manifest.push(if of == Kind::Object { '{' } else { '[' }),
                Some(kind) if kind == of => self.manifest.push(','),
                Some(_) => return Err(self.refused("fields beside items")),
            }
            kind = Some(of);
            match of {
                Kind::Object => {
                    let name = serde_json::to_string(rest).map_err(|_| self.refused("the name of a field"))?;
                    self.manifest.push_str(&name);
                    self.manifest.push(':');
                    self.value(levels)?;
                }
                Kind::List => {
                    let keys = inside(rest).ok_or_else(|| self.refused("keys of an item"))?;
                    let start = self.manifest.len();
                    self.value(levels)?;
                    // The values of the keys come last, so that they count.
                    if self.manifest.get(start..).is_some_and(|item| item.starts_with('{')) {
                        self.manifest.pop();
                        self.manifest.push(',');
                    } else {
                        self.manifest.truncate(start);
                        self.manifest.push('{');
                    }
                    self.manifest.push_str(keys);
                    self.manifest.push('}');
                }
            }
        }
        self.manifest.push_str(match kind {
            None => "true",
            Some(Kind::Object) => "}",
            Some(Kind::List) => "]",
        });
        Ok(())
    }

    fn refused(&self, reason: &str) -> Unreadable {
        self.reader.malformed(self.reader.position(), &reason)
    }
}

/// Returns the text between the braces of a JSON object that is not empty.
fn inside(object: &str) -> Option<&str> {
    let mut reader = TextReader::new(object, &Unmetered);
    let object = reader.skip().ok()?;
    reader.end().ok()?;
    let inside = object.strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inside.is_empty()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_manifest(field_set: &str) -> Option<String> {
        super::to_manifest(field_set, &Unmetered).ok()
    }

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
