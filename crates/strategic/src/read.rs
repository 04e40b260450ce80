//! Reads JSON text (RFC 8259) into a [`Value`].

use crate::value::{DEEPEST, MapEntry, Value, without_duplicates};
use bumpalo::Bump;

/// A text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The fault.
    pub fault: SyntaxFault,
}

/// A fault in JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxFault {
    /// The text ends too early.
    #[error("the text ends in the middle of a value")]
    End,
    /// A character is in the wrong place.
    #[error("unexpected character")]
    Unexpected,
    /// A number is malformed.
    #[error("invalid number")]
    Number,
    /// A string contains a control character.
    #[error("a control character in a string must be escaped")]
    Control,
    /// An escape sequence is malformed.
    #[error("invalid escape sequence")]
    Escape,
    /// More text follows the value.
    #[error("more text after the value")]
    Trailing,
    /// Lists and objects are nested too deeply.
    #[error("nested deeper than {DEEPEST} levels")]
    Depth,
}

/// Reads a text that is one JSON value.
pub(crate) fn read<'a>(text: &'a str, arena: &'a Bump) -> Result<Value<'a>, SyntaxError> {
    let mut reader = JsonReader { text, bytes: text.as_bytes(), at: 0, arena, items: Vec::new(), entries: Vec::new() };
    reader.document().map_err(|fault| {
        let before = text.get(..text.floor_char_boundary(reader.at)).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        SyntaxError { line: before.matches('\n').count() + 1, column, fault }
    })
}

struct JsonReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    arena: &'a Bump,
    /// The items of all open lists.
    items: Vec<Value<'a>>,
    /// The fields of all open objects.
    entries: Vec<MapEntry<'a>>,
}

impl<'a> JsonReader<'a> {
    fn document(&mut self) -> Result<Value<'a>, SyntaxFault> {
        let document = self.value(0)?;
        self.space();
        if self.at == self.bytes.len() { Ok(document) } else { Err(SyntaxFault::Trailing) }
    }

    /// Reads a value that has this number of lists and objects around it.
    fn value(&mut self, depth: usize) -> Result<Value<'a>, SyntaxFault> {
        self.space();
        match self.peek()? {
            b'{' => self.map(depth),
            b'[' => self.list(depth),
            b'"' => Ok(Value::String(self.string()?)),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => Ok(Value::Number(self.number()?)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, SyntaxFault> {
        if self.opens_empty(depth, b']')? {
            return Ok(Value::List(&[]));
        }
        let start = self.items.len();
        loop {
            let item = self.value(depth + 1)?;
            self.items.push(item);
            if self.ends(b']')? {
                let list = Value::list_in(self.arena, self.items.get(start..).unwrap_or_default());
                self.items.truncate(start);
                return Ok(list);
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value<'a>, SyntaxFault> {
        if self.opens_empty(depth, b'}')? {
            return Ok(Value::EMPTY);
        }
        let start = self.entries.len();
        loop {
            let key = self.key()?;
            let value = self.value(depth + 1)?;
            self.entries.push((key, value));
            if self.ends(b'}')? {
                without_duplicates(&mut self.entries, start);
                let map = Value::map_in(self.arena, self.entries.get(start..).unwrap_or_default());
                self.entries.truncate(start);
                return Ok(map);
            }
        }
    }

    /// Opens a list or an object. Closes it and returns true if it is empty.
    fn opens_empty(&mut self, depth: usize, end: u8) -> Result<bool, SyntaxFault> {
        if depth >= DEEPEST {
            return Err(SyntaxFault::Depth);
        }
        self.at += 1;
        self.space();
        let empty = self.peek()? == end;
        self.at += usize::from(empty);
        Ok(empty)
    }

    /// Reads what follows a part of a list or an object. Returns true at its end.
    fn ends(&mut self, end: u8) -> Result<bool, SyntaxFault> {
        self.space();
        let found = self.peek()?;
        if found != b',' && found != end {
            return Err(SyntaxFault::Unexpected);
        }
        self.at += 1;
        Ok(found == end)
    }

    fn key(&mut self) -> Result<&'a str, SyntaxFault> {
        self.space();
        if self.peek()? != b'"' {
            return Err(SyntaxFault::Unexpected);
        }
        let name = self.string()?;
        self.space();
        if self.peek()? != b':' {
            return Err(SyntaxFault::Unexpected);
        }
        self.at += 1;
        Ok(name)
    }

    fn peek(&self) -> Result<u8, SyntaxFault> {
        self.bytes.get(self.at).copied().ok_or(SyntaxFault::End)
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, SyntaxFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        let wrong = rest.iter().zip(word.bytes()).take_while(|(left, right)| **left == *right).count();
        self.at += wrong;
        Err(if wrong == rest.len() { SyntaxFault::End } else { SyntaxFault::Unexpected })
    }

    fn number(&mut self) -> Result<&'a str, SyntaxFault> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            Some(_) if self.at == start => return Err(SyntaxFault::Unexpected),
            Some(_) => return Err(SyntaxFault::Number),
            None => return Err(SyntaxFault::End),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.text.get(start..self.at).ok_or(SyntaxFault::Number)
    }

    fn digits(&mut self) -> Result<(), SyntaxFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            _ if self.at > start => Ok(()),
            None => Err(SyntaxFault::End),
            Some(_) => Err(SyntaxFault::Number),
        }
    }

    /// Reads a string from its opening quote on. Without escapes it is a part of the text.
    fn string(&mut self) -> Result<&'a str, SyntaxFault> {
        self.at += 1;
        let start = self.at;
        match self.plain()? {
            b'"' => {
                let text = self.text.get(start..self.at).ok_or(SyntaxFault::Unexpected)?;
                self.at += 1;
                Ok(text)
            }
            _ => self.escaped(start),
        }
    }

    /// Skips to the next quote or backslash of a string.
    fn plain(&mut self) -> Result<u8, SyntaxFault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
        self.at += found.unwrap_or(rest.len());
        match self.peek()? {
            0..=0x1f => Err(SyntaxFault::Control),
            byte => Ok(byte),
        }
    }

    fn escaped(&mut self, start: usize) -> Result<&'a str, SyntaxFault> {
        let mut text = String::from(self.text.get(start..self.at).ok_or(SyntaxFault::Unexpected)?);
        loop {
            let from = self.at;
            let end = self.plain()?;
            text.push_str(self.text.get(from..self.at).ok_or(SyntaxFault::Unexpected)?);
            self.at += 1;
            if end == b'"' {
                return Ok(self.arena.alloc_str(&text));
            }
            let escape = self.peek()?;
            self.at += 1;
            text.push(match escape {
                b'"' | b'\\' | b'/' => char::from(escape),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return Err(SyntaxFault::Escape),
            });
        }
    }

    fn unicode(&mut self) -> Result<char, SyntaxFault> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
                return Err(SyntaxFault::Escape);
            }
            self.at += 2;
            let second = self.hex()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(SyntaxFault::Escape);
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).ok_or(SyntaxFault::Escape)
    }

    fn hex(&mut self) -> Result<u32, SyntaxFault> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(SyntaxFault::End)?;
        let mut code = 0;
        for digit in digits {
            code = code * 16 + char::from(*digit).to_digit(16).ok_or(SyntaxFault::Escape)?;
        }
        self.at += 4;
        Ok(code)
    }
}
