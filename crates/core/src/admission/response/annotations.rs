//! Audit annotations: what a review changed or denied, for the audit log of the API server.

use super::bounds::RESERVED;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Write};

/// Longest value of an audit annotation, in bytes. The API server has no limit, but it logs or sends an audit event whole.
const LONGEST_ANNOTATION: usize = 2048;

/// Audit annotations of a response, each with a limited length. The API server puts the name of the webhook before each
/// key.
///
/// They hold paths and reasons, and no value except a discriminator's. If a mutating webhook is called again, the API
/// server keeps the first value of each key.
#[derive(Debug, Default, Serialize)]
pub struct Annotations {
    /// Members that the patch clears.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub cleared: Listing,
    /// Discriminators that the patch sets, with their values.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub set: Listing,
    /// Violations that are denied.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub denied: Listing,
    /// Violations that are let through, with the reason.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub warned: Listing,
    /// Violations of unions whose declaration has the action `Audit`, whatever else becomes of them.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub audited: Listing,
}

impl Annotations {
    pub(super) fn is_empty(&self) -> bool {
        self.listings().into_iter().all(Listing::is_empty)
    }

    /// Returns the bytes that the annotations take.
    pub(in crate::admission) fn size(&self) -> usize {
        self.listings().into_iter().map(|listing| listing.text.capacity()).sum()
    }

    fn listings(&self) -> [&Listing; 5] {
        [&self.cleared, &self.set, &self.denied, &self.warned, &self.audited]
    }
}

/// Items separated by commas. Items that do not fit are counted.
#[derive(Debug, Default)]
pub struct Listing {
    text: String,
    left_out: usize,
}

impl Listing {
    /// Adds an item. Counts it if the listing is full.
    pub fn push(&mut self, item: impl Display) {
        if self.left_out > 0 {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let end = self.text.len();
        let separator = if end == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{separator}{item}");
        if self.text.len() > LONGEST_ANNOTATION.saturating_sub(RESERVED) {
            self.text.truncate(end);
            self.left_out = 1;
        }
    }

    /// Returns true if no other item fits.
    pub(in crate::admission) fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Counts items that were not added.
    pub(in crate::admission) fn leave_out(&mut self, number: usize) {
        self.left_out = self.left_out.saturating_add(number);
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.left_out == 0
    }
}

impl Display for Listing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)?;
        match self.left_out {
            0 => Ok(()),
            more if self.text.is_empty() => write!(out, "{more}, too long to name"),
            more => write!(out, ", and {more} more"),
        }
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_keep_within_a_bound_and_say_how_many_are_left_out() {
        let mut listing = Listing::default();
        for number in 0..10_000 {
            listing.push(format_args!("spec.items[{number}].git"));
        }
        let text = listing.to_string();
        assert!(text.len() <= LONGEST_ANNOTATION, "{}", text.len());
        let (shown, more) = text.rsplit_once(", and ").unwrap();
        let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
        assert_eq!(shown.split(", ").count() + more, 10_000);

        let mut listing = Listing::default();
        listing.push("x".repeat(10_000));
        assert_eq!(listing.to_string(), "1, too long to name");
    }
}
