//! The log of the shared Secret: each change once, and each failure once instead of at each attempt.

use super::contents::Contents;
use super::plan::{CertificatePlan, LeafAction};
use super::secret::SecretError;
use super::state::{CertificateState, Seconds};
use crate::cluster::reason::reason;
use kube::runtime::watcher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a new CA may be missing from the configurations without a warning. They follow the Secret within seconds.
const LONG: Duration = Duration::from_mins(10);

pub(super) struct Log {
    secret: String,
    /// The failure that was logged last, until it is over.
    failure: Option<Arc<str>>,
    watch_failure: Option<String>,
    /// Start of the wait for a new CA to be held, and whether it was logged.
    waiting: Option<(Instant, bool)>,
}

impl Log {
    pub(super) fn new(secret: String) -> Self {
        Self { secret, failure: None, watch_failure: None, waiting: None }
    }

    /// Logs a failure. Returns its reason and its remedy in one line.
    pub(super) fn failed(&mut self, error: &SecretError, serving: bool) -> Arc<str> {
        let mut reason = reason(error);
        if error.is_forbidden() {
            reason.push_str("; its Role must grant get, list, watch and update on this Secret, and create on secrets");
        }
        let reason: Arc<str> = reason.into();
        let secret = &self.secret;
        if self.failure.as_ref() == Some(&reason) {
            return reason;
        }
        if serving {
            tracing::warn!(
                secret,
                %reason,
                "the certificate's Secret cannot be read or written; the certificate in force is served; retrying"
            );
        } else {
            tracing::warn!(secret, %reason, "no serving certificate yet; retrying");
        }
        self.failure = Some(Arc::clone(&reason));
        reason
    }

    pub(super) fn recovered(&mut self) {
        if self.failure.take().is_some() {
            tracing::info!(secret = self.secret, "the certificate's Secret can be read and written again");
        }
    }

    pub(super) fn watching(&mut self) {
        if self.watch_failure.take().is_some() {
            tracing::info!(secret = self.secret, "the certificate's Secret is watched again");
        }
    }

    pub(super) fn not_watching(&mut self, error: &watcher::Error) {
        let reason = reason(error);
        // With a failure to read, the watch most likely fails for the same reason.
        if self.failure.is_none() && self.watch_failure.as_ref() != Some(&reason) {
            tracing::warn!(
                secret = self.secret,
                reason,
                "the certificate's Secret cannot be watched; it is read every half minute instead"
            );
            self.watch_failure = Some(reason);
        }
    }

    /// Logs a write that carried out `plan` on `before`.
    pub(super) fn wrote(&mut self, plan: &CertificatePlan, before: &Contents) {
        let secret = &self.secret;
        if !before.faults.is_empty() {
            let faults = before.faults.join("; ");
            tracing::warn!(secret, faults, "replaced unusable data in the certificate's Secret");
        }
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
