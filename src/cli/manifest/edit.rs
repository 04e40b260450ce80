//! Changes to a document that leave the rest of its text as the author wrote it: comments, order, quotes, indentation.
//!
//! An edit is made to the text and to the value. The text is used only if it reads as the value says; where it does not
//! (anchors, merge keys and other cunning), the document is written anew from the value.

use super::file::{Format, Section};
use super::stream::starts_explicitly;
use super::syntax::{MappingEntry, Node, Shape, Tree};
use super::yaml;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// One change to a member of an object, named by the path to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edit {
    /// Takes a member away.
    Remove(Vec<String>),
    /// Gives a member a value, whether it was there or not; the object is there.
    Set(Vec<String>, Value),
}

/// A document after its edits.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// Whether the text had to be written anew, so that comments are lost.
    pub(crate) rewritten: bool,
}

/// Makes the edits, in order. No member may be named twice.
pub(crate) fn edit(section: &Section, edits: &[Edit]) -> anyhow::Result<Edited> {
    let value = edited_value(section, edits)?;
    let kept = section.tree().and_then(|tree| Spans { text: &section.text, tree }.edit(edits));
    if let Some(text) = kept.filter(|text| reads_as(text, section.format, &value)) {
        return Ok(Edited { text, rewritten: false });
    }
    Ok(Edited { text: write(section, &value)?, rewritten: true })
}

/// The value of the document after the edits.
pub(crate) fn edited_value(section: &Section, edits: &[Edit]) -> anyhow::Result<Value> {
    let mut value: Value = serde_json::from_str(section.json()).context("cannot be edited")?;
    for edit in edits {
        edit.apply(&mut value);
    }
    Ok(value)
}

impl Edit {
    fn path(&self) -> &[String] {
        match self {
            Self::Remove(path) | Self::Set(path, _) => path,
        }
    }

    fn apply(&self, value: &mut Value) {
        let Some((name, parents)) = self.path().split_last() else { return };
        let parent = parents.iter().try_fold(value, |at, token| match at {
            Value::Object(members) => members.get_mut(token),
            Value::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        });
        let Some(Value::Object(members)) = parent else { return };
        match self {
            Self::Remove(_) => {
                members.shift_remove(name);
            }
            Self::Set(_, value) => {
                members.insert(name.clone(), value.clone());
            }
        }
    }
}

fn reads_as(text: &str, format: Format, value: &Value) -> bool {
    let json = match format {
        Format::Json => Ok(text.to_owned()),
        Format::Yaml => yaml::to_json(text),
    };
    json.is_ok_and(|json| serde_json::from_str::<Value>(&json).is_ok_and(|read| read == *value))
}

/// The value as a text that can stand where the section's stood.
fn write(section: &Section, value: &Value) -> anyhow::Result<String> {
    let before = section.text.len() - section.text.trim_start().len();
    let before = section.text.get(..before).unwrap_or_default();
    Ok(match section.format {
        Format::Json => format!("{before}{}", serde_json::to_string_pretty(value)?),
        Format::Yaml => {
            let marker = if starts_explicitly(&section.text) { "---\n" } else { "" };
            let end = if section.text.ends_with("...") { "..." } else { "" };
            format!("{marker}{}{end}", yaml::from_value(value)?)
        }
    })
}

/// The edits of one mapping, by the position of the entry.
#[derive(Default)]
struct Changes<'e> {
    removed: Vec<usize>,
    replaced: BTreeMap<usize, &'e Value>,
    added: Vec<(&'e str, &'e Value)>,
}

/// A piece of the text and what stands there afterwards.
type Splice = (Range<usize>, String);

struct Spans<'t> {
    text: &'t str,
    tree: &'t Tree,
}

