//! Cuts a YAML text at its documents, and a long list at its items.
//!
//! A line that begins with `---` or `...` ends a document, whatever is in it. The items of a list are those of the parser, which
//! reads the list while it is cut. A list with anchors, aliases or tags of items is not cut: an item alone would lack them.

use super::{ObjectIndex, Uncut};
use crate::document::ObjectHead;
use crate::file::{Format, Section, position_after, yaml_documents};
use crate::input::LARGEST;
use crate::syntax::DEEPEST_FLOW;
use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};
use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::Arc;

/// Adds the objects of a text. A list of more than `long` bytes is cut at its items.
pub(super) fn cut(source: impl Read + Seek, index: &mut ObjectIndex, long: usize) -> Result<(), Uncut> {
    let source = BufReader::with_capacity(64 << 10, source);
    let mut lines = YamlLines { source, held: Vec::new(), offset: 0, line: 1 };
    while lines.document(index, long)? {}
    Ok(())
}

/// The lines of a text.
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
    fn document(&mut self, index: &mut ObjectIndex, long: usize) -> Result<bool, Uncut> {
        let (offset, line) = (self.offset, self.line);
        let mut bytes = Vec::new();
        let (mut has_content, mut may_be_cut) = (false, true);
        let mut has_items = false;
        let is_end = loop {
            let start = bytes.len();
            match self.next(&mut bytes, has_content)? {
                NextLine::End => break true,
                NextLine::OfNextDocument | NextLine::Last => break false,
                NextLine::Content => has_content = true,
                NextLine::Blank => {}
            }
            has_items |= bytes.get(start..).is_some_and(|line| line.starts_with(b"items:"));
            if bytes.len() > long && has_items && may_be_cut {
                let first = (index.extents.len(), index.objects);
                if self.list(index, std::mem::take(&mut bytes), (offset, line))? {
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

    /// Adds the items of a list, whose first lines were read already. Returns false if it cannot be cut.
    fn list(&mut self, index: &mut ObjectIndex, read: Vec<u8>, (offset, line): (u64, usize)) -> Result<bool, Uncut> {
        let (first, read) = (index.extents.len(), text(read)?);
        let seen = Rc::new(RefCell::new(SeenText::default()));
        let bom = if read.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let characters = Characters { lines: self, line: read, at: bom, is_last: false, seen: Rc::clone(&seen) };
        let options = granit_parser::options! { emit_comments: false, flow_nesting_limit: DEEPEST_FLOW };
        let mut list = ListCutter {
            index,
            skeleton: String::new(),
            offset: offset + bom as u64,
            characters: 0,
            line,
            open: Vec::new(),
            place: NextNode::Key,
            item: None,
        };
        for next in Parser::new_from_iter_with_options(characters, options) {
            let Ok((event, span)) = next else { return Ok(false) };
            if !list.take(&event, &span, &seen)? {
                return Ok(false);
            }
        }
        if seen.borrow().has_failed {
            return Err(Uncut);
        }
        let ListCutter { index, mut skeleton, .. } = list;
        skeleton.push_str(&seen.borrow().text);
        let Ok(skeleton) = Section::parse(&skeleton, Format::Yaml, (line, 1)).map(Arc::new) else { return Ok(false) };
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

fn text(bytes: Vec<u8>) -> Result<String, Uncut> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(Uncut)
}

/// The text that the parser has read, and the cutter has not.
#[derive(Default)]
struct SeenText {
    text: String,
    has_failed: bool,
}

/// The characters of one document.
struct Characters<'l, R> {
    lines: &'l mut YamlLines<R>,
    line: String,
    at: usize,
    is_last: bool,
    seen: Rc<RefCell<SeenText>>,
}

impl<R: Read + Seek> Iterator for Characters<'_, R> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if self.at == self.line.len() {
            if self.is_last {
                return None;
            }
            let mut bytes = std::mem::take(&mut self.line).into_bytes();
            bytes.clear();
            let read = self.lines.next(&mut bytes, true).map_err(Uncut::from);
            let read = read.and_then(|next| Ok((next, text(bytes)?)));
            self.at = 0;
            match read {
                Ok((NextLine::Blank | NextLine::Content, line)) => self.line = line,
                Ok((NextLine::Last, line)) => (self.line, self.is_last) = (line, true),
                Ok((NextLine::OfNextDocument | NextLine::End, _)) => self.is_last = true,
                Err(Uncut) => {
                    self.is_last = true;
                    self.seen.borrow_mut().has_failed = true;
                }
            }
        }
        let next = self.line.get(self.at..)?.chars().next()?;
        self.at += next.len_utf8();
        self.seen.borrow_mut().text.push(next);
        Some(next)
    }
}

/// Cuts the items out of a list while the parser reads it.
struct ListCutter<'i> {
    index: &'i mut ObjectIndex,
    /// The text without the items. It keeps their lines.
    skeleton: String,
    /// Bytes and characters before the text that is not cut yet.
    offset: u64,
    characters: usize,
    /// The line of the document.
    line: usize,
    /// True for each open collection in flow style.
    open: Vec<bool>,
    place: NextNode,
    /// The item that is open: its start, in characters, with its line and column, and the end of what it has.
    item: Option<OpenItem>,
}

