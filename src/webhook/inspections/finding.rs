//! Puts the fault of a declaration into the words of the API server's own validation.

use kube_unions_core::declaration::Fault;
use std::fmt::Write;

/// Longest message of one finding, in bytes. A fault may quote any key of an annotation of 256 KiB.
const LONGEST_MESSAGE: usize = 1024;

/// Longest path of a field, in bytes.
const LONGEST_FIELD: usize = 512;

/// One fault in the form of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InspectionFinding {
    /// The path of the field in the declaring object.
    pub(super) field: String,
    /// The version and the path in the schema that the fault is about. Empty if it is about the whole object.
    place: String,
    message: String,
}

impl InspectionFinding {
    /// Returns a fault of a `UnionDeclaration`, without the version: the versions of a target often have the same fault.
    pub(super) fn of_declaration(fault: &Fault) -> Self {
        Self::new(fault, &fault.path)
    }

    /// Returns a fault of a CRD, with its version.
    pub(super) fn of_definition(fault: &Fault) -> Self {
        let version = fault.version.as_deref().unwrap_or_default();
        let space = if version.is_empty() || fault.path.is_empty() { "" } else { " " };
        let finding = Self::new(fault, &format!("{version}{space}{}", fault.path));
        // The fault of a CRD that cannot be read has no path.
        if finding.field.is_empty() { Self { field: "spec".to_owned(), ..finding } } else { finding }
    }

    fn new(fault: &Fault, place: &str) -> Self {
        Self {
            field: field(&fault.pointer),
            place: bounded(place, LONGEST_FIELD),
            message: bounded(&fault.message, LONGEST_MESSAGE),
        }
    }

    /// Returns the message of a denial's cause.
    pub(super) fn cause(&self) -> String {
        if self.place.is_empty() {
            format!("Invalid value: {}", self.message)
        } else {
            format!("Invalid value: {:?}: {}", self.place, self.message)
        }
    }

    /// Returns the text of a warning.
    pub(super) fn warning(&self) -> String {
        let Self { field, place, message } = self;
        let colon = if place.is_empty() { "" } else { ": " };
        format!("{field}: {place}{colon}{message}")
    }
}

/// Returns the path of a field as the API server writes it, from a JSON Pointer: `spec.unions[0]`,
/// `metadata.annotations[kube-unions.dev/unions]`. An annotation is one text, so a path ends there.
fn field(pointer: &str) -> String {
    let mut field = String::new();
    let longest = if pointer.starts_with("/metadata/annotations/") { 3 } else { usize::MAX };
    for token in pointer.split('/').skip(1).take(longest) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let is_name = key.starts_with(|first: char| first.is_ascii_alphabetic())
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // Writing to a string cannot fail.
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
            ("/metadata/annotations/kube-unions.dev~1unions/v1/~1a", "metadata.annotations[kube-unions.dev/unions]"),
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
