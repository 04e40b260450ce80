//! Cuts a JSON text at its values, and a list at its items.
//!
//! A list is known only at its end, where its `kind` may stand. So the items of every object with `items` are cut, and taken back if
//! the object is no list.

use super::{ObjectIndex, Uncut};
use crate::document::ObjectHead;
use crate::file::{Format, Section};
use crate::input::LARGEST;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Adds the objects of a text.
pub(super) fn cut(source: impl Read, index: &mut ObjectIndex) -> Result<(), Uncut> {
    let mut text = JsonCutter {
        source: BufReader::with_capacity(64 << 10, source),
        place: TextPlace { offset: 0, line: 1, column: 1 },
    };
    text.skip_bom()?;
    while let Some(byte) = text.peek()? {
        match byte {
            b'{' => text.object(index)?,
            b'[' => {
                let (start, mut value) = (text.place, Vec::new());
                text.value(&mut value)?;
                index.add_value(value, &start)?;
            }
            _ => return Err(Uncut),
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct TextPlace {
    offset: u64,
    line: usize,
    column: usize,
}

struct JsonCutter<R> {
    source: BufReader<R>,
    place: TextPlace,
}

impl<R: Read> JsonCutter<R> {
    fn skip_bom(&mut self) -> Result<(), Uncut> {
        let bom = "\u{feff}".as_bytes();
        if self.source.fill_buf()?.starts_with(bom) {
            self.source.consume(bom.len());
            self.place.offset += bom.len() as u64;
        }
        Ok(())
    }

    /// Returns the next byte that is not blank.
    fn peek(&mut self) -> Result<Option<u8>, Uncut> {
        loop {
            let bytes = self.source.fill_buf()?;
            let blank = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
            let next = bytes.get(blank).copied();
            let is_end = bytes.is_empty();
            self.place.pass(bytes.get(..blank).unwrap_or_default());
            self.source.consume(blank);
            if is_end || next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Takes the next byte, which [`peek`](Self::peek) returned.
    fn take(&mut self, text: &mut Vec<u8>) -> Result<(), Uncut> {
        let byte = self.source.fill_buf()?.first().copied().ok_or(Uncut)?;
        self.place.pass(&[byte]);
        self.source.consume(1);
        text.push(byte);
        Ok(())
    }

    /// Takes a value, and checks that it is JSON. A key is a value, too.
    fn value(&mut self, text: &mut Vec<u8>) -> Result<(), Uncut> {
        if matches!(self.peek()?, Some(b'-' | b'0'..=b'9')) {
            // The parser would take the byte that ends the number.
            while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.source.fill_buf()?.first()
                && text.len() as u64 <= LARGEST
            {
                self.take(text)?;
            }
        } else {
            let mut parser = serde_json::Deserializer::from_reader((&mut self.source).take(LARGEST));
            let value = Box::<RawValue>::deserialize(&mut parser).map_err(|_| Uncut)?;
            self.place.pass(value.get().as_bytes());
            text.extend_from_slice(value.get().as_bytes());
        }
        if text.len() as u64 > LARGEST { Err(Uncut) } else { Ok(()) }
    }

    /// Takes an object of the root, item by item if it is a list.
    fn object(&mut self, index: &mut ObjectIndex) -> Result<(), Uncut> {
        let (start, first, before) = (self.place, index.extents.len(), index.objects);
        // The object, with zeros for the items.
        let mut skeleton = Vec::new();
        let mut is_cut = false;
        self.take(&mut skeleton)?;
        let mut next = self.peek()?;
        while next == Some(b'"') {
            let mut key = Vec::new();
            self.value(&mut key)?;
            skeleton.extend_from_slice(&key);
            if self.peek()? != Some(b':') {
                return Err(Uncut);
            }
            self.take(&mut skeleton)?;
            let is_items = key == b"\"items\"";
            if is_cut && is_items {
                // The last one of several counts.
                return Err(Uncut);
            }
            if self.peek()? == Some(b'[') && is_items {
                self.items(&mut skeleton, index)?;
                is_cut = true;
            } else {
                self.value(&mut skeleton)?;
            }
            next = self.peek()?;
            if next == Some(b',') {
                self.take(&mut skeleton)?;
                next = self.peek()?;
                if next != Some(b'"') {
                    return Err(Uncut);
                }
            }
        }
        if next != Some(b'}') {
            return Err(Uncut);
        }
        self.take(&mut skeleton)?;
        let skeleton = section(skeleton, &start)?;
        let length = usize::try_from(self.place.offset - start.offset).map_err(|_| Uncut)?;
        match ObjectHead::read(skeleton.json()) {
            (list, Some(_)) if is_cut => index.end_list(first, &list, &skeleton),
            _ if length as u64 > LARGEST => return Err(Uncut),
            _ => {
                index.forget(first, before);
                index.add(&skeleton, start.offset, length, (start.line, start.column));
            }
        }
        Ok(())
    }

    /// Takes the items of an array.
    fn items(&mut self, skeleton: &mut Vec<u8>, index: &mut ObjectIndex) -> Result<(), Uncut> {
        self.take(skeleton)?;
        let mut next = self.peek()?;
        let mut item = Vec::new();
        while next != Some(b']') {
            let start = self.place;
            item.clear();
            self.value(&mut item)?;
            index.add_value(std::mem::take(&mut item), &start)?;
            skeleton.push(b'0');
            next = self.peek()?;
            if next == Some(b',') {
                self.take(skeleton)?;
                next = self.peek()?;
                if next == Some(b']') {
                    return Err(Uncut);
                }
            } else if next != Some(b']') {
                return Err(Uncut);
            }
        }
        self.take(skeleton)
    }
}

impl TextPlace {
    /// Goes behind a text.
    fn pass(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        let last = match bytes.iter().rposition(|&byte| byte == b'\n') {
            None => bytes,
            Some(position) => {
                self.line += bytes.split(|&byte| byte == b'\n').count() - 1;
                self.column = 1;
                bytes.get(position + 1..).unwrap_or_default()
            }
        };
        // A character has one byte that does not continue another.
        self.column += last.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
    }
}

impl ObjectIndex {
    fn add_value(&mut self, text: Vec<u8>, start: &TextPlace) -> Result<(), Uncut> {
        self.add_section(&section(text, start)?, start.offset);
        Ok(())
    }
}

/// Returns the section of a value, if it is JSON.
fn section(text: Vec<u8>, start: &TextPlace) -> Result<Arc<Section>, Uncut> {
    let text = String::from_utf8(text).map_err(|_| Uncut)?;
    serde_json::from_str::<IgnoredAny>(&text).map_err(|_| Uncut)?;
    Section::parse(&text, Format::Json, (start.line, start.column)).map(Arc::new).map_err(|_| Uncut)
}
