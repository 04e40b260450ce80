//! Splits files into documents and keeps their text, so that unchanged documents are printed byte for byte. A fault has its position.

use crate::syntax::{self, Shape, SyntaxNode, Tree};
use crate::{foreign, yaml};
use kube_unions_core::field_path::pointer_tokens;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A manifest file.
#[derive(Debug)]
pub struct ManifestFile {
    /// The path of the argument, or of a file in its folder.
    pub path: PathBuf,
    /// The documents, in the order of the text.
    pub sections: Vec<Arc<Section>>,
    /// The text after the last document: comments and blank lines.
    pub tail: String,
}

/// One document of a file. The texts of all sections and the tail make up the file.
#[derive(Debug)]
pub struct Section {
    /// The text, with the comments above the document.
    pub text: String,
    /// Its format.
    pub format: Format,
    /// The JSON of a YAML text, `None` for JSON.
    json: Option<String>,
    /// The position of the text in its file, counted from 1.
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// True for a text that cannot be read. It has no object.
    pub is_unread: bool,
    tree: OnceLock<Option<Tree>>,
}

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// A problem with a file, and its position.
#[derive(Debug, Clone, thiserror::Error)]
pub struct Problem {
    /// The file, `<stdin>` for standard input.
    pub file: PathBuf,
    /// Line and column, counted from 1.
    pub position: Option<(usize, usize)>,
    /// The problem, and its remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl Problem {
    /// Returns a problem of a whole file.
    pub fn of_file(file: &Path, message: String) -> Self {
        Self { file: file.to_owned(), position: None, message }
    }

    pub(crate) fn at(file: &Path, position: (usize, usize), message: String) -> Self {
        Self { file: file.to_owned(), position: Some(position), message }
    }
}

impl ManifestFile {
    /// Parses the content of a file or of standard input.
    ///
    /// # Errors
    /// The first text that is neither YAML nor JSON, with its position.
    pub fn read(path: PathBuf, bytes: Vec<u8>) -> Result<Self, Problem> {
        let text = text_of(&path, bytes)?;
        // One thread reads all documents of the file.
        let name = path.clone();
        let parsed = yaml::on_deep_stack(|| Self::parse(path, &text));
        let parsed = parsed.unwrap_or_else(|message| Err(Problem::of_file(&name, message)));
        parsed.map_err(|problem| advised(problem, &text))
    }

    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self, Problem> {
        let ranges = if text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).starts_with(['{', '[']) {
            // YAML in flow style starts like JSON.
            match json_documents(text) {
                Ok(ranges) => Ok((Format::Json, ranges)),
                Err(error) => match yaml_documents(text) {
                    Ok(ranges) if !is_json(&path) && !foreign::has_comments(text) => Ok((Format::Yaml, ranges)),
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

/// Returns the content of a file as text.
pub(crate) fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Problem> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let position = position_after(&String::from_utf8_lossy(before), (1, 1));
        // PowerShell writes redirected output in UTF-16.
        let is_utf16 = error.as_bytes().starts_with(b"\xff\xfe") || error.as_bytes().starts_with(b"\xfe\xff");
        let message = if is_utf16 { "text in UTF-16; save the file in UTF-8" } else { "not text in UTF-8" };
        Problem::at(path, position, message.to_owned())
    })?;
    match text.split_once('\0') {
        Some((before, _)) => {
            Err(Problem::at(path, position_after(before, (1, 1)), "not text: it has a NUL character".to_owned()))
        }
        None => Ok(text),
    }
}

/// Adds what to do about a text that is no manifest. The position is that in the text.
pub(crate) fn advised(problem: Problem, text: &str) -> Problem {
    let line = problem.position.and_then(|(line, _)| text.lines().nth(line.saturating_sub(1)));
    match foreign::advice(&problem.file, text, line.unwrap_or_default(), &problem.message) {
        Some(advice) => Problem { message: format!("{}; {advice}", problem.message), ..problem },
        None => problem,
    }
}

impl Section {
    pub(super) fn parse(text: &str, format: Format, start: (usize, usize)) -> Result<Self, Located> {
        let (section, duplicate) = Self::parse_with_duplicate(text, format, start)?;
        duplicate.map_or(Ok(section), Err)
    }

