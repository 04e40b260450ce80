//! Texts beside the expression of a rule: its `fieldPath` and its message.

/// Returns the `fieldPath` of a field that CEL can name.
pub(super) fn field_path(name: &str) -> String {
    // A dot would end the name.
    if name.contains('.') { format!("['{name}']") } else { format!(".{name}") }
}

/// Returns a text for a message, which must be on one line.
pub(super) fn on_one_line(text: &str) -> String {
    let is_break = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    text.chars().fold(String::with_capacity(text.len()), |mut line, character| {
        if is_break(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_path_quotes_a_name_with_a_dot() {
        assert_eq!(field_path("a.b"), "['a.b']");
        assert_eq!(field_path("a-b/c"), ".a-b/c");
    }

    #[test]
    fn a_message_stays_on_one_line() {
        assert_eq!(on_one_line("a\n\"ü\"\u{2028}"), "a\\n\"ü\"\\u{2028}");
    }
}