impl Spans<'_> {
    /// The text with the edits made, as far as they can be made to text.
    fn edit(&self, edits: &[Edit]) -> Option<String> {
        let mut mappings: BTreeMap<usize, Changes<'_>> = BTreeMap::new();
        for edit in edits {
            let (name, parents) = edit.path().split_last()?;
            // What is reached through an alias is edited where its anchor stands, if it is edited there too.
            let Some(mapping) = self.tree.find(parents).filter(|id| self.tree.is_mapping(*id)) else { continue };
            let entry = self.tree.entry(mapping, name);
            let changes = mappings.entry(mapping).or_default();
            match (edit, entry) {
                (Edit::Remove(_), Some((index, _))) => changes.removed.push(index),
                (Edit::Remove(_), None) => {}
                (Edit::Set(_, value), Some((index, _))) => {
                    changes.replaced.insert(index, value);
                }
                (Edit::Set(_, value), None) => changes.added.push((name, value)),
            }
        }
        let mut splices = Vec::new();
        for (mapping, changes) in mappings {
            let Shape::Mapping { flow, entries } = &self.tree.node(mapping)?.shape else { return None };
            if *flow {
                self.flow(mapping, entries, &changes, &mut splices)?;
            } else {
                self.block(entries, &changes, &mut splices)?;
            }
        }
        self.splice(splices)
    }

    /// Entries on lines of their own.
    fn block(&self, entries: &[MappingEntry], changes: &Changes<'_>, splices: &mut Vec<Splice>) -> Option<()> {
        let first = self.tree.node(entries.first()?.key)?;
        let (newline, indent) = (self.newline(), first.column - 1);
        let added = changes.added.iter().map(|(name, value)| block_member(name, value, indent, newline));
        let added: Vec<String> = added.collect();
        let Some(last_kept) = (0..entries.len()).rev().find(|index| !changes.removed.contains(index)) else {
            let all = first.span.start..self.end(*entries.last()?)?;
            let text = added.join(&format!("{newline}{}", " ".repeat(indent)));
            splices.push((all, if text.is_empty() { "{}".to_owned() } else { text }));
            return Some(());
        };
        for index in &changes.removed {
            let entry = entries.get(*index)?;
            let key = self.tree.node(entry.key)?;
            let line = self.line_start(key.span.start);
            let range = if self.text.get(line..key.span.start)?.trim().is_empty() {
                line..self.line_end(self.end(*entry)?)
            } else {
                // It shares its line with the `-` of the list item that the mapping is.
                key.span.start..self.tree.node(entries.get(index + 1)?.key)?.span.start
            };
            splices.push((range, String::new()));
        }
        self.replace(entries, changes, |value| block_value(value, indent, newline), splices)?;
        if !added.is_empty() {
            let end = self.line_end(self.end(*entries.get(last_kept)?)?);
            let line = self.text.get(..end)?;
            let at = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line)).len();
            splices.push((at..at, precede(&added, &format!("{newline}{}", " ".repeat(indent)))));
        }
        Some(())
    }

    /// Entries between braces, and all of JSON.
    fn flow(
        &self,
        mapping: usize,
        entries: &[MappingEntry],
        changes: &Changes<'_>,
        splices: &mut Vec<Splice>,
    ) -> Option<()> {
        let colon = entries.first().and_then(|entry| self.colon(*entry)).unwrap_or(": ");
        let added =
            changes.added.iter().map(|(name, value)| format!("{}{colon}{}", quote(name), flow_value(value, colon)));
        let added: Vec<String> = added.collect();
        let kept = |index: &usize| !changes.removed.contains(index);
        let Some(last_kept) = (0..entries.len()).rev().find(kept) else {
            // Inside the braces, and they stay.
            let node = self.tree.node(mapping)?;
            let inside = match (entries.first(), entries.last()) {
                (Some(first), Some(last)) => self.tree.node(first.key)?.span.start..self.end(*last)?,
                _ => node.span.start + 1..node.span.start + 1,
            };
            splices.push((inside, added.join(", ")));
            return Some(());
        };
        let last_end = self.end(*entries.get(last_kept)?)?;
        if !added.is_empty() {
            let key = self.tree.node(entries.get(last_kept)?.key)?;
            let before = self.text.get(self.line_start(key.span.start)..key.span.start)?;
            // One member a line stays one member a line.
            let separator = if before.trim().is_empty() && key.line > 1 {
                format!(",{}{before}", self.newline())
            } else if colon.ends_with(' ') {
                ", ".to_owned()
            } else {
                ",".to_owned()
            };
            splices.push((last_end..last_end, precede(&added, &separator)));
        }
        for index in &changes.removed {
            let entry = entries.get(*index)?;
            let range = if *index < last_kept {
                let next = self.tree.node(entries.get(index + 1)?.key)?;
                self.tree.node(entry.key)?.span.start..next.span.start
            } else {
                last_end..self.end(*entry)?
            };
            splices.push((range, String::new()));
        }
        self.replace(entries, changes, |value| format!("{colon}{}", flow_value(value, colon)), splices)
    }

    /// Values in place of others, from the colon on.
    fn replace(
        &self,
        entries: &[MappingEntry],
        changes: &Changes<'_>,
        render: impl Fn(&Value) -> String,
        splices: &mut Vec<Splice>,
    ) -> Option<()> {
        for (index, value) in &changes.replaced {
            let entry = entries.get(*index)?;
            splices.push((self.tree.node(entry.key)?.span.end..self.end(*entry)?, render(value)));
        }
        Some(())
    }

    fn splice(&self, mut splices: Vec<Splice>) -> Option<String> {
        splices.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut done) = (String::with_capacity(self.text.len() + 256), 0);
        for (range, replacement) in splices {
            // Removals may overlap: members that follow one another at the end of a mapping.
            text.push_str(self.text.get(done..range.start.max(done))?);
            text.push_str(&replacement);
            done = done.max(range.end);
        }
        text.push_str(self.text.get(done..)?);
        Some(text)
    }

    /// Where an entry ends: with its value, or its colon where that is empty.
    fn end(&self, entry: MappingEntry) -> Option<usize> {
        let (key, value) = (self.tree.node(entry.key)?, self.tree.node(entry.value)?);
        if !value.span.is_empty() || !matches!(value.shape, Shape::Scalar { .. }) {
            return Some(value.span.end);
        }
        let rest = self.text.get(key.span.end..)?;
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let colon = if rest.get(blank..)?.starts_with(':') { blank + 1 } else { 0 };
        // An empty block scalar is there all the same, by its header.
        let block = matches!(value, Node { shape: Shape::Scalar { block: true, .. }, .. });
        Some(if block { value.span.end } else { key.span.end + colon })
    }

    /// What stands between a key and its value, if that is a colon and blanks.
    fn colon(&self, entry: MappingEntry) -> Option<&str> {
        let (key, value) = (self.tree.node(entry.key)?, self.tree.node(entry.value)?);
        let between = self.text.get(key.span.end..value.span.start)?;
        (between.trim() == ":" && !between.contains(['\n', '\r'])).then_some(between)
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// Behind the newline, or the end of the text.
    fn line_end(&self, at: usize) -> usize {
        let newline = self.text.get(at..).and_then(|after| after.find('\n'));
        newline.map_or(self.text.len(), |newline| at + newline + 1)
    }
}

