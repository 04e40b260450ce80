//! Retries: the waits between attempts.

use std::time::Duration;

/// First and longest wait between attempts at a watch or a list. The longest is short, so that a restart of the API server is
/// noticed soon.
pub(super) const WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Waits that double from a first to a longest one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubling {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Doubling {
    pub(crate) fn new([first, longest]: [Duration; 2]) -> Self {
        Self { first, longest, next: first }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        wait
    }

    /// Begins again with the first wait.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_begin_again_after_a_success() {
        let mut waits = Doubling::new(WAITS);
        let grown: Vec<Duration> = (0..40).map(|_| waits.next()).collect();
        assert!(grown.is_sorted());
        assert_eq!([grown[0], grown[39]], WAITS);
        waits.reset();
        assert_eq!(waits.next(), grown[0]);
    }
}
