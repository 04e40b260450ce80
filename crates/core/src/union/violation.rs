//! Violations of unions, in the words of the API server's validation.

use crate::field_path::{AboutField, FieldPath, Printable, cut};
use std::fmt;
use std::sync::Arc;

/// Longest discriminator value that a violation repeats, in bytes.
const LONGEST_VALUE: usize = 64;

/// Most violations of one object that are built. The rest is counted.
pub const MOST_VIOLATIONS: usize = 256;

/// The first [`MOST_VIOLATIONS`] in the order of paths, and the number of the rest.
#[derive(Debug, Clone)]
pub struct Capped<T> {
    kept: Vec<T>,
    left_out: usize,
}

impl<T> Capped<T> {
    /// Returns the first items.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// Returns the number of items that are not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Returns the number of all items.
    pub fn total(&self) -> usize {
        self.kept.len().saturating_add(self.left_out)
    }

    /// Appends another list, up to the limit.
    pub(crate) fn append<U>(&mut self, other: Capped<U>, convert: impl Fn(U) -> T) {
        for one in other.kept {
            self.push(convert(one));
        }
        self.leave_out(other.left_out);
    }

    /// Forgets the kept items that do not fit.
    pub(crate) fn retain(&mut self, fits: impl FnMut(&T) -> bool) {
        self.kept.retain(fits);
    }

    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= MOST_VIOLATIONS
    }

    /// Adds an item, or counts it if the list is full.
    pub(super) fn push(&mut self, one: T) {
        if self.is_full() {
            self.leave_out(1);
        } else {
            self.kept.push(one);
        }
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

/// Returns a prefix of a discriminator value that is long enough to display it, and to show that it was cut.
pub(super) fn shown(value: &str) -> &str {
    // Four more bytes than are displayed have at least one more character.
    cut(value, LONGEST_VALUE + 4)
}

/// A violation of a field. Violations are ordered by path.
///
/// A violation has no value of the object except the discriminator's. Its names are shared with the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path of the field.
    pub path: FieldPath,
    /// The kind of violation.
    pub kind: ViolationKind,
}

/// The kinds of violation, with the types of the API server's `field.ErrorType`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// The value of the discriminator is not declared.
    UnknownValue {
        /// The value of the discriminator, cut if it is long.
        value: Arc<str>,
        /// The declared values without the empty one, sorted.
        supported: Arc<[Arc<str>]>,
    },
    /// A member is set and the discriminator is empty.
    DiscriminatorRequired {
        /// The member that is set.
        member: Arc<str>,
    },
    /// No member is set, and the union requires one.
    OneRequired {
        /// All members, sorted.
        members: Arc<[Arc<str>]>,
    },
    /// The discriminator is empty, no member is set, and the union requires a choice.
    ChoiceRequired {
        /// The declared values without the empty one, sorted.
        supported: Arc<[Arc<str>]>,
    },
    /// The discriminator selects a member that is not set.
    MemberRequired {
        /// The name of the discriminator.
        discriminator: Arc<str>,
        /// Its value.
        value: Arc<str>,
    },
    /// A member is set that the discriminator does not select.
    NotSelected {
        /// The name of the discriminator.
        discriminator: Arc<str>,
        /// The values that select the member.
        values: Arc<[Arc<str>]>,
        /// True if the request did not change the discriminator.
        unchanged: bool,
    },
    /// Several members are set, and nothing tells which one counts.
    TooMany {
        /// All members that are set, sorted.
        set: Arc<[Arc<str>]>,
    },
    /// The manifest that the request applies sets several members.
    SeveralApplied {
        /// The members that it sets, sorted.
        members: Arc<[Arc<str>]>,
    },
    /// The manifest that the request applies sets the discriminator, and members that its value does not select.
    NotSelectedApplied {
        /// The name of the discriminator.
        discriminator: Arc<str>,
        /// Its value, cut if it is long.
        value: Arc<str>,
        /// The members that the value does not select, sorted.
        members: Arc<[Arc<str>]>,
    },
    /// The manifest that the request applies again sets a member that was cleared since, because the manifest of another field
    /// manager sets others.
    Contested {
        /// The member.
        member: Arc<str>,
        /// The members that the other manifest sets, sorted, or the discriminator.
        others: Arc<[Arc<str>]>,
    },
}

impl ViolationKind {
    /// Returns true if the manifest that the request applies is at fault, whatever is stored.
    pub fn is_about_manifest(&self) -> bool {
        matches!(self, Self::SeveralApplied { .. } | Self::NotSelectedApplied { .. } | Self::Contested { .. })
    }
}

