//! What keeps the configurations from being read or written: said once, and tried again.

use super::configurations::ConfigurationError;
use crate::cluster::reason::reason;
use crate::cluster::watch::code;
use kube::runtime::watcher;
use std::collections::BTreeSet;
use std::time::Duration;

/// Wait after a failure, doubled with each one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What went wrong, and what was said of it.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    failures: u32,
    /// What was logged last.
    said: Option<String>,
    /// Why it may not watch: that is said once, where there is nothing worse to say.
    denied: BTreeSet<String>,
    unsaid: Option<String>,
}

impl Trouble {
    /// Says each reason once, not at each attempt. Gives how long to wait before the next.
    pub(super) fn begin(&mut self, error: &ConfigurationError) -> Duration {
        let reason = reason(error);
        if self.said.as_ref() != Some(&reason) {
            if error.is_answer() {
                tracing::warn!(reason, "the webhook configurations cannot be kept true; retrying");
            } else {
                // That the API server is away is said by the watch of definitions.
                tracing::debug!(reason, "the webhook configurations cannot be looked at; retrying");
            }
            self.said = Some(reason);
        }
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST_WAIT);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// The configurations could be looked at.
    pub(super) fn end(&mut self) {
        self.failures = 0;
        if self.said.take().is_some() {
            tracing::info!("the webhook configurations are kept true again");
        }
        // Where they cannot be read either, that is what there is to say.
        if let Some(reason) = self.unsaid.take() {
            tracing::warn!(reason, "the webhook configurations may not be watched; they are looked at more often");
        }
    }

    /// They cannot be watched.
    pub(super) fn deaf(&mut self, error: &watcher::Error) {
        let reason = reason(error);
        if code(error) == Some(403) && self.denied.insert(reason.clone()) {
            self.unsaid = Some(reason);
        }
    }
}
