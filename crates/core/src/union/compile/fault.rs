//! The faults of declarations, each with a way to repair it.

use super::left_out::{LeftOut, MissingDiscriminator};
use crate::declaration::FaultKind;
use crate::schema::{Origin, Place, Severity, Source};
use std::fmt;

/// A fault of a declaration at a place in a schema. Faults are ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceFault {
    /// The place of the declaration.
    pub place: Place,
    /// The source of the declaration.
    pub source: Source,
    /// The `UnionDeclaration`, if the source is one.
    pub origin: Option<Origin>,
    /// The kind of fault.
    pub kind: PlaceFaultKind,
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum PlaceFaultKind {
    /// The extension cannot be parsed.
    #[error("{0}")]
    Malformed(String),
    /// The 2019 form is not on an object.
    #[error("a list of unions must stand on an object, this is {0}")]
    NotAnObject(String),
    /// The 2022 form is not on a property.
    #[error("`fieldMembers` must stand on a string property, beside the fields it names")]
    NotAProperty,
    /// The discriminator is not a string.
    #[error("the discriminator `{name}` must be of type string, it is {found}")]
    DiscriminatorNotString { name: Box<str>, found: String },
    /// The discriminator is not a property of the object.
    #[error("the discriminator `{0}` is not a property of this object; declare it or correct the name")]
    NoSuchDiscriminator(Box<str>),
    /// A member is not a property of the object.
    #[error("the member `{0}` is not a property of this object; declare it or correct the name")]
    NoSuchMember(Box<str>),
    /// A member or the discriminator of a `UnionDeclaration` is in another object.
    #[error(
        "`{0}` is a path, but the discriminator and the members of a union are fields of one object; declare the union at the \
         object that has them all"
    )]
    NotBeside(Box<str>),
    /// The discriminator is listed as a member.
    #[error("the discriminator `{0}` can't be a member of its own union")]
    MemberIsDiscriminator(Box<str>),
    /// A member is a required field.
    #[error("the member `{0}` is required, so it can never be cleared; take it out of `required`")]
    MemberRequired(Box<str>),
    /// A member has a default.
    #[error(
        "the member `{0}` has a default, so the API server would restore it whenever it is cleared; remove the default"
    )]
    MemberHasDefault(Box<str>),
    /// A field belongs to two unions.
    #[error("the field `{0}` already belongs to another union of this object; a field can be in one union only")]
    FieldTaken(Box<str>),
    /// Two members of the 2019 form have the same value.
    #[error("the members `{one}` and `{other}` have the same value `{value}`; each needs its own")]
    SameValue { one: Box<str>, other: Box<str>, value: Box<str> },
    /// A member of the 2019 form has an empty value.
    #[error("the value of the member `{0}` is empty, which means no choice; give it a value")]
    EmptyValue(Box<str>),
    /// A declared value is not in the enum of the discriminator.
    #[error("the value `{value}` is not in the enum of `{discriminator}`{}; add it there or correct it", guess(.near.as_deref()))]
    ValueNotInEnum {
        discriminator: Box<str>,
        /// The declared value.
        value: Box<str>,
        /// The value of the enum that it resembles.
        near: Option<Box<str>>,
    },
    /// An enum value is not declared in the 2022 form.
    #[error(
        "the enum of `{discriminator}` has `{value}`, which is not in `fieldMembers`; add it, as an empty member if it selects no field"
    )]
    EnumValueNotDeclared {
        discriminator: Box<str>,
        /// The value in the enum.
        value: Box<str>,
    },
    /// No enum confirms the values of a published union.
    #[error("the published values {} are not used because `{discriminator}` has no enum that confirms them; declare the union by a UnionDeclaration", quoted(.values))]
    ValuesUnconfirmed { discriminator: Box<str>, values: Vec<Box<str>> },
    /// The union has no members.
    #[error("no member is declared; name at least one or remove the declaration")]
    NoMembers,
    /// The union has too many members.
    #[error("{0} members are declared; a union can have at most 128")]
    TooManyMembers(usize),
    /// The version has too many unions.
    #[error(
        "more than 1,024 unions are declared in this version, and this one is left out; remove some, or split the kind"
    )]
    TooManyInAll,
    /// The path of the union is too long to be repeated with every violation.
    #[error("the path of this place has more than 4,096 bytes; a union needs a shorter one")]
    PathTooLong,
    /// The number of errors that are not reported one by one.
    #[error("and {0} more; repair those above to see the next")]
    More(usize),
    /// The number of warnings that are not reported one by one.
    #[error("and {0} more warnings")]
    MoreWarnings(usize),
    /// The number of notes that are not reported one by one.
    #[error("and {0} more notes")]
    MoreNotes(usize),
    /// Note: the schema lacks members of a `UnionDeclaration`.
    #[error("{0}")]
    MembersLeftOut(LeftOut),
    /// Note: the schema lacks the discriminator of a `UnionDeclaration`.
    #[error("{0}")]
    DiscriminatorLeftOut(MissingDiscriminator),
    /// The object has too many unions.
    #[error("more than 255 unions are declared on one object")]
    TooManyUnions,
    /// Warning: the union is in a list without keys, so nothing can be cleared.
    #[error(
        "stands inside the list `{0}`, whose items have no keys: members in it can be rejected but not cleared; give the list `x-kubernetes-list-type: map`"
    )]
    InsideKeylessList(String),
    /// Note: several unions of a pod template are in a list without keys.
    #[error(
        "{count} unions stand inside the list `{list}`, whose items have no keys: their members can be rejected but not cleared"
    )]
    SeveralInsideKeylessList { list: String, count: usize },
    /// Warning: a client that omits the discriminator seems to choose its default.
    #[error(
        "the discriminator `{0}` has a default: a client that omits the field chooses the default, which clears the other members; make it required instead"
    )]
    DiscriminatorHasDefault(Box<str>),
    /// Warning: the schema does not check the values of the discriminator.
    #[error("the discriminator `{0}` has no enum; list its values there so that clients know them")]
    DiscriminatorWithoutEnum(Box<str>),
    /// Note: the schema does not check the values of several discriminators of a pod template.
    #[error("{0} discriminators have no enum, so that the API server itself accepts every value")]
    DiscriminatorsWithoutEnum(usize),
    /// Warning: the union is in an embedded resource, which is never evaluated.
    #[error(
        "stands inside an embedded resource, where unions have no effect; declare it for the kind of that resource"
    )]
    InsideEmbeddedResource,
}

