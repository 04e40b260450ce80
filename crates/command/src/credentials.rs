//! Hides the credentials of URLs that a user gave as an argument, from every message that quotes the argument.
//!
//! A message may write an argument as it is, or with any escape: that of a text in Rust or JSON, of a URL, or of a terminal. So a
//! credential is found by its characters, each in any form.

use percent_encoding::{percent_decode_str, percent_encode_byte};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::iter;
use std::sync::LazyLock;

/// Stands in messages instead of a credential.
const HIDDEN: char = '…';

/// Characters, and the letters with which Rust or JSON escapes them.
const LETTERS: [(char, char); 8] =
    [('\n', 'n'), ('\t', 't'), ('\r', 'r'), ('\0', '0'), ('\u{8}', 'b'), ('\u{c}', 'f'), ('"', '"'), ('\'', '\'')];

/// The credentials in the arguments of this process.
static GIVEN: LazyLock<Vec<Credential>> = LazyLock::new(|| {
    let arguments = std::env::args_os().skip(1);
    arguments.flat_map(|argument| Credential::all(&argument.to_string_lossy())).collect()
});

/// A part of a URL that may be secret.
#[derive(Debug, PartialEq, Eq)]
struct Credential {
    /// As the user wrote it.
    text: String,
    /// The text that is shown in its place.
    shown: String,
}

/// Returns a text without the credentials of this process.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    without(&GIVEN, text)
}

fn without<'t>(credentials: &[Credential], text: &'t str) -> Cow<'t, str> {
    credentials.iter().fold(Cow::Borrowed(text), |text, credential| match credential.hidden_in(&text) {
        Some(hidden) => Cow::Owned(hidden),
        None => text,
    })
}

impl Credential {
    /// Returns the credentials of an argument: of all of it, and of each part of a list, because a message may quote one part.
    fn all(argument: &str) -> Vec<Self> {
        let value = argument.split_once('=').filter(|(flag, _)| flag.starts_with("--")).map_or(argument, |it| it.1);
        let decoded = percent_decode_str(value).decode_utf8_lossy();
        let parts = [value, &*decoded].into_iter().flat_map(|value| {
            iter::once(value).chain(value.split(|it: char| it.is_whitespace() || matches!(it, ',' | ';')))
        });
        let mut found: Vec<Self> = parts.flat_map(Self::of_url).collect();
        found.sort_by_key(|it| Reverse(it.text.len()));
        found.dedup();
        found
    }

    /// Returns the user information and the query of a URL. The scheme may be missing.
    fn of_url(value: &str) -> impl Iterator<Item = Self> {
        let is_scheme = |scheme: &str| !scheme.contains(['@', ':', '?', '#']);
        let is_url = value.contains("://");
        let rest = value.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).map_or(value, |(_, rest)| rest);
        // A password may have each of the characters that end it.
        let user = rest.rsplit_once('@').map(|(user, _)| user).filter(|user| is_url || user.contains(':'));
        let is_ambiguous = user.is_some_and(|user| user.contains(['?', '#']));
        let after_user = user.and_then(|user| rest.strip_prefix(user)).unwrap_or(rest);
        let query = after_user.find(['?', '#']).filter(|_| is_url).and_then(|at| after_user.get(at..));
        let user = user.map(|user| {
            if is_ambiguous {
                Self { text: rest.to_owned(), shown: HIDDEN.to_string() }
            } else {
                Self { text: format!("{user}@"), shown: format!("{HIDDEN}@") }
            }
        });
        let query = query.filter(|query| query.len() > 1);
        let query = query.map(|query| Self { text: query.to_owned(), shown: format!("?{HIDDEN}") });
        user.into_iter().chain(query)
    }

    /// Returns a text without this credential; `None` if the text does not have it.
    fn hidden_in(&self, text: &str) -> Option<String> {
        let mut hidden = None;
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(length) = self.length_in(rest) {
                let before = text.len().saturating_sub(rest.len());
                let shown = hidden.get_or_insert_with(|| text.get(..before).unwrap_or_default().to_owned());
                shown.push_str(&self.shown);
                rest = rest.get(length..).unwrap_or_default();
            } else {
                if let Some(shown) = &mut hidden {
                    shown.push(character);
                }
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
            }
        }
        hidden
    }

    /// Returns the length of the beginning of a text that is this credential.
    fn length_in(&self, text: &str) -> Option<usize> {
        let mut ends = BTreeSet::from([0]);
        let mut after_space = false;
        for character in self.text.chars() {
            let is_space = character.is_whitespace();
            // A space that wraps a line takes those after it along.
            let wrapped = after_space && is_space;
            let next = ends.iter().flat_map(|end| {
                let rest = text.get(*end..).unwrap_or_default();
                let lengths = lengths(character, rest).into_iter().chain(wrapped.then_some(0));
                lengths.map(move |length| end.saturating_add(length))
            });
            ends = next.collect();
            after_space = is_space;
            if ends.is_empty() {
                return None;
            }
        }
        ends.pop_last().filter(|end| *end > 0)
    }
}

