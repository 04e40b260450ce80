//! Audit annotations: what a review changed or denied, for the audit log of the API server.

use super::RESERVED;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Write};

/// Longest value of an audit annotation, in bytes. The API server has no limit, but it logs or sends an audit event whole.
const LONGEST_ANNOTATION: usize = 2048;

/// What the audit log of the API server gets, each value within a bound; it puts the webhook's name before each key. Paths
/// and reasons, never a value but a discriminator's. A mutating webhook that is asked again says what it does then, too, but
/// the API server keeps the first value of a key.
#[derive(Debug, Default, Serialize)]
pub struct Annotations {
    /// Members that the patch clears.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub cleared: Listing,
    /// Discriminators that the patch sets, and to what.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub set: Listing,
    /// Faults that are denied.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub denied: Listing,
    /// Faults that are let through, and why.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub warned: Listing,
}

impl Annotations {
    pub(super) fn is_empty(&self) -> bool {
        self.listings().into_iter().all(Listing::is_empty)
    }

    /// Bytes that they take.
    pub(in crate::admission) fn size(&self) -> usize {
        self.listings().into_iter().map(|listing| listing.text.capacity()).sum()
    }

    fn listings(&self) -> [&Listing; 4] {
        [&self.cleared, &self.set, &self.denied, &self.warned]
    }
}

/// Items with commas between them, and how many are left out where they would be too long.
#[derive(Debug, Default)]
pub struct Listing {
    text: String,
    left_out: usize,
}

impl Listing {
    /// Adds an item, or counts it if the listing is full.
    pub fn push(&mut self, item: impl Display) {
        if self.left_out > 0 {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let end = self.text.len();
        let separator = if end == 0 { "" } else { ", " };
        // Writing to a string can't fail.
        let _ = write!(self.text, "{separator}{item}");
        if self.text.len() > LONGEST_ANNOTATION.saturating_sub(RESERVED) {
            self.text.truncate(end);
            self.left_out = 1;
        }
    }

    /// True if no other item would be named.
    pub fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Counts items that are not named.
    pub fn leave_out(&mut self, number: usize) {
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
