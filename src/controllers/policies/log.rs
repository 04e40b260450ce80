//! The log of the policies. A message is not repeated while its reason stays the same, and no message has a value of an object.

use super::api::PolicyKey;
use super::desired::DesiredPolicies;
use super::settings::PolicyDuty;
use crate::controllers::object::shortened;
use crate::telemetry::LogOnce;
use std::collections::{BTreeSet, HashSet};

/// Messages that were logged. A repetition is not logged.
#[derive(Default)]
pub(super) struct PolicyLog {
    failure: LogOnce,
    unlistable: BTreeSet<String>,
    foreign: HashSet<PolicyKey>,
    refusals: BTreeSet<String>,
}

impl PolicyLog {
    pub(super) fn write_failed(&mut self, key: &PolicyKey, reason: &str, failed: u64) {
        if self.failure.is_new(reason) {
            tracing::warn!(object = %key, reason, failed, "cannot write admission policies; retrying");
        }
    }

    /// Notes that nothing is left to write.
    pub(super) fn recovered(&mut self) {
        if self.failure.is_over() {
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
        if !keys.is_empty() {
            let objects = shortened(&keys.iter().map(ToString::to_string).collect::<Vec<_>>());
            tracing::warn!(objects, count = keys.len(), "admission policies were changed by others and are corrected");
        }
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
}
