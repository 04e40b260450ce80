//! The meanings of markers, and the names of all that are read.

use kube_unions_core::near::nearest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    Union,
    /// The field is the discriminator of the union with this name, or of the only one.
    Discriminator {
        union: Option<Box<str>>,
        /// The union is a modality of `+k8s:modeDiscriminator`, whose values may select several fields.
        modes: bool,
    },
    Member(MemberMarker),
    /// Go name of the discriminator that selects the member.
    DiscriminatedBy(Box<str>),
    /// Values that the field or type allows.
    Enum(Vec<Box<str>>),
    /// JSON names of fields. At most one may be set.
    OneOf(OneOfMarker),
    /// JSON name of a field that may not be set beside this one.
    Excludes(Box<str>),
    /// The marker belongs to the field with this JSON name, of the struct that the field or type is.
    Subfield(Box<str>, Box<Meaning>),
    /// The field is an object of another kind.
    EmbeddedResource,
    /// The struct is a kind.
    Root,
    /// API group of the package.
    GroupName(Box<str>),
    /// API version of the package.
    VersionName(Box<str>),
    /// A union of list items, map keys or other things than fields. Holds the message for the author.
    Unsupported(String),
    /// A union marker with an error. Holds the message for the author.
    Invalid(String),
}

/// Arguments of a marker that makes a field a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MemberMarker {
    /// Name of the union, for structs with several.
    pub(crate) union: Option<Box<str>>,
    /// Value of the discriminator; the default is the name of the Go field.
    pub(crate) value: Option<Box<str>>,
    /// The presence of the field while the value is chosen.
    pub(crate) presence: Presence,
    pub(crate) family: Family,
}

/// The presence of a field while a value is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Presence {
    #[default]
    Required,
    Optional,
    /// The value exists, and does not select the field.
    Forbidden,
}

/// `+kubebuilder:validation:ExactlyOneOf` or `+kubebuilder:validation:AtMostOneOf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OneOfMarker {
    /// One of the fields must be set.
    pub(crate) exactly: bool,
    /// JSON names, each once.
    pub(crate) fields: Vec<Box<str>>,
}

/// Family of a member marker. It decides the form of the union.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub(crate) enum Family {
    /// `+unionMember`.
    #[default]
    Member,
    /// `+k8s:unionMember`: without a discriminator, one member must be set.
    Validation,
    /// `+k8s:ifMode`.
    Mode,
    /// `+unionDeprecated`: always the 2019 form.
    Deprecated,
    /// `+k8s:zeroOrOneOfMember`: never has a discriminator.
    ZeroOrOneOf,
}

impl Family {
    /// Returns true for the families of declarative validation, for which zero values count as not set.
    pub(crate) fn is_validation(self) -> bool {
        matches!(self, Self::Validation | Self::Mode | Self::ZeroOrOneOf)
    }
}

impl Meaning {
    /// Returns true for markers that declare a part of a union or try to.
    pub(crate) fn is_about_unions(&self) -> bool {
        let is_about_others = matches!(self, Self::Enum(_) | Self::EmbeddedResource | Self::Unsupported(_));
        !is_about_others && !matches!(self, Self::Root | Self::GroupName(_) | Self::VersionName(_))
    }
}

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

/// A marker with its reader and, in declarative validation, the names of its arguments. The empty name is an argument without one.
type KnownMarker = (&'static str, Reader, &'static [&'static str]);

/// The markers that declare a part of a union.
const OF_UNIONS: [KnownMarker; 13] = [
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
    ("kubebuilder:validation:ExactlyOneOf", Reader::ExactlyOneOf, &[]),
    ("kubebuilder:validation:AtMostOneOf", Reader::AtMostOneOf, &[]),
];

/// Other markers that are read.
const OTHERS: [KnownMarker; 15] = [
    ("k8s:alpha", Reader::Level, &["since"]),
    ("k8s:beta", Reader::Level, &["since"]),
    ("k8s:ifEnabled", Reader::Condition, &[""]),
    ("k8s:ifDisabled", Reader::Condition, &[""]),
    ("k8s:subfield", Reader::Subfield, &[""]),
    ("k8s:item", Reader::Items, &[]),
    ("k8s:eachVal", Reader::Items, &[]),
    ("k8s:eachKey", Reader::Items, &[]),
    ("kubebuilder:validation:Enum", Reader::Enum, &[]),
    ("kubebuilder:validation:EmbeddedResource", Reader::EmbeddedResource, &[]),
    ("kubebuilder:validation:XEmbeddedResource", Reader::EmbeddedResource, &[]),
    ("kubebuilder:object:root", Reader::Root, &[]),
    ("genclient", Reader::Root, &[]),
    ("groupName", Reader::GroupName, &[]),
    ("versionName", Reader::VersionName, &[]),
];

/// The last parts of the names of markers of other tools that make unions, whatever their letter case.
const OF_OTHER_TOOLS: [&str; 5] = ["exclusive", "mutuallyexclusive", "oneof", "oneofmember", "optionaloneof"];

/// Returns the message for a marker of another tool that makes a union.
pub(super) fn of_another_tool(name: &str) -> Option<String> {
    let last = name.rsplit(':').next()?.to_lowercase();
    OF_OTHER_TOOLS.contains(&&*last).then(|| {
        format!(
            "`+{name}` is a marker of another tool, and is not used: write `+kubebuilder:validation:ExactlyOneOf=a;b` or \
             `AtMostOneOf` above the struct, or `+unionMember` above each field"
        )
    })
}

/// Returns the reader of a marker and the names of its arguments.
pub(super) fn find(name: &str) -> Option<(Reader, &'static [&'static str])> {
    OF_UNIONS
        .into_iter()
        .chain(OTHERS)
        .find(|(known, ..)| *known == name)
        .map(|(_, reader, arguments)| (reader, arguments))
}

/// Returns true if a text has a marker of unions behind `=`.
pub(super) fn has_union_behind(text: &str) -> bool {
    text.split("=+").skip(1).any(|behind| OF_UNIONS.into_iter().any(|(name, ..)| behind.starts_with(name)))
}

/// Returns the message for a marker that no tool knows, if a marker of unions has almost this name.
pub(super) fn misspelt(name: &str) -> Option<String> {
    if let Some(near) = nearest(name, OF_UNIONS.into_iter().map(|(known, ..)| known)) {
        return Some(format!("unknown marker `+{name}` (did you mean `+{near}`?)"));
    }
    let is_union = name.starts_with("union") || name.starts_with("k8s:union");
    is_union.then(|| format!("unknown marker `+{name}`: correct the name or remove it"))
}
