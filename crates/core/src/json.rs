//! Reads a JSON text: what is used as `serde_json` reads it, and the rest without memory.
//!
//! A [`TextReader`] accepts and refuses the texts that `serde_json` accepts and refuses. What is unusual is left to `serde_json`
//! itself: strings with escapes, nesting of more than 10,240 levels, and the message of every error. [`skip`](mod@skip) skips
//! values. This module must not know what a text means.

mod skip;

use crate::field_path::Printable;
use crate::meter::{Exhausted, Meter};
use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde_json::de::StrRead;
use skip::{number, skip, string_end, white_space};
use std::fmt::{self, Display};

/// Longest message of an error, in bytes. It may quote the text.
const LONGEST_REASON: usize = 200;

/// A text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The meter refused memory.
    Exhausted(Exhausted),
    /// The text is not JSON, or a value of another type. The reason is short and printable.
    Malformed(Box<str>),
}

impl From<Exhausted> for Unreadable {
    fn from(exhausted: Exhausted) -> Self {
        Self::Exhausted(exhausted)
    }
}

/// A position in a text.
#[derive(Debug)]
pub(crate) struct TextReader<'a> {
    text: &'a str,
    at: usize,
    meter: &'a dyn Meter,
}

/// A string, or the name of a field, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JsonString<'a> {
    /// The text between the quotes, which has no escapes.
    Plain(&'a str),
    /// A string with escapes, and its quotes.
    Escaped(&'a str),
}

/// True before the first item of a list or field of an object.
#[derive(Debug)]
pub(crate) struct First(bool);

/// The deserializer of the rest of a text.
type Rest<'a> = serde_json::Deserializer<StrRead<'a>>;

impl<'a> TextReader<'a> {
    /// Reads a text. Memory for strings with escapes is charged to `meter`, and released when they are read.
    pub(crate) fn new(text: &'a str, meter: &'a dyn Meter) -> Self {
        Self { text, at: 0, meter }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn meter(&self) -> &'a dyn Meter {
        self.meter
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Moves to the next value, and returns its first byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Unreadable> {
        match white_space(self.bytes(), self.at) {
            Some((byte, at)) => {
                self.at = at;
                Ok(byte)
            }
            None => Err(self.end_of_text("value")),
        }
    }

    /// Skips a value, and returns its text.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<&'a str, Unreadable> {
        self.peek()?;
        let start = self.at;
        self.at = match skip(self.bytes(), start) {
            Some(end) => end,
            None => self.skip_deep()?,
        };
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Returns the end of a value that `skip` refused. `serde_json` needs a byte for each level of nesting.
    #[cold]
    fn skip_deep(&self) -> Result<usize, Unreadable> {
        let rest = self.rest(self.at);
        let most = rest.len().saturating_mul(2);
        self.meter.charge(most)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let value = values.next();
        let end = self.at.saturating_add(values.byte_offset());
        drop(values);
        self.meter.release(most);
        match value {
            Some(Err(error)) => Err(self.refused(self.at, &error)),
            Some(Ok(_)) | None => Ok(end),
        }
    }

    /// Skips an item of a list and the comma behind it, if they repeat an earlier part of the text and an object follows.
    pub(crate) fn skip_repeated_item(&mut self, earlier: &str) -> Option<First> {
        let start = self.at;
        if self.skip_repeated(earlier) && self.peek() == Ok(b'{') {
            return Some(First(true));
        }
        self.at = start;
        None
    }

    /// Skips a value if it repeats an earlier part of the text, which is a value in brackets or quotes.
    pub(crate) fn skip_repeated(&mut self, earlier: &str) -> bool {
        let repeats = self.bytes().get(self.at..).is_some_and(|rest| rest.starts_with(earlier.as_bytes()));
        if repeats {
            self.at = self.at.saturating_add(earlier.len());
        }
        repeats
    }

    /// Returns the text after this position.
    pub(crate) fn following(&self) -> &'a [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// Returns the text between two positions.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Skips `null`. Returns false if the next value is another.
    pub(crate) fn null(&mut self) -> Result<bool, Unreadable> {
        Ok(self.peek()? == b'n' && !self.skip()?.is_empty())
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Result<f64, Unreadable> {
        self.peek()?;
        let end = number(self.bytes(), self.at).unwrap_or(self.text.len());
        let number = serde_json::from_str(self.text.get(self.at..end).unwrap_or_default());
        let number = number.map_err(|error| self.refused(self.at, &error))?;
        self.at = end;
        Ok(number)
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<JsonString<'a>, Unreadable> {
        match self.peek()? {
            b'"' => self.written(),
            _ => Err(self.explain(|rest| rest.deserialize_str(ExpectedValue("a string")))),
        }
    }

    #[inline]
    fn written(&mut self) -> Result<JsonString<'a>, Unreadable> {
        let start = self.at;
        let Some((end, escaped)) = string_end(self.bytes(), start.saturating_add(1)) else {
            return Err(self.explain(|rest| rest.deserialize_str(ExpectedValue("a string"))));
        };
        self.at = end;
        let quoted = self.since(start);
        Ok(if escaped {
            JsonString::Escaped(quoted)
        } else {
            JsonString::Plain(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())
        })
    }

    /// Passes a string to a function. It may not have lone surrogates, which are not Unicode.
    pub(crate) fn unicode<T>(&self, string: JsonString<'_>, then: impl FnOnce(&str) -> T) -> Result<T, Unreadable> {
        let JsonString::Escaped(quoted) = string else { return Ok(then(string.as_written())) };
        let text = |bytes: &[u8]| then(str::from_utf8(bytes).unwrap_or_default());
        self.unescape(quoted, |rest| rest.deserialize_str(Unescaped(text)))
    }

    /// Passes a string to a function, as bytes that need not be Unicode.
    pub(crate) fn unescaped<T>(&self, string: JsonString<'_>, then: impl FnOnce(&[u8]) -> T) -> Result<T, Unreadable> {
        let JsonString::Escaped(quoted) = string else { return Ok(then(string.as_written().as_bytes())) };
        self.unescape(quoted, |rest| rest.deserialize_bytes(Unescaped(then)))
    }

    fn unescape<T>(
        &self,
        quoted: &str,
        read: impl FnOnce(&mut Rest<'_>) -> serde_json::Result<T>,
    ) -> Result<T, Unreadable> {
        // The buffer of `serde_json` doubles.
        let most = quoted.len().saturating_mul(2);
        self.meter.charge(most)?;
        let value = read(&mut serde_json::Deserializer::from_str(quoted));
        self.meter.release(most);
        let start = quoted.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        value.map_err(|error| self.refused(start, &error))
    }

    /// Begins to read an object. Another value is an error, which says what was expected.
    pub(crate) fn object(&mut self, expected: &'static str) -> Result<First, Unreadable> {
        match self.peek()? {
            b'{' => Ok(self.enter()),
            _ => Err(self.explain(|rest| rest.deserialize_map(ExpectedValue(expected)))),
        }
    }

    /// Begins to read a list or an object, at its first bracket.
    pub(crate) fn enter(&mut self) -> First {
        self.at = self.at.saturating_add(1);
        First(true)
    }

    /// Reads the name of the next field of an object, and moves to its value. Returns `None` behind the last one.
    pub(crate) fn name(&mut self, first: &mut First) -> Result<Option<JsonString<'a>>, Unreadable> {
        self.name_that(first, |reader, name| reader.unicode(name, |_| ()))
    }

    /// Reads a name that need not be Unicode.
    pub(crate) fn any_name(&mut self, first: &mut First) -> Result<Option<JsonString<'a>>, Unreadable> {
        self.name_that(first, |_, _| Ok(()))
    }

    #[inline]
    fn name_that(
        &mut self,
        first: &mut First,
        check: impl FnOnce(&Self, JsonString<'_>) -> Result<(), Unreadable>,
    ) -> Result<Option<JsonString<'a>>, Unreadable> {
        match self.next(first, b'}', "object", "expected `,` or `}`")? {
            None => return Ok(None),
            Some(b'"') => {}
            Some(_) => return Err(self.malformed(self.at.saturating_add(1), &"key must be a string")),
        }
        let name = self.written()?;
        check(self, name)?;
        match white_space(self.bytes(), self.at) {
            Some((b':', at)) => self.at = at.saturating_add(1),
            Some((_, at)) => return Err(self.malformed(at.saturating_add(1), &"expected `:`")),
            None => return Err(self.end_of_text("object")),
        }
        Ok(Some(name))
    }

    /// Reads the name of the next field of an object that is one of these names. Returns an empty name for another one.
    pub(crate) fn known_name<'n>(
        &mut self,
        first: &mut First,
        names: &[&'n str],
    ) -> Result<Option<&'n str>, Unreadable> {
        let Some(name) = self.name(first)? else { return Ok(None) };
        let known = |name: &str| names.iter().find(|known| **known == name).copied().unwrap_or_default();
        self.unicode(name, known).map(Some)
    }

    /// Moves to the next item of a list. Returns false behind the last one.
    pub(crate) fn item(&mut self, first: &mut First) -> Result<bool, Unreadable> {
        Ok(self.next(first, b']', "list", "expected `,` or `]`")?.is_some())
    }

    /// Moves to the next item or name, and returns its first byte.
    #[inline]
    fn next(&mut self, first: &mut First, close: u8, kind: &str, missing: &str) -> Result<Option<u8>, Unreadable> {
        let Some((byte, at)) = white_space(self.bytes(), self.at) else { return Err(self.end_of_text(kind)) };
        self.at = at;
        if byte == close {
            self.at = at.saturating_add(1);
            return Ok(None);
        }
        if std::mem::take(&mut first.0) {
            return Ok(Some(byte));
        }
        if byte != b',' {
            return Err(self.malformed(at.saturating_add(1), &missing));
        }
        self.at = at.saturating_add(1);
        match self.peek()? {
            byte if byte == close => Err(self.malformed(self.at.saturating_add(1), &"trailing comma")),
            byte => Ok(Some(byte)),
        }
    }

    /// Returns an error unless the text ends here.
    pub(crate) fn end(&mut self) -> Result<(), Unreadable> {
        match white_space(self.bytes(), self.at) {
            Some((_, at)) => Err(self.malformed(at.saturating_add(1), &"trailing characters")),
            None => Ok(()),
        }
    }

    fn rest(&self, start: usize) -> &'a str {
        self.text.get(start..).unwrap_or_default()
    }

    #[cold]
    fn end_of_text(&self, kind: &str) -> Unreadable {
        self.malformed(
            self.text.len(),
            &format_args!("EOF while parsing {} {kind}", if kind == "object" { "an" } else { "a" }),
        )
    }

    /// Returns the error with which `serde_json` refuses the value at this position.
    #[cold]
    fn explain<T>(&self, read: impl FnOnce(&mut Rest<'a>) -> serde_json::Result<T>) -> Unreadable {
        let rest = self.rest(self.at);
        // The value may be a string, which the error quotes.
        let most = rest.len().saturating_mul(3);
        if let Err(exhausted) = self.meter.charge(most) {
            return exhausted.into();
        }
        let error = match read(&mut serde_json::Deserializer::from_str(rest)) {
            Ok(_) => self.malformed(self.at, &"another value was expected"),
            Err(error) => self.refused(self.at, &error),
        };
        self.meter.release(most);
        error
    }

    /// Returns an error of `serde_json` about the text from `start` on, with its position in the whole text.
    #[cold]
    fn refused(&self, start: usize, error: &serde_json::Error) -> Unreadable {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let before = self.rest(start).split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
        let at = before.sum::<usize>().saturating_add(start).saturating_add(error.column());
        self.malformed(at, &message.strip_suffix(&place).unwrap_or(&message))
    }

    /// Returns an error behind the byte before `at`.
    #[cold]
    pub(crate) fn malformed(&self, at: usize, reason: &dyn Display) -> Unreadable {
        let before = self.bytes().get(..at.min(self.text.len())).unwrap_or_default();
        let mut lines = before.split(|byte| *byte == b'\n');
        let (line, column) = (lines.clone().count(), lines.next_back().map_or(0, <[u8]>::len));
        let message = format!("{reason} at line {line} column {column}");
        Unreadable::Malformed(Printable::new(&message, LONGEST_REASON).to_string().into())
    }
}

