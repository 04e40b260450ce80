//! One replica's side of the policies: notes what is stored, compiles catalogs, and writes what [`ledger`](super::ledger) says.

use super::api::{PolicyEvent, PolicyKey, PolicyResource, ServedPolicies};
use super::desired::{CatalogCompiler, DesiredPolicies, PolicyDuty, PolicyEnforcement};
use super::ledger::{PolicyReconciler, PolicyWrite};
use super::stored::{PolicyFrame, StoredPolicy};
use crate::compute::compute;
use crate::controllers::handover::{Coverage, RegisteredKinds};
use crate::controllers::object::shortened;
use crate::controllers::reconciler::{Controller, Reconciled, StepError, publish};
use crate::telemetry::{LogOnce, PolicyMetrics};
use futures::StreamExt;
use kube::Client;
use kube_unions_api::{RequestError, WatchChange};
use kube_unions_core::catalog::Catalog;
use kube_unions_policies::policy_difference;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Writes in flight.
const CONCURRENT_WRITES: usize = 4;

/// Time between two steps if nothing happens.
const RESYNC: Duration = Duration::from_secs(30);

/// The reason for a policy that is not in the cluster although the API server accepted the write.
const NOT_KEPT: &str = "it was stored with changes; find the admission webhook or policy that changes it";

/// Inputs and outputs of the enforcement by policies.
pub struct PolicySignals {
    /// Catalog in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// Kinds that the webhook is registered for.
    pub registered: watch::Receiver<RegisteredKinds>,
    /// Receives the kinds that policies enforce.
    pub coverage: watch::Sender<Coverage>,
    /// Metrics of the policies.
    pub metrics: PolicyMetrics,
}

/// A reason for a step.
pub(super) enum PolicyChange {
    /// An event of the watches.
    Stored(PolicyEvent),
    /// Another catalog, or other kinds that the webhook is registered for.
    Input,
}

/// Keeps the policies for one replica, at an API server whose version and resources do not change.
pub(super) struct PolicyController<'s> {
    client: Client,
    enforcement: &'s PolicyEnforcement,
    signals: &'s PolicySignals,
    served: ServedPolicies,
    frame: PolicyFrame,
    reconciler: PolicyReconciler,
    compiler: Arc<Mutex<CatalogCompiler>>,
    /// The catalog that was compiled last.
    catalog: Option<Arc<Catalog>>,
    /// The served resources of which no list was completed yet.
    unlisted: BTreeSet<PolicyResource>,
    write_failure: LogOnce,
    /// The reasons for which lists are refused, as they were logged.
    unlistable: BTreeSet<String>,
    /// Names of other writers' objects that were logged.
    foreign: HashSet<PolicyKey>,
    /// The unions that policies leave out, as they were logged.
    refusals: BTreeSet<String>,
}

/// The result of a write.
enum WriteOutcome {
    /// The object as it was stored by this write.
    Stored(Value),
    /// Another replica has written the object.
    Found(Value),
    /// The object does not exist.
    Gone,
    /// An object of this name belongs to another writer.
    Foreign,
}

impl<'s> PolicyController<'s> {
    pub(super) fn new(
        client: Client,
        enforcement: &'s PolicyEnforcement,
        signals: &'s PolicySignals,
        served: ServedPolicies,
        frame: PolicyFrame,
    ) -> Self {
        let compiler = CatalogCompiler::new(enforcement.clone(), served, frame.clone());
        let mut controller = Self {
            client,
            enforcement,
            signals,
            served,
            frame,
            reconciler: PolicyReconciler::new(enforcement.duty, enforcement.handover),
            compiler: Arc::new(Mutex::new(compiler)),
            catalog: None,
            unlisted: served.resources().collect(),
            write_failure: LogOnce::default(),
            unlistable: BTreeSet::new(),
            foreign: HashSet::new(),
            refusals: BTreeSet::new(),
        };
        controller.note_lists();
        controller
    }

