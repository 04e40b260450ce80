//! The loop of one replica: watches the policies, compiles catalogs, and writes what [`ledger`](super::ledger) says.

use super::api::{PolicyEvent, PolicyKey, PolicyResource, ServedPolicies};
use super::desired::CatalogCompiler;
use super::ledger::{PolicyReconciler, PolicyWrite};
use super::log::PolicyLog;
use super::stored::{PolicyFrame, StoredPolicy};
use super::write::{WriteOutcome, perform};
use super::{PolicyEnforcement, PolicySignals};
use crate::api::code;
use crate::api::doubling;
use crate::api::reason;
use crate::api::{self, RequestError};
use crate::controllers::object::Owner;
use crate::controllers::watch_channel::{changed, publish};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use hyper::Method;
use kube::Client;
use kube::core::DynamicObject;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, ExponentialBackoff};
use kube_unions_policies::policy_difference;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

/// Writes in flight.
const CONCURRENT_WRITES: usize = 4;

/// Time for which changes are collected before a step.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Time between two steps if nothing happens.
const RESYNC: Duration = Duration::from_secs(30);

/// Time after which the API server's version and the owner are read again.
const REREAD: Duration = Duration::from_mins(1);

/// First and longest wait while the API server does not answer.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The reason why a write failed that succeeded.
const NOT_KEPT: &str = "it was stored with changes; find the admission webhook or policy that changes it";

/// Keeps the policies for one replica.
pub(super) struct PolicyController {
    client: Client,
    enforcement: PolicyEnforcement,
    signals: PolicySignals,
    backoff: ExponentialBackoff,
    log: PolicyLog,
}

/// The work with an API server whose version and resources do not change.
struct Round {
    served: ServedPolicies,
    frame: PolicyFrame,
    reconciler: PolicyReconciler,
    /// `None` while it compiles, and after a panic.
    compiler: Option<CatalogCompiler>,
    lists: BTreeMap<PolicyResource, ListedPolicies>,
}

/// The list of one resource.
#[derive(Default)]
struct ListedPolicies {
    /// The names that the list in progress has brought.
    names: Option<HashSet<Box<str>>>,
    is_complete: bool,
}

impl PolicyController {
    pub(super) fn new(client: Client, enforcement: PolicyEnforcement, signals: PolicySignals) -> Self {
        let backoff = doubling(FIRST_WAIT, LONGEST_WAIT);
        Self { client, enforcement, signals, backoff, log: PolicyLog::default() }
    }

