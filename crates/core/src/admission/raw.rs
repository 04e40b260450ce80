//! Reads single parts of a JSON text, and skips the rest.

use crate::json::{JsonString, TextReader, Unreadable};
use crate::meter::Unmetered;
use std::borrow::Cow;

/// Longest string with escapes, in bytes. Such a string is copied.
const LONGEST_ESCAPED: usize = 1024;

/// Returns the value of a field of an object, the last one if the field occurs twice. Returns `None` if there is none, or if the
/// text is not an object.
pub(super) fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut reader = TextReader::new(object, &Unmetered);
    let mut fields = reader.object("an object").ok()?;
    let mut found = None;
    while let Some(field) = reader.any_name(&mut fields).ok()? {
        let is_wanted = reader.unescaped(field, |field| field == name.as_bytes()).ok()?;
        let value = reader.skip().ok()?;
        found = if is_wanted { Some(value) } else { found };
    }
    found
}

/// Calls a function for each item of a list, up to the first that is not JSON.
pub(super) fn for_each_item<'a>(list: &'a str, mut call: impl FnMut(&'a str)) {
    let mut reader = TextReader::new(list, &Unmetered);
    if reader.peek() != Ok(b'[') {
        return;
    }
    let mut items = reader.enter();
    // The items after a broken one cannot be read.
    while reader.item(&mut items) == Ok(true)
        && let Ok(item) = reader.skip()
    {
        call(item);
    }
}

/// Returns a string, `None` if the text is not one. A string with escapes must be short.
pub(super) fn string(text: &str) -> Option<Cow<'_, str>> {
    read_string(&mut TextReader::new(text, &Unmetered)).ok()
}

/// Reads a string, borrowed from the text unless it has escapes. A string with escapes must be short.
pub(super) fn read_string<'a>(reader: &mut TextReader<'a>) -> Result<Cow<'a, str>, Unreadable> {
    let string = reader.string()?;
    if let JsonString::Plain(text) = string {
        return Ok(Cow::Borrowed(text));
    }
    let copy = reader.unicode(string, |text| (text.len() <= LONGEST_ESCAPED).then(|| text.to_owned()))?;
    let too_long = || format!("a name with escapes has more than {LONGEST_ESCAPED} bytes");
    copy.map(Cow::Owned).ok_or_else(|| reader.malformed(reader.position(), &too_long()))
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
