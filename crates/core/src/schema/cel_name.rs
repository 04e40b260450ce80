//! The names of fields in CEL expressions over typed objects.
//!
//! An identifier of CEL has letters, digits and `_` only, and is no reserved word. The API server therefore escapes the names
//! of fields. [`escape`] and [`unescape`] return what `Escape` and `Unescape` of `k8s.io/apiserver/pkg/cel/escaping.go` return.
//! The [guide to CEL](https://kubernetes.io/docs/reference/using-api/cel/#escaping) describes the rule. Keys of maps are not
//! escaped.

/// Words that CEL reserves. A field with such a name is written `__name__`.
const RESERVED: &str = "as break const continue else false for function if import in let loop namespace null package return true var \
                        void while";

/// Returns the name by which an expression selects a field.
///
/// Returns `None` if no expression can: the name is empty, begins with a digit, or has characters other than ASCII letters,
/// digits, `_`, `-`, `.` and `/`.
pub fn escape(name: &str) -> Option<String> {
    if is_reserved(name) {
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

/// Returns the field that an expression selects by a name.
///
/// The leftmost `__word__` is replaced first. Returns `None` if a word is no escape, or if a reserved word is not the whole
/// name: no field is selected by such a name.
pub fn unescape(name: &str) -> Option<String> {
    let (mut plain, mut rest) = (String::with_capacity(name.len()), name);
    while let Some((before, after)) = rest.split_once("__") {
        let Some((word, behind)) = word(after) else {
            // The second underscore may begin an escape.
            plain.push_str(before);
            plain.push('_');
            rest = rest.get(before.len().saturating_add(1)..).unwrap_or_default();
            continue;
        };
        plain.push_str(before);
        plain.push_str(match word {
            "underscores" => "__",
            "dash" => "-",
            "dot" => ".",
            "slash" => "/",
            _ if is_reserved(word) && name.len() == word.len().saturating_add(4) => word,
            _ => return None,
        });
        rest = behind;
    }
    plain.push_str(rest);
    Some(plain)
}

/// Returns true for a word that CEL reserves.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.split(' ').any(|reserved| reserved == word)
}

/// Splits a text after `word__`. The word is not empty and has no underscore.
fn word(text: &str) -> Option<(&str, &str)> {
    let (word, behind) = text.split_once("__")?;
    (!word.is_empty() && !word.contains('_')).then_some((word, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_api_server_does() {
        for (name, wanted) in [
            ("type", "type"),
            ("foo", "foo"),
            ("namespace", "__namespace__"),
            ("x-y", "x__dash__y"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("x_y", "x_y"),
            ("in_", "in_"),
            ("-", "__dash__"),
            (".a", "__dot__a"),
            ("/a", "__slash__a"),
            ("___", "__underscores___"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(wanted));
            assert_eq!(unescape(wanted).as_deref(), Some(name));
        }
        for name in ["", "1a", "ü", "a b", "a\"b", "a'b", "a\\b", "a~b", "a$", "$ref"] {
            assert_eq!(escape(name), None, "{name}");
        }
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
            let Some(escaped) = escape(&name) else {
                assert!(name.is_empty() || name.starts_with('9'), "{name}");
                continue;
            };
            assert_eq!(unescape(&escaped).as_ref(), Some(&name), "{escaped}");
        }
    }

    #[test]
    fn names_with_other_words_select_no_field() {
        for name in ["__x__", "a__x__b", "__if__a", "a__if__", "__if____if__", "__dot____x__"] {
            assert_eq!(unescape(name), None, "{name}");
        }
        for (name, plain) in [
            ("__a", "__a"),
            ("a__", "a__"),
            ("__a_b__", "__a_b__"),
            ("__dot__x__", ".x__"),
            ("___dot__", "_."),
            ("", ""),
        ] {
            assert_eq!(unescape(name).as_deref(), Some(plain));
        }
    }
}