impl Violation {
    /// Returns the reason of the API's `StatusCause`.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            ViolationKind::UnknownValue { .. } => "FieldValueNotSupported",
            ViolationKind::DiscriminatorRequired { .. }
            | ViolationKind::OneRequired { .. }
            | ViolationKind::ChoiceRequired { .. }
            | ViolationKind::MemberRequired { .. } => "FieldValueRequired",
            ViolationKind::NotSelected { .. } | ViolationKind::TooMany { .. } => "FieldValueForbidden",
            ViolationKind::SeveralApplied { .. }
            | ViolationKind::NotSelectedApplied { .. }
            | ViolationKind::Contested { .. } => "FieldValueInvalid",
        }
    }

    /// Returns the message of the API's `StatusCause`, without the path.
    pub fn message(&self) -> String {
        self.kind.to_string()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        AboutField { path: &self.path.to_string(), text: &self.kind }.fmt(f)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownValue { value, supported } => {
                let value = Printable::new(value, LONGEST_VALUE);
                write!(f, "Unsupported value: \"{value}\": supported values: {}", Listed::values(supported, ", "))
            }
            Self::DiscriminatorRequired { member } => {
                let member = declared(member);
                write!(f, "Required value: must be specified when `{member}` is set")
            }
            Self::OneRequired { members } => match &**members {
                [one] => write!(f, "Required value: `{}` must be set", declared(one)),
                members => {
                    write!(f, "Required value: one of {} must be set", Listed::names(members, ", "))
                }
            },
            Self::ChoiceRequired { supported } => {
                write!(f, "Required value: must be specified: supported values: {}", Listed::values(supported, ", "))
            }
            Self::MemberRequired { discriminator, value } => {
                let (discriminator, value) = (declared(discriminator), declared(value));
                write!(f, "Required value: must be specified when `{discriminator}` is \"{value}\"")
            }
            Self::NotSelected { discriminator, values, unchanged } => {
                let (discriminator, values) = (declared(discriminator), Listed::values(values, " or "));
                write!(f, "Forbidden: may only be specified when `{discriminator}` is {values}")?;
                if *unchanged {
                    write!(f, "; remove it, or change `{discriminator}` to switch the member")?;
                }
                Ok(())
            }
            Self::TooMany { set } => {
                write!(f, "Forbidden: at most one of {} may be set", Listed::names(set, ", "))
            }
            Self::SeveralApplied { members } => {
                write!(f, "Invalid value: the applied manifest sets {}; keep one", Listed::names(members, " and "))
            }
            Self::NotSelectedApplied { discriminator, value, members } => {
                let (discriminator, members) = (declared(discriminator), Listed::names(members, " and "));
                let value = Printable::new(value, LONGEST_VALUE);
                write!(
                    f,
                    "Invalid value: the applied manifest sets `{discriminator}` to \"{value}\" and {members}, which \"{value}\" does not select; remove {members}"
                )
            }
            Self::Contested { member, others } => {
                let (member, others) = (declared(member), Listed::names(others, " and "));
                write!(
                    f,
                    "Invalid value: the applied manifest sets `{member}`, and the manifest of another field manager sets {others}; keep one"
                )
            }
        }
    }
}

/// Displays a declared name or value on one line. The declaration bounds its length.
fn declared(text: &str) -> Printable<'_> {
    Printable::new(text, usize::MAX)
}

/// Quoted names or values.
struct Listed<'a> {
    items: &'a [Arc<str>],
    separator: &'static str,
    /// The separator before the last item.
    last_separator: &'static str,
    quote: char,
}

impl<'a> Listed<'a> {
    /// Lists values in quotes with a separator.
    fn values(items: &'a [Arc<str>], separator: &'static str) -> Self {
        Self { items, separator, last_separator: separator, quote: '"' }
    }

    /// Lists names in backticks with commas, and another separator before the last one.
    fn names(items: &'a [Arc<str>], last_separator: &'static str) -> Self {
        Self { items, separator: ", ", last_separator, quote: '`' }
    }
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, item) in self.items.iter().enumerate() {
            let separator = match position {
                0 => "",
                _ if position.saturating_add(1) == self.items.len() => self.last_separator,
                _ => self.separator,
            };
            write!(f, "{separator}{quote}{}{quote}", declared(item), quote = self.quote)?;
        }
        Ok(())
    }
}