    /// Keeps the policies until the sender of catalogs is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let (served, frame) = match self.read().await {
                Ok(known) => known,
                Err(refused) => {
                    self.log.failed(&refused.to_string());
                    tokio::time::sleep(self.backoff.next().unwrap_or(LONGEST_WAIT)).await;
                    continue;
                }
            };
            self.backoff.reset();
            tracing::info!(
                version = %served.version,
                mutating = served.mutating.unwrap_or("none"),
                validating = served.validating.unwrap_or("none"),
                "keeping admission policies"
            );
            let duty = self.enforcement.duty;
            let mut round = Round {
                served,
                reconciler: PolicyReconciler::new(duty, self.enforcement.handover),
                compiler: Some(CatalogCompiler::new(self.enforcement.clone(), served, frame.clone())),
                frame,
                lists: BTreeMap::new(),
            };
            publish(&self.signals.coverage, duty.first_coverage());
            if self.follow(&mut round).await.is_none() {
                return;
            }
        }
    }

    /// Reads what the API server offers, and the owner.
    async fn read(&mut self) -> Result<(ServedPolicies, PolicyFrame), RequestError> {
        let served = ServedPolicies::read(&self.client).await?;
        let owner = self.read_owner().await?;
        Ok((served, PolicyFrame { installation: self.enforcement.installation.clone(), owner }))
    }

    /// Returns the owner with its current UID; `None` if there is none to set.
    async fn read_owner(&mut self) -> Result<Option<Owner>, RequestError> {
        let Some(name) = self.enforcement.owner.clone().filter(|_| self.enforcement.duty.is_enforcing()) else {
            return Ok(None);
        };
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        let failure = match api::send(&self.client, Method::GET, &path).await {
            Ok(role) => {
                let uid = role.pointer("/metadata/uid").and_then(Value::as_str);
                return Ok(uid.map(|uid| Owner { name, uid: uid.to_owned() }));
            }
            Err(refused) if refused.is_not_found() => "it does not exist".to_owned(),
            Err(refused) if refused.is_forbidden() => refused.to_string(),
            Err(refused) => return Err(refused),
        };
        self.log.owner_unreadable(&name, failure);
        Ok(None)
    }

    /// Keeps the policies until the API server offers something else. Returns `None` when the sender of catalogs is dropped.
    async fn follow(&mut self, round: &mut Round) -> Option<()> {
        let mut events = round.served.watch(&self.client);
        let (mut catalogs, mut registered) = (self.signals.catalogs.clone(), self.signals.registered.clone());
        catalogs.mark_changed();
        let (mut next, mut reread) = (Instant::now(), Instant::now() + REREAD);
        self.note_lists(round);
        loop {
            self.hear_all(round, &mut events);
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => next = self.reconcile(round).await,
                Some(event) = events.next() => {
                    self.hear(round, event);
                    next = soon(next);
                }
                outcome = catalogs.changed() => {
                    outcome.ok()?;
                    self.compile(round).await;
                    next = soon(next);
                }
                () = changed(&mut registered) => next = soon(next),
                () = tokio::time::sleep_until(reread.into()) => {
                    reread = Instant::now() + REREAD;
                    if self.read().await.is_ok_and(|(served, frame)| served != round.served || frame != round.frame) {
                        return Some(());
                    }
                }
            }
        }
    }

    /// Compiles the catalog in force.
    async fn compile(&mut self, round: &mut Round) {
        let Some(catalog) = self.signals.catalogs.borrow().clone() else { return };
        let fresh = || CatalogCompiler::new(self.enforcement.clone(), round.served, round.frame.clone());
        let mut compiler = round.compiler.take().unwrap_or_else(fresh);
        let work = spawn_blocking(move || {
            let desired = compiler.desired(&catalog);
            (compiler, desired)
        });
        // A panic is logged where it happens.
        let Ok((compiler, desired)) = work.await else { return };
        round.compiler = Some(compiler);
        self.log.refused_kinds(&desired, self.enforcement.duty);
        round.reconciler.want(desired);
    }

    /// Handles every event that has arrived.
    fn hear_all(&mut self, round: &mut Round, events: &mut BoxStream<'static, PolicyEvent>) {
        while let Some(Some(event)) = events.next().now_or_never() {
            self.hear(round, event);
        }
    }

    fn hear(&mut self, round: &mut Round, (resource, event): PolicyEvent) {
        let list = round.lists.entry(resource).or_default();
        let key = |object: &DynamicObject| {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            PolicyKey { resource, name: name.into() }
        };
        match event {
            Ok(Event::Init) => list.names = Some(HashSet::new()),
            Ok(Event::InitApply(object)) => {
                let key = key(&object);
                if let Some(names) = &mut list.names {
                    names.insert(key.name.clone());
                }
                round.put(key, object);
            }
            Ok(Event::InitDone) => {
                list.is_complete = true;
                if let Some(names) = list.names.take() {
                    round.reconciler.retain(|key| key.resource != resource || names.contains(&key.name));
                }
                self.note_lists(round);
            }
            Ok(Event::Apply(object)) => round.put(key(&object), object),
            Ok(Event::Delete(object)) => round.reconciler.remove(&key(&object)),
            Err(error) => self.watch_failed(round, &error),
        }
    }

    fn note_lists(&mut self, round: &mut Round) {
        let is_complete = |resource| round.lists.get(&resource).is_some_and(|list| list.is_complete);
        let mut resources = PolicyResource::ALL.into_iter();
        if resources.all(|resource| round.served.version_of(resource).is_none() || is_complete(resource)) {
            round.reconciler.listed(Instant::now());
            self.log.listable();
        }
    }

    fn watch_failed(&mut self, round: &mut Round, error: &watcher::Error) {
        if matches!(code(error), Some(401 | 403)) {
            round.reconciler.list_refused(Instant::now());
            self.log.unlistable(&reason(error), self.enforcement.duty);
        }
    }

    /// Writes what is due. Returns the time of the next step.
    async fn reconcile(&mut self, round: &mut Round) -> Instant {
        let registered = self.signals.registered.borrow().clone();
        let step = round.reconciler.step(&registered, Instant::now());
        let (desired, refused) = round.reconciler.sizes();
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.signals.metrics.desired.set(gauge(desired));
        self.signals.metrics.in_sync.set(gauge(step.in_sync));
        self.signals.metrics.kinds_refused.set(gauge(refused));
        self.signals.metrics.kinds_covered.set(gauge(round.reconciler.covered()));
        let coverage = round.reconciler.coverage(Instant::now());
        publish(&self.signals.coverage, coverage);
        PolicyLog::corrected(&step.corrected);
        let now = Instant::now();
        let wake = step.wake.into_iter().chain(round.reconciler.next_coverage_at(now)).min();
        let wake = wake.map_or(now + RESYNC, |wake| wake.min(now + RESYNC)).max(now + DEBOUNCE);
        if step.writes.is_empty() {
            self.log.recovered(step.in_sync == desired);
            return wake;
        }
        let is_down = AtomicBool::new(false);
        let (client, served, frame) = (&self.client, round.served, round.frame.clone());
        let writes = step.writes.into_iter().map(|write| {
            let (is_down, frame) = (&is_down, &frame);
            async move {
                if is_down.load(Ordering::Relaxed) {
                    return (write, WriteOutcome::Skipped);
                }
                let outcome = perform(client, served, frame, &write).await;
                if matches!(outcome, WriteOutcome::Unanswered(_)) {
                    is_down.store(true, Ordering::Relaxed);
                }
                (write, outcome)
            }
        });
        let outcomes: Vec<_> = futures::stream::iter(writes).buffer_unordered(CONCURRENT_WRITES).collect().await;
        self.note(round, outcomes);
        if is_down.into_inner() {
            return Instant::now() + self.backoff.next().unwrap_or(LONGEST_WAIT);
        }
        self.backoff.reset();
        Instant::now()
    }

    fn note(&mut self, round: &mut Round, outcomes: Vec<(PolicyWrite, WriteOutcome)>) {
        let now = Instant::now();
        let (mut written, mut deleted, mut failed, mut first) = (0_u64, 0_u64, 0_u64, None);
        for (write, outcome) in outcomes {
            let key = write.key().clone();
            match outcome {
                WriteOutcome::Stored(object) => {
                    let wanted = round.reconciler.wanted(&key);
                    let is_kept = wanted.is_some_and(|wanted| policy_difference(wanted, &object).is_none());
                    round.put_value(key.clone(), object);
                    if is_kept {
                        written += 1;
                        round.reconciler.wrote(&key);
                        self.log.written(&key);
                    } else {
                        failed += 1;
                        first.get_or_insert((key.clone(), NOT_KEPT.to_owned()));
                        round.reconciler.failed(key, true, now);
                    }
                }
                WriteOutcome::Found(object) => round.put_value(key, object),
                WriteOutcome::Gone => {
                    deleted += u64::from(matches!(write, PolicyWrite::Delete(..)));
                    round.reconciler.remove(&key);
                    round.reconciler.wrote(&key);
                }
                WriteOutcome::Raced => round.reconciler.failed(key, false, now),
                WriteOutcome::Foreign => {
                    failed += 1;
                    self.log.foreign(&key);
                    round.reconciler.failed(key, true, now);
                }
                WriteOutcome::Refused(reason) => {
                    failed += 1;
                    first.get_or_insert((key.clone(), reason));
                    round.reconciler.failed(key, true, now);
                }
                WriteOutcome::Unanswered(reason) => {
                    failed += 1;
                    first.get_or_insert((key, reason));
                }
                WriteOutcome::Skipped => {}
            }
        }
        let metrics = &self.signals.metrics;
        metrics.writes.get_or_create(&[("outcome", "applied")]).inc_by(written);
        metrics.writes.get_or_create(&[("outcome", "deleted")]).inc_by(deleted);
        metrics.writes.get_or_create(&[("outcome", "failed")]).inc_by(failed);
        if written + deleted > 0 {
            tracing::info!(written, deleted, "the admission policies were written");
        }
        if let Some((key, reason)) = first {
            self.log.write_failed(&key, &reason, failed);
        }
    }
}

impl Round {
    fn put(&mut self, key: PolicyKey, mut object: DynamicObject) {
        object.metadata.managed_fields = None;
        match serde_json::to_value(&object) {
            Ok(object) => self.put_value(key, object),
            Err(_) => self.reconciler.remove(&key),
        }
    }

    fn put_value(&mut self, key: PolicyKey, object: Value) {
        match StoredPolicy::of_this_installation(object, &self.frame) {
            Some(stored) => self.reconciler.put(key, stored),
            None => self.reconciler.remove(&key),
        }
    }
}

fn soon(next: Instant) -> Instant {
    next.min(Instant::now() + DEBOUNCE)
}
