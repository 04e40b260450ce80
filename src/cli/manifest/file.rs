//! Files of manifests, cut into documents, with all of their text kept: what is not changed can be printed as it was read.

use super::syntax::{self, Tree};
use super::{Problem, yaml};
use kube_unions_core::field_path::pointer_tokens;
use serde_json::value::RawValue;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A file, read.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    /// As given, or as found in a folder.
    pub(crate) path: PathBuf,
    pub(crate) sections: Vec<Arc<Section>>,
    /// What follows the last document: comments, blank lines.
    pub(crate) tail: String,
}

/// One document of a file. The texts of all, and the tail, are the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) text: String,
    pub(crate) format: Format,
    /// The JSON of a YAML text; a JSON text is its own.
    json: Option<String>,
    /// Where the text starts in its file, counted from 1.
    line: usize,
    column: usize,
    tree: OnceLock<Option<Tree>>,
}

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

impl ManifestFile {
    /// Reads what a file or standard input held.
    pub(super) fn read(path: PathBuf, bytes: Vec<u8>) -> Result<Self, Problem> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let position = position_after(&String::from_utf8_lossy(before), (1, 1));
            Problem::at(&path, position, "not text in UTF-8".to_owned())
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: PathBuf, text: &str) -> Result<Self, Problem> {
        let ranges = if text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with(['{', '[']) {
            // Flow style YAML starts so too.
            match json_documents(text) {
                Ok(ranges) => Ok((Format::Json, ranges)),
                Err(error) => match yaml_documents(text) {
                    Ok(ranges) if !is_json(&path) => Ok((Format::Yaml, ranges)),
                    Ok(_) | Err(_) => Err(error),
                },
            }
        } else {
            yaml_documents(text).map(|ranges| (Format::Yaml, ranges))
        };
        let (format, ranges) = match ranges {
            Ok(found) => found,
            Err((position, message)) => return Err(Problem::at(&path, position, message)),
        };

        let mut sections = Vec::with_capacity(ranges.len());
        let (mut position, mut end) = ((1, 1), 0);
        for range in ranges {
            end = range.end;
            let section_text = text.get(range).unwrap_or_default();
            let section = Section::parse(section_text, format, position)
                .map_err(|(position, message)| Problem::at(&path, position, message))?;
            sections.push(Arc::new(section));
            position = position_after(section_text, position);
        }
        Ok(Self { path, sections, tail: text.get(end..).unwrap_or_default().to_owned() })
    }
}

impl Section {
    pub(super) fn parse(text: &str, format: Format, start: (usize, usize)) -> Result<Self, Located> {
        let json =
            match format {
                Format::Json => None,
                Format::Yaml => Some(yaml::to_json(text).map_err(|error| {
                    (error.position.map_or(start, |position| shift(position, start)), error.message)
                })?),
            };
        let (line, column) = start;
        Ok(Self { text: text.to_owned(), format, json, line, column, tree: OnceLock::new() })
    }

    /// The document as JSON text.
    pub(crate) fn json(&self) -> &str {
        self.json.as_deref().unwrap_or_else(|| self.text.trim_start_matches('\u{feff}').trim())
    }

    /// The shape of the text; `None` where it cannot be told.
    pub(super) fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| Tree::read(&self.text)).as_ref()
    }

    /// Line and column in the file of what a JSON Pointer names, or of the nearest above it that is there.
    pub(super) fn position(&self, pointer: &str) -> Option<(usize, usize)> {
        let (tree, path) = (self.tree()?, pointer_tokens(pointer)?);
        let (id, depth) = tree.nearest(&path, true);
        // A member is where its key is.
        let above = path.get(..depth.saturating_sub(1)).unwrap_or_default();
        let (parent, _) = tree.nearest(above, true);
        let key = path.get(depth.wrapping_sub(1)).and_then(|name| tree.entry(parent, name)).map(|(_, entry)| entry);
        let node = tree.node(key.filter(|entry| entry.value == id).map_or(id, |entry| entry.key))?;
        Some(shift((node.line, node.column), (self.line, self.column)))
    }
}

/// A message and where it belongs.
type Located = ((usize, usize), String);

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn yaml_documents(text: &str) -> Result<Vec<Range<usize>>, Located> {
    syntax::documents(text).map_err(|error| {
        let message = error.info().replace("recursion limit exceeded", "nested too deeply");
        ((error.marker().line(), error.marker().col() + 1), message)
    })
}

fn json_documents(text: &str) -> Result<Vec<Range<usize>>, Located> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut stream = serde_json::Deserializer::from_str(text.get(start..).unwrap_or_default()).into_iter::<&RawValue>();
    let (mut documents, mut end) = (Vec::new(), 0);
    while let Some(next) = stream.next() {
        next.map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            ((error.line(), error.column().max(1)), message)
        })?;
        let next_end = start + stream.byte_offset();
        documents.push(end..next_end);
        end = next_end;
    }
    Ok(documents)
}

/// A position within a text, as one in the file where the text starts at `start`.
fn shift((line, column): (usize, usize), start: (usize, usize)) -> (usize, usize) {
    if line <= 1 { (start.0, start.1 + column - 1) } else { (start.0 + line - 1, column) }
}

/// The position behind a text that starts at `start`.
fn position_after(text: &str, start: (usize, usize)) -> (usize, usize) {
    match text.rsplit_once('\n') {
        None => (start.0, start.1 + text.chars().count()),
        Some((before, last)) => (start.0 + 1 + before.matches('\n').count(), 1 + last.chars().count()),
    }
}