/// Returns the lengths of each beginning of a text that may stand for a character.
fn lengths(character: char, text: &str) -> Vec<usize> {
    let is_unknown = character == char::REPLACEMENT_CHARACTER;
    let mut lengths = Vec::new();
    if text.starts_with(character) || (character.is_control() && text.starts_with(char::REPLACEMENT_CHARACTER)) {
        lengths.extend(text.chars().next().map(char::len_utf8));
    }
    if character.is_whitespace() {
        // A terminal may have no room for the line.
        lengths.push(text.len().saturating_sub(text.trim_start().len()));
    }
    // An escape may be escaped again.
    let escape = text.trim_start_matches('\\');
    let slashes = text.len().saturating_sub(escape.len());
    if slashes > 0 {
        if character == '\\' {
            lengths.extend(1..=slashes);
        }
        let code = u32::from(character);
        let is_letter = |(escaped, letter): &(char, char)| *escaped == character && escape.starts_with(*letter);
        lengths.extend(LETTERS.iter().find(|it| is_letter(it)).map(|_| slashes.saturating_add(1)));
        let numbers = [format!("u{code:04x}"), format!("u{{{code:x}}}"), format!("x{code:02x}")];
        let is_number = |number: &&String| begins(escape, number);
        lengths.extend(numbers.iter().filter(is_number).map(|number| slashes.saturating_add(number.len())));
        if is_unknown && escape.starts_with('x') && escape.get(1..3).is_some_and(is_byte) {
            lengths.push(slashes.saturating_add(3));
        }
    }
    if text.starts_with('%') {
        let encoded: String = character.to_string().bytes().map(percent_encode_byte).collect();
        lengths.extend(begins(text, &encoded).then_some(encoded.len()));
        if is_unknown && text.get(1..3).is_some_and(is_byte) {
            lengths.push(3);
        }
    }
    lengths.retain(|length| *length > 0);
    lengths
}

fn begins(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|it| it.eq_ignore_ascii_case(beginning))
}

