//! The turns of large reviews: one for each processor, in order of arrival.
//!
//! A review that would be answered too late is refused at once, so that the API server asks again or another replica, while its
//! caller still waits. The time that the reviews ahead need is their bytes at the pace of the last reviews.

use super::refusal::RequestRefusal;
use prometheus_client::metrics::gauge::Gauge;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Turns {
    free: Arc<Semaphore>,
    processors: NonZero<usize>,
    /// Most bytes of the bodies that wait: they take memory from the reviews that run.
    most: usize,
    /// Bytes of the bodies that wait or are reviewed.
    bytes: AtomicUsize,
    /// Nanoseconds for a KiB on one processor, as a moving average. 0 before the first review.
    pace: AtomicU64,
    queued: Gauge,
}

impl Turns {
    /// Returns turns for as many reviews at once as there are processors.
    pub(super) fn new(processors: NonZero<usize>, most: usize, queued: Gauge) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(processors.get()));
        Arc::new(Self { free, processors, most, bytes: AtomicUsize::new(0), pace: AtomicU64::new(0), queued })
    }

    /// Returns an error if a body of `bytes` that arrives now would wait too long.
    pub(super) fn check(&self, bytes: usize, deadline: Option<Instant>) -> Result<(), RequestRefusal> {
        // No permit is available while a review waits.
        if self.free.available_permits() > 0 {
            return Ok(());
        }
        let ahead = self.bytes.load(Ordering::Relaxed);
        let needed = self.time_for((ahead / self.processors).saturating_add(bytes));
        if deadline.is_some_and(|deadline| needed > deadline.saturating_duration_since(Instant::now())) {
            return Err(RequestRefusal::Late);
        }
        if ahead.saturating_add(bytes) > self.most { Err(RequestRefusal::Budget) } else { Ok(()) }
    }

    /// Waits for the turn of a body.
    pub(super) async fn take(
        self: &Arc<Self>,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<Turn, RequestRefusal> {
        self.check(bytes, deadline)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.queued.inc();
        let queued = Queued { turns: Arc::clone(self), bytes };
        // The semaphore is fair, and is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(|_| RequestRefusal::Internal)?;
        Ok(Turn { _permit: permit, queued, began: Instant::now() })
    }

    fn time_for(&self, bytes: usize) -> Duration {
        Duration::from_nanos(self.pace.load(Ordering::Relaxed).saturating_mul(kibibytes(bytes)))
    }

    /// Learns from a review. One that was given up would have taken longer.
    fn learn(&self, bytes: usize, took: Duration, done: bool) {
        let seen = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / kibibytes(bytes).max(1);
        let next = |pace: u64| match pace {
            0 => seen,
            _ if done => pace - pace / 8 + seen / 8,
            _ => pace.max(seen),
        };
        let _ = self.pace.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |pace| Some(next(pace)));
    }
}

/// A body that waits or is reviewed.
#[derive(Debug)]
struct Queued {
    turns: Arc<Turns>,
    bytes: usize,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.turns.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.turns.queued.dec();
    }
}

/// The turn of one review. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    // Fields are dropped in this order: the next review begins first.
    _permit: OwnedSemaphorePermit,
    queued: Queued,
    began: Instant,
}

impl Turn {
    /// Ends the turn. `done` is false for a review that was given up.
    pub(super) fn end(self, done: bool) {
        self.queued.turns.learn(self.queued.bytes, self.began.elapsed(), done);
    }
}

fn kibibytes(bytes: usize) -> u64 {
    u64::try_from(bytes / 1024).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const MIB: usize = 1024 * 1024;
    const ONE: NonZero<usize> = NonZero::<usize>::MIN;

    #[tokio::test]
    async fn a_review_that_would_be_late_is_refused_unless_a_turn_is_free() {
        let turns = Turns::new(ONE, 8 * MIB, Gauge::default());
        turns.learn(MIB, Duration::from_secs(1), true);
        let within = |seconds| Some(Instant::now() + Duration::from_secs(seconds));
        assert_eq!(turns.check(MIB, within(0)), Ok(()), "nobody is ahead");
        let turn = turns.take(2 * MIB, within(1)).await.unwrap();
        for (bytes, seconds, want) in [
            (MIB, 2, Err(RequestRefusal::Late)),
            (MIB, 60, Ok(())),
            (2 * MIB, 3, Err(RequestRefusal::Late)),
            (7 * MIB, 60, Err(RequestRefusal::Budget)),
        ] {
            assert_eq!(turns.check(bytes, within(seconds)), want, "{bytes} bytes within {seconds} s");
        }
        assert_eq!(turns.check(MIB, None), Ok(()), "the caller did not say how long it waits");
        turn.end(true);
        assert_eq!(turns.check(7 * MIB, within(1)), Ok(()), "a turn is free");
    }

    #[tokio::test]
    async fn a_review_that_leaves_the_queue_is_no_longer_ahead() {
        let turns = Turns::new(ONE, 8 * MIB, Gauge::default());
        let first = turns.take(MIB, None).await.unwrap();
        assert!(turns.take(6 * MIB, None).now_or_never().is_none(), "it waits, and its caller goes");
        let mut next = Box::pin(turns.take(6 * MIB, None));
        assert!(next.as_mut().now_or_never().is_none(), "it has room");
        drop(first);
        next.await.unwrap();
        assert_eq!(turns.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_pace_follows_the_reviews_and_a_review_that_is_given_up_only_slows_it() {
        let turns = Turns::new(ONE, MIB, Gauge::default());
        for (seconds, done, want) in
            [(8, true, 8.0), (16, true, 9.0), (1, false, 9.0), (20, false, 20.0), (4, true, 18.0)]
        {
            turns.learn(MIB, Duration::from_secs(seconds), done);
            let took = turns.time_for(MIB).as_secs_f64();
            assert!((took - want).abs() < 1e-3, "{took} s instead of {want}");
        }
    }
}
