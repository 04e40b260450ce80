//! Findings: what was left out and why, and what may surprise.

use kube_unions_core::declaration::Severity;
use kube_unions_core::report_kinds;
use kube_unions_core::schema::Place;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A message about the Go sources, with the position that caused it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoFinding {
    /// Position of the marker, field or type in the sources.
    pub position: Position,
    /// Path of the object in the schema, for example `spec.strategy`; empty for the root.
    pub path: String,
    /// Severity: an error means that something was left out.
    pub severity: Severity,
    pub kind: FindingKind,
    /// The problem and its remedy, in one line. Names and values from the sources are in backticks.
    pub message: String,
}

impl GoFinding {
    /// Returns a finding without a path.
    pub(super) fn new(at: &Position, kind: FindingKind, message: impl Into<String>) -> Self {
        let (position, path, severity, message) = (at.clone(), String::new(), kind.severity(), message.into());
        Self { position, path, severity, kind, message }
    }

    /// Returns a finding whose message says that a union or a member is left out.
    pub(super) fn left_out(at: &Position, kind: FindingKind, message: impl fmt::Display) -> Self {
        Self::new(at, kind, format!("{message}; left out"))
    }

    /// Returns the finding about an object in the schema.
    pub(super) fn about(self, place: &Place) -> Self {
        Self { path: place.to_string(), ..self }
    }
}

report_kinds! {
    /// Kind of a finding. Its name never changes.
    FindingKind:
    KindNotFound "kind-not-found" Error "No Go file that was given has a struct for the kind.",
    VersionNotFound "version-not-found" Warning "The kind has a struct, and one of its versions has none.",
    DuplicateKind "duplicate-kind" Error "Two structs fit the kind equally well.",
    OtherType "other-type" Error "The CRD was made from another Go type.",
    DuplicateType "duplicate-type" Error "Two files of the build declare a type.",
    RecursiveType "recursive-type" Error "A type contains itself without end.",
    MissingPackage "missing-package" Note "The sources of an imported package were not given.",
    UnreachedStruct "unreached-struct" Note "A struct has union markers, and no kind uses it.",
    InvalidMarker "invalid-marker" Error "A marker has a syntax error or unknown arguments.",
    MisplacedMarker "misplaced-marker" Error "A marker has no effect at its position.",
    UnsupportedMarker "unsupported-marker" Note "A marker of unions that is not used.",
    ConditionalMarker "conditional-marker" Note "A marker depends on an option, and the union is declared without it.",
    ContradictoryMarkers "contradictory-markers" Error "The markers of a struct contradict each other.",
    UnmarkedUnion "unmarked-union" Error "A struct has `+union`, and nothing tells its members.",
    UnmarkedMember "unmarked-member" Error "A field looks like a member, and no value of the discriminator has its name.",
    AmbiguousMember "ambiguous-member" Error "A value may select several members, or a member may have several values.",
    AmbiguousUnion "ambiguous-union" Error "A member may belong to several unions, or a discriminator has no members.",
    UnknownValues "unknown-values" Error "The values of a discriminator are unknown.",
    ContradictoryValues "contradictory-values" Error "The values of a discriminator differ between constants and markers, and the schema has none.",
    UnknownValue "unknown-value" Error "A marker names a value that the discriminator does not have.",
    DuplicateValue "duplicate-value" Error "Two members have one value, or a member has two values.",
    DiscriminatorType "discriminator-type" Error "The discriminator is not a string in the schema.",
    DiscriminatorAlone "discriminator-alone" Note "A struct has a discriminator, no `+union`, and no field that could be a member.",
    RefusedUnion "refused-union" Error "The schema does not allow the union.",
    SurprisingUnion "surprising-union" Warning "The union is declared, and may surprise.",
    MissingField "missing-field" Note "The schema lacks a discriminator or a member.",
    DeclaredInCrd "declared-in-crd" Note "The markers are ambiguous, and the CRD itself declares the union.",
    OtherValues "other-values" Warning "The Go sources have other values than the `enum` of the schema, which decides.",
    MissingType "missing-type" Warning "A type that the kind needs is not declared in its package, whose sources were given.",
    UnreadableType "unreadable-type" Error "The parser cannot read a declaration of types.",
    EmbeddedUnion "embedded-union" Note "The union is in an embedded resource, which is an object of another kind.",
    OverlappingGroup "overlapping-group" Warning "A group of `ExactlyOneOf`, `AtMostOneOf` or `dependentForbidden` shares a field with another union.",
    UnknownField "unknown-field" Error "A marker names something that is not a field.",
    RefusedCrd "refused-crd" Error "The CRD cannot be changed.",
}

impl FindingKind {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if the markers allow more than one reading. The union is left out rather than guessed.
    pub fn is_ambiguous(self) -> bool {
        matches!(
            self,
            Self::DuplicateType
                | Self::UnmarkedUnion
                | Self::UnmarkedMember
                | Self::AmbiguousMember
                | Self::AmbiguousUnion
                | Self::UnknownValues
                | Self::ContradictoryValues
        )
    }
}

/// A position in a Go file. It displays as `file:line:column`, which editors understand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Path of the file, as the caller gave it.
    pub file: Arc<Path>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in bytes, counted from 1, as the Go tools count.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_kebab_case() {
        for (position, kind) in FindingKind::ALL.iter().enumerate() {
            let name = kind.name();
            assert!(name.chars().all(|c| c == '-' || c.is_ascii_lowercase()), "{name}");
            assert_eq!(FindingKind::ALL.iter().position(|other| other.name() == name), Some(position), "{name}");
            assert_eq!(FindingKind::named(name), Some(*kind));
        }
        assert_eq!(FindingKind::named("ambiguous"), None);
    }
}
