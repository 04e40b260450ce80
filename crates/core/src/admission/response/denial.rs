//! Denials, worded like the API server's own.

use super::shorten;
use serde::Serialize;
use std::fmt::Write;

/// Most causes of a denial. The rest is counted.
const MOST_CAUSES: usize = 256;
/// Longest message of one cause, in bytes. A union may have thousands of values to list.
pub(in crate::admission) const LONGEST_CAUSE: usize = 4096;
/// Longest message of a denial, in bytes. The causes hold the rest.
const LONGEST_MESSAGE: usize = 8192;

/// The `Status` of a denial.
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

/// One fault of an object.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DenialCause {
    /// As the API has them (`metav1.CauseType`).
    pub reason: &'static str,
    /// Everything but the path.
    pub message: String,
    /// The path.
    pub field: String,
}

impl Denial {
    /// Worded as `NewInvalid` of the API machinery words it.
    pub fn new(group: &str, kind: &str, name: String, causes: impl IntoIterator<Item = DenialCause>) -> Self {
        Self::with_rest(group, kind, name, causes.into_iter().collect(), 0)
    }

    /// The same, for so many more faults than there are causes.
    pub(in crate::admission) fn with_rest(
        group: &str,
        kind: &str,
        name: String,
        mut causes: Vec<DenialCause>,
        rest: usize,
    ) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let mut message = format!("{kind}{dot}{group} {name:?} is invalid: ");
        let total = causes.len().saturating_add(rest);
        let (open, close) = if total == 1 { ("", "") } else { ("[", "]") };
        message.push_str(open);
        for (position, cause) in causes.iter().enumerate() {
            if message.len() > LONGEST_MESSAGE {
                break;
            }
            let separator = if position == 0 { "" } else { ", " };
            // Writing to a string can't fail.
            let _ = write!(message, "{separator}{}: {}", cause.field, cause.message);
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

    /// Bytes that it takes, but for its causes.
    pub(in crate::admission) fn size(&self) -> usize {
        let Details { name, group, kind, .. } = &self.details;
        self.message.len().saturating_add(name.len()).saturating_add(group.len()).saturating_add(kind.len())
    }

    /// Returns the message that the client prints.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the faults, one for each field.
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
