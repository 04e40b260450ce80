//! Hides the credentials of URLs that a user gave as an argument, from every message that quotes the argument.

use std::borrow::Cow;
use std::sync::LazyLock;

/// Stands in messages instead of a credential.
const HIDDEN: char = '…';

/// The credentials in the arguments of this process.
static GIVEN: LazyLock<Vec<Credential>> = LazyLock::new(|| {
    let arguments = std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok());
    arguments.flat_map(|argument| Credential::all(&argument).collect::<Vec<_>>()).collect()
});

/// A part of a URL that may be secret.
#[derive(Debug, PartialEq, Eq)]
struct Credential {
    /// As the user wrote it, and as `{:?}` writes it.
    forms: [String; 2],
    /// The text that is shown in its place.
    shown: String,
}

/// Returns a text without the credentials of this process.
pub(crate) fn without_credentials(text: &str) -> Cow<'_, str> {
    without(&GIVEN, text)
}

fn without<'t>(credentials: &[Credential], text: &'t str) -> Cow<'t, str> {
    credentials.iter().fold(Cow::Borrowed(text), |text, credential| {
        credential.forms.iter().fold(text, |text, form| {
            if text.contains(form) { Cow::Owned(text.replace(form, &credential.shown)) } else { text }
        })
    })
}

impl Credential {
    /// Returns the credentials of an argument: the user information and the query of a URL. The scheme may be missing.
    fn all(argument: &str) -> impl Iterator<Item = Self> {
        let value = argument.split_once('=').filter(|(flag, _)| flag.starts_with("--")).map_or(argument, |it| it.1);
        let (is_url, rest) = value.split_once("://").map_or((false, value), |(_, rest)| (true, rest));
        // A password may have each of the characters that end it.
        let user = rest.rsplit_once('@').map(|(user, _)| user).filter(|user| is_url || user.contains(':'));
        let is_ambiguous = user.is_some_and(|user| user.contains(['?', '#']));
        let after_user = user.and_then(|user| rest.strip_prefix(user)).unwrap_or(rest);
        let query = after_user.find(['?', '#']).filter(|_| is_url).and_then(|at| after_user.get(at..));
        let user = user.map(|user| {
            if is_ambiguous {
                Self::new(rest, &HIDDEN.to_string())
            } else {
                Self::new(&format!("{user}@"), &format!("{HIDDEN}@"))
            }
        });
        let query = query.filter(|query| query.len() > 1).map(|query| Self::new(query, &format!("?{HIDDEN}")));
        user.into_iter().chain(query)
    }

    fn new(text: &str, shown: &str) -> Self {
        Self { forms: [text.to_owned(), text.escape_debug().to_string()], shown: shown.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let credentials: Vec<Credential> = Credential::all(argument).collect();
            assert_eq!(without(&credentials, argument), shown);
            assert_eq!(without(&credentials, &format!("error: `{argument}`, no")), format!("error: `{shown}`, no"));
        }
        let argument = "http://me:\"SECRET\\@x";
        let credentials: Vec<Credential> = Credential::all(argument).collect();
        assert_eq!(without(&credentials, &format!("{argument:?}")), r#""http://…@x""#);
    }
}
