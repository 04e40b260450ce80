//! The bytes of all requests that are being read, reviewed and answered: a budget that nobody waits for.
//!
//! It hands out what there is and waits for nothing: requests that each hold a part and wait for the rest would wait for each
//! other. The reader of bodies (`routes`) decides who gives way, and is told when bytes are given back. Two atomic numbers.

pub(super) use kube_unions_core::admission::Exhausted;

use kube_unions_core::admission::Meter;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// What a body may take from all of the budget: most reviews are no larger. What a body has beyond it comes from two
/// thirds of the budget only, so that no number of large or slow ones keeps small ones out. By default every connection
/// there can be finds room for so much.
const SMALL: usize = 16 * 1024;

/// Bytes that are not taken.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    /// The most that one request can get.
    most: usize,
    free: AtomicUsize,
    /// Of these, what may be taken beyond [`SMALL`] a request.
    free_for_large: AtomicUsize,
    given_back: Notify,
}

impl Budget {
    /// So many bytes in all, in which one body of `body` bytes finds room at least.
    pub(super) fn new(bytes: usize, body: usize) -> Arc<Self> {
        let bytes = bytes.max(body);
        let large = (bytes - bytes / 3).max(body);
        let most = bytes.min(large.saturating_add(SMALL));
        Arc::new(Self {
            bytes,
            most,
            free: AtomicUsize::new(bytes),
            free_for_large: AtomicUsize::new(large),
            given_back: Notify::new(),
        })
    }

    /// Bytes that are taken.
    fn held(&self) -> usize {
        self.bytes - self.free.load(Ordering::Relaxed)
    }

    /// Resolves when bytes are given back after this call.
    pub(super) fn given_back(&self) -> Notified<'_> {
        self.given_back.notified()
    }

    fn take(&self, small: usize, large: usize) -> Result<(), Exhausted> {
        take(&self.free_for_large, large)?;
        take(&self.free, small + large).inspect_err(|_| give(&self.free_for_large, large))
    }

    fn give(&self, small: usize, large: usize) {
        give(&self.free, small + large);
        give(&self.free_for_large, large);
        self.given_back.notify_waiters();
    }
}

fn take(free: &AtomicUsize, bytes: usize) -> Result<(), Exhausted> {
    if bytes == 0 {
        return Ok(());
    }
    let taken = free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes));
    taken.map(drop).map_err(|_| Exhausted)
}

fn give(free: &AtomicUsize, bytes: usize) {
    free.fetch_add(bytes, Ordering::Relaxed);
}

/// Shows what is held of a budget.
#[derive(Debug)]
pub(super) struct Held(pub(super) Arc<Budget>);

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        encoder
            .encode_descriptor(
                "admission_in_flight_bytes",
                "Bytes held by requests that are being read, reviewed and answered",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&u64::try_from(self.0.held()).unwrap_or(u64::MAX))
    }
}

/// What one request holds of the budget, until it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Budget>,
    bytes: Cell<usize>,
    /// Bytes that were refused last, in all.
    refused: Cell<usize>,
}

impl Reservation {
    /// Of nothing yet.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: Cell::new(0), refused: Cell::new(0) }
    }

    /// Holds so many bytes from now on, or as many as before.
    pub(super) fn resize(&self, bytes: usize) -> Result<(), Exhausted> {
        let held = self.bytes.get();
        let (small, large) = parts(held);
        let (new_small, new_large) = parts(bytes);
        if bytes > held {
            let taken = self.budget.take(new_small - small, new_large - large);
            taken.inspect_err(|_| self.refused.set(bytes))?;
        } else {
            self.budget.give(small - new_small, large - new_large);
        }
        self.bytes.set(bytes);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (small, large) = parts(self.bytes.get());
        self.budget.give(small, large);
    }
}

fn parts(bytes: usize) -> (usize, usize) {
    (bytes.min(SMALL), bytes.saturating_sub(SMALL))
}

/// The bytes of a body as they arrive, never more than the budget has for them.
#[derive(Debug)]
pub(super) struct Reserved {
    bytes: Vec<u8>,
    reservation: Reservation,
}

impl Reserved {
    /// Nothing has arrived, and nothing is held.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), reservation: Reservation::new(budget) }
    }

    /// Takes what has arrived. `most` is what is to come in all: what is held beyond what is there is no more than what
    /// is there, or [`SMALL`], and never more than `most`.
    pub(super) fn extend(&mut self, arrived: &[u8], most: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len() + arrived.len();
        if needed > self.bytes.capacity() {
            let step = needed.max(self.bytes.len().saturating_mul(2)).max(SMALL).min(most.max(needed));
            self.reservation.resize(step)?;
            self.bytes.reserve_exact(step - self.bytes.len());
        }
        self.bytes.extend_from_slice(arrived);
        Ok(())
    }

    /// The most that one request can get, if this one was refused more than that.
    pub(super) fn never_fits(&self) -> Option<usize> {
        let most = self.reservation.budget.most;
        (self.reservation.refused.get() > most).then_some(most)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Other bytes in the place of these, which are gone.
    pub(super) fn replace(self, mut bytes: Vec<u8>) -> Result<Self, Exhausted> {
        let Self { bytes: old, reservation } = self;
        drop(old);
        if bytes.capacity() > SMALL {
            bytes.shrink_to_fit();
        }
        reservation.resize(bytes.capacity())?;
        Ok(Self { bytes, reservation })
    }
}

