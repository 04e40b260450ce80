//! Cuts a YAML text at its documents, and a list at its items.
//!
//! A line that begins with `---` or `...` ends a document, whatever is in it. A line that begins with a dash begins an item of a list,
//! if it is no deeper than the first one. An item that is no YAML alone, for example because of an alias, keeps its list from being cut.

use super::{ObjectIndex, Uncut};
use crate::document::ObjectHead;
use crate::file::{Format, Section, position_after, yaml_documents};
use crate::input::LARGEST;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

/// Adds the objects of a text.
pub(super) fn cut(source: impl Read + Seek, index: &mut ObjectIndex) -> Result<(), Uncut> {
    let source = BufReader::with_capacity(64 << 10, source);
    let mut lines = YamlLines { source, held: Vec::new(), offset: 0, line: 1 };
    while lines.document(index)? {}
    Ok(())
}

struct YamlLines<R> {
    source: BufReader<R>,
    /// A line that was read too early.
    held: Vec<u8>,
    /// The place of the next line: bytes before it, and its number, counted from 1.
    offset: u64,
    line: usize,
}

impl<R: Read + Seek> YamlLines<R> {
    /// Adds the objects of a document. Returns false at the end of the text.
    fn document(&mut self, index: &mut ObjectIndex) -> Result<bool, Uncut> {
        let (offset, line) = (self.offset, self.line);
        let mut bytes = Vec::new();
        let (mut has_content, mut may_be_cut) = (false, true);
        let is_end = loop {
            let start = bytes.len();
            match self.next(&mut bytes, has_content)? {
                NextLine::End => break true,
                NextLine::OfNextDocument | NextLine::Last => break false,
                NextLine::Content => has_content = true,
                NextLine::Blank => {}
            }
            if may_be_cut && bytes.get(start..).is_some_and(begins_items) {
                let first = (index.extents.len(), index.objects);
                if self.list(index, std::mem::take(&mut bytes), line)? {
                    return Ok(true);
                }
                index.forget(first.0, first.1);
                self.source.seek(SeekFrom::Start(offset))?;
                self.held.clear();
                (self.offset, self.line) = (offset, line);
                (has_content, may_be_cut) = (false, false);
            }
            if bytes.len() as u64 > LARGEST {
                return Err(Uncut);
            }
        };
        let text = text(bytes)?;
        if let Ok(section) = Section::parse(&text, Format::Yaml, (line, 1)) {
            index.add_section(&Arc::new(section), offset);
            return Ok(!is_end);
        }
        // Several documents, or none.
        let mut position = (line, 1);
        for range in yaml_documents(&text).map_err(|_| Uncut)? {
            let offset = offset + range.start as u64;
            let text = text.get(range).unwrap_or_default();
            let section = Section::parse(text, Format::Yaml, position).map_err(|_| Uncut)?;
            index.add_section(&Arc::new(section), offset);
            position = position_after(text, position);
        }
        Ok(!is_end)
    }

    /// Adds the next line to a text, unless it begins the next document.
    fn next(&mut self, text: &mut Vec<u8>, has_content: bool) -> io::Result<NextLine> {
        let start = text.len();
        if self.held.is_empty() {
            (&mut self.source).take(LARGEST).read_until(b'\n', text)?;
        } else {
            text.append(&mut self.held);
        }
        let line = text.get(start..).unwrap_or_default();
        if line.is_empty() {
            return Ok(NextLine::End);
        }
        if has_content && is_marker(line, b"---") {
            self.held = text.split_off(start);
            return Ok(NextLine::OfNextDocument);
        }
        self.offset += line.len() as u64;
        self.line += 1;
        if is_marker(line, b"...") {
            return Ok(NextLine::Last);
        }
        let is_blank = line.trim_ascii().is_empty() || line.starts_with(b"%") || line.trim_ascii().starts_with(b"#");
        Ok(if is_blank { NextLine::Blank } else { NextLine::Content })
    }

