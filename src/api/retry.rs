//! Retries: the waits between attempts.

use std::time::{Duration, Instant};

/// First and longest wait. The longest is short, so that a restart of the API server is noticed soon.
const WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// After this time without a failure the next one counts as the first.
pub(super) const CALM: Duration = Duration::from_secs(10);

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

/// The waits between attempts at a watch or a list.
pub(super) struct Retry {
    waits: Doubling,
    last: Option<Instant>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { waits: Doubling::new(WAITS), last: None }
    }
}

impl Retry {
    pub(super) fn next(&mut self) -> Duration {
        if self.last.replace(Instant::now()).is_some_and(|last| last.elapsed() > CALM) {
            self.waits.reset();
        }
        self.waits.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_grow_to_two_seconds_and_never_end() {
        let mut retry = Retry::default();
        let waits: Vec<Duration> = (0..40).map(|_| retry.next()).collect();
        assert_eq!(waits[0], Duration::from_millis(100));
        assert!(waits.is_sorted());
        assert_eq!(waits[39], Duration::from_secs(2));
    }

    #[test]
    fn a_failure_after_a_calm_time_waits_as_short_as_the_first() {
        let mut retry = Retry::default();
        let [first, longest] = WAITS;
        assert!((0..30).map(|_| retry.next()).last().is_some_and(|wait| wait == longest));
        retry.last = Instant::now().checked_sub(CALM + Duration::from_secs(1));
        assert!(retry.last.is_some());
        assert_eq!(retry.next(), first);
    }
}
