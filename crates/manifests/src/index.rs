//! The places of the objects in a file, so that one after the other is read and forgotten.
//!
//! A file is read twice. The first pass cuts it into objects and checks that each can be read, so that a fault at its end is known
//! before anything is said about its beginning. It keeps the [`Extent`] of each object. The second pass reads the objects that the
//! caller asks for. Neither holds more than one object, or one document that is no list.
//!
//! [`json`] cuts a JSON text at its values, and a list at its items. [`yaml`] cuts a YAML text at its documents, and a list at its
//! items. A file that these cannot cut is read as a whole by [`RenderedFile`], so that a document that cannot be read loses no other.

mod json;
#[cfg(test)]
mod tests;
mod yaml;

use crate::document::{Document, ObjectHead};
use crate::file::{Format, Problem, Section};
use crate::input::LARGEST;
use crate::misspelt;
use crate::rendering::RenderedFile;
use crate::yaml::on_deep_stack;
use kube_unions_core::names::GroupVersionKind;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes in which the first one that is not blank tells the format.
const START: u64 = 4096;

/// Bytes of text that are parsed at once.
const BATCH: u64 = 256 << 10;

/// Most kinds of which an index knows that the file has objects.
const MOST_KINDS: usize = 10_000;

/// The objects of a file, by their places. An object takes 32 bytes.
#[derive(Debug)]
pub struct ObjectIndex {
    path: PathBuf,
    format: Format,
    extents: Vec<Extent>,
    /// The lists that were cut at their items.
    lists: Vec<ObjectHead>,
    objects: usize,
    /// The kinds of the objects.
    kinds: BTreeSet<GroupVersionKind>,
    /// The reasons why documents cannot be read.
    pub unread: Vec<Problem>,
    /// Keys that an object has twice. The last one counts, as for kubectl and Helm.
    pub duplicates: Vec<Problem>,
}

/// The role of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestRole {
    /// The documents that [describe kinds](Document::describes_kinds), and those that [resemble](misspelt::kind_of_declaration)
    /// them.
    Kinds,
    /// The documents that are [objects](Document::is_object), and those that resemble what describes kinds.
    Objects,
}

/// The place of an object in its file, or of a document with several.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Bytes before it.
    offset: u64,
    /// Bytes.
    length: u32,
    /// The position of the first byte, counted from 1.
    line: u32,
    column: u32,
    /// The list that has it as an item, an index into [`ObjectIndex::lists`].
    list: Option<u32>,
    /// True if the type of the object is that of its list.
    is_untyped: bool,
    /// True if it has documents of [`ManifestRole::Kinds`].
    has_kinds: bool,
    /// True if it has documents of [`ManifestRole::Objects`].
    has_objects: bool,
}

/// The file cannot be cut, or has a fault. It is read as a whole, which tells the fault.
#[derive(Debug)]
struct Uncut;

impl Extent {
    fn has(&self, role: ManifestRole) -> bool {
        match role {
            ManifestRole::Kinds => self.has_kinds,
            ManifestRole::Objects => self.has_objects,
        }
    }
}

impl From<io::Error> for Uncut {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl ObjectIndex {
    /// Reads a file from its beginning to its end.
    ///
    /// # Errors
    /// The content is no text, or cannot be read.
    pub fn read(path: PathBuf, mut source: impl Read + Seek + Send) -> Result<Self, Problem> {
        let name = path.clone();
        let read = on_deep_stack(|| match Self::cut(path.clone(), &mut source) {
            Ok(index) => Ok(index),
            Err(Uncut) => Self::whole(path, source),
        });
        read.unwrap_or_else(|message| Err(Problem::of_file(&name, message)))
    }

    fn new(path: PathBuf, format: Format) -> Self {
        let (extents, lists, kinds) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { path, format, extents, lists, objects: 0, kinds, unread: Vec::new(), duplicates: Vec::new() }
    }

    fn cut(path: PathBuf, source: &mut (impl Read + Seek)) -> Result<Self, Uncut> {
        source.rewind()?;
        let mut start = Vec::new();
        source.by_ref().take(START).read_to_end(&mut start)?;
        let is_short = (start.len() as u64) < START;
        let start = start.trim_ascii_start();
        let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).trim_ascii_start();
        if start.is_empty() && !is_short {
            return Err(Uncut);
        }
        source.rewind()?;
        let format = if start.starts_with(b"{") || start.starts_with(b"[") { Format::Json } else { Format::Yaml };
        let mut index = Self::new(path, format);
        match format {
            Format::Json => json::cut(source, &mut index)?,
            Format::Yaml => yaml::cut(source, &mut index)?,
        }
        Ok(index)
    }

    /// Reads a file that cannot be cut.
    fn whole(path: PathBuf, mut source: impl Read + Seek) -> Result<Self, Problem> {
        let mut bytes = Vec::new();
        let read = source.rewind().and_then(|()| source.take(LARGEST + 1).read_to_end(&mut bytes));
        let read = read.and_then(|_| {
            let too_long = || io::Error::other(format!("it has more than {LARGEST} bytes"));
            if bytes.len() as u64 > LARGEST { Err(too_long()) } else { Ok(()) }
        });
        read.map_err(|error| Problem::of_file(&path, format!("cannot be read: {error}")))?;
        let RenderedFile { file, unread, duplicates } = RenderedFile::read(&path, bytes)?;
        let format = file.sections.first().map_or(Format::Yaml, |section| section.format);
        let mut index = Self { unread, duplicates, ..Self::new(path, format) };
        let mut offset = 0;
        for section in &file.sections {
            index.add_section(section, offset);
            offset += section.text.len() as u64;
        }
        Ok(index)
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of documents that are [objects](Document::is_object).
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Returns the kinds of the documents that are [objects](Document::is_object).
    pub fn object_kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.kinds.iter()
    }

