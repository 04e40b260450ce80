//! What can be wrong with a declaration, and what to do about it.

use crate::schema::{Origin, Place, Severity, Source};
use std::fmt;

/// Something about a declaration at a place of a schema. Orders by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceFault {
    /// Where the declaration stands.
    pub place: Place,
    /// Where the declaration came from.
    pub source: Source,
    /// Which `UnionDeclaration` it is, if it is one.
    pub origin: Option<Origin>,
    /// What it is.
    pub kind: PlaceFaultKind,
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceFaultKind {
    /// The extension does not parse.
    #[error("{0}")]
    Malformed(String),
    /// The 2019 form on something else than an object.
    #[error("a list of unions must stand on an object, this is {0}")]
    NotAnObject(String),
    /// The 2022 form on something that has no fields beside it.
    #[error("`fieldMembers` must stand on a string property, beside the fields it names")]
    NotAProperty,
    /// The discriminator is not a string.
    #[error("the discriminator `{name}` must be of type string, it is {found}")]
    DiscriminatorNotString {
        /// The discriminator.
        name: Box<str>,
        /// Its type, or that it has none.
        found: String,
    },
    /// The discriminator is not beside the members.
    #[error("the discriminator `{0}` is not a property of this object; declare it or correct the name")]
    NoSuchDiscriminator(Box<str>),
    /// A member is not a property.
    #[error("the member `{0}` is not a property of this object; declare it or correct the name")]
    NoSuchMember(Box<str>),
    /// A member is the discriminator.
    #[error("the discriminator `{0}` can't be a member of its own union")]
    MemberIsDiscriminator(Box<str>),
    /// A member must be there.
    #[error("the member `{0}` is required, so it can never be cleared; take it out of `required`")]
    MemberRequired(Box<str>),
    /// A member comes back.
    #[error(
        "the member `{0}` has a default, so the API server would restore it whenever it is cleared; remove the default"
    )]
    MemberHasDefault(Box<str>),
    /// Another union has the field.
    #[error("the field `{0}` already belongs to another union of this object; a field can be in one union only")]
    FieldTaken(Box<str>),
    /// Two members of the 2019 form with one value.
    #[error("the members `{one}` and `{other}` have the same value `{value}`; each needs its own")]
    SameValue {
        /// A member.
        one: Box<str>,
        /// Another member.
        other: Box<str>,
        /// Their value.
        value: Box<str>,
    },
    /// A member of the 2019 form with the empty value.
    #[error("the value of the member `{0}` is empty, which means no choice; give it a value")]
    EmptyValue(Box<str>),
    /// A value that the discriminator can't have.
    #[error("the value `{value}` is not in the enum of `{discriminator}`; add it there or correct it")]
    ValueNotInEnum {
        /// The discriminator.
        discriminator: Box<str>,
        /// The declared value.
        value: Box<str>,
    },
    /// A value that the 2022 form says nothing about.
    #[error(
        "the enum of `{discriminator}` has `{value}`, which is not in `fieldMembers`; add it, as an empty member if it selects no field"
    )]
    EnumValueNotDeclared {
        /// The discriminator.
        discriminator: Box<str>,
        /// The value in the enum.
        value: Box<str>,
    },
    /// Values that a published union names and that no enum confirms.
    #[error("the published values {} are not used because `{discriminator}` has no enum that confirms them; declare the union by a UnionDeclaration", quoted(.values))]
    ValuesUnconfirmed {
        /// The discriminator.
        discriminator: Box<str>,
        /// The published values.
        values: Vec<Box<str>>,
    },
    /// Nothing is declared.
    #[error("no member is declared; name at least one or remove the declaration")]
    NoMembers,
    /// More members than a union can have.
    #[error("{0} members are declared; a union can have at most 128")]
    TooManyMembers(usize),
    /// More unions than a version can have.
    #[error(
        "more than 1,024 unions are declared in this version, and this one is left out; remove some, or split the kind"
    )]
    TooManyInAll,
    /// A place whose path is too long to be told with every object.
    #[error("the path of this place has more than 4,096 bytes; a union needs a shorter one")]
    PathTooLong,
    /// Faults that are not told one by one, and how many.
    #[error("and {0} more; repair those above to see the next")]
    More(usize),
    /// The same, all of them warnings.
    #[error("and {0} more warnings")]
    MoreWarnings(usize),
    /// More unions than an object can have.
    #[error("more than 255 unions are declared on one object")]
    TooManyUnions,
    /// Warning: nothing can be cleared.
    #[error(
        "stands inside the list `{0}`, whose items have no keys: members in it can be rejected but not cleared; give the list `x-kubernetes-list-type: map`"
    )]
    InsideKeylessList(String),
    /// Warning: a dropped discriminator looks like a choice.
    #[error(
        "the discriminator `{0}` has a default: a client that omits the field chooses the default, which clears the other members; make it required instead"
    )]
    DiscriminatorHasDefault(Box<str>),
    /// Warning: values are not checked by the schema.
    #[error("the discriminator `{0}` has no enum; list its values there so that clients know them")]
    DiscriminatorWithoutEnum(Box<str>),
    /// Warning: never looked at.
    #[error(
        "stands inside an embedded resource, where unions have no effect; declare it for the kind of that resource"
    )]
    InsideEmbeddedResource,
}

impl PlaceFaultKind {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        let warning = matches!(
            self,
            Self::InsideKeylessList(_)
                | Self::DiscriminatorHasDefault(_)
                | Self::DiscriminatorWithoutEnum(_)
                | Self::InsideEmbeddedResource
                | Self::MoreWarnings(_)
        );
        if warning { Severity::Warning } else { Severity::Error }
    }
}

impl PlaceFault {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for PlaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

fn quoted(names: &[Box<str>]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
