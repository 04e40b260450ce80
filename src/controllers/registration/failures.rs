//! Failures to read or write the configurations: logged once, retried with a growing wait.

use super::configurations::ConfigurationError;
use crate::api::code;
use crate::api::doubling;
use crate::api::reason;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, ExponentialBackoff};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest wait before the next attempt.
const LONGEST: Duration = Duration::from_secs(2);

/// The current failure, and the reasons that were logged.
pub(super) struct FailureLog {
    backoff: ExponentialBackoff,
    /// The reason that was logged last, until the failure is over.
    logged: Option<String>,
    /// Reasons for which the watch is forbidden. Each is logged once.
    forbidden: BTreeSet<String>,
    /// A reason for which the watch is forbidden, to be logged when nothing worse fails.
    pending: Option<String>,
}

impl Default for FailureLog {
    fn default() -> Self {
        let backoff = doubling(Duration::from_millis(250), LONGEST);
        Self { backoff, logged: None, forbidden: BTreeSet::new(), pending: None }
    }
}

impl FailureLog {
    /// Logs a failure if its reason is new. Returns the wait before the next attempt.
    pub(super) fn failed(&mut self, error: &ConfigurationError) -> Duration {
        let reason = reason(error);
        if self.logged.as_ref() != Some(&reason) {
            if error.is_answer() {
                tracing::warn!(reason, "cannot reconcile the webhook configurations; retrying");
            } else {
                // The watch of definitions logs that the API server is unreachable.
                tracing::debug!(reason, "cannot read the webhook configurations; retrying");
            }
            self.logged = Some(reason);
        }
        self.backoff.next().unwrap_or(LONGEST)
    }

    /// Notes that the configurations are in sync.
    pub(super) fn recovered(&mut self) {
        self.backoff.reset();
        if self.logged.take().is_some() {
            tracing::info!("the webhook configurations are reconciled again");
        }
        if let Some(reason) = self.pending.take() {
            tracing::warn!(
                reason,
                "the webhook configurations may not be watched; they are read every two seconds instead"
            );
        }
    }

    /// Notes a failure of the watch. A missing right is logged once.
    pub(super) fn watch_failed(&mut self, error: &watcher::Error) {
        let reason = reason(error);
        if code(error) == Some(403) && self.forbidden.insert(reason.clone()) {
            self.pending = Some(reason);
        }
    }
}
