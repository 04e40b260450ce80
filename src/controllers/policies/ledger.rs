//! The decisions: which objects to create, replace and delete, and which kinds policies enforce.
//!
//! Pure: it knows no clock and no API server. [`controller`](super::controller) tells it what is stored and passes the time in.

use super::api::PolicyKey;
use super::desired::{DesiredKind, DesiredPolicies, PolicyDuty};
use super::stored::StoredPolicy;
use crate::controllers::handover::Coverage;
use crate::controllers::pace::{Divergence, Pace};
use kube_unions_core::names::GroupKind;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most writes of one step. Events are handled between steps.
const MOST_WRITES: usize = 64;

/// First and longest wait before an object is written again that could not be written.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Objects and times.
#[derive(Default)]
pub(super) struct PolicyReconciler {
    duty: PolicyDuty,
    handover: Duration,
    /// `None` until a catalog is known.
    desired: Option<Arc<DesiredPolicies>>,
    /// The objects of `desired`.
    wanted: HashMap<PolicyKey, Arc<Value>>,
    stored: HashMap<PolicyKey, StoredPolicy>,
    /// The wanted objects that were last stored as wanted. An object that differs from its own has drifted: another writer has changed
    /// it since, for example a replica of another release.
    settled: HashMap<PolicyKey, Arc<Value>>,
    /// The drifted objects whose wait is over. Each is written once without another wait.
    correcting: HashSet<PolicyKey>,
    attempts: HashMap<PolicyKey, FailedAttempts>,
    progress: HashMap<GroupKind, KindProgress>,
    pace: Pace,
    /// The time at which all lists were complete for the first time.
    listed: Option<Instant>,
    /// The time since when lists are refused.
    unlistable: Option<Instant>,
    /// The coverage stays unknown, because policies may have been in force before this replica started.
    is_holding: bool,
    /// Policies enforced every kind once. After that the webhook stays unregistered.
    was_complete: bool,
}

/// The failed writes of one object.
#[derive(Debug, Clone)]
struct FailedAttempts {
    /// The object that could not be written; `None` if it could not be deleted.
    wanted: Option<Arc<Value>>,
    wait: Duration,
    not_before: Instant,
    /// True if the API server has refused the object.
    is_refused: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct KindProgress {
    /// The time since when all objects are in sync.
    synced: Option<Instant>,
    /// Policies enforce the kind.
    is_covered: bool,
    /// The time at which `is_covered` became false.
    uncovered: Option<Instant>,
}

/// A write that is due.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PolicyWrite {
    pub(super) key: PolicyKey,
    /// The object to create, or to put in place of the stored one; `None` deletes the stored one.
    pub(super) wanted: Option<Arc<Value>>,
    /// The `resourceVersion` that a deleted object must still have.
    pub(super) resource_version: Box<str>,
}

/// The writes that are due, and the time of the next step.
#[derive(Debug, Default)]
pub(super) struct ReconcileStep {
    pub(super) writes: Vec<PolicyWrite>,
    /// The time of the next step if nothing happens before.
    pub(super) wake: Option<Instant>,
    /// The number of objects that are as wanted.
    pub(super) in_sync: usize,
    /// Objects that others have changed, if they are corrected now.
    pub(super) corrected: Vec<PolicyKey>,
}

impl ReconcileStep {
    fn wake_at(&mut self, time: Instant) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }
}

impl PolicyReconciler {
    pub(super) fn new(duty: PolicyDuty, handover: Duration) -> Self {
        Self { duty, handover, ..Self::default() }
    }

    /// Notes the objects that are wanted from now on.
    pub(super) fn want(&mut self, desired: DesiredPolicies) {
        let objects = desired.values().flat_map(|kind| &kind.objects);
        self.wanted = objects.map(|(key, body)| (key.clone(), Arc::clone(body))).collect();
        self.settled.retain(|key, _| self.wanted.contains_key(key));
        self.correcting.retain(|key| self.wanted.contains_key(key));
        self.progress.retain(|kind, _| desired.contains_key(kind));
        // A changed object deserves an attempt at once.
        self.attempts.retain(|key, attempt| self.wanted.get(key) == attempt.wanted.as_ref());
        self.desired = Some(Arc::new(desired));
    }

    pub(super) fn put(&mut self, key: PolicyKey, stored: StoredPolicy) {
        self.stored.insert(key, stored);
    }

    pub(super) fn remove(&mut self, key: &PolicyKey) {
        self.stored.remove(key);
    }

    /// Notes that every list is complete.
    pub(super) fn listed(&mut self, now: Instant) {
        self.unlistable = None;
        if self.listed.is_none() {
            self.listed = Some(now);
            self.is_holding = !self.stored.is_empty();
        }
    }