impl PlaceFaultKind {
    /// Returns the severity of a fault in a declaration of this source.
    pub(super) fn severity(&self, source: Source) -> Severity {
        self.fault_kind(source).severity()
    }

    /// Returns the kind of a fault in a declaration of this source. The author of a `UnionDeclaration` cannot change the
    /// schema, so its shortcomings are notes there.
    fn fault_kind(&self, source: Source) -> FaultKind {
        let of_declaration = source == Source::Declaration;
        match self {
            Self::Malformed(_) => FaultKind::MalformedExtension,
            Self::NotAnObject(_) => FaultKind::NotAnObject,
            Self::NotAProperty => FaultKind::NotAProperty,
            Self::DiscriminatorNotString { .. } => FaultKind::DiscriminatorType,
            Self::NoSuchDiscriminator(_) => FaultKind::UnknownDiscriminator,
            Self::NoSuchMember(_) => FaultKind::UnknownMember,
            Self::NotBeside(_) => FaultKind::MemberElsewhere,
            Self::MemberIsDiscriminator(_) => FaultKind::DiscriminatorAsMember,
            Self::MemberRequired(_) => FaultKind::RequiredMember,
            Self::MemberHasDefault(_) => FaultKind::DefaultedMember,
            Self::FieldTaken(_) => FaultKind::SharedField,
            Self::SameValue { .. } => FaultKind::DuplicateValue,
            Self::EmptyValue(_) => FaultKind::EmptyValue,
            Self::ValueNotInEnum { .. } => FaultKind::UnknownValue,
            Self::EnumValueNotDeclared { .. } => FaultKind::MissingValue,
            Self::ValuesUnconfirmed { .. } => FaultKind::UnconfirmedValues,
            Self::NoMembers => FaultKind::NoMembers,
            Self::TooManyMembers(_) => FaultKind::TooManyMembers,
            Self::TooManyInAll | Self::TooManyUnions => FaultKind::TooManyUnions,
            Self::PathTooLong => FaultKind::LongPath,
            Self::More(_) => FaultKind::MoreErrors,
            Self::MoreWarnings(_) => FaultKind::MoreWarnings,
            Self::MoreNotes(_) => FaultKind::MoreNotes,
            Self::MembersLeftOut(_) => FaultKind::MemberLeftOut,
            Self::DiscriminatorLeftOut(_) => FaultKind::DiscriminatorLeftOut,
            Self::InsideKeylessList(_) if of_declaration => FaultKind::KeylessListOfTarget,
            Self::InsideKeylessList(_) => FaultKind::KeylessList,
            Self::SeveralInsideKeylessList { .. } => FaultKind::KeylessListOfTarget,
            Self::DiscriminatorHasDefault(_) => FaultKind::DefaultedDiscriminator,
            Self::DiscriminatorWithoutEnum(_) if of_declaration => FaultKind::OpenDiscriminatorOfTarget,
            Self::DiscriminatorWithoutEnum(_) => FaultKind::OpenDiscriminator,
            Self::DiscriminatorsWithoutEnum(_) => FaultKind::OpenDiscriminatorOfTarget,
            Self::InsideEmbeddedResource => FaultKind::EmbeddedResource,
        }
    }

