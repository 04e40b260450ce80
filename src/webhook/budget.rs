//! The byte budget of all requests that are being read, reviewed and answered.
//!
//! The budget never waits: requests that each hold a part and wait for the rest would wait for each other. `body` decides which
//! connection is evicted when bytes run out, and the budget tells it when bytes return.

pub(super) use kube_unions_core::admission::Exhausted;

use kube_unions_core::admission::Meter;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Bytes of a request that may come from the whole budget: most reviews are no larger. The rest of a larger request comes from
/// two thirds of the budget only, so that large or slow requests never keep small ones out. With the default limits, every
/// connection has room for a small request at the same time.
const SMALL: usize = 16 * 1024;

/// Capacities of the buffers of bodies that are kept for the next bodies. glibc maps fresh pages for each new buffer of this size, or
/// trims its heap, so that a review of 844 KB costs a quarter more processor time with any threshold that keeps as little memory. A
/// smaller one costs little.
const KEPT: RangeInclusive<usize> = 128 * 1024..=1024 * 1024;

/// The part of the budget that kept buffers may hold: one in so many bytes. They are freed as soon as a request lacks them.
const KEPT_PART: usize = 16;

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
    kept: Mutex<Kept>,
}

/// Empty buffers, the last used last. They count as taken.
#[derive(Debug, Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    /// INVARIANT: the sum of the capacities.
    bytes: usize,
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
            kept: Mutex::default(),
        })
    }

    /// Returns the bytes that requests hold.
    pub(super) fn held(&self) -> usize {
        let kept = self.kept.lock().bytes;
        self.bytes - self.free.load(Ordering::Relaxed).saturating_add(kept).min(self.bytes)
    }

    /// Resolves when bytes return after this call.
    pub(super) fn returned(&self) -> Notified<'_> {
        self.returned.notified()
    }

    /// Takes bytes. Frees the kept buffers if there are not enough.
    fn take(&self, bytes: Growth) -> Result<(), Exhausted> {
        let taken = self.try_take(bytes);
        if taken.is_err() && self.free_kept() { self.try_take(bytes) } else { taken }
    }

    fn try_take(&self, Growth { small, large }: Growth) -> Result<(), Exhausted> {
        take(&self.free_for_large, large)?;
        take(&self.free, small + large).inspect_err(|_| give(&self.free_for_large, large))
    }

    /// Returns true if these bytes could be taken now. Frees the kept buffers if there are not enough.
    pub(super) fn has(&self, Growth { small, large }: Growth) -> bool {
        let has = || {
            let (free, free_for_large) = (&self.free, &self.free_for_large);
            free_for_large.load(Ordering::Relaxed) >= large && free.load(Ordering::Relaxed) >= small + large
        };
        has() || self.free_kept() && has()
    }

    fn give(&self, Growth { small, large }: Growth) {
        give(&self.free, small + large);
        give(&self.free_for_large, large);
        self.returned.notify_waiters();
    }

    /// Keeps the buffer of a body whose reservation has ended, if it fits.
    fn keep(&self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let mut kept = self.kept.lock();
        if !KEPT.contains(&capacity)
            || kept.bytes + capacity > self.bytes / KEPT_PART
            || self.try_take(growth(0, capacity)).is_err()
        {
            return;
        }
        buffer.clear();
        kept.bytes += capacity;
        kept.buffers.push(buffer);
    }

    /// Returns a kept buffer, which counts as free again.
    fn reuse(&self) -> Option<Vec<u8>> {
        let mut kept = self.kept.lock();
        let buffer = kept.buffers.pop()?;
        kept.bytes -= buffer.capacity();
        drop(kept);
        self.give_buffer(&buffer);
        Some(buffer)
    }

    /// Frees the kept buffers. Returns false if there are none.
    fn free_kept(&self) -> bool {
        let kept = std::mem::take(&mut *self.kept.lock());
        for buffer in &kept.buffers {
            self.give_buffer(buffer);
        }
        !kept.buffers.is_empty()
    }

    fn give_buffer(&self, buffer: &Vec<u8>) {
        self.give(growth(0, buffer.capacity()));
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
        if bytes > held {
            self.budget.take(growth(held, bytes)).inspect_err(|_| self.refused.set(bytes))?;
        } else {
            self.budget.give(growth(bytes, held));
        }
        self.bytes.set(bytes);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give(growth(0, self.bytes.get()));
    }
}

