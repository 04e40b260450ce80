//! The caller of a review: how long it waits for the answer, and whether it still waits.
//!
//! The API server gives up a review after its timeout, and closes the connection. Then the review is not worth another cycle: its
//! next charge of memory is refused. `turns` has the order of the reviews.

use super::budget::{Exhausted, Reserved};
use super::refusal::RequestRefusal;
use crate::telemetry::LabelledCounters;
use kube_unions_core::admission::Meter;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Longest timeout that the API server accepts for a webhook. A longer one counts as this.
const LONGEST: Duration = Duration::from_secs(30);

/// Part of the timeout for the way of the answer: a tenth, and at most this.
const WAY_BACK: Duration = Duration::from_millis(100);

/// The caller of one review.
#[derive(Debug)]
pub(super) struct Caller {
    /// The time at which an answer is too late. `None` if the caller did not say.
    pub(super) deadline: Option<Instant>,
    given_up: LabelledCounters<1>,
}

/// True while a caller waits. Each review has its own.
pub(super) type Waits = Arc<AtomicBool>;

impl Caller {
    /// Returns the caller of a request that arrives now. The API server sends `?timeout=5s`.
    pub(super) fn new(query: Option<&str>, given_up: &LabelledCounters<1>) -> Self {
        let timeout = query.and_then(timeout).map(|timeout| timeout.min(LONGEST));
        let deadline = timeout.map(|timeout| Instant::now() + timeout.saturating_sub(WAY_BACK.min(timeout / 10)));
        Self { deadline, given_up: given_up.clone() }
    }

    /// Waits no longer than the caller. Returns `None` at the deadline.
    pub(super) async fn wait<T>(&self, result: impl Future<Output = T>) -> Option<T> {
        match self.deadline {
            Some(deadline) => timeout_at(deadline, result).await.ok(),
            None => Some(result.await),
        }
    }

    /// Runs a review as long as the caller waits. It may end early: the future is dropped when the client closes.
    pub(super) async fn attend<T, F>(&self, review: impl FnOnce(Waits) -> F) -> Result<T, RequestRefusal>
    where
        F: Future<Output = Result<T, RequestRefusal>>,
    {
        let waits = Waits::new(AtomicBool::new(true));
        let mut attendance = Attendance { waits: Arc::clone(&waits), end: Some("gone"), given_up: &self.given_up };
        let result = self.wait(review(waits)).await;
        attendance.end = if result.is_some() { None } else { Some("deadline") };
        result.unwrap_or(Err(RequestRefusal::Deadline))
    }
}

/// A review while its caller waits. The caller waits no longer when this is dropped.
struct Attendance<'a> {
    waits: Waits,
    /// The reason for the end without an answer.
    end: Option<&'static str>,
    given_up: &'a LabelledCounters<1>,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.waits.store(false, Ordering::Relaxed);
        if let Some(reason) = self.end.filter(|_| !thread::panicking()) {
            self.given_up.get_or_create(&[("reason", reason)]).inc();
        }
    }
}

/// Bytes that a review charges in advance, because each change of the budget costs several atomic operations.
const BLOCK: usize = 4 * 1024;

/// The memory of a review. It refuses everything once the caller no longer waits.
#[derive(Debug)]
pub(super) struct AttendedMemory<'a> {
    memory: &'a Reserved,
    waits: &'a AtomicBool,
    /// Bytes that are charged in advance. They return when this is dropped.
    spare: Cell<usize>,
}

impl<'a> AttendedMemory<'a> {
    pub(super) fn new(memory: &'a Reserved, waits: &'a AtomicBool) -> Self {
        Self { memory, waits, spare: Cell::new(0) }
    }
}