    /// Returns the message for the author of a `UnionDeclaration`, who cannot change the schema, if it differs.
    #[allow(clippy::wildcard_enum_match_arm, reason = "every other message is for any author")]
    fn message_of_declaration(&self) -> Option<String> {
        Some(match self {
            Self::InsideKeylessList(list) => format!(
                "stands inside the list `{list}`, whose items have no keys: its members can be rejected but not cleared"
            ),
            Self::DiscriminatorHasDefault(name) => format!(
                "the discriminator `{name}` has a default: a client that omits the field chooses the default, which clears the other members"
            ),
            Self::DiscriminatorWithoutEnum(name) => {
                format!("the discriminator `{name}` has no enum, so that the API server itself accepts every value")
            }
            Self::MemberRequired(name) => format!(
                "the member `{name}` is required by the schema, so it can never be cleared; take it out of this union"
            ),
            Self::MemberHasDefault(name) => format!(
                "the member `{name}` has a default, so the API server would restore it whenever it is cleared; take it out of this union"
            ),
            Self::ValueNotInEnum { discriminator, value, near } => {
                let guess = guess(near.as_deref());
                format!("the value `{value}` is not in the enum of `{discriminator}`{guess}; correct it or remove it")
            }
            _ => return None,
        })
    }
}

impl PlaceFault {
    /// Returns the kind for reports.
    pub fn fault_kind(&self) -> FaultKind {
        self.kind.fault_kind(self.source)
    }

    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        self.kind.severity(self.source)
    }

    /// Returns the message, with advice for the author of the declaration.
    pub fn message(&self) -> String {
        let of_declaration = (self.source == Source::Declaration).then(|| self.kind.message_of_declaration()).flatten();
        of_declaration.unwrap_or_else(|| self.kind.to_string())
    }
}

impl fmt::Display for PlaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message())
    }
}

fn guess(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

fn quoted(names: &[Box<str>]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
