//! What is wrong with a union, in the words of the API server's own validation.

use crate::field_path::{FieldPath, Printable};
use std::fmt;

/// Longest discriminator value that is echoed; a longer one is cut.
const LONGEST_VALUE: usize = 64;

/// One violation: a field and what is wrong with it. Orders by path.
///
/// Carries no value of the object but the discriminator's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The field at fault.
    pub path: FieldPath,
    /// What is wrong with it.
    pub kind: ViolationKind,
}

/// The kinds of violation, as the API server's `field.ErrorType` has them, each with its own words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ViolationKind {
    /// The discriminator has a value that no choice has.
    UnknownValue {
        /// The discriminator's value.
        value: Box<str>,
        /// The declared values, sorted; the empty one is left out.
        supported: Vec<Box<str>>,
    },
    /// A member is set and the discriminator is empty.
    DiscriminatorRequired {
        /// The member that is set.
        member: Box<str>,
    },
    /// The discriminator selects a member that is not set.
    MemberRequired {
        /// The discriminator's name.
        discriminator: Box<str>,
        /// Its value.
        value: Box<str>,
    },
    /// A member is set that the discriminator does not select.
    NotSelected {
        /// The discriminator's name.
        discriminator: Box<str>,
        /// The values that would select it.
        values: Vec<Box<str>>,
        /// Whether the request left the discriminator as it was.
        unchanged: bool,
    },
    /// A member is set beside others, and nothing tells which one counts.
    TooMany {
        /// All members that are set, sorted.
        set: Vec<Box<str>>,
    },
}

impl Violation {
    /// The reason of the API's `StatusCause`.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            ViolationKind::UnknownValue { .. } => "FieldValueNotSupported",
            ViolationKind::DiscriminatorRequired { .. } | ViolationKind::MemberRequired { .. } => "FieldValueRequired",
            ViolationKind::NotSelected { .. } | ViolationKind::TooMany { .. } => "FieldValueForbidden",
        }
    }

    /// The message of the API's `StatusCause`: everything but the path.
    pub fn message(&self) -> String {
        self.kind.to_string()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.kind)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownValue { value, supported } => {
                let value = Printable::new(value, LONGEST_VALUE);
                write!(f, "Unsupported value: \"{value}\": supported values: {}", Listed::quoted(supported, ", "))
            }
            Self::DiscriminatorRequired { member } => {
                write!(f, "Required value: must be specified when `{member}` is set")
            }
            Self::MemberRequired { discriminator, value } => {
                write!(f, "Required value: must be specified when `{discriminator}` is \"{value}\"")
            }
            Self::NotSelected { discriminator, values, unchanged } => {
                let values = Listed::quoted(values, " or ");
                write!(f, "Forbidden: may only be specified when `{discriminator}` is {values}")?;
                if *unchanged {
                    write!(f, "; change `{discriminator}` to switch the member")?;
                }
                Ok(())
            }
            Self::TooMany { set } => {
                let set = Listed { items: set, separator: ", ", quote: '`' };
                write!(f, "Forbidden: at most one of {set} may be set")
            }
        }
    }
}

/// Names or values in quotes, with something between them.
struct Listed<'a> {
    items: &'a [Box<str>],
    separator: &'static str,
    quote: char,
}

impl<'a> Listed<'a> {
    fn quoted(items: &'a [Box<str>], separator: &'static str) -> Self {
        Self { items, separator, quote: '"' }
    }
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, item) in self.items.iter().enumerate() {
            let separator = if position == 0 { "" } else { self.separator };
            write!(f, "{separator}{quote}{item}{quote}", quote = self.quote)?;
        }
        Ok(())
    }
}