fn block_member(name: &str, value: &Value, indent: usize, newline: &str) -> String {
    format!("{}{}", plain_or_quoted(name), block_value(value, indent, newline))
}

/// A value behind its key, colon included.
fn block_value(value: &Value, indent: usize, newline: &str) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let indent = indent + 2;
            let members = members.iter().map(|(name, value)| block_member(name, value, indent, newline));
            let members: Vec<String> = members.collect();
            format!(":{}", precede(&members, &format!("{newline}{}", " ".repeat(indent))))
        }
        Value::String(text) => format!(": {}", plain_or_quoted(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => format!(": {value}"),
    }
}

/// A value as it may stand between braces, in JSON too, with the blanks of what is around it.
fn flow_value(value: &Value, colon: &str) -> String {
    let Some(members) = value.as_object().filter(|_| colon.ends_with(' ')) else { return value.to_string() };
    let members = members.iter().map(|(name, value)| format!("{}{colon}{}", quote(name), flow_value(value, colon)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// The texts, each with something in front.
fn precede(texts: &[String], separator: &str) -> String {
    texts.iter().flat_map(|text| [separator, text]).collect()
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A string as people write it in YAML: bare where it can't be mistaken, else in single quotes, which need no escapes.
fn plain_or_quoted(text: &str) -> String {
    let mut characters = text.chars();
    let bare = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || "-_./".contains(character))
        && yaml::to_json(text).is_ok_and(|json| json == quote(text));
    if bare {
        text.to_owned()
    } else if text
        .chars()
        .any(|character| character.is_control() || "\u{85}\u{2028}\u{2029}\u{feff}".contains(character))
    {
        quote(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(pointer: &str) -> Vec<String> {
        pointer.split('/').skip(1).map(str::to_owned).collect()
    }

    fn edited(text: &str, format: Format, edits: &[Edit]) -> (String, bool) {
        let section = Section::parse(text, format, (1, 1)).unwrap();
        let edited = edit(&section, edits).unwrap();
        (edited.text, edited.rewritten)
    }

    #[track_caller]
    fn keeps(format: Format, before: &str, edits: &[Edit], after: &str) {
        assert_eq!(edited(before, format, edits), (after.to_owned(), false));
    }

    fn remove(pointer: &str) -> Edit {
        Edit::Remove(path(pointer))
    }

    fn set(pointer: &str, value: impl Into<Value>) -> Edit {
        Edit::Set(path(pointer), value.into())
    }

    #[test]
    fn lines_of_a_block_mapping_come_and_go() {
        let before = "# head\na: # of a\n  x: 1 # one\n  y:\n  - 2 # two\n  # of z\n  z: |\n    text\n\n# tail\nb: 3\n";
        keeps(Format::Yaml, before, &[remove("/a/y")], &before.replace("  y:\n  - 2 # two\n", ""));
        keeps(Format::Yaml, before, &[remove("/a/z")], &before.replace("  z: |\n    text\n", ""));
        keeps(Format::Yaml, before, &[remove("/b")], &before.replace("b: 3\n", ""));
        keeps(Format::Yaml, before, &[set("/a/w", "v")], &before.replace("    text\n", "    text\n  w: v\n"));
        keeps(Format::Yaml, before, &[set("/b", "yes")], &before.replace("b: 3", "b: 'yes'"));
        keeps(
            Format::Yaml,
            before,
            &[remove("/a/x"), remove("/a/y"), remove("/a/z")],
            "# head\na: # of a\n  {}\n\n# tail\nb: 3\n",
        );
        keeps(
            Format::Yaml,
            before,
            &[remove("/b"), set("/c", json!({"d/e": "it's {}", "f": {}}))],
            "# head\na: # of a\n  x: 1 # one\n  y:\n  - 2 # two\n  # of z\n  z: |\n    text\nc:\n  d/e: 'it''s {}'\n  f: {}\n\n# tail\n",
        );
    }

    #[test]
    fn a_list_item_keeps_its_dash() {
        keeps(Format::Yaml, "l:\n- a: 1\n  b: 2\n- c: 3\n", &[remove("/l/0/a")], "l:\n- b: 2\n- c: 3\n");
        keeps(Format::Yaml, "l:\n- a: 1\n- c: 3\n", &[remove("/l/0/a")], "l:\n- {}\n- c: 3\n");
        keeps(Format::Yaml, "l:\n- a: 1\n", &[remove("/l/0/a"), set("/l/0/b", "x")], "l:\n- b: x\n");
    }

    #[test]
    fn braces_keep_their_style() {
        keeps(Format::Yaml, "a: {x: 1, y: [2], z: 3} # c\n", &[remove("/a/y")], "a: {x: 1, z: 3} # c\n");
        keeps(Format::Yaml, "a: {x: 1, y: [2], z: 3}\n", &[remove("/a/y"), remove("/a/z")], "a: {x: 1}\n");
        keeps(Format::Yaml, "a: {x: 1}\n", &[remove("/a/x")], "a: {}\n");
        keeps(Format::Yaml, "a: {}\n", &[set("/a/b", "c")], "a: {\"b\": \"c\"}\n");
        keeps(Format::Yaml, "a: {x: }\n", &[set("/a/b", "c")], "a: {x:, \"b\": \"c\" }\n");
        keeps(Format::Json, r#"{"a":{"x":1,"y":2}}"#, &[remove("/a/x"), set("/a/z", "v")], r#"{"a":{"y":2,"z":"v"}}"#);
        keeps(
            Format::Json,
            "{\n  \"a\": {\n    \"x\": 1,\n    \"y\": 18446744073709551617\n  }\n}",
            &[remove("/a/x"), set("/a/z", json!({"k": "v"}))],
            "{\n  \"a\": {\n    \"y\": 18446744073709551617,\n    \"z\": {\"k\": \"v\"}\n  }\n}",
        );
    }

    #[test]
    fn the_ends_of_lines_and_of_the_text_are_kept() {
        keeps(Format::Yaml, "a: 1\r\nb: 2\r\n", &[remove("/a"), set("/c", "x")], "b: 2\r\nc: x\r\n");
        keeps(Format::Yaml, "a: 1\nb: 2", &[set("/c", "x")], "a: 1\nb: 2\nc: x");
        keeps(Format::Yaml, "a:\n", &[set("/a", json!({"b": "c"}))], "a:\n  b: c\n");
        keeps(Format::Yaml, "---\na: >-\n  x\n  y\n...", &[set("/a", "z")], "---\na: z\n...");
    }

    #[test]
    fn what_anchors_reach_is_edited_once_or_written_anew() {
        let shared = "a: &a\n  x: 1 # one\n  y: 2\nb: *a\n";
        keeps(Format::Yaml, shared, &[remove("/a/x"), remove("/b/x")], &shared.replace("  x: 1 # one\n", ""));
        let (text, rewritten) = edited(shared, Format::Yaml, &[remove("/b/x")]);
        assert!(rewritten);
        assert_eq!(yaml::to_json(&text).unwrap(), r#"{"a":{"x":1,"y":2},"b":{"y":2}}"#);
        let (text, rewritten) = edited("---\na: &a {x: 1}\nb: {<<: *a}\n", Format::Yaml, &[remove("/b/x")]);
        assert!(rewritten && text.starts_with("---\n"), "{text}");
    }
}
