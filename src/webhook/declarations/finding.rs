//! Words a fault as the API server words what it finds invalid.

use kube_unions_core::declaration::Fault;
use std::fmt::Write;

/// Longest message of one fault, in bytes. A fault may quote any key of an annotation of 256 KiB.
const LONGEST_MESSAGE: usize = 1024;

/// Longest path of a field, in bytes.
const LONGEST_FIELD: usize = 512;

/// One fault, as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Finding {
    /// The path of the field in the object that is written.
    pub(super) field: String,
    /// The version, and the place in the schema, that is meant; empty for the whole.
    place: String,
    message: String,
}

impl Finding {
    /// A fault of a `UnionDeclaration`. The versions of its target mostly have the same fault, which is told once.
    pub(super) fn of_declaration(fault: &Fault) -> Self {
        Self::new(fault, &fault.path)
    }

    /// A fault of a CRD, in one of its versions.
    pub(super) fn of_definition(fault: &Fault) -> Self {
        let version = fault.version.as_deref().unwrap_or_default();
        let space = if version.is_empty() || fault.path.is_empty() { "" } else { " " };
        let finding = Self::new(fault, &format!("{version}{space}{}", fault.path));
        // A CRD that can't be read has one fault, which is at no place.
        if finding.field.is_empty() { Self { field: "spec".to_owned(), ..finding } } else { finding }
    }

    fn new(fault: &Fault, place: &str) -> Self {
        Self {
            field: field(&fault.pointer),
            place: bounded(place, LONGEST_FIELD),
            message: bounded(&fault.message, LONGEST_MESSAGE),
        }
    }

    /// The message of a cause, as the API server words it.
    pub(super) fn cause(&self) -> String {
        if self.place.is_empty() {
            format!("Invalid value: {}", self.message)
        } else {
            format!("Invalid value: {:?}: {}", self.place, self.message)
        }
    }

    /// One line for a person.
    pub(super) fn warning(&self) -> String {
        let Self { field, place, message } = self;
        let colon = if place.is_empty() { "" } else { ": " };
        format!("{field}: {place}{colon}{message}")
    }
}

/// The path of a field as the API server writes it, from a JSON Pointer: `spec.unions[0]`,
/// `metadata.annotations[kube-unions.dev/unions]`.
fn field(pointer: &str) -> String {
    let mut field = String::new();
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let is_name = key.starts_with(|first: char| first.is_ascii_alphabetic())
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // Writing to a string can't fail.
        let _ = if is_name {
            write!(field, "{}{key}", if field.is_empty() { "" } else { "." })
        } else {
            write!(field, "[{key}]")
        };
    }
    bounded(&field, LONGEST_FIELD)
}

/// Returns at most `longest` bytes of a text, on one line.
pub(super) fn bounded(text: &str, longest: usize) -> String {
    const ELLIPSIS: &str = "…";
    let mut bounded = if text.len() <= longest {
        text.to_owned()
    } else {
        let end = text.floor_char_boundary(longest.saturating_sub(ELLIPSIS.len()));
        format!("{}{ELLIPSIS}", text.get(..end).unwrap_or_default())
    };
    if bounded.contains(char::is_control) {
        bounded = bounded.replace(char::is_control, " ");
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_become_paths() {
        for (pointer, path) in [
            ("/spec/unions/12", "spec.unions[12]"),
            ("/spec/target/kind", "spec.target.kind"),
            ("/metadata/annotations/kube-unions.dev~1unions", "metadata.annotations[kube-unions.dev/unions]"),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/a-b",
                "spec.versions[0].schema.openAPIV3Schema.properties[a-b]",
            ),
            ("/a~01", "[a~1]"),
            ("/spec", "spec"),
            ("", ""),
        ] {
            assert_eq!(field(pointer), path);
        }
    }

    #[test]
    fn a_text_of_any_length_is_one_short_line() {
        assert_eq!(bounded("a\nb\u{7}c", 10), "a b c");
        let long = bounded(&"é".repeat(300), 255);
        assert!(long.len() <= 255 && long.ends_with('…'), "{long}");
    }
}