    /// Compiles the catalog in force if it is another one.
    async fn compile(&mut self) {
        let catalog = self.signals.catalogs.borrow().clone();
        let Some(catalog) = catalog.filter(|new| self.catalog.as_ref().is_none_or(|old| !Arc::ptr_eq(new, old))) else {
            return;
        };
        self.catalog = Some(Arc::clone(&catalog));
        let compiler = Arc::clone(&self.compiler);
        // A panic is logged where it happens.
        let Ok(desired) = compute(move || compiler.lock().desired(&catalog)).await else { return };
        self.log_refusals(&desired);
        self.reconciler.want(desired);
    }

    fn log_refusals(&mut self, desired: &DesiredPolicies) {
        let now: BTreeSet<String> = desired.values().flat_map(|kind| kind.refusals.iter().cloned()).collect();
        for refusal in now.difference(&self.refusals) {
            if self.enforcement.duty == PolicyDuty::Alone {
                tracing::warn!(refusal, "a union is not enforced, because policies cannot express it");
            } else {
                tracing::info!(refusal, "the webhook enforces a kind, because policies cannot express it");
            }
        }
        self.refusals = now;
    }

    fn note_lists(&mut self) {
        if self.unlisted.is_empty() {
            self.reconciler.listed(Instant::now());
            self.unlistable.clear();
        }
    }

    fn watch_failed(&mut self, error: &RequestError) {
        if !error.is_forbidden() {
            return;
        }
        self.reconciler.list_refused(Instant::now());
        let reason = error.to_string();
        if self.unlistable.insert(reason.clone()) {
            let is_beside = self.enforcement.duty == PolicyDuty::BesideWebhook;
            let consequence = if is_beside { "the webhook enforces all kinds" } else { "they stay as they are" };
            tracing::warn!(reason, consequence, "may not list admission policies; retrying");
        }
    }

    fn put(&mut self, key: PolicyKey, object: Value) {
        match StoredPolicy::of_this_installation(object, &self.frame) {
            Some(stored) => self.reconciler.put(key, stored),
            None => self.reconciler.remove(&key),
        }
    }

    /// Carries out writes, until the API server does not answer.
    async fn write(&mut self, writes: Vec<PolicyWrite>) -> Result<(), StepError> {
        let (client, served, frame) = (self.client.clone(), self.served, self.frame.clone());
        let writes = writes.into_iter().map(|write| perform(&client, served, &frame, write));
        let mut outcomes = futures::stream::iter(writes).buffer_unordered(CONCURRENT_WRITES);
        let (mut written, mut deleted, mut failed, mut first) = (0_u64, 0_u64, 0_u64, None);
        let mut result = Ok(());
        while let Some((write, outcome)) = outcomes.next().await {
            let key = write.key.clone();
            let now = Instant::now();
            let failure = match outcome {
                Ok(WriteOutcome::Stored(object)) => {
                    let wanted = self.reconciler.wanted(&key);
                    let is_kept = wanted.is_some_and(|wanted| policy_difference(wanted, &object).is_none());
                    self.put(key.clone(), object);
                    if is_kept {
                        written += 1;
                        self.reconciler.wrote(&key);
                        self.foreign.remove(&key);
                        continue;
                    }
                    Some(NOT_KEPT.to_owned())
                }
                Ok(WriteOutcome::Found(object)) => {
                    self.put(key.clone(), object);
                    self.reconciler.wrote(&key);
                    continue;
                }
                Ok(WriteOutcome::Gone) => {
                    deleted += u64::from(write.wanted.is_none());
                    self.reconciler.remove(&key);
                    self.reconciler.wrote(&key);
                    continue;
                }
                Ok(WriteOutcome::Foreign) => {
                    if self.foreign.insert(key.clone()) {
                        tracing::error!(
                            object = %key,
                            "an object of this name belongs to another writer and is left alone: delete it, or choose \
                             another --policy-name-prefix"
                        );
                    }
                    None
                }
                // The object has changed since it was read.
                Err(error) if matches!(error.code(), Some(404 | 409)) => {
                    self.reconciler.failed(key, false, now);
                    continue;
                }
                Err(error) => {
                    let reason = error.to_string();
                    if !error.is_final() {
                        result = Err(error.into());
                    }
                    Some(reason)
                }
            };
            failed += 1;
            first = first.or_else(|| Some((key.clone(), failure?)));
            if result.is_err() {
                break;
            }
            self.reconciler.failed(key, true, now);
        }
        let metrics = &self.signals.metrics;
        metrics.writes.get_or_create(&[("outcome", "applied")]).inc_by(written);
        metrics.writes.get_or_create(&[("outcome", "deleted")]).inc_by(deleted);
        metrics.writes.get_or_create(&[("outcome", "failed")]).inc_by(failed);
        if written + deleted > 0 {
            tracing::info!(written, deleted, "the admission policies were written");
        }
        if let Some((key, reason)) = first
            && self.write_failure.is_new(&reason)
        {
            tracing::warn!(object = %key, reason, failed, "cannot write admission policies; retrying");
        }
        result
    }
}

