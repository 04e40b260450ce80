//! Edits the text of a YAML or JSON document by replacing ranges of it.

use super::change::Edit;
use crate::syntax::{MappingEntry, Shape, SyntaxNode, Tree};
use crate::yaml;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The edits of one mapping, by index of the entry.
#[derive(Default)]
struct MappingEdits<'e> {
    removed: Vec<usize>,
    replaced: BTreeMap<usize, NewValue<'e>>,
    added: Vec<(&'e str, NewValue<'e>)>,
}

#[derive(Clone, Copy)]
enum NewValue<'e> {
    Any(&'e Value),
    /// A list that has a line for each item, if it is in a block mapping.
    Items(&'e [Value]),
}

/// A range of the text and its replacement.
type Splice = (Range<usize>, String);

/// Returns a text with edits made to it, or `None` if they cannot be made without a change of structure.
pub(super) fn edit_text(text: &str, tree: &Tree, edits: &[Edit]) -> Option<String> {
    TextEditor { text, tree }.edit(edits)
}

struct TextEditor<'t> {
    text: &'t str,
    tree: &'t Tree,
}

impl TextEditor<'_> {
    fn edit(&self, edits: &[Edit]) -> Option<String> {
        let mut mappings: BTreeMap<usize, MappingEdits<'_>> = BTreeMap::new();
        let mut splices = Vec::new();
        for edit in edits {
            let (name, parents) = edit.path().split_last()?;
            // Behind an alias, only an equal edit of the anchor has an effect.
            let Some(mapping) = self.tree.find(parents).filter(|id| self.tree.is_mapping(*id)) else { continue };
            let entry = self.tree.entry(mapping, name);
            let all = self.tree.entries(mapping, name).map(|(index, _)| index);
            let changes = mappings.entry(mapping).or_default();
            match (edit, entry) {
                (Edit::Remove(_), _) => changes.removed.extend(all),
                (Edit::Set(_, value), Some((index, _))) => {
                    changes.replaced.insert(index, NewValue::Any(value));
                }
                (Edit::Set(_, value), None) => changes.added.push((name, NewValue::Any(value))),
                (Edit::Items { kept, added, .. }, Some((index, entry))) => match (&kept[..], &added[..]) {
                    ([], []) => changes.removed.extend(all),
                    ([], added) => {
                        changes.replaced.insert(index, NewValue::Items(added));
                    }
                    (kept, added) => self.items(entry.value, kept, added, &mut splices)?,
                },
                (Edit::Items { added, .. }, None) if added.is_empty() => {}
                (Edit::Items { added, .. }, None) => changes.added.push((name, NewValue::Items(added))),
            }
        }
        // Where a mapping ends with another one, the members of the inner one come first.
        for (mapping, changes) in mappings.into_iter().rev() {
            let Shape::Mapping { flow, entries } = &self.tree.node(mapping)?.shape else { return None };
            if *flow {
                self.flow(mapping, entries, &changes, &mut splices)?;
            } else {
                self.block(entries, &changes, &mut splices)?;
            }
        }
        self.splice(splices)
    }

    /// Edits a list. Some of its items stay.
    fn items(&self, id: usize, kept: &[usize], added: &[Value], splices: &mut Vec<Splice>) -> Option<()> {
        let list = self.tree.node(id)?;
        let Shape::Sequence(items) = &list.shape else { return None };
        let items: Vec<&SyntaxNode> = items.iter().map(|id| self.tree.node(*id)).collect::<Option<_>>()?;
        let first = items.first()?;
        if self.text.get(list.span.clone())?.starts_with('[') {
            let before = self.text.get(list.span.start + 1..first.span.start)?;
            let after = self.text.get(items.last()?.span.end..list.span.end)?;
            let kept = kept.iter().map(|position| self.text.get(items.get(*position)?.span.clone()).map(str::to_owned));
            let texts: Vec<String> =
                kept.chain(added.iter().map(|item| Some(item.to_string()))).collect::<Option<_>>()?;
            let separator = if before.is_empty() { ", ".to_owned() } else { format!(",{before}") };
            splices.push((list.span.clone(), format!("[{before}{}{after}", texts.join(&separator))));
            return Some(());
        }
        let line = self.line_start(first.span.start);
        let (indent, rest) = self.text.get(line..first.span.start)?.split_once('-')?;
        if !indent.trim_matches(' ').is_empty() || !rest.trim_matches(' ').is_empty() {
            return None;
        }
        for (position, item) in items.iter().enumerate().filter(|(position, _)| !kept.contains(position)) {
            let own_lines = position == 0 || item.line > items.get(position - 1)?.line;
            let range = self.line_start(item.span.start)..self.line_end(item.span.end);
            splices.push((own_lines.then_some(range)?, String::new()));
        }
        if !added.is_empty() {
            let end = self.line_end(items.get(*kept.last()?)?.span.end);
            let newline = self.newline();
            let texts: Vec<String> = added.iter().map(|item| block_item(item, indent.len(), newline)).collect();
            let at = self.before_newline(end)?;
            splices.push((at..at, precede(&texts, &format!("{newline}{indent}"))));
        }
        Some(())
    }

    /// Edits a block mapping, whose entries have lines of their own.
    fn block(&self, entries: &[MappingEntry], changes: &MappingEdits<'_>, splices: &mut Vec<Splice>) -> Option<()> {
        let first = self.tree.node(entries.first()?.key)?;
        let (newline, indent) = (self.newline(), first.column - 1);
        let added = changes.added.iter().map(|(name, value)| block_member(name, *value, indent, newline));
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
                // The first entry of a list item is on the line of its `-`.
                key.span.start..self.tree.node(entries.get(index + 1)?.key)?.span.start
            };
            splices.push((range, String::new()));
        }
        self.replace(entries, changes, |value| block_value(value, indent, newline), splices)?;
        if !added.is_empty() {
            let at = self.before_newline(self.line_end(self.end(*entries.get(last_kept)?)?))?;
            splices.push((at..at, precede(&added, &format!("{newline}{}", " ".repeat(indent)))));
        }
        Some(())
    }

    /// Edits a flow mapping, whose entries are between braces, as all of JSON is.
    fn flow(
        &self,
        mapping: usize,
        entries: &[MappingEntry],
        changes: &MappingEdits<'_>,
        splices: &mut Vec<Splice>,
    ) -> Option<()> {
        let colon = entries.first().and_then(|entry| self.colon(*entry)).unwrap_or(": ");
        let added = changes.added.iter().map(|(name, value)| flow_member(name, *value, colon));
        let added: Vec<String> = added.collect();
        let kept = |index: &usize| !changes.removed.contains(index);
        let Some(last_kept) = (0..entries.len()).rev().find(kept) else {
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
            // Keep the style of one member per line.
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

    /// Replaces values, from the colon on.
    fn replace(
        &self,
        entries: &[MappingEntry],
        changes: &MappingEdits<'_>,
        render: impl Fn(NewValue<'_>) -> String,
        splices: &mut Vec<Splice>,
    ) -> Option<()> {
        for (index, value) in &changes.replaced {
            let entry = entries.get(*index)?;
            splices.push((self.tree.node(entry.key)?.span.end..self.end(*entry)?, render(*value)));
        }
        Some(())
    }

    fn splice(&self, mut splices: Vec<Splice>) -> Option<String> {
        splices.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut text, mut done) = (String::with_capacity(self.text.len() + 256), 0);
        for (range, replacement) in splices {
            // Removals of adjacent entries at the end of a mapping overlap.
            text.push_str(self.text.get(done..range.start.max(done))?);
            match replacement.strip_prefix(self.newline()) {
                // Lines that are added behind removed ones take their place.
                Some(added) if range.start < done && text.ends_with('\n') => text.extend([added, self.newline()]),
                _ => text.push_str(&replacement),
            }
            done = done.max(range.end);
        }
        text.push_str(self.text.get(done..)?);
        Some(text)
    }

    /// Returns the end of an entry: the end of its value, or of its colon if there is no value.
    fn end(&self, entry: MappingEntry) -> Option<usize> {
        let (key, value) = (self.tree.node(entry.key)?, self.tree.node(entry.value)?);
        if !value.span.is_empty() || !matches!(value.shape, Shape::Scalar { .. }) {
            return Some(value.span.end);
        }
        let rest = self.text.get(key.span.end..)?;
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let colon = if rest.get(blank..)?.starts_with(':') { blank + 1 } else { 0 };
        // An empty block scalar still has a header.
        let block = matches!(value, SyntaxNode { shape: Shape::Scalar { block: true, .. }, .. });
        Some(if block { value.span.end } else { key.span.end + colon })
    }

    /// Returns the text between a key and its value, if it is a colon and blanks on one line.
    fn colon(&self, entry: MappingEntry) -> Option<&str> {
        let (key, value) = (self.tree.node(entry.key)?, self.tree.node(entry.value)?);
        let between = self.text.get(key.span.end..value.span.start)?;
        (between.trim() == ":" && !between.contains(['\n', '\r'])).then_some(between)
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns the end of a line without its newline, given the position after it.
    fn before_newline(&self, end: usize) -> Option<usize> {
        let line = self.text.get(..end)?;
        Some(line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line)).len())
    }

    fn line_start(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// Returns the position after the next newline, or the end of the text.
    fn line_end(&self, at: usize) -> usize {
        let newline = self.text.get(at..).and_then(|after| after.find('\n'));
        newline.map_or(self.text.len(), |newline| at + newline + 1)
    }
}

fn block_member(name: &str, value: NewValue<'_>, indent: usize, newline: &str) -> String {
    format!("{}{}", plain_or_quoted(name), block_value(value, indent, newline))
}

/// Returns a colon and a value, for a block mapping.
fn block_value(value: NewValue<'_>, indent: usize, newline: &str) -> String {
    let lines = |texts: Vec<String>, indent: usize| precede(&texts, &format!("{newline}{}", " ".repeat(indent)));
    match value {
        NewValue::Items(items) => {
            let items = items.iter().map(|item| block_item(item, indent, newline));
            format!(":{}", lines(items.collect(), indent))
        }
        NewValue::Any(Value::Object(members)) if !members.is_empty() => {
            let indent = indent + 2;
            let members = members.iter().map(|(name, value)| block_member(name, NewValue::Any(value), indent, newline));
            format!(":{}", lines(members.collect(), indent))
        }
        NewValue::Any(Value::String(text)) => format!(": {}", plain_or_quoted(text)),
        NewValue::Any(value) => format!(": {value}"),
    }
}

/// Returns an item of a block sequence, from its dash on.
fn block_item(item: &Value, indent: usize, newline: &str) -> String {
    let inside = indent + 2;
    match item.as_object().filter(|members| !members.is_empty()) {
        Some(members) => {
            let members = members.iter().map(|(name, value)| block_member(name, NewValue::Any(value), inside, newline));
            format!("- {}", members.collect::<Vec<_>>().join(&format!("{newline}{}", " ".repeat(inside))))
        }
        None => item.as_str().map_or_else(|| format!("- {item}"), |text| format!("- {}", plain_or_quoted(text))),
    }
}

/// Returns a value for a flow mapping or JSON, with the blanks that the mapping uses.
fn flow_value(value: NewValue<'_>, colon: &str) -> String {
    match value {
        NewValue::Items(items) => {
            let items: Vec<String> = items.iter().map(|item| flow_value(NewValue::Any(item), colon)).collect();
            format!("[{}]", items.join(if colon.ends_with(' ') { ", " } else { "," }))
        }
        NewValue::Any(Value::Object(members)) if colon.ends_with(' ') => {
            let members = members.iter().map(|(name, value)| flow_member(name, NewValue::Any(value), colon));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        NewValue::Any(value) => value.to_string(),
    }
}

fn flow_member(name: &str, value: NewValue<'_>, colon: &str) -> String {
    format!("{}{colon}{}", quote(name), flow_value(value, colon))
}

/// Returns the texts, each after a separator.
fn precede(texts: &[String], separator: &str) -> String {
    texts.iter().flat_map(|text| [separator, text]).collect()
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns a string as YAML: plain if it is unambiguous, else in single quotes, which need no escapes, else in double quotes.
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