impl<'a> JsonString<'a> {
    /// Returns a string whose text is known.
    pub(crate) fn of(quoted: &'a str) -> Self {
        if quoted.as_bytes().contains(&b'\\') {
            return Self::Escaped(quoted);
        }
        Self::Plain(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())
    }

    /// Returns the text without its quotes, or with them if it has escapes.
    pub(crate) fn as_written(self) -> &'a str {
        let (Self::Plain(text) | Self::Escaped(text)) = self;
        text
    }
}

/// Refuses every value, because another one was expected.
struct ExpectedValue(&'static str);

impl Visitor<'_> for ExpectedValue {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Passes a string to a function.
struct Unescaped<F>(F);

impl<T, F: FnOnce(&[u8]) -> T> Visitor<'_> for Unescaped<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<T, E> {
        Ok((self.0)(bytes))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok((self.0)(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Unmetered;
    use proptest::prelude::*;
    use serde::Deserialize;

    /// Reads a whole text by a function.
    fn whole<'a, T>(
        text: &'a str,
        read: impl FnOnce(&mut TextReader<'a>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let mut reader = TextReader::new(text, &Unmetered);
        let value = read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// Reads a list of lists and maps to the end, each item as itself, and returns what it contains.
    fn visit(reader: &mut TextReader<'_>, out: &mut Vec<String>) -> Result<(), Unreadable> {
        match reader.peek()? {
            b'{' => {
                let mut fields = reader.enter();
                while let Some(name) = reader.name(&mut fields)? {
                    out.push(reader.unicode(name, str::to_owned)?);
                    visit(reader, out)?;
                }
                out.push("}".to_owned());
            }
            b'[' => {
                let mut items = reader.enter();
                while reader.item(&mut items)? {
                    visit(reader, out)?;
                }
                out.push("]".to_owned());
            }
            b'"' => {
                let text = reader.string()?;
                out.push(reader.unicode(text, str::to_owned)?);
            }
            b'-' | b'0'..=b'9' => out.push(reader.number()?.to_string()),
            _ => out.push(reader.skip()?.to_owned()),
        }
        Ok(())
    }

    /// Collects the same as `visit`, by `serde_json`.
    struct Visited<'o>(&'o mut Vec<String>);

    impl<'de> serde::de::DeserializeSeed<'de> for Visited<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_any(self)
        }
    }

    impl<'de> Visitor<'de> for Visited<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON value")
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            self.0.push("null".to_owned());
            Ok(())
        }

        fn visit_bool<E>(self, value: bool) -> Result<(), E> {
            self.0.push(value.to_string());
            Ok(())
        }

        #[allow(clippy::cast_precision_loss, reason = "as the reader does")]
        fn visit_i64<E>(self, value: i64) -> Result<(), E> {
            self.0.push((value as f64).to_string());
            Ok(())
        }

        #[allow(clippy::cast_precision_loss, reason = "as the reader does")]
        fn visit_u64<E>(self, value: u64) -> Result<(), E> {
            self.0.push((value as f64).to_string());
            Ok(())
        }

        fn visit_f64<E>(self, value: f64) -> Result<(), E> {
            self.0.push(value.to_string());
            Ok(())
        }

        fn visit_str<E>(self, text: &str) -> Result<(), E> {
            self.0.push(text.to_owned());
            Ok(())
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
            while list.next_element_seed(Visited(&mut *self.0))?.is_some() {}
            self.0.push("]".to_owned());
            Ok(())
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<String>()? {
                self.0.push(name);
                map.next_value_seed(Visited(&mut *self.0))?;
            }
            self.0.push("}".to_owned());
            Ok(())
        }
    }

    /// Checks that a text is skipped and read as `serde_json` does, with the same errors.
    fn check(text: &str) {
        let message = |error: serde_json::Error| {
            Unreadable::Malformed(Printable::new(&error.to_string(), LONGEST_REASON).to_string().into())
        };
        let skipped = whole(text, |reader| reader.skip().map(drop));
        assert_eq!(skipped, serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(message), "{text:?} skipped");
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let visited = whole(text, |reader| visit(reader, &mut ours)).map(|()| ours);
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let expected = serde::de::DeserializeSeed::deserialize(Visited(&mut theirs), &mut deserializer);
        let expected = expected.and_then(|()| deserializer.end()).map(|()| theirs).map_err(message);
        if format!("{expected:?}").contains("recursion limit") {
            return;
        }
        assert_eq!(visited, expected, "{text:?} read");
        let string = whole(text, |reader| {
            let string = reader.string()?;
            reader.unicode(string, str::to_owned)
        });
        assert_eq!(string, serde_json::from_str::<String>(text).map_err(message), "{text:?} as a string");
        let map = whole(text, |reader| reader.object("a map").map(drop));
        if !text.trim_ascii_start().starts_with('{') {
            struct Map;
            impl<'de> Deserialize<'de> for Map {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_map(ExpectedValue("a map")).map(|()| Self)
                }
            }
            assert_eq!(map, serde_json::from_str::<Map>(text).map(drop).map_err(message), "{text:?} as a map");
        }
    }

    const GOOD: &str = r#" {"a": [1, -0.5e+3, "x\"\u00e9\\", {"b": {}, "a": [[], true, false, null]}, 0], "\ud83d\ude00long key with é":
    "0123456789abcdef\n", "a": "", "c": 123456789012345678901} "#;

    #[test]
    fn every_spoilt_byte_is_seen_as_serde_json_sees_it() {
        check(GOOD);
        for (at, _) in GOOD.char_indices() {
            let (before, after) = GOOD.split_at(at);
            check(before);
            let mut rest = after.chars();
            rest.next();
            check(&format!("{before}{}", rest.as_str()));
            for with in "\"\\{}[],:0-.e \n\tudx".chars() {
                check(&format!("{before}{with}{after}"));
                check(&format!("{before}{with}{}", rest.as_str()));
            }
        }
    }

    #[test]
    fn strings_and_numbers_are_those_of_serde_json() {
        for text in [
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\ud800\"",
            "\"\\ud800x\"",
            "\"\\ud800\\n\"",
            "\"\\ud800",
            "\"\\u12",
            "\"\\u123g\"",
            "\"\\x\"",
            "\"a\u{1}b\"",
            "\"\u{7f}\u{80}\u{10ffff}\"",
            "\"12345678\\",
            "\"1234567\"",
            "\"12345678",
            "1e400",
            "-1e400",
            "1e-400",
            "0e999",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "-0",
            "-01",
            "1.7976931348623159e308",
            "18446744073709551616",
            "-9223372036854775809",
            "0x1",
            "NaN",
            "tru",
            "nulll",
            "fals\u{e9}",
            "\u{feff}1",
            "",
        ] {
            check(text);
            check(&format!("[{text},{text}]"));
            check(&format!("{{{text}:{text}}}"));
        }
        let digits = "7".repeat(1 << 20);
        for text in [digits.clone(), format!("-{digits}"), format!("0.{digits}"), format!("1e{digits}")] {
            assert_eq!(whole(&text, TextReader::skip), Ok(&*text));
            assert_eq!(whole(&text, TextReader::number).is_ok(), serde_json::from_str::<f64>(&text).is_ok());
        }
    }

    #[test]
    fn any_depth_is_skipped() {
        for depth in [1, 62, 63, 64, 65, 126, 127, 128, 10_000, 10_239, 10_240, 10_241, 100_000] {
            for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[0,{"a":"#, "}]")] {
                let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                assert_eq!(whole(&text, TextReader::skip), Ok(&*text), "{depth}");
                let unclosed = text.get(..text.len() - 1).unwrap();
                let error = serde_json::from_str::<IgnoredAny>(unclosed).unwrap_err().to_string();
                assert_eq!(whole(unclosed, TextReader::skip), Err(Unreadable::Malformed(error.into())), "{depth}");
            }
        }
    }

    /// Returns JSON texts with white space, escapes and duplicate names, and texts that are almost JSON.
    fn texts() -> impl Strategy<Value = String> {
        let space = prop::sample::select(vec!["", " ", "\n", "\t\r "]);
        let string = prop_oneof!["\"[a-c]{0,20}\"", r#""([ab]|\\["\\/bfnrtu]|\\u[0-9a-fD]{4}|é|😀){0,6}""#];
        let number = "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?";
        let scalar =
            prop_oneof![string, number, prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned)];
        let name = prop_oneof![Just("\"a\"".to_owned()), "\"[a-c]{0,9}\"", Just(r#""\u0061""#.to_owned())];
        let value = scalar.prop_recursive(6, 64, 6, move |inner| {
            let item = (space.clone(), inner, space.clone())
                .prop_map(|(before, item, after)| format!("{before}{item}{after}"));
            let field = (name.clone(), item.clone()).prop_map(|(name, item)| format!("{name}:{item}"));
            prop_oneof![
                prop::collection::vec(item, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(","))),
            ]
        });
        let spoilt = prop::collection::vec((any::<prop::sample::Index>(), "[\"\\\\{}\\[\\],:0-9eE. \nabtu]?"), 0..3);
        (value, spoilt).prop_map(|(mut text, spoilt)| {
            for (index, with) in spoilt {
                let at = index.index(text.len().max(1));
                if text.is_char_boundary(at) && at < text.len() && text.is_char_boundary(at + 1) {
                    text.replace_range(at..=at, &with);
                }
            }
            text
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn texts_are_read_as_serde_json_reads_them(text in texts()) {
            check(&text);
        }
    }
}
