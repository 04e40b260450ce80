//! Text of strangers on a terminal: names of fields, files and objects may hold escape sequences.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces every character that moves the cursor, begins an escape sequence or turns the direction of writing by `\uXXXX`, the
/// escape of JSON, so that JSON text keeps its meaning. `\n` stays, and so do sequences of which `kept` returns the length.
pub fn escaped(text: &str, kept: impl Fn(&str) -> Option<usize>) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find(is_unsafe) {
        let (before, after) = rest.split_at(found);
        escaped.push_str(before);
        let length = kept(after).filter(|length| after.is_char_boundary(*length)).unwrap_or(0);
        let (sequence, after) = after.split_at(length);
        escaped.push_str(sequence);
        rest = after;
        if length == 0
            && let Some(character) = rest.chars().next()
        {
            // A String takes every write.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// Returns true for control characters, for line and paragraph separators, and for characters that turn the direction.
fn is_unsafe(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && character != '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let none = |_: &str| None;
        assert_eq!(escaped("spec.größe\n  - 日本", none), "spec.größe\n  - 日本");
        assert_eq!(escaped("a\tb\u{b}\u{8}", none), "a\\u0009b\\u000b\\u0008");
        assert_eq!(escaped("a\u{1b}]0;x\u{7}b", none), "a\\u001b]0;x\\u0007b");
        assert_eq!(escaped("\r\u{7f}\u{9b}\u{202e}\u{2028}", none), "\\u000d\\u007f\\u009b\\u202e\\u2028");
        let json = serde_json::to_string("a\u{9b}\u{202e}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&escaped(&json, none)).unwrap(), "a\u{9b}\u{202e}");
    }

    #[test]
    fn only_whole_sequences_are_kept() {
        let bold = |text: &str| text.starts_with("\u{1b}[1m").then_some(4);
        assert_eq!(escaped("\u{1b}[1mx\u{1b}[2J\u{1b}", bold), "\u{1b}[1mx\\u001b[2J\\u001b");
    }
}
