//! The names of all markers that are read.

use kube_unions_core::near::nearest;

/// The reader of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// A marker of the two proposals.
    Proposal,
    /// `(union: "u", memberName: "M")` or JSON.
    Union,
    ModeDiscriminator,
    IfMode,
    DependentForbidden,
    /// Stands before another marker, and says how stable it is.
    Level,
    /// Stands before another marker, which counts only under a condition.
    Condition,
    /// Stands before another marker, which belongs to a field of the struct.
    Subfield,
    /// Stands before another marker, which belongs to items, keys or values.
    Items,
    ExactlyOneOf,
    AtMostOneOf,
    Enum,
    EmbeddedResource,
    Root,
    GroupName,
    VersionName,
}

/// Each marker with its reader and, in declarative validation, the names of its arguments. The empty name is an argument without
/// one.
const MARKERS: [(&str, Reader, &[&str]); 28] = [
    ("union", Reader::Proposal, &[]),
    ("unionDiscriminator", Reader::Proposal, &[]),
    ("unionMember", Reader::Proposal, &[]),
    ("unionDeprecated", Reader::Proposal, &[]),
    ("unionDiscriminatedBy", Reader::Proposal, &[]),
    ("k8s:unionDiscriminator", Reader::Union, &["union"]),
    ("k8s:unionMember", Reader::Union, &["union", "memberName"]),
    ("k8s:zeroOrOneOfMember", Reader::Union, &["union", "memberName"]),
    ("k8s:modeDiscriminator", Reader::ModeDiscriminator, &["modality"]),
    ("k8s:ifMode", Reader::IfMode, &["", "mode", "modality"]),
    ("k8s:dependentForbidden", Reader::DependentForbidden, &[""]),
    ("k8s:alpha", Reader::Level, &["since"]),
    ("k8s:beta", Reader::Level, &["since"]),
    ("k8s:ifEnabled", Reader::Condition, &[""]),
    ("k8s:ifDisabled", Reader::Condition, &[""]),
    ("k8s:subfield", Reader::Subfield, &[""]),
    ("k8s:item", Reader::Items, &[]),
    ("k8s:eachVal", Reader::Items, &[]),
    ("k8s:eachKey", Reader::Items, &[]),
    ("kubebuilder:validation:ExactlyOneOf", Reader::ExactlyOneOf, &[]),
    ("kubebuilder:validation:AtMostOneOf", Reader::AtMostOneOf, &[]),
    ("kubebuilder:validation:Enum", Reader::Enum, &[]),
    ("kubebuilder:validation:EmbeddedResource", Reader::EmbeddedResource, &[]),
    ("kubebuilder:validation:XEmbeddedResource", Reader::EmbeddedResource, &[]),
    ("kubebuilder:object:root", Reader::Root, &[]),
    ("genclient", Reader::Root, &[]),
    ("groupName", Reader::GroupName, &[]),
    ("versionName", Reader::VersionName, &[]),
];

/// Returns the reader of a marker and the names of its arguments.
pub(super) fn find(name: &str) -> Option<(Reader, &'static [&'static str])> {
    MARKERS.into_iter().find(|(known, ..)| *known == name).map(|(_, reader, arguments)| (reader, arguments))
}

/// Returns true if a text has a marker of unions behind `=`.
pub(super) fn has_union_behind(text: &str) -> bool {
    text.split("=+").skip(1).any(|behind| union_markers().any(|name| behind.starts_with(name)))
}

/// Returns the message for a marker that no tool knows, if a marker of unions has almost this name.
pub(super) fn misspelt(name: &str) -> Option<String> {
    if let Some(near) = nearest(name, union_markers()) {
        return Some(format!("unknown marker `+{name}` (did you mean `+{near}`?)"));
    }
    let is_union = name.starts_with("union") || name.starts_with("k8s:union");
    is_union.then(|| format!("unknown marker `+{name}`: correct the name or remove it"))
}

/// Returns the markers that declare a part of a union.
fn union_markers() -> impl Iterator<Item = &'static str> {
    let of_unions = MARKERS.into_iter().filter(|(_, reader, _)| match reader {
        Reader::Proposal
        | Reader::Union
        | Reader::ModeDiscriminator
        | Reader::IfMode
        | Reader::DependentForbidden
        | Reader::ExactlyOneOf
        | Reader::AtMostOneOf => true,
        Reader::Level
        | Reader::Condition
        | Reader::Subfield
        | Reader::Items
        | Reader::Enum
        | Reader::EmbeddedResource
        | Reader::Root
        | Reader::GroupName
        | Reader::VersionName => false,
    });
    of_unions.map(|(name, ..)| name)
}
