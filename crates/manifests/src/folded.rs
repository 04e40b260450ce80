//! Prints JSON as YAML whose long texts are folded over several lines, so that people can read expressions and compare them
//! line by line.

use crate::yaml::WriteError;
use serde_json::Value;
use std::fmt::Write;

/// The longest text that stays on one line, and the width of folded lines without their indentation.
const WIDTH: usize = 100;

/// Returns the YAML of a JSON value, with long texts folded over several lines.
pub fn to_folded_yaml(value: &Value) -> Result<String, WriteError> {
    let mut text = String::new();
    block(&mut text, value, 0)?;
    Ok(text)
}

/// Writes a value that begins at the current position, with its end of line. Its other lines have the indentation.
fn block(text: &mut String, value: &Value, indentation: usize) -> Result<(), serde_saphyr::ser::Error> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (position, (name, value)) in fields.iter().enumerate() {
                begin(text, position, indentation);
                let _ = write!(text, "{}:", scalar(&Value::from(name.as_str()))?);
                match value {
                    Value::Object(fields) if !fields.is_empty() => {
                        text.push('\n');
                        indent(text, indentation.saturating_add(2));
                        block(text, value, indentation.saturating_add(2))?;
                    }
                    Value::Array(items) if !items.is_empty() => {
                        text.push('\n');
                        indent(text, indentation);
                        block(text, value, indentation)?;
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => {
                        text.push(' ');
                        block(text, value, indentation)?;
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                begin(text, position, indentation);
                text.push_str("- ");
                block(text, item, indentation.saturating_add(2))?;
            }
        }
        Value::String(long) if is_foldable(long) => {
            text.push_str(">-\n");
            for line in folded(long) {
                indent(text, indentation.saturating_add(2));
                text.push_str(line);
                text.push('\n');
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            text.push_str(&scalar(value)?);
            text.push('\n');
        }
    }
    Ok(())
}

/// Begins the line of an entry. The first one begins where its collection begins.
fn begin(text: &mut String, position: usize, indentation: usize) {
    if position > 0 {
        indent(text, indentation);
    }
}

fn indent(text: &mut String, indentation: usize) {
    text.extend(std::iter::repeat_n(' ', indentation));
}

/// Returns a scalar or an empty collection on one line.
fn scalar(value: &Value) -> Result<String, serde_saphyr::ser::Error> {
    match value {
        Value::String(text) if text.chars().count() > WIDTH || text.contains(char::is_control) => {
            // A JSON string is a double-quoted YAML scalar.
            Ok(value.to_string())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
            Ok(serde_saphyr::to_string_with_options(value, options)?.trim_end().to_owned())
        }
    }
}

/// Returns true for a text that is long or would need escapes, and that a folded block keeps as it is.
fn is_foldable(text: &str) -> bool {
    let special = |it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let is_long = text.contains('"') || text.chars().count() > WIDTH;
    is_long && !text.starts_with(' ') && !text.ends_with(' ') && !text.contains(special)
}

/// Splits a text at single spaces into lines of the width, or longer ones where there is no such space.
fn folded(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = split(rest) {
        lines.push(line);
        rest = after;
    }
    lines.push(rest);
    lines
}

/// Splits a text at the last single space within the width, or at the first one behind it.
fn split(text: &str) -> Option<(&str, &str)> {
    let limit = text.char_indices().nth(WIDTH).map(|(index, _)| index)?;
    let is_single = |index: usize| {
        let (before, after) = text.split_at_checked(index)?;
        let after = after.strip_prefix(' ')?;
        (!before.is_empty() && !before.ends_with(' ') && !after.is_empty() && !after.starts_with(' '))
            .then_some((before, after))
    };
    let spaces = || text.match_indices(' ').map(|(index, _)| index);
    let within = spaces().take_while(|index| *index <= limit).filter_map(is_single).last();
    within.or_else(|| spaces().find_map(is_single))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn long_texts_are_folded_and_short_ones_are_not() {
        let (left, right) = (format!("{}\"", "a".repeat(60)), "b".repeat(60));
        let long = format!("{left} {right}");
        let value = json!({"list": [{"a": long, "b": "true"}, [1, []]], "empty": {}, "text": "a: b", "lines": "a\nb"});
        let expected = format!(
            "list:\n- a: >-\n    {left}\n    {right}\n  b: \"true\"\n- - 1\n  - []\nempty: {{}}\ntext: \"a: b\"\nlines: \"a\\nb\"\n"
        );
        assert_eq!(to_folded_yaml(&value).unwrap(), expected);
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-c:#\"' \\\\-]{0,300}", "\\PC{0,150}", any::<String>(), "(a|  | |b ){0,200}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
            "yes|no|on|1e3|0x1|~|null|-|- a|# b|---|\\.\\.\\.|2001-01-01|=|<<".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z:# ]{0,4}|yes|1", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back_as_it_was(value in value()) {
            let text = to_folded_yaml(&value).unwrap();
            let read: Value = serde_json::from_str(&yaml::to_json(&text).unwrap()).unwrap();
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
