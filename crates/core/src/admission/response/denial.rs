//! Denials in the words of the API server.

use super::bounds::shorten;
use crate::field_path::AboutField;
use serde::Serialize;
use std::fmt::Write;

/// Most causes that a denial lists. A last cause counts the rest.
const MOST_CAUSES: usize = 256;
/// Longest message of one cause, in bytes. A message may list thousands of values.
pub(in crate::admission) const LONGEST_CAUSE: usize = 4096;
/// Longest message of a denial, in bytes. The causes have the rest.
const LONGEST_MESSAGE: usize = 8192;

/// The `Status` of a denied request.
#[derive(Debug, Serialize)]
pub struct Denial {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    name: String,
    group: String,
    kind: String,
    causes: Vec<DenialCause>,
}

/// One violation of an object.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DenialCause {
    /// The reason, a `metav1.CauseType`.
    pub reason: &'static str,
    /// The message, without the path.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Denial {
    /// Returns a denial in the words of `NewInvalid` in the API machinery.
    pub fn new(group: &str, kind: &str, name: String, causes: impl IntoIterator<Item = DenialCause>) -> Self {
        Self::with_unlisted(group, kind, name, causes.into_iter().collect(), 0)
    }

    /// Returns a denial for these causes and `unlisted` more that are only counted.
    pub(in crate::admission) fn with_unlisted(
        group: &str,
        kind: &str,
        name: String,
        mut causes: Vec<DenialCause>,
        unlisted: usize,
    ) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let mut message = format!("{kind}{dot}{group} {name:?} is invalid: ");
        let total = causes.len().saturating_add(unlisted);
        let (open, close) = if total == 1 { ("", "") } else { ("[", "]") };
        message.push_str(open);
        for (position, cause) in causes.iter().enumerate() {
            if message.len() > LONGEST_MESSAGE {
                break;
            }
            let separator = if position == 0 { "" } else { ", " };
            let about = AboutField { path: &cause.field, text: &cause.message };
            // Writing to a string cannot fail.
            let _ = write!(message, "{separator}{about}");
        }
        message.push_str(close);
        let left_out = total.saturating_sub(causes.len().min(MOST_CAUSES));
        if left_out > 0 {
            let message = format!("and {left_out} more");
            causes.truncate(MOST_CAUSES);
            causes.push(DenialCause { reason: "FieldValueInvalid", message, field: String::new() });
        }
        let details = Details { name, group: group.to_owned(), kind: kind.to_owned(), causes };
        let message = shorten(&message, LONGEST_MESSAGE).into_owned();
        Self { status: "Failure", code: 422, reason: "Invalid", message, details }
    }

    /// Returns the bytes that the denial takes, without its causes.
    pub(in crate::admission) fn size(&self) -> usize {
        let Details { name, group, kind, .. } = &self.details;
        self.message.len().saturating_add(name.len()).saturating_add(group.len()).saturating_add(kind.len())
    }

    /// Returns the message that the client prints.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(in crate::admission) fn into_causes(self) -> Vec<DenialCause> {
        self.details.causes
    }

    /// Returns the causes, one for each field.
    pub fn causes(&self) -> &[DenialCause] {
        &self.details.causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_says_how_many_faults_it_does_not_list() {
        let cause = |number: usize| DenialCause {
            reason: "FieldValueForbidden",
            message: "Forbidden: x".to_owned(),
            field: format!("spec.items[{number}]"),
        };
        let denial = Denial::new("example.com", "Thing", "x".to_owned(), (0..10_000).map(cause));
        assert!(denial.message().len() <= LONGEST_MESSAGE && denial.message().ends_with('…'));
        assert_eq!(denial.causes().len(), MOST_CAUSES + 1);
        let last = denial.causes().last().unwrap();
        assert_eq!((&*last.field, &*last.message), ("", "and 9744 more"));
        let one = Denial::new("", "Pod", "x".to_owned(), std::iter::once(cause(0)));
        assert_eq!(one.message(), "Pod \"x\" is invalid: spec.items[0]: Forbidden: x");
    }
}
