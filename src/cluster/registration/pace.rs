//! When to write: at once where we want something else than before, more and more slowly where somebody keeps writing
//! something else than we do.
//!
//! Two replicas that want different things, as in the middle of an upgrade, would otherwise write as fast as they can.

use std::time::{Duration, Instant};

/// Least time between two rounds of writes.
const BETWEEN: Duration = Duration::from_millis(500);

/// Drift is left alone for so long: a replica that hears of a CRD a moment later than another must not undo what that one
/// has registered.
const SETTLE: Duration = Duration::from_secs(1);

/// So long at the most.
const LONGEST: Duration = Duration::from_secs(6);

/// Drift may have begun right after everything was last seen to be right, and is written by then: nobody need have told of it.
/// It leaves room for a slow write within what is promised, 10 s.
const LATEST: Duration = Duration::from_secs(8);

/// So long without drift, and the next counts as the first.
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

/// What was written, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    written: Option<Instant>,
    /// When everything was last seen to be as it should be.
    right: Option<Instant>,
    /// Since when what is stored differs, although we want nothing new.
    drifted: Option<Instant>,
    /// Drift put right without a calm time between.
    corrections: u32,
    corrected: Option<Instant>,
}

impl Pace {
    /// Everything is as it should be.
    pub(super) fn in_step(&mut self, now: Instant) {
        self.right = Some(now);
        self.drifted = None;
    }

    /// Something is to be written: when.
    pub(super) fn due(&mut self, change: Change, now: Instant) -> Instant {
        let free = self.written.map_or(now, |written| written + BETWEEN);
        if change == Change::Ours {
            return free;
        }
        if self.corrected.is_some_and(|corrected| now.saturating_duration_since(corrected) > CALM) {
            self.corrections = 0;
        }
        let since = *self.drifted.get_or_insert(now);
        if change == Change::Harmless {
            return free.max(since + LONGEST);
        }
        let wait = SETTLE.saturating_mul(2_u32.saturating_pow(self.corrections.saturating_sub(1))).min(LONGEST);
        let latest = self.right.map_or(since + LONGEST, |right| right + LATEST);
        free.max((since + wait).min(latest).max(since + SETTLE))
    }

    /// It was written.
    pub(super) fn wrote(&mut self, change: Change, now: Instant) {
        self.written = Some(now);
        self.right = Some(now);
        self.drifted = None;
        if change != Change::Ours {
            self.corrections = self.corrections.saturating_add(1);
            self.corrected = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::registration::registrar::{DEBOUNCE, LOOK};

    const PROMISED: Duration = Duration::from_secs(10);

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
    fn drift_is_put_right_within_two_seconds_at_first_and_within_ten_always() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..10 {
            let due = pace.due(Change::Drift, now);
            // Looking again changes nothing.
            assert_eq!(pace.due(Change::Drift, due), due);
            waits.push(due - now);
            now = due;
            pace.wrote(Change::Drift, now);
        }
        assert!(waits[0] < Duration::from_secs(2) && waits[1] < Duration::from_secs(2), "{waits:?}");
        assert!(waits.is_sorted() && waits[9] < PROMISED, "{waits:?}");
        assert!(waits[4] > Duration::from_secs(5), "a quarrel slows down: {waits:?}");
    }

    /// However many corrections came before, and although it was noticed by looking alone.
    #[test]
    fn drift_that_nobody_told_of_is_put_right_within_ten_seconds_of_when_it_can_have_begun() {
        let right = Instant::now();
        for late in [100, 1000, 3000, 5900].map(Duration::from_millis).into_iter().chain([LOOK + DEBOUNCE]) {
            let mut pace = Pace::default();
            for _ in 0..10 {
                pace.wrote(Change::Drift, right);
            }
            pace.in_step(right);
            let noticed = right + late;
            let due = pace.due(Change::Drift, noticed);
            assert!(due >= noticed + SETTLE, "{late:?}");
            assert!(due <= right + LATEST, "{late:?}: {:?}", due - right);
            assert_eq!(pace.due(Change::Drift, due), due);
        }
    }

    #[test]
    fn after_a_calm_time_drift_is_put_right_as_soon_as_the_first_time() {
        let mut pace = Pace::default();
        let now = Instant::now();
        for _ in 0..10 {
            pace.wrote(Change::Drift, now);
        }
        let later = now + CALM + Duration::from_secs(1);
        assert_eq!(pace.due(Change::Drift, later), later + SETTLE);
    }

    #[test]
    fn drift_that_somebody_else_has_put_right_is_forgotten() {
        let mut pace = Pace::default();
        let now = Instant::now();
        pace.due(Change::Drift, now);
        pace.in_step(now);
        let later = now + Duration::from_secs(30);
        assert_eq!(pace.due(Change::Drift, later), later + SETTLE);
    }

    #[test]
    fn what_is_harmless_has_longer_to_explain_itself_and_not_for_ever() {
        let mut pace = Pace::default();
        let now = Instant::now();
        let due = pace.due(Change::Harmless, now);
        assert!(due > now + Duration::from_secs(5) && due < now + PROMISED);
        assert_eq!(pace.due(Change::Harmless, now + Duration::from_secs(3)), due);
    }
}