fn is_byte(text: &str) -> bool {
    text.chars().all(|it| it.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    #[test]
    fn what_may_be_secret_in_a_url_is_hidden_and_the_rest_is_shown() {
        for (argument, shown) in [
            ("ftp://me:SECRET@x", "ftp://…@x"),
            ("--otlp-endpoint=ftp://me:SECRET@x:1/a", "--otlp-endpoint=ftp://…@x:1/a"),
            ("ftp://SECRET@x", "ftp://…@x"),
            ("http://x/a?token=SECRET", "http://x/a?…"),
            ("http://x/?a=b#SECRET", "http://x/?…"),
            ("http://x/#SECRET", "http://x/?…"),
            ("http://me:SEC/R ET@x/?token=SECRET", "http://…@x/?…"),
            ("http://me:SE?CR#ET@x", "http://…"),
            ("http://x/a?user=a@b&token=SECRET", "http://…"),
            ("http://me:SE@CRET@x", "http://…@x"),
            ("me:SECRET@x:1", "…@x:1"),
            ("-f=me:SECRET@x", "…@x"),
            ("http://x:1/a", "http://x:1/a"),
            ("http://x/?", "http://x/?"),
            ("me@example.com", "me@example.com"),
            ("a/b@c.yaml", "a/b@c.yaml"),
            ("what?.yaml", "what?.yaml"),
        ] {
            let credentials = Credential::all(argument);
            assert_eq!(without(&credentials, argument), shown);
            assert_eq!(without(&credentials, &format!("error: `{argument}`, no")), format!("error: `{shown}`, no"));
        }
    }

    #[test]
    fn a_credential_is_hidden_however_a_message_writes_it() {
        let json = |text: &str| serde_json::to_string(text).unwrap();
        let debug = |text: &str| format!("{text:?}");
        let escaped = |text: &str| escape::escaped(text, |_| None).replace('\n', "\\u000a");
        let replaced = |text: &str| text.replace(char::is_control, "\u{fffd}");
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let byte = |it: u8| if it.is_ascii_alphabetic() { char::from(it).into() } else { format!("%{it:02x}") };
        let lower = |text: &str| text.bytes().map(byte).collect::<String>();
        let wrapped = |text: &str| text.replace(char::is_whitespace, "\n    ");
        for argument in [
            "http://me:SECRET@x",
            "http://me:\"SECRET\\@x",
            "http://me:'SECRET\"@x",
            "http://me:\\\\SECRET\\\"@x",
            "http://me:\nSECRET\n\n@x",
            "http://me:\tSECRET\r@x",
            "http://me:\u{1}SECRET\u{7f}\u{0}\u{8}\u{c}@x",
            "http://me:SECRET\u{9b}\u{202e}\u{2028}ö日@x",
            "http://me:SEC RET  x@x",
            "http://me:%41SECRET%40%zz%@x",
            "http://me:\u{fffd}SECRET\u{fffd}@x",
            "http://x/?token=SECRET\n",
            "http://x/\n?token=\tSECRET",
        ] {
            let credentials = Credential::all(argument);
            for (form, text) in [
                ("JSON", json(argument)),
                ("debug", debug(argument)),
                ("a terminal", escaped(argument)),
                ("JSON on a terminal", escaped(&json(argument))),
                ("debug in JSON", json(&debug(argument))),
                ("debug of JSON of debug", debug(&json(&debug(argument)))),
                ("replaced", replaced(argument)),
                ("a URL", encoded(argument)),
                ("a URL in lower case", lower(argument)),
                ("a paragraph", wrapped(argument)),
            ] {
                let shown = without(&credentials, &text);
                assert!(shown.contains(HIDDEN), "{form} of {argument:?}: {shown}");
                assert!(!shown.contains("SEC") && !shown.contains("RET"), "{form} of {argument:?}: {shown}");
            }
        }
        let decoded = percent_decode_str("http://me:%53ECRET%0a@x").decode_utf8_lossy();
        assert_eq!(without(&Credential::all("http://me:%53ECRET%0a@x"), &decoded), "http://…@x");
    }

    #[test]
    fn each_url_of_an_argument_is_hidden_together_and_alone() {
        for (argument, shown, parts) in [
            ("http://a:SECRET@x,http://b:SECRET@y", "http://…@y", &["http://…@x", "http://…@y"][..]),
            ("a:SECRET@x http://b:SECRET@y/z", "…@y/z", &["…@x", "http://…@y/z"]),
            ("http://x/?t=SECRET http://b:SECRET@y", "http://…", &["http://x/?…", "http://…@y"]),
            ("http://a:SECRET@y http://x/?t=SECRET", "http://…@y http://x/?…", &["http://…@y", "http://x/?…"]),
            ("a.yaml;http://SECRET@x;b@c", "a.yaml;http://…@c", &["a.yaml", "http://…@x", "b@c"]),
        ] {
            let credentials = Credential::all(argument);
            assert_eq!(without(&credentials, argument), shown);
            let split = argument.split([' ', ',', ';']).map(|part| without(&credentials, part));
            assert_eq!(split.collect::<Vec<_>>(), parts, "{argument}");
        }
    }
}