/// The place of the next node of the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextNode {
    Key,
    Items,
    Value,
}

#[derive(Clone, Copy)]
struct OpenItem {
    start: usize,
    line: usize,
    column: usize,
    end: usize,
}

impl ListCutter<'_> {
    /// Takes an event. Returns false if the text is not a list that can be cut.
    #[expect(clippy::wildcard_enum_match_arm, reason = "starts and ends of documents have no node")]
    fn take(&mut self, event: &Event<'_>, span: &Span, seen: &RefCell<SeenText>) -> Result<bool, Uncut> {
        let (opens, is_flow, is_plain) = match event {
            Event::Scalar(_, _, anchor, tag) => (false, false, *anchor == 0 && tag.is_none()),
            Event::SequenceStart(style, anchor, tag) | Event::MappingStart(style, anchor, tag) => {
                (true, *style == StructureStyle::Flow, *anchor == 0 && tag.is_none())
            }
            Event::SequenceEnd | Event::MappingEnd => return self.close(span, seen),
            Event::Alias(_) => return Ok(false),
            _ => return Ok(true),
        };
        let depth = self.open.len();
        if depth == 0 {
            self.open.push(is_flow);
            return Ok(matches!(event, Event::MappingStart(..)) && is_plain && !is_flow);
        }
        let is_block = matches!(event, Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..));
        if depth == 2 && self.place == NextNode::Items {
            if is_block {
                // The span begins below the sign.
                return Ok(false);
            }
            let (start, line, column) = (span.start.index(), span.start.line(), span.start.col());
            self.item = Some(OpenItem { start, line, column, end: start });
        }
        // A missing value does not extend its item, an empty block does.
        if let Some(item) = self.item.as_mut().filter(|_| !opens && (is_block || !span.is_empty())) {
            item.end = item.end.max(span.end.index());
        }
        // An anchor would be missed by its aliases, wherever they are.
        if !is_plain {
            return Ok(false);
        }
        if opens {
            if depth == 1 && self.place == NextNode::Items && !matches!(event, Event::SequenceStart(..)) {
                self.place = NextNode::Value;
            }
            self.open.push(is_flow);
            return Ok(true);
        }
        match (depth, self.place) {
            (1, NextNode::Key) => {
                let is_items = matches!(event, Event::Scalar(text, ..) if text == "items");
                self.place = if is_items { NextNode::Items } else { NextNode::Value };
            }
            (1, _) => self.place = NextNode::Key,
            (2, NextNode::Items) => self.end_item(seen)?,
            _ => {}
        }
        Ok(true)
    }

    fn close(&mut self, span: &Span, seen: &RefCell<SeenText>) -> Result<bool, Uncut> {
        let is_flow = self.open.pop().unwrap_or_default();
        if let Some(item) = self.item.as_mut().filter(|_| is_flow) {
            item.end = item.end.max(span.end.index());
        }
        match (self.open.len(), self.place) {
            // A key that is no scalar.
            (1, NextNode::Key) => self.place = NextNode::Value,
            (1, _) => self.place = NextNode::Key,
            (2, NextNode::Items) => self.end_item(seen)?,
            _ => {}
        }
        Ok(true)
    }

    fn end_item(&mut self, seen: &RefCell<SeenText>) -> Result<(), Uncut> {
        let Some(item) = self.item.take().filter(|item| item.end > item.start) else { return Ok(()) };
        let text = &mut seen.borrow_mut().text;
        let bytes_of = |characters: usize| {
            let mut starts = text.char_indices().map(|(start, _)| start).chain([text.len()]);
            starts.nth(characters).ok_or(Uncut)
        };
        let start = bytes_of(item.start.checked_sub(self.characters).ok_or(Uncut)?)?;
        let end = bytes_of(item.end - self.characters)?;
        let own = text.get(start..end).ok_or(Uncut)?;
        // A block scalar ends at the next token, which may be indented.
        let end = start + if own.contains('\n') { own.trim_end_matches(' ').len() } else { own.len() };
        let own = text.get(start..end).ok_or(Uncut)?;
        let place = (self.line + item.line - 1, item.column + 1);
        let padded = format!("{}{own}", " ".repeat(item.column));
        let section = Section::parse(&padded, Format::Yaml, (place.0, 1)).map_err(|_| Uncut)?;
        self.index.add(&Arc::new(section), self.offset + start as u64, own.len(), place);
        let lines = own.matches('\n').count();
        let passed = text.get(..end).unwrap_or_default();
        self.characters += passed.chars().count();
        self.offset += end as u64;
        self.skeleton.push_str(text.get(..start).unwrap_or_default());
        self.skeleton.push('0');
        self.skeleton.extend(std::iter::repeat_n('\n', lines));
        text.drain(..end);
        if self.skeleton.len() as u64 > LARGEST {
            return Err(Uncut);
        }
        Ok(())
    }
}
