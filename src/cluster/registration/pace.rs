//! When to write: at once where we want something else than before, more and more slowly where somebody keeps writing
//! something else than we do.
//!
//! Two replicas that want different things, as in the middle of an upgrade, would otherwise write as fast as they can.

use std::time::{Duration, Instant};

/// Least time between two rounds of writes.
const BETWEEN: Duration = Duration::from_millis(500);

/// First wait before drift is put right: a replica that hears of a CRD a moment later than another must not undo what that one
/// has registered.
const FIRST: Duration = Duration::from_secs(1);

/// Longest wait. With the time between two looks it is less than ten seconds.
pub(super) const LONGEST: Duration = Duration::from_secs(4);

/// After so long without a correction the next counts as the first.
const CALM: Duration = Duration::from_mins(1);

/// Why something is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// We want something else than before.
    Ours,
    /// Somebody has changed what is stored.
    Drift,
    /// The same, and all is as safe with it as without: there is more time for us to hear why.
    Harmless,
}

/// A wait that doubles, up to a longest.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    steps: u32,
}

impl Backoff {
    pub(super) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, steps: 0 }
    }

    /// Returns the wait as it is now.
    pub(super) fn wait(&self) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(self.steps)).min(self.longest)
    }

    /// Doubles the wait.
    pub(super) fn grow(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }

    pub(super) fn reset(&mut self) {
        self.steps = 0;
    }
}

/// The times of the writes, and what follows from them for the next.
#[derive(Debug)]
pub(super) struct Pace {
    written: Option<Instant>,
    corrected: Option<Instant>,
    /// When drift that is still there was first seen.
    drifted: Option<Instant>,
    backoff: Backoff,
}

impl Default for Pace {
    fn default() -> Self {
        Self { written: None, corrected: None, drifted: None, backoff: Backoff::new(FIRST, LONGEST) }
    }
}

impl Pace {
    /// Forgets drift that is no longer there.
    pub(super) fn in_step(&mut self) {
        self.drifted = None;
    }

    /// Returns when to write.
    pub(super) fn due(&mut self, change: Change, now: Instant) -> Instant {
        if self.corrected.is_some_and(|corrected| now.saturating_duration_since(corrected) > CALM) {
            self.backoff.reset();
        }
        let free = self.written.map_or(now, |written| written + BETWEEN);
        let wait = match change {
            Change::Ours => return free,
            Change::Drift => self.backoff.wait(),
            Change::Harmless => LONGEST,
        };
        free.max(*self.drifted.get_or_insert(now) + wait)
    }

    /// Notes a write.
    pub(super) fn wrote(&mut self, change: Change, now: Instant) {
        self.written = Some(now);
        self.drifted = None;
        if change != Change::Ours {
            self.corrected = Some(now);
            self.backoff.grow();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::registration::registrar::{DEBOUNCE, LOOK};

    #[test]
    fn what_we_want_anew_is_written_at_once_and_not_more_than_twice_a_second() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let start = now;
        assert_eq!(pace.due(Change::Ours, now), now);
        for _ in 0..20 {
            pace.wrote(Change::Ours, now);
            now = pace.due(Change::Ours, now);
        }
        assert_eq!(now - start, Duration::from_secs(10));
    }

    #[test]
    fn drift_is_put_right_ever_more_slowly_up_to_a_longest_wait() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let due = pace.due(Change::Drift, now);
            assert_eq!(pace.due(Change::Drift, due), due, "looking again changes nothing");
            waits.push((due - now).as_secs());
            now = due;
            pace.wrote(Change::Drift, now);
        }
        assert_eq!(waits, [1, 2, 4, 4, 4, 4]);
        assert!(
            LOOK + DEBOUNCE + LONGEST < Duration::from_secs(10),
            "as the guide says, although no event tells of it"
        );
    }

    #[test]
    fn after_a_calm_time_drift_is_put_right_as_soon_as_the_first_time() {
        let mut pace = Pace::default();
        let now = Instant::now();
        for _ in 0..10 {
            pace.wrote(Change::Drift, now);
        }
        let later = now + CALM + Duration::from_secs(1);
        assert_eq!(pace.due(Change::Drift, later), later + FIRST);
    }

    #[test]
    fn drift_that_somebody_else_has_put_right_is_forgotten() {
        let mut pace = Pace::default();
        let now = Instant::now();
        pace.due(Change::Drift, now);
        pace.in_step();
        let later = now + Duration::from_secs(30);
        assert_eq!(pace.due(Change::Drift, later), later + FIRST);
    }

    #[test]
    fn what_is_harmless_has_the_longest_wait_to_explain_itself() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert_eq!(pace.due(Change::Harmless, now), now + LONGEST);
        assert_eq!(pace.due(Change::Harmless, now + Duration::from_secs(3)), now + LONGEST);
    }
}
