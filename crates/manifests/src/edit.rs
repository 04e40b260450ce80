//! Edits documents and keeps the rest of their text as the author wrote it: comments, order, quotes, indentation.
//!
//! An edit changes the text and, separately, the value. The new text is used only if it parses to the new value. Otherwise, for
//! example if anchors or merge keys are in the way, the document is rewritten from the value, below the comments at its head, or the
//! caller leaves it. [`splices`] edits the text.

mod change;
mod splices;

pub use self::change::Edit;

use self::splices::edit_text;
use crate::document::Document;
use crate::file::{Format, ManifestFile, Problem, Section};
use crate::syntax::Tree;
use crate::yaml::{self, WriteError};
use kube_unions_core::declaration::ANNOTATION;
use kube_unions_core::schema::EXTENSION;
use serde_json::Value;
use std::ops::Range;

/// An edited document.
#[derive(Debug)]
pub struct EditedDocument {
    /// The new text.
    pub text: String,
    /// The document was rewritten from its value, without the comments in it.
    pub rewritten: bool,
}

/// An edited file.
#[derive(Debug)]
pub struct EditedFile {
    /// The new text.
    pub text: String,
    /// Format of the first document.
    pub format: Format,
    /// The parts of the text with CRDs.
    pub definitions: Vec<Range<usize>>,
    /// True if a CRD changed.
    pub changed: bool,
    /// A line for each document that lost its comments.
    pub notices: Vec<String>,
}