    /// Notes that the API server refuses a list.
    pub(super) fn list_refused(&mut self, now: Instant) {
        self.unlistable.get_or_insert(now);
    }

    /// Notes that an object was stored as wanted, or deleted, by this replica or by another. What differs from now on is drift, also if this
    /// replica never sees the object as it was.
    pub(super) fn wrote(&mut self, key: &PolicyKey) {
        self.attempts.remove(key);
        self.correcting.remove(key);
        if let Some(wanted) = self.wanted.get(key) {
            self.settled.insert(key.clone(), Arc::clone(wanted));
        }
    }

    /// Notes a write that failed. `is_refused`: the API server refuses the object; otherwise another writer was faster.
    pub(super) fn failed(&mut self, key: PolicyKey, is_refused: bool, now: Instant) {
        if !is_refused {
            self.correcting.remove(&key);
        }
        let wait = self.attempts.get(&key).map_or(FIRST_WAIT, |last| (last.wait * 2).min(LONGEST_WAIT));
        let wanted = self.wanted.get(&key).cloned();
        self.attempts.insert(key, FailedAttempts { wanted, wait, not_before: now + wait, is_refused });
    }

    /// Returns the object that is wanted under a key.
    pub(super) fn wanted(&self, key: &PolicyKey) -> Option<&Arc<Value>> {
        self.wanted.get(key)
    }

