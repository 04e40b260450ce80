//! The log of the shared Secret: each change once, and what is wrong once in an episode instead of at each attempt.
//!
//! An episode ends when nothing is wrong and nothing has been written for a minute. Another writer may revert each write.

use super::contents::Contents;
use super::plan::{CertificatePlan, LeafAction};
use super::state::{CertificateState, Seconds};
use crate::controllers::reconciler::StepError;
use kube_unions_api::RequestError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time for which a new CA may be missing from the configurations without a warning. They follow the Secret within seconds.
const LONG: Duration = Duration::from_mins(10);

#[derive(Default)]
pub(super) struct CertificateLog {
    secret: String,
    /// The failures and faults that were logged in this episode.
    warnings: BTreeSet<String>,
    /// Faults of the data that was read, until they are logged or there is a success.
    faults: String,
    /// The last failure, until a success.
    failure: Option<Arc<str>>,
    /// True after the watch failed and that was logged.
    watch_failed: bool,
    /// Start of the wait for a new CA to be held, and whether it was logged.
    waiting: Option<(Instant, bool)>,
}

impl CertificateLog {
    pub(super) fn new(secret: String) -> Self {
        Self { secret, ..Self::default() }
    }

    /// Remembers the faults of what was read for the next line.
    pub(super) fn read(&mut self, contents: &Contents) {
        if !contents.faults.is_empty() {
            self.faults = contents.faults.join("; ");
        }
    }

    /// Returns the error that other writers revert every write. Writes that are refused come to their limit too, and their reason
    /// is known.
    pub(super) fn contended(&self) -> StepError {
        let contended =
            || format!("the Secret `{}` keeps changing: find the other writer by its `managedFields`", self.secret);
        StepError::new(self.failure.as_deref().map_or_else(contended, str::to_owned))
    }

    /// Logs a failure, and returns its reason.
    pub(super) fn failed(&mut self, reason: &str, serving: bool) -> Arc<str> {
        let reason: Arc<str> = reason.into();
        self.failure = Some(Arc::clone(&reason));
        if !self.warnings.insert(format!("{serving} {reason}")) {
            return reason;
        }
        let faults = self.new_faults();
        let secret = &self.secret;
        let consequence = if serving {
            "the certificate's Secret cannot be read or written; the certificate in force is served; retrying"
        } else {
            "no valid serving certificate yet; retrying"
        };
        tracing::warn!(secret, %reason, faults, "{consequence}");
        reason
    }

    /// Logs what is wrong with the data, or the end of the episode. `is_calm`: nothing has been written for a minute.
    pub(super) fn succeeded(&mut self, is_calm: bool) {
        self.failure = None;
        let is_over = is_calm && self.faults.is_empty();
        if let Some(faults) = self.new_faults() {
            tracing::warn!(
                secret = self.secret,
                faults,
                "unusable data in the certificate's Secret is ignored, and replaced at the next write"
            );
        } else if is_over && !std::mem::take(&mut self.warnings).is_empty() {
            tracing::info!(secret = self.secret, "the certificate's Secret is in order again");
        }
    }

    /// Takes the faults that were read if they are in no line of this episode.
    fn new_faults(&mut self) -> Option<String> {
        let faults = std::mem::take(&mut self.faults);
        (!faults.is_empty() && self.warnings.insert(faults.clone())).then_some(faults)
    }

    pub(super) fn watched(&mut self, watched: Result<(), RequestError>) {
        let secret = &self.secret;
        match watched {
            Ok(()) if std::mem::take(&mut self.watch_failed) => {
                tracing::info!(secret, "the certificate's Secret is watched again");
            }
            // With a failure to read, the watch most likely fails for the same reason.
            Err(error) if self.failure.is_none() && !std::mem::replace(&mut self.watch_failed, true) => {
                tracing::warn!(
                    secret,
                    reason = error.to_string(),
                    "the certificate's Secret cannot be watched; it is read every half minute instead"
                );
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Logs a write that carried out `plan` on `before`.
    pub(super) fn wrote(&self, plan: &CertificatePlan, before: &Contents) {
        let secret = &self.secret;
        if let Some(cause) = plan.new_authority {
            tracing::info!(secret, %cause, "made a new CA");
        }
        let gone = before.state.authorities.iter().filter(|it| !plan.keep.contains(it)).count();
        if gone > 0 {
            tracing::info!(secret, count = gone, "removed old CAs from the bundle");
        }
        match plan.leaf {
            LeafAction::Keep => {}
            LeafAction::Restore => tracing::info!(secret, "restored the served certificate in its Secret"),
            LeafAction::Issue(cause) => tracing::info!(secret, %cause, "made a new serving certificate"),
        }
    }

    /// Warns once if the configurations do not take up a new CA. Otherwise it would go unnoticed until the old certificate
    /// expires.
    pub(super) fn waiting(&mut self, stored: &CertificateState, plan: &CertificatePlan, is_known: bool, now: Seconds) {
        let leaf = stored.leaf.as_ref().filter(|_| plan.leaf == LeafAction::Keep && plan.new_authority.is_none());
        let Some(leaf) = leaf.filter(|leaf| stored.signer.as_ref().is_some_and(|it| *it != leaf.issuer)) else {
            self.waiting = None;
            return;
        };
        let (since, logged) = self.waiting.get_or_insert((Instant::now(), false));
        if since.elapsed() < LONG || *logged {
            return;
        }
        *logged = true;
        let days = (leaf.not_after - now) / (24 * 3600);
        let reason = if is_known { "they hold other CAs" } else { "they cannot be read" };
        tracing::warn!(
            secret = self.secret,
            reason,
            days,
            "the webhook configurations do not hold the new CA; the old certificate is served until it expires"
        );
    }
}