impl Meter for AttendedMemory<'_> {
    fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
        if !self.waits.load(Ordering::Relaxed) {
            return Err(Exhausted);
        }
        let spare = self.spare.get();
        if let Some(rest) = spare.checked_sub(bytes) {
            self.spare.set(rest);
            return Ok(());
        }
        let lacking = bytes - spare;
        let in_advance = self.memory.charge(lacking.saturating_add(BLOCK)).is_ok();
        if !in_advance {
            self.memory.charge(lacking)?;
        }
        self.spare.set(if in_advance { BLOCK } else { 0 });
        Ok(())
    }

    fn release(&self, bytes: usize) {
        let spare = self.spare.get().saturating_add(bytes);
        let kept = if spare > 2 * BLOCK { BLOCK } else { spare };
        if kept < spare {
            self.memory.release(spare - kept);
        }
        self.spare.set(kept);
    }
}

impl Drop for AttendedMemory<'_> {
    fn drop(&mut self) {
        self.memory.release(self.spare.get());
    }
}

/// Returns the value of `timeout`, which Go prints as `5s`, `1m30s` or `1.5s`. Returns `None` if it is missing, invalid or zero.
fn timeout(query: &str) -> Option<Duration> {
    let text = query.split('&').find_map(|it| it.strip_prefix("timeout="))?;
    humantime::parse_duration(text).ok().filter(|timeout| !timeout.is_zero())
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;

    #[test]
    fn the_timeout_is_a_duration_as_go_prints_it() {
        for (query, want) in [
            ("timeout=5s", Some(5_000)),
            ("timeout=1m30s", Some(90_000)),
            ("a=b&timeout=1.5s", Some(1_500)),
            ("timeout=300ms&x", Some(300)),
            ("timeout=1h0m0s", Some(3_600_000)),
            ("timeout=", None),
            ("timeout=0s", None),
            ("timeout=5", None),
            ("timeout=s", None),
            ("timeout=-5s", None),
            ("timeout=5%73", None),
            ("timeout=..s", None),
            ("timeout=99999999999999999999h", None),
            ("timeouts=5s", None),
            ("", None),
        ] {
            assert_eq!(timeout(query), want.map(Duration::from_millis), "{query}");
        }
    }

    #[test]
    fn an_answer_has_to_leave_before_the_caller_goes() {
        for (query, want) in [("timeout=10s", 9_900), ("timeout=100ms", 90), ("timeout=24h", 29_900)] {
            let before = Instant::now();
            let deadline = Caller::new(Some(query), &LabelledCounters::<1>::default()).deadline.unwrap();
            let (want, after) = (Duration::from_millis(want), Instant::now());
            assert!((before + want..=after + want).contains(&deadline), "{query}");
        }
        assert_eq!(Caller::new(Some("x"), &LabelledCounters::<1>::default()).deadline, None);
    }

    #[test]
    fn a_review_charges_in_blocks_as_long_as_there_are_any() {
        let budget = Budget::new(10 * BLOCK, BLOCK);
        let body = Reserved::new(&budget);
        let waits = AtomicBool::new(true);
        let memory = AttendedMemory::new(&body, &waits);
        for _ in 0..=BLOCK {
            memory.charge(1).unwrap();
        }
        assert_eq!(budget.held(), BLOCK + 1, "one block");
        memory.charge(1).unwrap();
        assert_eq!(budget.held(), 2 * BLOCK + 2, "and the next");
        memory.charge(7 * BLOCK).unwrap();
        assert_eq!(budget.held(), 9 * BLOCK + 2);
        memory.charge(BLOCK - 1).unwrap();
        assert_eq!((memory.charge(BLOCK), budget.held()), (Err(Exhausted), 9 * BLOCK + 2), "there is no more");
        memory.charge(1).unwrap();
        memory.release(7 * BLOCK);
        assert_eq!(budget.held(), 3 * BLOCK + 2, "a block is kept");
        waits.store(false, Ordering::Relaxed);
        assert_eq!(memory.charge(1), Err(Exhausted), "nobody waits");
        drop(memory);
        assert_eq!(budget.held(), 2 * BLOCK + 2);
    }
}
