//! The times of writes: a new intent is written at once, drift after a wait that doubles.
//!
//! During an upgrade two replicas may want different objects. Without the wait they would overwrite each other without
//! pause. This module knows no clock: callers pass the time in.

use std::time::Duration;
use tokio::time::Instant;

/// Least time between two writes.
const BETWEEN: Duration = Duration::from_millis(500);

/// First wait before drift is corrected. A replica that learns of a CRD later than another must not revert its registration.
const FIRST: Duration = Duration::from_secs(1);

/// Longest wait before drift is corrected. Together with the time between two resyncs it is less than ten seconds.
const LONGEST: Duration = Duration::from_secs(4);

/// Time without corrections after which the wait is reset.
const CALM: Duration = Duration::from_mins(1);

/// Reason for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Divergence {
    /// This replica's intent has changed.
    Intent,
    /// Another writer has changed the stored objects.
    Drift,
    /// The stored objects hold CAs beyond the agreed ones. They are as safe as the desired objects, and another replica
    /// may know of a newer agreement.
    ExtraAuthorities,
}

/// The times of past writes and of the current drift.
#[derive(Debug, Default)]
pub(super) struct Pace {
    written: Option<Instant>,
    corrected: Option<Instant>,
    /// Corrections without a calm time in between, by this replica or by another.
    corrections: u32,
    /// Time at which the current drift was first seen.
    drifted: Option<Instant>,
}

impl Pace {
    /// Notes that there is no drift. If there was, another replica has corrected it: replicas that want the same objects back off together,
    /// or each would begin with the first wait when another has begun to wait for longer.
    pub(super) fn in_sync(&mut self, now: Instant) {
        if self.drifted.take().is_some() {
            self.count(now);
        }
    }

    /// Returns when to write. Repeated calls for the same drift return the same time.
    pub(super) fn due(&mut self, divergence: Divergence, now: Instant) -> Instant {
        if self.corrected.is_some_and(|corrected| now.saturating_duration_since(corrected) > CALM) {
            self.corrections = 0;
        }
        let free = self.written.map_or(now, |written| written + BETWEEN);
        let wait = match divergence {
            Divergence::Intent => return free,
            Divergence::Drift => FIRST.saturating_mul(2_u32.saturating_pow(self.corrections)).min(LONGEST),
            Divergence::ExtraAuthorities => LONGEST,
        };
        free.max(*self.drifted.get_or_insert(now) + wait)
    }

    /// Notes a write.
    pub(super) fn wrote(&mut self, divergence: Divergence, now: Instant) {
        self.written = Some(now);
        self.drifted = None;
        if divergence != Divergence::Intent {
            self.count(now);
        }
    }

    fn count(&mut self, now: Instant) {
        self.corrected = Some(now);
        self.corrections = self.corrections.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::reconciler::DEBOUNCE;
    use crate::controllers::registration::RESYNC;

    #[test]
    fn a_new_intent_is_written_at_once_and_at_most_twice_a_second() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let start = now;
        assert_eq!(pace.due(Divergence::Intent, now), now);
        for _ in 0..20 {
            pace.wrote(Divergence::Intent, now);
            now = pace.due(Divergence::Intent, now);
        }
        assert_eq!(now - start, Duration::from_secs(10));
    }

    #[test]
    fn the_wait_before_a_correction_doubles_up_to_a_longest_wait() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let due = pace.due(Divergence::Drift, now);
            assert_eq!(pace.due(Divergence::Drift, due), due, "a second call returns the same time");
            waits.push((due - now).as_secs());
            now = due;
            pace.wrote(Divergence::Drift, now);
        }
        assert_eq!(waits, [1, 2, 4, 4, 4, 4]);
        assert!(
            RESYNC + DEBOUNCE + LONGEST < Duration::from_secs(10),
            "the guide promises a correction within ten seconds even without an event"
        );
    }

    #[test]
    fn after_a_minute_without_corrections_the_wait_is_reset() {
        let mut pace = Pace::default();
        let now = Instant::now();
        for _ in 0..10 {
            pace.wrote(Divergence::Drift, now);
        }
        let later = now + CALM + Duration::from_secs(1);
        assert_eq!(pace.due(Divergence::Drift, later), later + FIRST);
    }

    #[test]
    fn drift_that_another_replica_corrected_is_forgotten_and_counts() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert_eq!(pace.due(Divergence::Drift, now), now + FIRST);
        for (corrections, wait) in [(1, FIRST * 2), (2, LONGEST), (3, LONGEST)] {
            let later = now + Duration::from_secs(30) * corrections;
            pace.in_sync(later);
            pace.in_sync(later);
            assert_eq!(pace.due(Divergence::Drift, later), later + wait);
        }
        pace.in_sync(now + Duration::from_secs(90));
        let calm = now + Duration::from_secs(91) + CALM;
        assert_eq!(pace.due(Divergence::Drift, calm), calm + FIRST);
    }

    #[test]
    fn extra_authorities_are_removed_after_the_longest_wait() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert_eq!(pace.due(Divergence::ExtraAuthorities, now), now + LONGEST);
        assert_eq!(pace.due(Divergence::ExtraAuthorities, now + Duration::from_secs(3)), now + LONGEST);
    }
}