    /// Returns the number of wanted objects, and the number of kinds that policies cannot express as a whole.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let kinds = self.desired.iter().flat_map(|desired| desired.values());
        (self.wanted.len(), kinds.filter(|kind| !kind.refusals.is_empty()).count())
    }

    /// Returns the number of kinds that policies enforce.
    pub(super) fn covered(&self) -> usize {
        self.progress.values().filter(|progress| progress.is_covered).count()
    }

    /// Returns the writes that are due. `registered`: the kinds that the webhook is registered for, each with the time since
    /// when.
    pub(super) fn step(&mut self, registered: &BTreeMap<GroupKind, Instant>, now: Instant) -> ReconcileStep {
        let mut step = ReconcileStep::default();
        let Some(desired) = self.desired.clone().filter(|_| self.listed.is_some()) else { return step };
        let mut drifted = Vec::new();
        for (kind, desired) in desired.iter() {
            self.step_of_kind(kind, desired, &mut step, &mut drifted, now);
        }
        self.correct(drifted, &mut step, now);
        self.delete(&desired, registered, &mut step, now);
        step.writes.truncate(MOST_WRITES);
        step
    }

    fn step_of_kind(
        &mut self,
        kind: &GroupKind,
        desired: &DesiredKind,
        step: &mut ReconcileStep,
        drifted: &mut Vec<(PolicyKey, Option<PolicyWrite>)>,
        now: Instant,
    ) {
        let (mut is_blocked, mut is_refused) = (false, false);
        for (key, body) in &desired.objects {
            let is_settled = self.settled.get(key) == Some(body);
            if self.stored.get_mut(key).is_some_and(|stored| stored.is_as(body)) {
                step.in_sync += 1;
                self.correcting.remove(key);
                if !is_settled {
                    self.settled.insert(key.clone(), Arc::clone(body));
                }
                continue;
            }
            let has_drifted = is_settled && !self.correcting.contains(key);
            let attempt = self.attempts.get(key);
            is_refused |= attempt.is_some_and(|attempt| attempt.is_refused);
            // The objects of a kind are written in order.
            if std::mem::replace(&mut is_blocked, true) {
                drifted.extend(has_drifted.then(|| (key.clone(), None)));
                continue;
            }
            if let Some(attempt) = attempt.filter(|attempt| attempt.not_before > now) {
                step.wake_at(attempt.not_before);
                continue;
            }
            let (wanted, resource_version) = (Some(Arc::clone(body)), Box::default());
            let write = PolicyWrite { key: key.clone(), wanted, resource_version };
            if has_drifted { drifted.push((key.clone(), Some(write))) } else { step.writes.push(write) }
        }
        let handover = self.handover;
        let progress = self.progress.entry(kind.clone()).or_default();
        progress.synced = if is_blocked { None } else { progress.synced.or(Some(now)) };
        let was_covered = progress.is_covered;
        progress.is_covered = match progress.synced.filter(|_| !desired.objects.is_empty()) {
            _ if self.duty == PolicyDuty::BesideWebhook && !desired.is_expressible() => false,
            Some(synced) if now >= synced + handover => true,
            Some(synced) => {
                if !was_covered {
                    step.wake_at(synced + handover);
                }
                was_covered
            }
            // A change of the CRD, or drift: both are written at once.
            None => was_covered && !is_refused,
        };
        if was_covered && !progress.is_covered {
            progress.uncovered = Some(now);
        }
    }

    /// Adds the corrections of objects that others have changed, if they are due. An object without a write follows the others of
    /// its kind.
    fn correct(&mut self, drifted: Vec<(PolicyKey, Option<PolicyWrite>)>, step: &mut ReconcileStep, now: Instant) {
        if drifted.is_empty() {
            return self.pace.in_sync(now);
        }
        let due = self.pace.due(Divergence::Drift, now);
        if due > now {
            return step.wake_at(due);
        }
        self.pace.wrote(Divergence::Drift, now);
        for (key, write) in drifted {
            self.correcting.insert(key.clone());
            step.corrected.push(key);
            step.writes.extend(write);
        }
    }

    /// Adds the deletions that are due: bindings and rejecting policies first.
    fn delete(
        &self,
        desired: &DesiredPolicies,
        registered: &BTreeMap<GroupKind, Instant>,
        step: &mut ReconcileStep,
        now: Instant,
    ) {
        let is_calm = step.writes.is_empty();
        let mut unwanted: Vec<_> = self.stored.iter().filter(|(key, _)| !self.wanted.contains_key(*key)).collect();
        unwanted.sort_by_key(|(key, _)| Reverse(*key));
        for (key, stored) in unwanted {
            let due = match &stored.kind {
                Some(kind) => self.deletion(kind, desired.get(kind).map(Arc::as_ref), registered, now),
                None => is_calm.then_some(now),
            };
            let retry = self.attempts.get(key).map(|attempt| attempt.not_before);
            match due.map(|due| retry.map_or(due, |retry| retry.max(due))) {
                Some(due) if due > now => step.wake_at(due),
                Some(_) => {
                    let resource_version = stored.resource_version.clone();
                    step.writes.push(PolicyWrite { key: key.clone(), wanted: None, resource_version });
                }
                None => {}
            }
        }
    }

    /// Returns when an object of a kind that is not wanted is to be deleted; `None` if that is not known yet.
    fn deletion(
        &self,
        kind: &GroupKind,
        desired: Option<&DesiredKind>,
        registered: &BTreeMap<GroupKind, Instant>,
        now: Instant,
    ) -> Option<Instant> {
        // The kind has no unions any more.
        let Some(desired) = desired else { return Some(now) };
        let progress = self.progress.get(kind).copied().unwrap_or_default();
        let by_webhook = || {
            let since = *registered.get(kind)?;
            Some(progress.uncovered.map_or(since, |uncovered| uncovered.max(since)) + self.handover)
        };
        match self.duty {
            PolicyDuty::Remove => Some(now),
            _ if !desired.objects.is_empty() => progress.synced.map(|synced| synced + self.handover),
            PolicyDuty::Alone => Some(now),
            PolicyDuty::BesideWebhook | PolicyDuty::RemoveOnceRegistered if !desired.is_registrable => Some(now),
            PolicyDuty::BesideWebhook | PolicyDuty::RemoveOnceRegistered => by_webhook(),
        }
    }

    /// Returns the kinds that policies enforce, after a step.
    pub(super) fn coverage(&mut self, now: Instant) -> Coverage {
        if !self.duty.is_enforcing() {
            return Coverage::none();
        }
        let (Some(listed), Some(desired)) = (self.listed, &self.desired) else {
            // Without the right to list policies there are none. An API server that starts may not know the rights yet.
            let refused = self.unlistable.is_some_and(|since| now >= since + self.handover);
            return if refused && self.duty == PolicyDuty::BesideWebhook {
                Coverage::none()
            } else {
                Coverage::Unknown
            };
        };
        let covered = |kind: &GroupKind| self.progress.get(kind).is_some_and(|progress| progress.is_covered);
        let is_complete = desired.iter().all(|(kind, desired)| desired.objects.is_empty() || covered(kind));
        if self.duty == PolicyDuty::Alone {
            self.was_complete |= is_complete;
            return if self.was_complete { Coverage::Everything } else { Coverage::Unknown };
        }
        self.is_holding &= !is_complete && now < listed + self.handover * 3;
        if self.is_holding {
            return Coverage::Unknown;
        }
        let kinds: BTreeSet<_> = desired.keys().filter(|kind| covered(kind)).cloned().collect();
        Coverage::Kinds(Arc::new(kinds))
    }

    /// Returns the time at which the coverage may change although nothing happens.
    pub(super) fn next_coverage_at(&self, now: Instant) -> Option<Instant> {
        let held = self.listed.filter(|_| self.is_holding).map(|listed| listed + self.handover * 3);
        let refused = self.unlistable.filter(|_| self.listed.is_none()).map(|since| since + self.handover);
        held.into_iter().chain(refused).filter(|time| *time > now).min()
    }
}

#[cfg(test)]
mod tests;
