//! Strings of a body, and the memory that the JSON reader needs for the rest.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Bodies up to this length are charged the most that they can need. Longer bodies are scanned.
const SHORT: usize = 1024;

/// Longest string with escapes, in bytes. Such a string is copied.
const LONGEST_ESCAPED: usize = 1024;

/// A string, borrowed from the body unless it has escapes. A string with escapes must be short.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.len() > LONGEST_ESCAPED {
            return Err(E::custom(format_args!("a name with escapes has more than {LONGEST_ESCAPED} bytes")));
        }
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// Returns an upper bound of the bytes that the JSON reader buffers while it reads `text`: one for each level of nesting,
/// plus twice the longest string with escapes.
pub(super) fn scratch(text: &str) -> usize {
    if text.len() <= SHORT {
        return text.len().saturating_mul(2);
    }
    let (mut depth, mut most) = (0_usize, 0_usize);
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => {
                let (length, escaped) = string_length(rest);
                rest = rest.get(length..).unwrap_or_default();
                most = most.max(if escaped { length } else { 0 });
            }
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most.saturating_mul(2)
}

/// Returns the length of a string after its first quote, including the last quote, and true if it has escapes.
fn string_length(text: &[u8]) -> (usize, bool) {
    let mut escaped = false;
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return (at.saturating_add(1), escaped),
            b'\\' => {
                escaped = true;
                bytes.next();
            }
            _ => {}
        }
    }
    (text.len(), escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_buffered_is_the_deepest_nesting_or_the_longest_string_with_escapes() {
        let padding = " ".repeat(SHORT);
        let scratch = |text: &str| scratch(&format!("{padding}{text}"));
        assert_eq!(scratch(r#"{"a": [[], [1, "]]"]], "b": "long without escapes"}"#), 6);
        assert_eq!(scratch(r#"{"a": "\"[[[[[[[[[[\\", "b": 1}"#), 2 * r#"\"[[[[[[[[[[\\""#.len());
        assert_eq!(scratch(r#""never ends\"#), 2 * r"never ends\".len());
        assert_eq!(super::scratch("[]"), 4);
    }
}