/// What is built for a request comes from the same budget as its bytes.
impl Meter for Reserved {
    fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
        self.reservation.resize(self.reservation.bytes.get().saturating_add(bytes))
    }

    fn release(&self, bytes: usize) {
        // Less is never refused.
        let _ = self.reservation.resize(self.reservation.bytes.get().saturating_sub(bytes));
    }
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn free(budget: &Budget) -> (usize, usize) {
        (budget.free.load(Ordering::Relaxed), budget.free_for_large.load(Ordering::Relaxed))
    }

    #[test]
    fn what_is_held_follows_what_has_arrived() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let mut body = Reserved::new(&budget);
        assert_eq!(free(&budget), before, "an announcement costs nothing");
        let mut arrived = 0;
        for size in [1, 100, 4000, 16 * 1024, 16 * 1024, 1, 600_000, 900_000, 5 * MIB] {
            body.extend(&vec![b' '; size], 7 * MIB).unwrap();
            arrived += size;
            let held = before.0 - free(&budget).0;
            assert!((arrived..=(2 * arrived).max(SMALL)).contains(&held), "{held} bytes are held for {arrived}");
            assert_eq!(held, body.bytes.capacity());
        }
        assert_eq!(body.len(), arrived);
        drop(body);
        assert_eq!(free(&budget), before);
    }

    #[test]
    fn no_more_is_held_than_was_announced() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget).0;
        let mut body = Reserved::new(&budget);
        body.extend(&[b' '; 700], 1500).unwrap();
        assert_eq!(before - free(&budget).0, 1500);
        body.extend(&[b' '; 800], 1500).unwrap();
        assert_eq!(before - free(&budget).0, 1500);
        let answer = body.replace(vec![b' '; 300]).unwrap();
        assert_eq!(before - free(&budget).0, 300);
        let answer = answer.replace(vec![b' '; 5000]).unwrap();
        assert_eq!(before - free(&budget).0, 5000);
        drop(answer);
        assert_eq!(free(&budget).0, before);
    }

    #[test]
    fn large_bodies_that_stop_half_way_leave_room_for_small_ones_and_lose_nothing() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let mut half_read: Vec<Reserved> = Vec::new();
        let chunk = vec![b' '; 16 * 1024];
        let shed = loop {
            let mut body = Reserved::new(&budget);
            if (0..7 * 64 - 1).any(|_| body.extend(&chunk, 7 * MIB).is_err()) {
                break body;
            }
            half_read.push(body);
        };
        // 42 MiB and two thirds, of 7 each.
        assert_eq!(half_read.len(), 6);
        assert!(shed.len() >= chunk.len());
        drop(shed);
        let mut small = Vec::new();
        for _ in 0..1281 {
            let mut body = Reserved::new(&budget);
            body.extend(&chunk, SMALL).unwrap();
            small.push(body);
        }
        drop(half_read);
        drop(small);
        assert_eq!(free(&budget), before);
    }

    #[test]
    fn what_is_built_for_a_request_comes_from_the_same_budget_and_goes_with_it() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let mut body = Reserved::new(&budget);
        body.extend(&[b' '; 1000], 1000).unwrap();
        body.charge(MIB).unwrap();
        assert_eq!(before.0 - free(&budget).0, MIB + 1000);
        body.release(MIB / 2);
        assert_eq!(before.0 - free(&budget).0, MIB / 2 + 1000);
        assert_eq!((body.charge(30 * MIB), body.charge(20 * MIB)), (Ok(()), Err(Exhausted)));
        // An empty buffer that goes changes nothing.
        body.release(0);
        assert_eq!(body.never_fits(), Some(budget.most), "not even alone");
        let other = Reserved::new(&budget);
        assert_eq!((other.charge(20 * MIB), other.never_fits()), (Err(Exhausted), None), "a moment later, maybe");
        let answer = body.replace(vec![b' '; 10]).unwrap();
        assert_eq!(before.0 - free(&budget).0, 10);
        drop((answer, other));
        assert_eq!(free(&budget), before);
    }

    #[test]
    fn one_body_finds_room_in_the_least_budget_and_no_two() {
        let budget = Budget::new(7 * MIB, 7 * MIB);
        let mut body = Reserved::new(&budget);
        body.extend(&vec![b' '; 7 * MIB], 7 * MIB).unwrap();
        assert_eq!(Reserved::new(&budget).extend(b"{", 2), Err(Exhausted));
        drop(body);
        assert_eq!(Reserved::new(&budget).extend(b"{", 2), Ok(()));
    }
}