    /// Adds the items of a list, whose lines up to `items:` were read already. Returns false if it cannot be cut.
    fn list(&mut self, index: &mut ObjectIndex, skeleton: Vec<u8>, start: usize) -> Result<bool, Uncut> {
        let first = index.extents.len();
        let mut list = ListCutter { index, skeleton, in_items: true, dashes: 0, item: None };
        loop {
            let (mut read, offset, line) = (Vec::new(), self.offset, self.line);
            match self.next(&mut read, true)? {
                NextLine::Blank | NextLine::Content if list.take(&read, offset, line)? => {}
                NextLine::Blank | NextLine::Content => return Ok(false),
                NextLine::Last | NextLine::OfNextDocument | NextLine::End => break,
            }
        }
        if !list.end_item()? {
            return Ok(false);
        }
        let ListCutter { index, skeleton, .. } = list;
        let skeleton = Section::parse(&text(skeleton)?, Format::Yaml, (start, 1));
        let Ok(skeleton) = skeleton.map(Arc::new) else { return Ok(false) };
        let (head, Some(_)) = ObjectHead::read(skeleton.json()) else { return Ok(false) };
        index.end_list(first, &head, &skeleton);
        Ok(true)
    }
}

/// The next line of a document, or the reason why it has no more.
enum NextLine {
    Blank,
    Content,
    /// The line that ends it.
    Last,
    OfNextDocument,
    /// There is no line.
    End,
}

/// Returns true for a line that begins with `---` or `...`.
fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.first().is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')))
}

/// Returns true for a line that begins the items of a list, in block style.
fn begins_items(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"items:").map(<[u8]>::trim_ascii);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"#"))
}

fn text(bytes: Vec<u8>) -> Result<String, Uncut> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(Uncut)
}

/// Cuts the items out of a list in block style: an item begins at a dash, and its other lines are deeper than that.
struct ListCutter<'i> {
    index: &'i mut ObjectIndex,
    /// The text with a zero for each item.
    skeleton: Vec<u8>,
    /// True until a line that belongs to no item.
    in_items: bool,
    /// Blanks before each dash, plus one. Zero before the first dash.
    dashes: usize,
    item: Option<OpenItem>,
}

/// An item whose lines are being read.
struct OpenItem {
    /// Its text behind the dash, with blanks in place of what is before it.
    text: Vec<u8>,
    /// The place behind the dash and its blanks.
    offset: u64,
    line: usize,
    column: usize,
}

impl ListCutter<'_> {
    /// Takes a line. Returns false if the text is not a list that can be cut.
    fn take(&mut self, line: &[u8], offset: u64, number: usize) -> Result<bool, Uncut> {
        let indent = line.iter().take_while(|&&byte| byte == b' ').count();
        let rest = line.get(indent..).unwrap_or_default();
        let is_blank = rest.trim_ascii().is_empty() || rest.starts_with(b"#");
        let after = rest.strip_prefix(b"-").filter(|after| after.first().is_none_or(u8::is_ascii_whitespace));
        match (after, &mut self.item) {
            (Some(after), _) if self.in_items && [0, indent + 1].contains(&self.dashes) => {
                self.dashes = indent + 1;
                let blanks = after.iter().take_while(|&&byte| byte == b' ').count();
                let own = after.get(blanks..).unwrap_or_default();
                let before = self.dashes + blanks;
                let text = [&vec![b' '; before], own].concat();
                let item = OpenItem { text, offset: offset + before as u64, line: number, column: before + 1 };
                let is_cut = self.end_item()? && !own.starts_with(b"\t");
                self.skeleton.extend_from_slice(line.get(..self.dashes).unwrap_or_default());
                self.skeleton.extend_from_slice(b" 0\n");
                self.item = Some(item);
                return Ok(is_cut);
            }
            (_, Some(item)) if is_blank || indent >= self.dashes => item.text.extend_from_slice(line),
            _ => {
                if !self.end_item()? {
                    return Ok(false);
                }
                self.in_items &= is_blank;
                self.skeleton.extend_from_slice(line);
            }
        }
        let item = self.item.as_ref().map_or(0, |item| item.text.len());
        if item.max(self.skeleton.len()) as u64 > LARGEST { Err(Uncut) } else { Ok(true) }
    }

    /// Adds the item whose lines are read. Returns false if it cannot be read alone, or not as in its list: a block scalar may count
    /// its blanks from the dash.
    fn end_item(&mut self) -> Result<bool, Uncut> {
        let Some(OpenItem { text: bytes, offset, line, column }) = self.item.take() else { return Ok(true) };
        let text = text(bytes)?;
        let own = text.trim_start();
        if own.is_empty() || own.starts_with(['|', '>', '!', '&']) {
            return Ok(own.is_empty());
        }
        let Ok(section) = Section::parse(&text, Format::Yaml, (line, 1)) else { return Ok(false) };
        self.index.add(&Arc::new(section), offset, text.len() + 1 - column, (line, column));
        Ok(true)
    }
}
