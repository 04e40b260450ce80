//! Field names in rules: as CEL selects them from a typed object, and as `fieldPath` writes them.

/// Words that CEL reserves.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Returns the name by which an expression selects a field, `None` if none can: the name begins with a digit, is empty, or has
/// characters other than ASCII letters, digits, `_`, `-`, `.` and `/`.
pub(super) fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '_' if rest.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '-' => escaped.push_str("__dash__"),
            '.' => escaped.push_str("__dot__"),
            '/' => escaped.push_str("__slash__"),
            plain if plain == '_' || plain.is_ascii_alphanumeric() => escaped.push(plain),
            _ => return None,
        }
    }
    Some(escaped)
}

/// Returns the `fieldPath` of a field that [`escaped`] accepts.
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

    /// The reverse, as the API server does it: it replaces the leftmost `__word__` first.
    fn unescaped(text: &str) -> String {
        let (mut plain, mut rest) = (String::new(), text);
        while let Some(at) = rest.find("__") {
            let inner = rest[at + 2..].find('_').unwrap_or(0);
            let word = &rest[at + 2..at + 2 + inner];
            if inner == 0 || !rest[at + 2 + inner..].starts_with("__") {
                plain.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
                continue;
            }
            plain.push_str(&rest[..at]);
            plain.push_str(match word {
                "underscores" => "__",
                "dash" => "-",
                "dot" => ".",
                "slash" => "/",
                reserved => reserved,
            });
            rest = &rest[at + inner + 4..];
        }
        plain + rest
    }

    #[test]
    fn every_name_that_can_be_escaped_comes_back() {
        let parts = ["_", "__", "-", ".", "/", "a", "if", "9", "dash", "in"];
        let mut names = vec![String::new()];
        for _ in 0..4 {
            names =
                names.iter().flat_map(|name| parts.map(|part| format!("{name}{part}"))).chain(names.clone()).collect();
        }
        for name in names {
            let Some(escaped) = escaped(&name) else {
                assert!(name.is_empty() || name.starts_with('9'), "{name}");
                continue;
            };
            assert_eq!(unescaped(&escaped), name, "{escaped}");
        }
    }

    #[test]
    fn names_are_escaped_as_the_api_server_does() {
        for (name, wanted) in [
            ("type", "type"),
            ("namespace", "__namespace__"),
            ("x-y", "x__dash__y"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("in_", "in_"),
        ] {
            assert_eq!(escaped(name).as_deref(), Some(wanted));
        }
        for name in ["", "1a", "ü", "a b", "a\"b", "a'b", "a\\b", "a~b", "a$"] {
            assert_eq!(escaped(name), None, "{name}");
        }
    }

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