/// A document that cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Its JSON cannot be parsed, for example because it is nested too deeply.
    #[error("cannot edit the document")]
    Unreadable(#[source] serde_json::Error),
    /// The CRD that somebody else makes of it cannot be told.
    #[error(transparent)]
    Unknown(Problem),
    /// Its new value cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Edits the CRDs of a file. All other bytes stay as they are.
pub fn edit_crds<E: From<EditError>>(
    file: &ManifestFile,
    mut edits_of: impl FnMut(&Document) -> Result<Vec<Edit>, E>,
) -> Result<EditedFile, E> {
    let format = file.sections.first().map_or(Format::Yaml, |section| section.format);
    let mut edited =
        EditedFile { text: String::new(), format, definitions: Vec::new(), changed: false, notices: Vec::new() };
    for section in &file.sections {
        let (mut edits, start) = (Vec::new(), edited.text.len());
        let documents = Document::all_in(&file.path, section, None);
        for document in &documents {
            let made = match document.definitions() {
                Err(problem) if mentions_unions(document) => return Err(EditError::Unknown(problem).into()),
                made => made.unwrap_or_default(),
            };
            // Two CRDs may be made of one document.
            let mut of_document: Vec<Edit> = Vec::new();
            for crd in &made {
                let more = edits_of(crd)?;
                of_document.extend(
                    more.into_iter()
                        .filter(|edit| crd.made.is_none() || !of_document.contains(edit))
                        .collect::<Vec<_>>(),
                );
            }
            edits.append(&mut of_document);
        }
        let has_definition = documents.iter().any(|document| document.is_definition() || document.makes_definitions());
        if edits.is_empty() {
            edited.text.push_str(&section.text);
            edited.extend_definitions(start, has_definition);
            continue;
        }
        let EditedDocument { text, rewritten } = edit(section, &edits)?;
        if rewritten {
            let path = file.path.display();
            let notice = format!(
                "{path}: rewrote a document without the comments in it, because anchors or merge keys refer to the edited part"
            );
            edited.notices.push(notice);
        }
        edited.changed = true;
        edited.text.push_str(&text);
        edited.extend_definitions(start, has_definition);
    }
    let start = edited.text.len();
    edited.text.push_str(&file.tail);
    edited.extend_definitions(start, edited.definitions.last().is_some_and(|last| last.end == start));
    Ok(edited)
}

fn mentions_unions(document: &Document) -> bool {
    [ANNOTATION, EXTENSION].iter().any(|name| document.text.contains(name))
}

impl EditedFile {
    /// Adds the end of the text to the parts with CRDs.
    fn extend_definitions(&mut self, start: usize, has_definition: bool) {
        let end = self.text.len();
        match self.definitions.last_mut() {
            _ if !has_definition => {}
            Some(last) if last.end == start => last.end = end,
            _ => self.definitions.push(Range { start, end }),
        }
    }
}

/// Makes the edits in order. Each member may be named once.
pub fn edit(section: &Section, edits: &[Edit]) -> Result<EditedDocument, EditError> {
    let value = edited_value(section, edits)?;
    match text_of(section, edits, &value) {
        Some(text) => Ok(EditedDocument { text, rewritten: false }),
        None => Ok(EditedDocument { text: rewrite(section, &value)?, rewritten: true }),
    }
}

/// Makes the edits in the text. `None` if another part of the document would change: anchors and merge keys share texts.
pub fn edit_in_place(section: &Section, edits: &[Edit]) -> Option<String> {
    text_of(section, edits, &edited_value(section, edits).ok()?)
}

/// Returns the text with the edits, if it has this value.
fn text_of(section: &Section, edits: &[Edit], value: &Value) -> Option<String> {
    let edited = edit_text(&section.text, section.tree()?, edits)?;
    parses_to(&edited, section.format, value).then_some(edited)
}

/// Returns the value of the document after the edits.
pub fn edited_value(section: &Section, edits: &[Edit]) -> Result<Value, EditError> {
    let value = serde_json::from_str(section.json()).map_err(EditError::Unreadable)?;
    Ok(applied(value, edits))
}

/// Returns a value with edits.
pub fn applied(mut value: Value, edits: &[Edit]) -> Value {
    for edit in edits {
        edit.apply(&mut value);
    }
    value
}

fn parses_to(text: &str, format: Format, value: &Value) -> bool {
    let json = match format {
        Format::Json => Ok(text.to_owned()),
        Format::Yaml => yaml::to_json_with_duplicate(text).map(|(json, _)| json),
    };
    json.is_ok_and(|json| serde_json::from_str::<Value>(&json).is_ok_and(|parsed| parsed == *value))
}

/// Returns the value as text that can replace the section.
fn rewrite(section: &Section, value: &Value) -> Result<String, WriteError> {
    let before = section.text.len() - section.text.trim_start().len();
    let before = section.text.get(..before).unwrap_or_default();
    Ok(match section.format {
        Format::Json => format!("{before}{}", serde_json::to_string_pretty(value)?),
        Format::Yaml => {
            let end = if section.text.ends_with("...") { "..." } else { "" };
            format!("{}{}{end}", head(section), yaml::from_value(value)?)
        }
    })
}

/// Returns the lines above the value of a YAML document.
fn head(section: &Section) -> String {
    let start = section.tree().map_or(0, Tree::start);
    let above = section.text.get(..start).unwrap_or_default();
    let (lines, own) = above.split_at(above.rfind('\n').map_or(0, |newline| newline + 1));
    // The value may be on the line of its `---`.
    let marker = if own.trim_start_matches('\u{feff}').starts_with("---") { "---\n" } else { "" };
    format!("{lines}{marker}")
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
    fn quoted_texts_over_several_lines_stay_whatever_their_indentation() {
        let before =
            "a: # of a\n  x: \"one\ntwo\" # of x\n  v: 'three\n four\n\n  five'\n  z: 1\nb: \"six\n\tseven\"\nc: 2\n";
        keeps(Format::Yaml, before, &[set("/a/z", 3)], &before.replace("z: 1", "z: 3"));
        keeps(Format::Yaml, before, &[set("/a/w", 3)], &before.replace("  z: 1\n", "  z: 1\n  w: 3\n"));
        keeps(Format::Yaml, before, &[set("/a/x", 3)], &before.replace("\"one\ntwo\"", "3"));
        keeps(Format::Yaml, before, &[remove("/a/v")], &before.replace("  v: 'three\n four\n\n  five'\n", ""));
        keeps(Format::Yaml, before, &[remove("/b")], &before.replace("b: \"six\n\tseven\"\n", ""));
        keeps(Format::Yaml, before, &[set("/d", "x")], &format!("{before}d: x\n"));
        let list = "a:\n- k: \"one\ntwo\"\n  m: 1\n- k: 'x\n  y'\n";
        keeps(Format::Yaml, list, &[set("/a/0/m", 2)], &list.replace("m: 1", "m: 2"));
        keeps(Format::Yaml, list, &[remove("/a/0/k")], "a:\n- m: 1\n- k: 'x\n  y'\n");
    }

    #[test]
    fn adds_replaces_and_removes_lines_of_a_block_mapping() {
        let before = "# head\na: # of a\n  x: 1 # one\n  v:\n  - 2 # two\n  # of z\n  z: |\n    text\n\n# tail\nb: 3\n";
        keeps(Format::Yaml, before, &[remove("/a/v")], &before.replace("  v:\n  - 2 # two\n", ""));
        keeps(Format::Yaml, before, &[remove("/a/z")], &before.replace("  z: |\n    text\n", ""));
        keeps(Format::Yaml, before, &[remove("/b")], &before.replace("b: 3\n", ""));
        keeps(Format::Yaml, before, &[set("/a/w", "v")], &before.replace("    text\n", "    text\n  w: v\n"));
        keeps(Format::Yaml, before, &[set("/b", "yes")], &before.replace("b: 3", "b: 'yes'"));
        keeps(
            Format::Yaml,
            before,
            &[remove("/a/x"), remove("/a/v"), remove("/a/z")],
            "# head\na: # of a\n  {}\n\n# tail\nb: 3\n",
        );
        keeps(
            Format::Yaml,
            before,
            &[remove("/b"), set("/c", json!({"d/e": "it's {}", "f": {}}))],
            "# head\na: # of a\n  x: 1 # one\n  v:\n  - 2 # two\n  # of z\n  z: |\n    text\nc:\n  d/e: 'it''s {}'\n  f: {}\n\n# tail\n",
        );
    }

    #[test]
    fn keeps_the_dash_of_a_list_item() {
        keeps(Format::Yaml, "l:\n- a: 1\n  b: 2\n- c: 3\n", &[remove("/l/0/a")], "l:\n- b: 2\n- c: 3\n");
        keeps(Format::Yaml, "l:\n- a: 1\n- c: 3\n", &[remove("/l/0/a")], "l:\n- {}\n- c: 3\n");
        keeps(Format::Yaml, "l:\n- a: 1\n", &[remove("/l/0/a"), set("/l/0/b", "x")], "l:\n- b: x\n");
    }

    #[test]
    fn keeps_the_style_of_flow_mappings() {
        keeps(Format::Yaml, "a: {x: 1, v: [2], z: 3} # c\n", &[remove("/a/v")], "a: {x: 1, z: 3} # c\n");
        keeps(Format::Yaml, "a: {x: 1, v: [2], z: 3}\n", &[remove("/a/v"), remove("/a/z")], "a: {x: 1}\n");
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
    fn keeps_line_endings_and_the_end_of_the_text() {
        keeps(Format::Yaml, "a: 1\r\nb: 2\r\n", &[remove("/a"), set("/c", "x")], "b: 2\r\nc: x\r\n");
        keeps(Format::Yaml, "a: 1\nb: 2", &[set("/c", "x")], "a: 1\nb: 2\nc: x");
        keeps(Format::Yaml, "a:\n", &[set("/a", json!({"b": "c"}))], "a:\n  b: c\n");
        keeps(Format::Yaml, "---\na: >-\n  x\n  y\n...", &[set("/a", "z")], "---\na: z\n...");
    }

    fn items(pointer: &str, kept: &[usize], added: Value) -> Edit {
        let Value::Array(added) = added else { panic!("not a list: {added}") };
        Edit::Items { path: path(pointer), kept: kept.to_vec(), added }
    }

    #[test]
    fn items_are_added_to_and_removed_from_a_block_sequence() {
        let before = "a:\n  l:\n    # of x\n    - x: 1 # one\n      v: 2\n    # of z\n    - z: 3\n    - w: 4\n  b: 5\n";
        let added = json!([{"rule": "a || \"b\"", "m": [1]}, "s"]);
        keeps(
            Format::Yaml,
            before,
            &[items("/a/l", &[0, 1], added.clone())],
            &before.replace("    - w: 4\n", "    - rule: 'a || \"b\"'\n      m: [1]\n    - s\n"),
        );
        keeps(
            Format::Yaml,
            before,
            &[items("/a/l", &[1, 2], json!([]))],
            &before.replace("    - x: 1 # one\n      v: 2\n", ""),
        );
        keeps(Format::Yaml, before, &[items("/a/l", &[], json!([]))], "a:\n  b: 5\n");
        keeps(
            Format::Yaml,
            "a:\n  l: [1]\n  b: 5",
            &[items("/a/l", &[], json!(["x", null]))],
            "a:\n  l:\n  - x\n  - null\n  b: 5",
        );
        keeps(
            Format::Yaml,
            "a:\n  b:\n    c: 1\nl:\n- x",
            &[
                items("/a/b/m", &[], json!([{"k": "v"}])),
                items("/a/l", &[], json!(["o"])),
                items("/l", &[0], json!(["y"])),
            ],
            // Some readers take a plain `y` for true.
            "a:\n  b:\n    c: 1\n    m:\n    - k: v\n  l:\n  - o\nl:\n- x\n- 'y'",
        );
    }

    #[test]
    fn what_is_added_takes_the_place_of_what_is_removed_at_the_end_of_an_inner_mapping() {
        for (before, after) in [
            ("a:\n  b: 1\n  l:\n  - x\n", "a:\n  b: 1\nm:\n- y\n"),
            ("a:\r\n  b: 1\r\n  l: x\r\n", "a:\r\n  b: 1\r\nm:\r\n- y\r\n"),
        ] {
            keeps(
                Format::Yaml,
                before,
                &[items("/a/l", &[], json!([])), items("/m", &[], json!(["y"]))],
                &after.replace("- y", "- 'y'"),
            );
        }
    }

    #[test]
    fn items_are_added_to_and_removed_from_a_flow_sequence() {
        let before = "a: {l: [1, {b: c}, 3], d: e}\n";
        keeps(
            Format::Yaml,
            before,
            &[items("/a/l", &[1], json!([{"x": "y"}]))],
            "a: {l: [{b: c}, {\"x\":\"y\"}], d: e}\n",
        );
        keeps(Format::Yaml, before, &[items("/a/l", &[], json!([2]))], "a: {l: [2], d: e}\n");
        keeps(
            Format::Yaml,
            before,
            &[items("/a/n", &[], json!(["z"]))],
            "a: {l: [1, {b: c}, 3], d: e, \"n\": [\"z\"]}\n",
        );
        keeps(
            Format::Json,
            "{\n  \"l\": [\n    1,\n    2\n  ]\n}",
            &[items("/l", &[1], json!([3]))],
            "{\n  \"l\": [\n    2,\n    3\n  ]\n}",
        );
    }

    /// The last of several entries with one name counts, so all of them go.
    #[test]
    fn a_key_that_is_there_twice_is_removed_as_often_and_replaced_where_it_counts() {
        let before = "# head\na:\n  x: 1 # first\n  # of w\n  w: 2\n  x: 3 # last\nb: {k: 1, l: 2, k: 3}\nc: 1\nc: 2\n";
        let removed = before.replace("  x: 1 # first\n", "").replace("  x: 3 # last\n", "");
        for (edits, after) in [
            (&[remove("/a/x")][..], removed),
            (&[remove("/b/k")], before.replace("{k: 1, l: 2, k: 3}", "{l: 2}")),
            (&[set("/a/x", 4)], before.replace("x: 3", "x: 4")),
            (&[remove("/a/w")], before.replace("  w: 2\n", "")),
            (&[set("/d", 5)], format!("{before}d: 5\n")),
        ] {
            let (section, _) = Section::parse_with_duplicate(before, Format::Yaml, (1, 1)).unwrap();
            assert_eq!(edit_in_place(&section, edits).as_ref(), Some(&after), "{edits:?}");
            let edited = edit(&section, edits).unwrap();
            assert_eq!((edited.text, edited.rewritten), (after, false));
        }
    }

    #[test]
    fn a_text_that_another_place_shares_is_not_edited_in_place_and_its_head_is_never_lost() {
        for (before, edited, possible) in [
            // The anchor goes, and an alias needs it.
            ("# Source: a\na: {x: &x 1}\nb: *x\n", "/a/x", false),
            // Nothing needs it.
            ("# Source: a\na: {x: &x 1}\nb: 1\n", "/a/x", true),
            // The alias goes.
            ("# Source: a\na: {x: &x 1}\nb: *x\n", "/b", true),
            // The member is that of an anchor, or of a merge key.
            ("# Source: a\na: &a {x: 1}\nb: *a\n", "/b/x", false),
            ("# Source: a\na: &a {x: 1}\nb: {<<: *a, w: 1}\n", "/b/x", false),
            ("# Source: a\na: &a {x: 1}\nb: {<<: *a, x: 2}\n", "/b/x", false),
            ("# Source: a\na: &a {x: 1}\nb: {<<: *a, w: 1}\n", "/b/w", true),
            ("# Source: a\na: &a {x: 1}\nb: {<<: *a, w: 1}\n", "/a/x", false),
            // Anchors elsewhere are in no way.
            ("# Source: a\na: &a {x: 1}\nb: {<<: *a}\nc: *a\nd: {x: 1}\n", "/d/x", true),
        ] {
            let section = Section::parse(before, Format::Yaml, (1, 1)).unwrap();
            let edits = [remove(edited)];
            assert_eq!(edit_in_place(&section, &edits).is_some(), possible, "{before} {edited}");
            let EditedDocument { text, rewritten } = edit(&section, &edits).unwrap();
            assert_eq!(rewritten, !possible);
            assert!(text.starts_with("# Source: a\na:"), "{text}");
            let value = edited_value(&section, &edits).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&yaml::to_json(&text).unwrap()).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn what_is_above_a_rewritten_document_stays() {
        for (head, kept) in [
            ("# one\n---\n# two\n\n", "# one\n---\n# two\n\n"),
            ("--- # beside\n", "--- # beside\n"),
            ("# one\n--- ", "# one\n---\n"),
            ("--- ", "---\n"),
            ("", ""),
            ("  ", ""),
            ("%YAML 1.2\n---\n", "%YAML 1.2\n---\n"),
        ] {
            let (text, rewritten) =
                edited(&format!("{head}{{a: &a {{x: 1}}, b: *a}}\n"), Format::Yaml, &[remove("/b/x")]);
            assert!(rewritten);
            assert_eq!(text, format!("{kept}a:\n  x: 1\nb: {{}}\n"), "{head}");
        }
    }

    #[test]
    fn edits_an_anchor_once_or_rewrites_the_document() {
        let shared = "a: &a\n  x: 1 # one\n  v: 2\nb: *a\n";
        keeps(Format::Yaml, shared, &[remove("/a/x"), remove("/b/x")], &shared.replace("  x: 1 # one\n", ""));
        let (text, rewritten) = edited(shared, Format::Yaml, &[remove("/b/x")]);
        assert!(rewritten);
        assert_eq!(yaml::to_json(&text).unwrap(), r#"{"a":{"x":1,"v":2},"b":{"v":2}}"#);
        let (text, rewritten) = edited("---\na: &a {x: 1}\nb: {<<: *a}\n", Format::Yaml, &[remove("/b/x")]);
        assert!(rewritten && text.starts_with("---\n"), "{text}");
    }
}
