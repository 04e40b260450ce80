//! What is said of the agreement: every change once, and every trouble once, not at each attempt.

use super::Trouble;
use super::contents::Contents;
use super::plan::{LeafPlan, Plan, Seconds, State};
use crate::cluster::reason::reason;
use kube::runtime::watcher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The configurations follow the Secret within seconds. After so long somebody should look.
const LONG: Duration = Duration::from_mins(10);

pub(super) struct Log {
    secret: String,
    trouble: Option<Arc<str>>,
    not_watching: Option<String>,
    waiting: Option<(Instant, bool)>,
}

impl Log {
    pub(super) fn new(secret: String) -> Self {
        Self { secret, trouble: None, not_watching: None, waiting: None }
    }

    /// Returns what is missing, and what would help, in one line.
    pub(super) fn trouble(&mut self, trouble: &Trouble, serving: bool) -> Arc<str> {
        let mut reason = reason(trouble);
        if matches!(trouble, Trouble::Request { source: kube::Error::Api(status), .. } if status.is_forbidden()) {
            reason
                .push_str("; its Role has to grant get, list, watch and update on this Secret, and create on secrets");
        }
        let reason: Arc<str> = reason.into();
        let secret = &self.secret;
        if self.trouble.as_ref() == Some(&reason) {
            tracing::debug!(secret, %reason, "still no agreement on the certificate");
        } else if serving {
            tracing::warn!(secret, %reason, "the certificate's Secret is out of reach; what is there is served, retrying");
        } else {
            tracing::warn!(secret, %reason, "no serving certificate yet; retrying");
        }
        self.trouble = Some(Arc::clone(&reason));
        reason
    }

    /// Whether there was trouble until now.
    pub(super) fn well(&mut self) -> bool {
        let recovered = self.trouble.take().is_some();
        if recovered {
            tracing::info!(secret = self.secret, "the certificate's Secret can be read and written");
        }
        recovered
    }

    pub(super) fn watching(&mut self) {
        if self.not_watching.take().is_some() {
            tracing::info!(secret = self.secret, "watching the certificate's Secret");
        }
    }

    pub(super) fn not_watching(&mut self, error: &watcher::Error) {
        let reason = reason(error);
        if self.trouble.is_some() {
            // Most likely the same, which is said already.
            tracing::debug!(secret = self.secret, reason, "the certificate's Secret cannot be watched");
        } else if self.not_watching.as_ref() != Some(&reason) {
            tracing::warn!(
                secret = self.secret,
                reason,
                "the certificate's Secret cannot be watched; it is read now and then"
            );
            self.not_watching = Some(reason);
        }
    }

    /// A plan was carried out on `before`.
    pub(super) fn wrote(&mut self, plan: &Plan, before: &Contents) {
        let secret = &self.secret;
        if !before.faults.is_empty() {
            let faults = before.faults.join("; ");
            tracing::warn!(secret, faults, "the certificate's Secret held what cannot be used; mended");
        }
        if let Some(cause) = plan.authority {
            tracing::info!(secret, %cause, "a new CA was made");
        }
        let gone = before.state.authorities.iter().filter(|it| !plan.keep.contains(it)).count();
        if gone > 0 {
            tracing::info!(secret, count = gone, "old CAs were taken out of the bundle");
        }
        match plan.leaf {
            LeafPlan::Keep => {}
            LeafPlan::Restore => tracing::info!(secret, "the certificate that is served was put back into its Secret"),
            LeafPlan::Issue(cause) => tracing::info!(secret, %cause, "a new serving certificate was made"),
        }
    }

    /// A new CA that the configurations do not take up would go unnoticed until the old certificate ends.
    pub(super) fn waiting(&mut self, stored: &State, plan: &Plan, known: bool, now: Seconds) {
        let leaf = stored.leaf.as_ref().filter(|_| plan.leaf == LeafPlan::Keep && plan.authority.is_none());
        let Some(leaf) = leaf.filter(|leaf| stored.signer.as_ref().is_some_and(|it| *it != leaf.issuer)) else {
            self.waiting = None;
            return;
        };
        let (since, said) = self.waiting.get_or_insert((Instant::now(), false));
        if since.elapsed() < LONG || *said {
            return;
        }
        *said = true;
        let days = (leaf.not_after - now) / (24 * 3600);
        let why = if known { "they hold other CAs" } else { "they cannot be read" };
        tracing::warn!(
            secret = self.secret,
            why,
            days,
            "the webhook configurations do not hold the new CA; the certificate of the old one is served while it lasts"
        );
    }
}
