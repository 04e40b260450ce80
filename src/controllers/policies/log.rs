//! The log of the policies. A message is not repeated while its reason stays the same, and no message has a value of an object.

use super::PolicyDuty;
use super::api::PolicyKey;
use super::desired::DesiredPolicies;
use std::collections::{BTreeSet, HashSet};

/// Messages that were logged. A repetition is not logged.
#[derive(Default)]
pub(super) struct PolicyLog {
    failure: Option<String>,
    unlistable: BTreeSet<String>,
    foreign: HashSet<PolicyKey>,
    refusals: BTreeSet<String>,
    owner: Option<String>,
}

impl PolicyLog {
    pub(super) fn failed(&mut self, reason: &str) {
        if self.failure.as_deref() != Some(reason) {
            tracing::warn!(reason, "cannot keep the admission policies; retrying");
            self.failure = Some(reason.to_owned());
        }
    }

    pub(super) fn write_failed(&mut self, key: &PolicyKey, reason: &str, failed: u64) {
        if self.failure.as_deref() != Some(reason) {
            tracing::warn!(object = %key, reason, failed, "cannot write admission policies; retrying");
            self.failure = Some(reason.to_owned());
        }
    }

    /// Notes that nothing is left to write.
    pub(super) fn recovered(&mut self, is_in_sync: bool) {
        if is_in_sync && self.failure.take().is_some() {
            tracing::info!("the admission policies are in sync again");
        }
    }

    pub(super) fn listable(&mut self) {
        self.unlistable.clear();
    }

    pub(super) fn unlistable(&mut self, reason: &str, duty: PolicyDuty) {
        if self.unlistable.insert(reason.to_owned()) {
            let consequence = if duty == PolicyDuty::BesideWebhook {
                "the webhook enforces all kinds"
            } else {
                "they stay as they are"
            };
            tracing::warn!(reason, consequence, "may not list admission policies; retrying");
        }
    }

    /// Notes that a name is taken.
    pub(super) fn foreign(&mut self, key: &PolicyKey) {
        if self.foreign.insert(key.clone()) {
            tracing::error!(
                object = %key,
                "an object of this name belongs to another writer and is left alone: delete it, or choose another \
                 --policy-name-prefix"
            );
        }
    }

    pub(super) fn corrected(keys: &[PolicyKey]) {
        const MOST: usize = 8;
        if keys.is_empty() {
            return;
        }
        let mut objects = keys.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if keys.len() > MOST {
            objects.push_str(", …");
        }
        tracing::warn!(objects, count = keys.len(), "admission policies were changed by others and are corrected");
    }

    pub(super) fn refused_kinds(&mut self, desired: &DesiredPolicies, duty: PolicyDuty) {
        let now: BTreeSet<String> = desired.values().flat_map(|kind| kind.refusals.iter().cloned()).collect();
        for refusal in now.difference(&self.refusals) {
            if duty == PolicyDuty::Alone {
                tracing::warn!(refusal, "a union is not enforced, because policies cannot express it");
            } else {
                tracing::info!(refusal, "the webhook enforces a kind, because policies cannot express it");
            }
        }
        self.refusals = now;
    }

    /// Notes that an object is ours.
    pub(super) fn written(&mut self, key: &PolicyKey) {
        self.foreign.remove(key);
    }

    pub(super) fn owner_unreadable(&mut self, name: &str, reason: String) {
        if self.owner.as_ref() != Some(&reason) {
            tracing::warn!(
                cluster_role = name,
                reason,
                "cannot read the ClusterRole that owns the policies: they stay after an uninstallation until `kube-unions \
                 unregister` deletes them"
            );
            self.owner = Some(reason);
        }
    }
}
