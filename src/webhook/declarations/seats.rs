//! The memory of inspections: each takes seats by what it may cost, and gives them back when it is done. What it may cost
//! counts as bytes in flight, too.

use super::super::budget::{Budget, Reservation};
use super::request::{Subject, SubjectKind};
use kube_unions_core::catalog::compiling_cost;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that all inspections together may take. A CRD that somebody means takes a few MiB.
const MEMORY: usize = 32 * 1024 * 1024;

/// Bytes of a seat, the least that an inspection takes.
const SEAT: usize = 512 * 1024;

/// Longest wait for seats.
const WAIT: Duration = Duration::from_secs(1);

/// Bytes for an entry of a `UnionDeclaration`, which is parsed into values and then into unions.
const ENTRY: usize = 512;

/// Seats that are free.
#[derive(Debug)]
pub(super) struct Seats {
    free: Arc<Semaphore>,
    budget: Arc<Budget>,
}

/// Seats that are taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    _seats: OwnedSemaphorePermit,
    _bytes: Reservation,
}

/// Why there are no seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSeats {
    /// They are taken.
    Busy,
    /// There are never so many.
    TooLarge,
}

impl Seats {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { free: Arc::new(Semaphore::new(MEMORY / SEAT)), budget: Arc::clone(budget) }
    }

    /// Waits a moment for the seats that an inspection takes.
    pub(super) async fn take(&self, subject: &Subject<'_>) -> Result<Taken, NoSeats> {
        let bytes = cost(subject);
        let wanted = bytes.div_ceil(SEAT).max(1);
        if wanted > MEMORY / SEAT {
            return Err(NoSeats::TooLarge);
        }
        let wanted = u32::try_from(wanted).map_err(|_| NoSeats::TooLarge)?;
        let seats = tokio::time::timeout(WAIT, Arc::clone(&self.free).acquire_many_owned(wanted)).await;
        let Ok(Ok(seats)) = seats else { return Err(NoSeats::Busy) };
        let reservation = Reservation::new(&self.budget);
        reservation.resize(bytes).map_err(|_| NoSeats::Busy)?;
        Ok(Taken { _seats: seats, _bytes: reservation })
    }
}

/// Bytes that an inspection takes at the most.
fn cost(subject: &Subject<'_>) -> usize {
    match subject.kind {
        SubjectKind::Definition => {
            // The old CRD is compiled when the new one is forgotten.
            let objects = [Some(subject.object), subject.old].into_iter().flatten();
            objects.map(|object| compiling_cost(object, subject.annotation)).max().unwrap_or_default()
        }
        SubjectKind::Declaration => {
            let entries = subject.object.bytes().filter(|byte| matches!(byte, b',' | b'{')).count();
            entries.saturating_mul(ENTRY).saturating_add(subject.object.len())
        }
    }
}
