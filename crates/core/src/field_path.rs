//! Paths of fields in an object, written `spec.a[0].b` for people and `/spec/a/0/b` for patches.
//!
//! A [`FieldPath`] owns its segments and is built only for messages and patches. This module must not know schemas: places in
//! a schema are [`Place`](crate::schema::Place)s.

use std::fmt;

/// Longest map key in a displayed path, in bytes. A longer key is cut, since keys are user data.
const LONGEST_KEY: usize = 64;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A named field of an object, `.name`.
    Field(Box<str>),
    /// An item of a list by position, `[0]`.
    Index(usize),
    /// An entry of a map (`additionalProperties`), `[key]`.
    Key(Box<str>),
}

impl Segment {
    /// Returns the segment as a reference token of a JSON Pointer (RFC 6901), unescaped.
    pub fn to_token(&self) -> String {
        match self {
            Self::Field(name) | Self::Key(name) => name.to_string(),
            Self::Index(index) => index.to_string(),
        }
    }
}

/// The path of a field from the root of its object.
///
/// Displays as the API server writes paths, for example `spec.a[0].b[key].c`. The root displays as the empty string. Paths
/// are ordered by their segments, list positions as numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// Returns the path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the segments, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Returns the path as a JSON Pointer (RFC 6901).
    pub fn to_pointer(&self) -> String {
        pointer(self.0.iter().map(Segment::to_token))
    }
}

impl FromIterator<Segment> for FieldPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if position == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{}]", Printable::new(key, LONGEST_KEY))?,
            }
        }
        Ok(())
    }
}

/// User text made safe to display: control characters become U+FFFD, and a long text is cut.
pub struct Printable<'a> {
    text: &'a str,
    longest: usize,
}

impl<'a> Printable<'a> {
    /// Displays at most `longest` bytes of `text`.
    pub fn new(text: &'a str, longest: usize) -> Self {
        Self { text, longest }
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = cut(self.text, self.longest);
        for character in shown.chars() {
            let safe = if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
            fmt::Write::write_char(f, safe)?;
        }
        if shown.len() < self.text.len() { f.write_str("…") } else { Ok(()) }
    }
}

/// Returns the longest prefix of `text` that has at most `longest` bytes and ends between characters.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
    text.get(..text.floor_char_boundary(longest)).unwrap_or(text)
}

/// A text about a field, displayed as `path: text`, as the API server writes field errors. The path of the root is empty, and only
/// the text remains.
#[derive(Debug)]
pub struct AboutField<'a, T> {
    /// The path of the field, empty for the root.
    pub path: &'a str,
    /// The text.
    pub text: T,
}

impl<T: fmt::Display> fmt::Display for AboutField<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.path, self.text)
    }
}

/// Returns the JSON Pointer of reference tokens, which it escapes (RFC 6901, section 3).
pub fn pointer(tokens: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    tokens
        .into_iter()
        .flat_map(|token| ["/".to_owned(), token.as_ref().replace('~', "~0").replace('/', "~1")])
        .collect()
}

/// Returns the unescaped reference tokens of a JSON Pointer, or `None` if the text is not a JSON Pointer.
pub fn pointer_tokens(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    pointer.strip_prefix('/')?.split('/').map(unescape_token).collect()
}

fn unescape_token(token: &str) -> Option<String> {
    let is_escape = |rest: &str| rest.starts_with(['0', '1']);
    token.split('~').skip(1).all(is_escape).then(|| token.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::Segment::{Field, Index, Key};
    use super::*;

    #[test]
    fn a_path_is_written_for_people_and_as_a_pointer_for_patches() {
        let field = |name: &str| Field(name.into());
        let segments = [field("spec"), field("a"), Index(3), field("labels"), Key("x/y~z".into()), field("b")];
        let path = FieldPath::from_iter(segments);
        assert_eq!(path.to_string(), "spec.a[3].labels[x/y~z].b");
        assert_eq!(path.to_pointer(), "/spec/a/3/labels/x~1y~0z/b");
        assert_eq!(FieldPath::root().to_string(), "");
        assert_eq!(FieldPath::root().to_pointer(), "");
    }

    #[test]
    fn map_keys_are_never_echoed_raw() {
        let key = format!("a\u{1b}[31m\n{}", "é".repeat(100));
        let path = FieldPath::from_iter([Key(key.into())]).to_string();
        assert!(path.starts_with("[a\u{fffd}[31m\u{fffd}é"), "{path}");
        assert!(path.ends_with("…]"), "{path}");
        assert!(path.len() < 80, "{path}");
    }

    #[test]
    fn list_positions_order_as_numbers() {
        let at = |index| FieldPath::from_iter([Index(index)]);
        assert!(at(2) < at(10));
    }

    #[test]
    fn pointers_that_are_not_pointers_are_refused() {
        assert_eq!(pointer_tokens(""), Some(vec![]));
        assert_eq!(pointer_tokens("/a~1b/~0"), Some(vec!["a/b".into(), "~".into()]));
        assert_eq!(pointer_tokens("a"), None);
        assert_eq!(pointer_tokens("/~2"), None);
        assert_eq!(pointer_tokens("/~"), None);
    }

    #[test]
    fn a_text_about_the_whole_object_has_no_path() {
        assert_eq!(AboutField { path: "spec.a", text: "Forbidden" }.to_string(), "spec.a: Forbidden");
        assert_eq!(AboutField { path: "", text: "Forbidden" }.to_string(), "Forbidden");
    }
}
