//! What keeps the configurations from being read or written: logged once, and tried again.

use super::configurations::ConfigurationError;
use super::pace::Backoff;
use crate::cluster::reason::reason;
use crate::cluster::watch::code;
use kube::runtime::watcher;
use std::collections::BTreeSet;
use std::time::Duration;

/// The last failure, and what was logged of it.
#[derive(Debug)]
pub(super) struct Trouble {
    backoff: Backoff,
    /// The reason that was logged last.
    logged: Option<String>,
    /// Why it may not watch: that is logged once, where there is nothing worse.
    denied: BTreeSet<String>,
    pending: Option<String>,
}

impl Default for Trouble {
    fn default() -> Self {
        let backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));
        Self { backoff, logged: None, denied: BTreeSet::new(), pending: None }
    }
}

impl Trouble {
    /// Logs each reason once, not at each attempt. Returns how long to wait before the next.
    pub(super) fn begin(&mut self, error: &ConfigurationError) -> Duration {
        let reason = reason(error);
        if self.logged.as_ref() != Some(&reason) {
            if error.is_answer() {
                tracing::warn!(reason, "the webhook configurations cannot be kept true; retrying");
            } else {
                // The watch of definitions logs that the API server is away.
                tracing::debug!(reason, "the webhook configurations cannot be looked at; retrying");
            }
            self.logged = Some(reason);
        }
        let wait = self.backoff.wait();
        self.backoff.grow();
        wait
    }

    /// The configurations are as they are to be, or nothing is to be done about them.
    pub(super) fn end(&mut self) {
        self.backoff.reset();
        if self.logged.take().is_some() {
            tracing::info!("the webhook configurations are kept true again");
        }
        // Where they cannot be read either, that is what there is to log.
        if let Some(reason) = self.pending.take() {
            tracing::warn!(reason, "the webhook configurations may not be watched; they are looked at more often");
        }
    }

    /// They cannot be watched.
    pub(super) fn watch_failed(&mut self, error: &watcher::Error) {
        let reason = reason(error);
        if code(error) == Some(403) && self.denied.insert(reason.clone()) {
            self.pending = Some(reason);
        }
    }
}