/// Carries out a write.
async fn perform(
    client: &Client,
    served: ServedPolicies,
    frame: &PolicyFrame,
    write: PolicyWrite,
) -> (PolicyWrite, Result<WriteOutcome, RequestError>) {
    let PolicyWrite { key, wanted, resource_version } = &write;
    let outcome = async {
        let path = served.path(key)?;
        let Some(wanted) = wanted else {
            return path.delete(client, Some(resource_version)).await.map(|_| WriteOutcome::Gone);
        };
        match path.read(client).await? {
            None => path.create(client, wanted).await.map(WriteOutcome::Stored),
            Some(stored) if !frame.maintains(&stored) => Ok(WriteOutcome::Foreign),
            Some(stored) if policy_difference(wanted, &stored).is_none() => Ok(WriteOutcome::Found(stored)),
            Some(stored) => path.replace(client, &frame.merged(stored, wanted)).await.map(WriteOutcome::Stored),
        }
    };
    let outcome = outcome.await;
    (write, outcome)
}

impl Controller for PolicyController<'_> {
    type Event = PolicyChange;

    fn observe(&mut self, change: PolicyChange) {
        let PolicyChange::Stored((resource, change)) = change else { return };
        let change = match change {
            Ok(change) => change,
            Err(error) => return self.watch_failed(&error),
        };
        match change {
            WatchChange::Listing => {}
            WatchChange::Set { name, text } => {
                let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.shift_remove("managedFields");
                }
                self.put(PolicyKey { resource, name }, object);
            }
            WatchChange::Gone(name) => self.reconciler.remove(&PolicyKey { resource, name }),
            WatchChange::Listed => {
                self.unlisted.remove(&resource);
                self.note_lists();
            }
        }
    }

    async fn step(&mut self, _: Instant) -> Result<Reconciled, StepError> {
        self.compile().await;
        let now = Instant::now();
        let registered = self.signals.registered.borrow().clone();
        let step = self.reconciler.step(&registered, now);
        let (desired, refused) = self.reconciler.sizes();
        let metrics = &self.signals.metrics;
        for (gauge, count) in [
            (&metrics.desired, desired),
            (&metrics.in_sync, step.in_sync),
            (&metrics.kinds_refused, refused),
            (&metrics.kinds_covered, self.reconciler.covered()),
        ] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        publish(&self.signals.coverage, self.reconciler.coverage(now));
        if !step.corrected.is_empty() {
            let objects = shortened(&step.corrected.iter().map(ToString::to_string).collect::<Vec<_>>());
            let count = step.corrected.len();
            tracing::warn!(objects, count, "admission policies were changed by others and are corrected");
        }
        if step.writes.is_empty() {
            let wake = step.wake.into_iter().chain(self.reconciler.next_coverage_at(now)).min();
            let next = wake.map_or(now + RESYNC, |wake| wake.min(now + RESYNC));
            let is_in_sync = step.in_sync == desired;
            return Ok(Reconciled { next, is_in_sync });
        }
        self.write(step.writes).await?;
        Ok(Reconciled::pending(Instant::now()))
    }

    /// The failure of the write was logged.
    fn failed(&mut self, _: &StepError) {}

    fn in_sync(&mut self) {
        if self.write_failure.is_over() {
            tracing::info!("the admission policies are in sync again");
        }
    }
}