/// The bytes by which a reservation grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    /// From the whole budget.
    small: usize,
    /// From the part for large requests.
    large: usize,
}

/// Returns the growth of a reservation; nothing if `to` is less than `from`.
fn growth(from: usize, to: usize) -> Growth {
    Growth {
        small: to.min(SMALL).saturating_sub(from.min(SMALL)),
        large: to.saturating_sub(SMALL).saturating_sub(from.saturating_sub(SMALL)),
    }
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
    /// exceeds `most`, unless the body gets a kept buffer.
    pub(super) fn extend(&mut self, arrived: &[u8], most: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len() + arrived.len();
        if needed > self.bytes.capacity() {
            let step = needed.max(self.bytes.len().saturating_mul(2)).max(SMALL).min(most.max(needed));
            let outgrown = step >= *KEPT.start() && self.bytes.capacity() < *KEPT.start();
            let reused = (outgrown && KEPT.contains(&most)).then(|| self.reservation.budget.reuse()).flatten();
            self.reservation.resize(reused.as_ref().map_or(0, Vec::capacity).max(step))?;
            if let Some(mut buffer) = reused {
                buffer.extend_from_slice(&self.bytes);
                self.bytes = buffer;
            }
            self.bytes.reserve_exact(step.saturating_sub(self.bytes.len()));
        }
        self.bytes.extend_from_slice(arrived);
        Ok(())
    }

    /// Returns the most bytes of one request, if the last refusal was about more.
    pub(super) fn never_fits(&self) -> Option<usize> {
        let most = self.reservation.budget.most;
        (self.reservation.refused.get() > most).then_some(most)
    }

    /// Returns the growth that the budget refused last.
    pub(super) fn lacks(&self) -> Growth {
        growth(self.reservation.bytes.get(), self.reservation.refused.get())
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the bytes, and keeps the old buffer for the next body.
    pub(super) fn replace(self, mut bytes: Vec<u8>) -> Result<Self, Exhausted> {
        let Self { bytes: old, reservation } = self;
        if bytes.capacity() > SMALL {
            bytes.shrink_to_fit();
        }
        reservation.resize(bytes.capacity())?;
        reservation.budget.keep(old);
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
    fn a_kept_buffer_serves_the_next_large_body_and_is_freed_for_any_request_that_lacks_it() {
        let budget = Budget::new(64 * MIB, 7 * MIB);
        let before = free(&budget);
        let read = |bytes: usize| {
            let mut body = Reserved::new(&budget);
            body.extend(&vec![b' '; bytes], bytes).unwrap();
            body
        };
        let answered = |body: Reserved| drop(body.replace(vec![b' '; 10]).unwrap());
        let body = read(900_000);
        let address = body.bytes.as_ptr();
        answered(body);
        assert_eq!((before.0 - free(&budget).0, budget.held()), (900_000, 0), "it counts, but no request holds it");

        let small = read(2_000);
        assert_ne!(small.bytes.as_ptr(), address);
        answered(small);
        let mut large = Reserved::new(&budget);
        for part in [100_000, 200_000, 300_000] {
            large.extend(&vec![b'x'; part], 600_000).unwrap();
            assert_eq!((before.0 - free(&budget).0), if part == 100_000 { 1_000_000 } else { 900_000 });
        }
        assert_eq!((large.bytes.as_ptr(), large.len(), large.bytes.capacity()), (address, 600_000, 900_000));
        assert!(large.bytes.iter().all(|byte| *byte == b'x'), "nothing of the last body is left");
        assert_eq!(budget.held(), 900_000);
        answered(large);

        let bodies: Vec<Reserved> = (0..20).map(|_| read(MIB)).collect();
        bodies.into_iter().for_each(answered);
        assert_eq!(before.0 - free(&budget).0, 4 * MIB, "a sixteenth is kept");
        answered(read(2 * MIB));
        assert_eq!(before.0 - free(&budget).0, 4 * MIB, "a longer one is not kept");

        let all: Vec<Reserved> = (0..6).map(|_| read(7 * MIB)).collect();
        assert_eq!(budget.held(), 42 * MIB);
        assert_eq!(Reserved::new(&budget).extend(&vec![b' '; MIB], MIB), Err(Exhausted), "as without kept buffers");
        drop(all);
        assert_eq!(free(&budget), before, "a request that lacked them has freed them");
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
