//! Warnings, which the API server passes on to the client.

use super::bounds::{RESERVED, shorten};
use crate::meter::{Unmetered, render};
use std::fmt::Display;

/// Longest warning, in bytes. The API server cuts longer ones.
const LONGEST_WARNING: usize = 256;
/// Most bytes of all warnings of a response. Above it the API server cuts every warning.
const LONGEST_WARNINGS: usize = 4096;

/// Warnings within the limits of the API server.
#[derive(Debug, Default)]
pub struct Warnings {
    all: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl Warnings {
    /// Adds a warning, cut to the longest that the API server passes on. Counts it if the list is full.
    pub fn push(&mut self, text: &impl Display) {
        if self.is_full() {
            self.leave_out(1);
            return;
        }
        // `Unmetered` never refuses memory.
        let text = render(&Unmetered, text, LONGEST_WARNING).unwrap_or_default();
        let warning = shorten(&text, LONGEST_WARNING);
        if self.bytes.saturating_add(warning.len()) > LONGEST_WARNINGS.saturating_sub(RESERVED) {
            self.left_out = self.left_out.saturating_add(1);
        } else {
            self.bytes = self.bytes.saturating_add(warning.len());
            self.all.push(warning.into_owned());
        }
    }

    /// Counts warnings that were not added.
    pub(in crate::admission) fn leave_out(&mut self, number: usize) {
        self.left_out = self.left_out.saturating_add(number);
    }

    /// Returns true if no other warning fits.
    pub(in crate::admission) fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Returns the warnings. If some are left out, a last warning counts them.
    pub fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.all.push(format!("and {} more warnings", self.left_out));
        }
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_keep_within_the_bounds_of_the_api_server() {
        let mut warnings = Warnings::default();
        for _ in 0..1000 {
            warnings.push(&"é".repeat(1000));
        }
        let all = warnings.finish();
        assert!(all.iter().all(|warning| warning.len() <= LONGEST_WARNING));
        assert!(all.iter().map(String::len).sum::<usize>() <= LONGEST_WARNINGS);
        assert_eq!(all.last().map(String::as_str), Some("and 985 more warnings"));
    }
}
