//! Lists names in messages.

use std::fmt::Display;

/// Returns the first `most` names, separated by commas, and the number of the others.
pub(crate) fn listed(names: impl ExactSizeIterator<Item: Display>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first: Vec<String> = names.take(most).map(|name| name.to_string()).collect();
    let first = first.join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// Lists names like [`listed`], in backticks.
pub(crate) fn quoted(names: impl ExactSizeIterator<Item: Display>, most: usize) -> String {
    listed(names.map(|name| format!("`{name}`")), most)
}