    /// Parses a text, and returns the first key that an object has twice. The last one counts.
    pub(crate) fn parse_with_duplicate(
        text: &str,
        format: Format,
        start: (usize, usize),
    ) -> Result<(Self, Option<Located>), Located> {
        let located =
            |error: yaml::YamlError| (error.position.map_or(start, |position| shift(position, start)), error.message);
        let (json, duplicate) = match format {
            Format::Json => (None, None),
            Format::Yaml => {
                let (json, duplicate) = yaml::to_json_with_duplicate(text).map_err(located)?;
                (Some(json), duplicate.map(located))
            }
        };
        let (line, column) = start;
        let text = text.to_owned();
        Ok((Self { text, format, json, line, column, is_unread: false, tree: OnceLock::new() }, duplicate))
    }

    /// Returns a section that keeps a text without an object.
    pub(crate) fn without_object(text: &str, (line, column): (usize, usize), is_unread: bool) -> Self {
        let (text, json) = (text.to_owned(), Some("null".to_owned()));
        Self { text, format: Format::Yaml, json, line, column, is_unread, tree: OnceLock::new() }
    }

    /// Returns the document as JSON text.
    pub fn json(&self) -> &str {
        self.json.as_deref().unwrap_or_else(|| self.text.trim_start_matches('\u{feff}').trim())
    }

    /// Returns the syntax tree of the text, `None` if it cannot be parsed.
    pub(super) fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| Tree::read(&self.text)).as_ref()
    }

    /// Returns line and column in the file of a value, or of its nearest existing parent.
    pub(crate) fn position(&self, pointer: &str) -> Option<(usize, usize)> {
        let (tree, path) = (self.tree()?, pointer_tokens(pointer)?);
        let (id, depth) = tree.nearest(&path, true);
        if let Some(inside) = path.get(depth..).and_then(|rest| self.position_in_text(tree.node(id)?, rest)) {
            return Some(shift(inside, (self.line, self.column)));
        }
        // The position of a member is the position of its key.
        let above = path.get(..depth.saturating_sub(1)).unwrap_or_default();
        let (parent, _) = tree.nearest(above, true);
        let key = path.get(depth.wrapping_sub(1)).and_then(|name| tree.entry(parent, name)).map(|(_, entry)| entry);
        let node = tree.node(key.filter(|entry| entry.value == id).map_or(id, |entry| entry.key))?;
        Some(shift((node.line, node.column), (self.line, self.column)))
    }

    /// Returns line and column in the section of a value within a JSON text of several lines, which stand in the file as they are.
    fn position_in_text(&self, node: &SyntaxNode, path: &[String]) -> Option<(usize, usize)> {
        let Shape::Scalar { text, block: true } = &node.shape else { return None };
        let tree = Tree::read(text).filter(|_| !path.is_empty())?;
        let (id, depth) = tree.nearest(path, false);
        let name = path.get(depth.checked_sub(1)?)?;
        let (parent, _) = tree.nearest(path.get(..depth - 1)?, false);
        let inner = tree.node(tree.entry(parent, name).map_or(id, |(_, entry)| entry.key))?;
        // The first line of the text is that of the node.
        let line = (node.line + inner.line).checked_sub(1)?;
        let (own, outer) = (text.lines().nth(inner.line - 1)?, self.text.lines().nth(line - 1)?);
        Some((line, inner.column + outer.strip_suffix(own)?.len()))
    }
}

/// A message and its position.
pub(crate) type Located = ((usize, usize), String);

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

pub(crate) fn yaml_documents(text: &str) -> Result<Vec<Range<usize>>, Located> {
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

/// Converts a position in a text to a position in the file. The text starts at `start`.
pub(crate) fn shift((line, column): (usize, usize), start: (usize, usize)) -> (usize, usize) {
    if line <= 1 { (start.0, start.1 + column - 1) } else { (start.0 + line - 1, column) }
}

pub(crate) fn position_after(text: &str, start: (usize, usize)) -> (usize, usize) {
    match text.rsplit_once('\n') {
        None => (start.0, start.1 + text.chars().count()),
        Some((before, last)) => (start.0 + 1 + before.matches('\n').count(), 1 + last.chars().count()),
    }
}
