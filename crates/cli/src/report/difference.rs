//! The lines in which two texts differ.

use crate::input::manifest::{self, Document, EditedFile, ManifestFile};
use kube_unions_core::field_path::Printable;
use kube_unions_manifests::counts::count;
use serde_json::Value;
use similar::TextDiff;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Most lines that are compared, after those that both texts begin with. The time of a comparison may grow with the square.
const MOST_COMPARED: usize = 2_000;

/// Most lines that are shown.
const MOST_SHOWN: usize = 200;

/// Most lines that a check shows of a file.
const MOST_STALE: usize = 20;

/// Lines before the first change.
const HEADER: usize = 2;

/// Longest line that is shown, in bytes.
const LONGEST_LINE: usize = 400;

/// Returns the difference of two values, as YAML with sorted keys.
pub(crate) fn of_values(mut expected: Value, mut actual: Value) -> anyhow::Result<Vec<String>> {
    expected.sort_all_objects();
    actual.sort_all_objects();
    let (expected, actual) = (manifest::to_yaml(&expected.to_string())?, manifest::to_yaml(&actual.to_string())?);
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    Ok(of_lines(&lines(&expected), &lines(&actual)))
}

/// Returns the difference of two lists of lines.
pub(crate) fn of_lines(expected: &[String], actual: &[String]) -> Vec<String> {
    let same = expected.iter().zip(actual).take_while(|(one, other)| one == other).count();
    let skipped = if expected.len().max(actual.len()) > MOST_COMPARED { same.saturating_sub(CONTEXT) } else { 0 };
    let compared = |lines: &[String]| -> Vec<String> {
        let lines = lines.iter().skip(skipped).take(MOST_COMPARED);
        // A control character would break the lines of the report.
        lines.map(|line| Printable::new(line, usize::MAX).to_string()).collect()
    };
    let left_out = [expected, actual].iter().any(|lines| lines.len() > skipped + MOST_COMPARED);
    let (expected, actual) = (compared(expected), compared(actual));
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.iter().map(String::as_str).collect(), actual.iter().map(String::as_str).collect());
    let diff = TextDiff::from_slices(&expected, &actual);
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT).header("expected", "actual").missing_newline_hint(false);
    let unified = unified.to_string();
    let mut lines: Vec<String> = unified.lines().map(|line| Printable::new(line, LONGEST_LINE).to_string()).collect();
    cut(&mut lines, MOST_SHOWN);
    if left_out {
        lines.push(format!("… and the lines beyond the first {MOST_COMPARED}, which are not compared"));
    }
    lines
}

/// Returns the line of a check about a document that an edit would change.
pub(crate) fn would_change(document: &Document) -> String {
    manifest::line_about(document, "would change")
}

/// Returns the lines in which a file would change, to print below those about its documents.
pub(crate) fn of_edit(file: &ManifestFile, edited: &EditedFile) -> Vec<String> {
    if !edited.changed {
        return Vec::new();
    }
    let before = file.sections.iter().map(|section| &*section.text).collect::<String>() + &file.tail;
    let [before, after] = [&before, &edited.text].map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    // Without the header. Lines that differ in control characters alone are shown alike, so that there may be none.
    let mut lines: Vec<String> = of_lines(&before, &after).into_iter().skip(HEADER).collect();
    cut(&mut lines, MOST_STALE);
    lines.iter().map(|line| format!("  {line}")).collect()
}

fn cut(lines: &mut Vec<String>, most: usize) {
    if lines.len() > most {
        let more = lines.len() - most;
        lines.truncate(most);
        lines.push(format!("… and {}", count(more, "more line")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize, name: &str) -> Vec<String> {
        (0..count).map(|line| format!("{name}{line}")).collect()
    }

    #[test]
    fn a_difference_shows_what_is_absent_and_what_is_there_instead() {
        let [expected, actual] = [["a", "b", "c"], ["a", "x", "c"]].map(|it| it.map(str::to_owned));
        assert_eq!(
            of_lines(&expected, &actual),
            ["--- expected", "+++ actual", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]
        );
        assert_eq!(of_lines(&[], &actual[1..2]), ["--- expected", "+++ actual", "@@ -0,0 +1 @@", "+x"]);
    }

    #[test]
    fn values_are_compared_by_their_keys_in_any_order() {
        let (expected, actual) = (serde_json::json!({"b": 1, "a": 2}), serde_json::json!({"a": 2, "b": "\u{1b}[0m\n"}));
        let lines = of_values(expected, actual).unwrap();
        assert_eq!(lines[3..5], [" a: 2", "-b: 1"], "{lines:?}");
        assert!(!lines.concat().contains(char::is_control), "{lines:?}");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let lines = of_lines(&numbered(MOST_COMPARED, "a"), &numbered(MOST_COMPARED, "b"));
        assert_eq!(lines.len(), MOST_SHOWN + 1);
        assert_eq!(lines.last().unwrap(), "… and 3,803 more lines");

        let mut changed = numbered(100_000, "a");
        changed[50_000] = "b".repeat(1_000_000);
        let lines = of_lines(&numbered(100_000, "a"), &changed);
        assert_eq!(lines[6], "-a50000", "{:?}", &lines[..9]);
        assert!(lines.iter().all(|line| line.len() < LONGEST_LINE + 10));
        assert_eq!(lines.last().unwrap(), "… and the lines beyond the first 2000, which are not compared");
    }

    /// The lines are the same up to the length that is shown.
    #[test]
    fn a_difference_beyond_the_longest_line_is_told() {
        let long = |end: &str| vec![format!("{}{end}", "a".repeat(LONGEST_LINE))];
        let lines = of_lines(&long("b"), &long("c"));
        assert_eq!(lines.len(), 5, "{lines:?}");
    }

    #[test]
    fn an_edit_of_control_characters_alone_is_shown_without_lines() {
        let before = "kind: A\u{1}\n";
        let file = ManifestFile::read("a.yaml".into(), b"kind: A\n".to_vec()).unwrap();
        let edited = |text: &str| EditedFile {
            text: text.to_owned(),
            format: manifest::Format::Yaml,
            definitions: Vec::new(),
            changed: true,
            notices: Vec::new(),
        };
        assert_eq!(of_edit(&file, &edited("kind: A\r\n")), [""; 0]);
        assert_eq!(of_edit(&file, &edited(before)), ["  @@ -1 +1 @@", "  -kind: A", "  +kind: A\u{fffd}"]);
    }
}
