//! What is wrong with a union, in the words of the API server's own validation.

use crate::field_path::{FieldPath, Printable, cut};
use std::fmt;
use std::sync::Arc;

/// Longest discriminator value that is echoed; a longer one is cut.
const LONGEST_VALUE: usize = 64;

/// Most violations of one object that are built. The rest are counted.
pub const MOST_VIOLATIONS: usize = 256;

/// The first [`MOST_VIOLATIONS`] in the order of paths, and the number of the rest.
#[derive(Debug, Clone)]
pub struct Capped<T> {
    kept: Vec<T>,
    left_out: usize,
}

impl<T> Capped<T> {
    /// The first ones.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// The number of those that are not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// True if there are none at all.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The number of all of them.
    pub fn total(&self) -> usize {
        self.kept.len().saturating_add(self.left_out)
    }

    /// Appends what another list kept and counted, up to the cap.
    pub(crate) fn append<U>(&mut self, other: Capped<U>, convert: impl Fn(U) -> T) {
        for one in other.kept {
            if self.is_full() {
                self.leave_out(1);
            } else {
                self.push(convert(one));
            }
        }
        self.leave_out(other.left_out);
    }

    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MOST_VIOLATIONS
    }

    pub(super) fn push(&mut self, one: T) {
        self.kept.push(one);
    }

    pub(super) fn leave_out(&mut self, number: usize) {
        self.left_out = self.left_out.saturating_add(number);
    }
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), left_out: 0 }
    }
}

/// As much of a discriminator's value as tells what was shown and whether it was cut.
pub(super) fn shown(value: &str) -> &str {
    // Four bytes more than are echoed hold one character more at least.
    cut(value, LONGEST_VALUE + 4)
}

/// One violation: a field and what is wrong with it. Orders by path.
///
/// Carries no value of the object but the discriminator's. Shares names with the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The field at fault.
    pub path: FieldPath,
    /// What is wrong with it.
    pub kind: ViolationKind,
}

/// The kinds of violation, as the API server's `field.ErrorType` has them, each with its own words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// The discriminator has a value that no choice has.
    UnknownValue {
        /// The discriminator's value; a long one is cut.
        value: Arc<str>,
        /// The declared values, sorted; the empty one is left out.
        supported: Arc<[Arc<str>]>,
    },
    /// A member is set and the discriminator is empty.
    DiscriminatorRequired {
        /// The member that is set.
        member: Arc<str>,
    },
    /// The discriminator selects a member that is not set.
    MemberRequired {
        /// The discriminator's name.
        discriminator: Arc<str>,
        /// Its value.
        value: Arc<str>,
    },
    /// A member is set that the discriminator does not select.
    NotSelected {
        /// The discriminator's name.
        discriminator: Arc<str>,
        /// The values that would select it.
        values: Arc<[Arc<str>]>,
        /// Whether the request left the discriminator as it was.
        unchanged: bool,
    },
    /// A member is set beside others, and nothing tells which one counts.
    TooMany {
        /// All members that are set, sorted.
        set: Arc<[Arc<str>]>,
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
    items: &'a [Arc<str>],
    separator: &'static str,
    quote: char,
}

impl<'a> Listed<'a> {
    fn quoted(items: &'a [Arc<str>], separator: &'static str) -> Self {
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
