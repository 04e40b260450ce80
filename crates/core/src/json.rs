//! Reads a JSON text: what is used as `serde_json` reads it, and the rest without memory.
//!
//! A [`TextReader`] accepts and refuses the texts that `serde_json` accepts and refuses. What is unusual is left to `serde_json`
//! itself: strings with escapes, nesting of more than 10,240 levels, and the message of every error. The module `skip` skips
//! values. This module must not know what a text means.

mod skip;
#[cfg(test)]
mod tests;

use crate::field_path::Printable;
pub use crate::meter::Unmetered;
use crate::meter::{Exhausted, Meter};
use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde_json::de::StrRead;
use skip::{number, skip, string_end, white_space};
use std::fmt::{self, Display};

/// Longest message of an error, in bytes. It may quote the text.
const LONGEST_REASON: usize = 200;

/// A text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The meter refused memory.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The text is not JSON, or a value of another type. The reason is short and printable.
    #[error("{0}")]
    Malformed(Box<str>),
}

/// A position in a text.
#[derive(Debug)]
pub struct TextReader<'a> {
    text: &'a str,
    at: usize,
    meter: &'a dyn Meter,
}

/// A string, or the name of a field, as it is written.
#[derive(Debug, Clone, Copy)]
pub enum JsonString<'a> {
    /// The text between the quotes, which has no escapes.
    Plain(&'a str),
    /// A string with escapes, and its quotes.
    Escaped(&'a str),
}

/// True before the first item of a list or field of an object.
#[derive(Debug)]
pub struct First(bool);

/// The deserializer of the rest of a text.
type Rest<'a> = serde_json::Deserializer<StrRead<'a>>;

impl<'a> TextReader<'a> {
    /// Reads a text. Memory for strings with escapes is charged to `meter`, and released when they are read.
    pub fn new(text: &'a str, meter: &'a dyn Meter) -> Self {
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
    pub fn peek(&mut self) -> Result<u8, Unreadable> {
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
    pub fn skip(&mut self) -> Result<&'a str, Unreadable> {
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

    /// Returns the number of bytes before this position.
    pub fn position(&self) -> usize {
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
    pub fn string(&mut self) -> Result<JsonString<'a>, Unreadable> {
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
    pub fn unicode<T>(&self, string: JsonString<'_>, then: impl FnOnce(&str) -> T) -> Result<T, Unreadable> {
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
    pub fn enter(&mut self) -> First {
        self.at = self.at.saturating_add(1);
        First(true)
    }

    /// Reads the name of the next field of an object, and moves to its value. Returns `None` behind the last one.
    pub fn name(&mut self, first: &mut First) -> Result<Option<JsonString<'a>>, Unreadable> {
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
    pub fn item(&mut self, first: &mut First) -> Result<bool, Unreadable> {
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
    pub fn end(&mut self) -> Result<(), Unreadable> {
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
    pub fn malformed(&self, at: usize, reason: &dyn Display) -> Unreadable {
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
