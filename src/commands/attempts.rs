//! The clock of commands that repeat failed attempts until a timeout.

use std::time::Duration;
use tokio::time::Instant;

/// Time in which an API server learns of rights that were just granted.
const RIGHTS_SETTLE: Duration = Duration::from_secs(5);

/// The time that attempts may take.
#[derive(Debug)]
pub(super) struct Attempts {
    started: Instant,
    pub(super) within: Duration,
}

impl Attempts {
    /// Begins now.
    pub(super) fn begin(within: Duration) -> Self {
        Self { started: Instant::now(), within }
    }

    /// Returns true if no attempt may follow.
    pub(super) fn are_over(&self) -> bool {
        self.started.elapsed() >= self.within
    }

    /// Returns true if a right that is missing now will not come any more.
    pub(super) fn know_all_rights(&self) -> bool {
        self.started.elapsed() >= RIGHTS_SETTLE.min(self.within)
    }
}
