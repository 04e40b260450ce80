//! Bounds the memory of inspections. Each inspection takes seats for the memory that it may need, until it is done. The same
//! memory counts as bytes in flight.

use super::super::budget::{Budget, Reservation};
use super::request::{InspectedObject, SubjectKind, text_at};
use kube_unions_core::catalog::compiling_cost;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of all inspections together. An ordinary CRD needs a few MiB.
const MEMORY: usize = 32 * 1024 * 1024;

/// Bytes of one seat. An inspection takes at least one.
const SEAT: usize = 512 * 1024;

/// Longest wait for seats.
const WAIT: Duration = Duration::from_secs(1);

/// Bytes for each entry of a `UnionDeclaration`, which becomes a value and then a part of a union.
const ENTRY: usize = 512;

#[derive(Debug)]
pub(super) struct Seats {
    free: Arc<Semaphore>,
    budget: Arc<Budget>,
}

/// The seats of one inspection. They are free again when this is dropped.
#[derive(Debug)]
pub(super) struct TakenSeats {
    _seats: OwnedSemaphorePermit,
    _bytes: Reservation,
}

/// An inspection gets no seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSeats {
    /// Other inspections have them.
    Busy,
    /// It needs more seats than there are.
    TooLarge,
}

impl Seats {
    /// Returns free seats.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { free: Arc::new(Semaphore::new(MEMORY / SEAT)), budget: Arc::clone(budget) }
    }

    /// Waits for the seats of an inspection, for [`WAIT`] at most.
    pub(super) async fn take(&self, subject: &InspectedObject, body: &[u8]) -> Result<TakenSeats, NoSeats> {
        let bytes = cost(subject, body);
        let wanted = bytes.div_ceil(SEAT).max(1);
        if wanted > MEMORY / SEAT {
            return Err(NoSeats::TooLarge);
        }
        let wanted = u32::try_from(wanted).map_err(|_| NoSeats::TooLarge)?;
        let seats = tokio::time::timeout(WAIT, Arc::clone(&self.free).acquire_many_owned(wanted)).await;
        let Ok(Ok(seats)) = seats else { return Err(NoSeats::Busy) };
        let reservation = Reservation::new(&self.budget);
        reservation.resize(bytes).map_err(|_| NoSeats::Busy)?;
        Ok(TakenSeats { _seats: seats, _bytes: reservation })
    }
}

/// Returns the most bytes that the inspection of a subject in `body` may need.
fn cost(subject: &InspectedObject, body: &[u8]) -> usize {
    let object = text_at(body, &subject.object);
    match subject.kind {
        SubjectKind::Definition => {
            // The old CRD is compiled after the new one is dropped.
            let old = subject.old.as_ref().map(|old| text_at(body, old));
            let objects = [Some(object), old].into_iter().flatten();
            objects.map(|object| compiling_cost(object, subject.annotation)).max().unwrap_or_default()
        }
        SubjectKind::Declaration => {
            let entries = object.bytes().filter(|byte| matches!(byte, b',' | b'{')).count();
            entries.saturating_mul(ENTRY).saturating_add(object.len())
        }
    }
}
