//! The byte budget of all requests that are being read, reviewed and answered.
//!
//! The budget never waits: requests that each hold a part and wait for the rest would wait for each other. `body` decides which
//! connection is evicted when bytes run out, and the budget tells it when bytes return.

pub(super) use kube_unions_core::admission::Exhausted;

use kube_unions_core::admission::Meter;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Bytes of a request that may come from the whole budget: most reviews are no larger. The rest of a larger request comes from
/// two thirds of the budget only, so that large or slow requests never keep small ones out. With the default limits, every
/// connection has room for a small request at the same time.
const SMALL: usize = 16 * 1024;

/// The bytes that requests may take.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    /// Most bytes of one request.
    most: usize,
    free: AtomicUsize,
    /// Free bytes for the parts of requests beyond [`SMALL`].
    free_for_large: AtomicUsize,
    returned: Notify,
    /// Number of times that bytes have returned.
    returns: AtomicU64,
}

impl Budget {
    /// Returns a budget of `bytes`, or of `body` if that is more, so that one body always has room.
    pub(super) fn new(bytes: usize, body: usize) -> Arc<Self> {
        let bytes = bytes.max(body);
        let large = (bytes - bytes / 3).max(body);
        let most = bytes.min(large.saturating_add(SMALL));
        Arc::new(Self {
            bytes,
            most,
            free: AtomicUsize::new(bytes),
            free_for_large: AtomicUsize::new(large),
            returned: Notify::new(),
            returns: AtomicU64::new(0),
        })
    }

    /// Returns the bytes that requests hold.
    fn held(&self) -> usize {
        self.bytes - self.free.load(Ordering::Relaxed)
    }

    /// Resolves when bytes return after this call.
    pub(super) fn returned(&self) -> Notified<'_> {
        self.returned.notified()
    }

    /// Returns the number of times that bytes have returned.
    pub(super) fn returns(&self) -> u64 {
        self.returns.load(Ordering::SeqCst)
    }

    fn take(&self, small: usize, large: usize) -> Result<(), Exhausted> {
        take(&self.free_for_large, large)?;
        take(&self.free, small + large).inspect_err(|_| give(&self.free_for_large, large))
    }

    fn give(&self, small: usize, large: usize) {
        give(&self.free, small + large);
        give(&self.free_for_large, large);
        self.returns.fetch_add(1, Ordering::SeqCst);
        self.returned.notify_waiters();
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

/// The metric of the bytes that requests hold.
#[derive(Debug)]
pub(super) struct BudgetGauge(pub(super) Arc<Budget>);

impl Collector for BudgetGauge {
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

/// The bytes that one request holds. They return to the budget when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Budget>,
    bytes: Cell<usize>,
    /// Total that the budget refused last.
    refused: Cell<usize>,
}

impl Reservation {
    /// Returns a reservation of no bytes.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: Cell::new(0), refused: Cell::new(0) }
    }

    /// Changes the reservation to `bytes`. On an error it stays as it was.
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

/// A body as it arrives, or an answer, with its reservation.
#[derive(Debug)]
pub(super) struct Reserved {
    bytes: Vec<u8>,
    reservation: Reservation,
}

impl Reserved {
    /// Returns an empty body, which holds no bytes of the budget.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), reservation: Reservation::new(budget) }
    }

    /// Appends bytes to a body that has at most `most` bytes in the end. Capacity at most doubles, starts at [`SMALL`], and never
    /// exceeds `most`.
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

    /// Returns the most bytes of one request, if the last refusal was about more.
    pub(super) fn never_fits(&self) -> Option<usize> {
        let most = self.reservation.budget.most;
        (self.reservation.refused.get() > most).then_some(most)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the bytes.
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

/// Charges memory that a review builds to the reservation of its body.
impl Meter for Reserved {
    fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
        self.reservation.resize(self.reservation.bytes.get().saturating_add(bytes))
    }

    fn release(&self, bytes: usize) {
        // The budget never refuses a smaller reservation.
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
    fn a_reservation_grows_with_the_body() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let mut body = Reserved::new(&budget);
        assert_eq!(free(&budget), before, "a body that is only announced costs nothing");
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
    fn a_reservation_never_exceeds_the_announced_length() {
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
    fn large_bodies_that_stall_leave_room_for_small_ones() {
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
    fn memory_of_a_review_is_charged_to_its_body_until_it_is_dropped() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let mut body = Reserved::new(&budget);
        body.extend(&[b' '; 1000], 1000).unwrap();
        body.charge(MIB).unwrap();
        assert_eq!(before.0 - free(&budget).0, MIB + 1000);
        body.release(MIB / 2);
        assert_eq!(before.0 - free(&budget).0, MIB / 2 + 1000);
        assert_eq!((body.charge(30 * MIB), body.charge(20 * MIB)), (Ok(()), Err(Exhausted)));
        // A release of nothing changes nothing.
        body.release(0);
        assert_eq!(body.never_fits(), Some(budget.most), "it does not fit even alone");
        let other = Reserved::new(&budget);
        assert_eq!((other.charge(20 * MIB), other.never_fits()), (Err(Exhausted), None), "it may fit later");
        let answer = body.replace(vec![b' '; 10]).unwrap();
        assert_eq!(before.0 - free(&budget).0, 10);
        drop((answer, other));
        assert_eq!(free(&budget), before);
    }

    #[test]
    fn the_smallest_budget_has_room_for_exactly_one_body() {
        let budget = Budget::new(7 * MIB, 7 * MIB);
        let mut body = Reserved::new(&budget);
        body.extend(&vec![b' '; 7 * MIB], 7 * MIB).unwrap();
        assert_eq!(Reserved::new(&budget).extend(b"{", 2), Err(Exhausted));
        drop(body);
        assert_eq!(Reserved::new(&budget).extend(b"{", 2), Ok(()));
    }
}