    /// Returns true if there are documents of a role.
    pub fn has(&self, role: ManifestRole) -> bool {
        self.extents.iter().any(|extent| extent.has(role))
    }

    /// Returns the documents of a role, and their neighbours in short lists, in the order of the file.
    pub fn documents<S: Read + Seek + Send>(&self, source: S, role: ManifestRole) -> IndexedDocuments<'_, S> {
        IndexedDocuments { index: self, source, role, next: 0, ready: VecDeque::new() }
    }

    /// Adds a text with one document or several.
    fn add_section(&mut self, section: &Arc<Section>, offset: u64) {
        let position = (section.line, section.column);
        self.add(section, offset, section.text.len(), position);
    }

    /// Adds the object of a section, which stands at a place of the file.
    fn add(&mut self, section: &Arc<Section>, offset: u64, length: usize, position: (usize, usize)) {
        let documents = Document::all_in(&self.path, section, None);
        if documents.is_empty() {
            return;
        }
        let mut extent = Extent {
            offset,
            length: narrow(length),
            line: narrow(position.0),
            column: narrow(position.1),
            list: None,
            is_untyped: false,
            has_kinds: false,
            has_objects: false,
        };
        for document in &documents {
            extent.is_untyped |=
                document.pointer.is_empty() && document.kind.is_none() && document.api_version.is_none();
            self.classify(&mut extent, document);
        }
        self.extents.push(extent);
    }

    fn classify(&mut self, extent: &mut Extent, document: &Document) {
        let is_object = document.is_object();
        self.objects += usize::from(is_object);
        if is_object && document.kind.is_some() && self.kinds.len() < MOST_KINDS {
            self.kinds.insert(document.group_version_kind());
        }
        extent.has_objects |= is_object;
        extent.has_kinds |= misspelt::is_meant_for_kinds(document);
    }

    /// Ends a list whose items are the extents from `first` on. Items without a type take that of the list.
    fn end_list(&mut self, first: usize, list: &ObjectHead, skeleton: &Arc<Section>) {
        let position = u32::try_from(self.lists.len()).ok();
        self.lists.push(list.clone());
        let typed = Document::item_of(&self.path, skeleton, list);
        let mut extents = self.extents.split_off(first.min(self.extents.len()));
        for extent in &mut extents {
            extent.list = position;
            if let Some(typed) = typed.as_ref().filter(|_| extent.is_untyped && !extent.has_kinds) {
                self.objects -= 1;
                extent.has_objects = false;
                self.classify(extent, typed);
            }
        }
        self.extents.append(&mut extents);
    }

    /// Forgets the objects from `first` on, which are no items of a list.
    fn forget(&mut self, first: usize, objects: usize) {
        self.extents.truncate(first);
        self.objects = objects;
    }

    fn section(&self, source: &mut (impl Read + Seek), extent: &Extent) -> Result<Arc<Section>, Problem> {
        let (line, mut column) = (extent.line as usize, extent.column as usize);
        let mut text = String::new();
        if self.format == Format::Yaml && extent.list.is_some() {
            // The lines of an item have the same indentation.
            text = " ".repeat(column - 1);
            column = 1;
        }
        let read = source.seek(SeekFrom::Start(extent.offset));
        let read = read.and_then(|_| source.take(extent.length.into()).read_to_string(&mut text));
        read.map_err(|error| Problem::of_file(&self.path, format!("cannot be read: {error}")))?;
        let changed = |_| Problem::of_file(&self.path, "changed while it was read".to_owned());
        let read = Section::parse_with_duplicate(&text, self.format, (line, column));
        read.map(|(section, _)| Arc::new(section)).map_err(changed)
    }
}

/// The documents of a role in a file.
#[derive(Debug)]
pub struct IndexedDocuments<'i, S> {
    index: &'i ObjectIndex,
    source: S,
    role: ManifestRole,
    next: usize,
    /// Documents that were read together.
    ready: VecDeque<Document>,
}

impl<S: Read + Seek + Send> IndexedDocuments<'_, S> {
    /// Reads the next documents, none at the end.
    fn refill(&mut self) -> Result<(), Problem> {
        let Self { index, source, role, next, ready } = self;
        let mut length = 0;
        while let Some(extent) = index.extents.get(*next)
            && length < BATCH
        {
            *next += 1;
            if extent.has(*role) {
                length += u64::from(extent.length);
                let section = index.section(source, extent)?;
                let list = extent.list.and_then(|list| index.lists.get(list as usize));
                ready.extend(Document::all_in(&index.path, &section, list));
            }
        }
        Ok(())
    }
}

impl<S: Read + Seek + Send> Iterator for IndexedDocuments<'_, S> {
    type Item = Result<Document, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.next < self.index.extents.len() {
            let path = &self.index.path;
            let read = on_deep_stack(|| self.refill());
            if let Err(problem) = read.unwrap_or_else(|message| Err(Problem::of_file(path, message))) {
                self.next = self.index.extents.len();
                return Some(Err(problem));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

/// The parts of a file have at most [`LARGEST`] bytes. A line beyond the range has the last one.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
