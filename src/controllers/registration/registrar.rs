//! One replica's reconciliation of the configurations: read both, compute the desired ones, write what is due.

mod publishing;

use super::configurations::{ConfigurationError, ConfigurationEvent, Configurations};
use super::desired::{desired, with_bundle};
use super::differences::{differences, differences_of, log_write, shortened};
use super::divergence::Divergence;
use super::failures::FailureLog;
use super::foreign::ForeignAuthorities;
use super::intent::{Intent, IntentSource};
use super::pace::Pace;
use super::stored::{bundle_of, other_installation, ours};
use super::wanted::{BundleSource, ConfigurationKind, EntryTemplate, NAME, Wanted};
use super::{Registering, Registration, Signals, StoredPair, Writes};
use crate::controllers::bundle::CaBundle;
use crate::controllers::handover::RegisteredKinds;
use crate::controllers::trust::{RegisteredBundle, Trust};
use crate::controllers::watch_channel::publish;
use kube::runtime::watcher;
use kube_unions_core::admission::InspectionToken;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time between two resyncs while the watch works.
pub(super) const RESYNC: Duration = Duration::from_secs(5);

/// Time between two resyncs after the watch has failed.
const RESYNC_UNWATCHED: Duration = Duration::from_secs(2);

/// Time for which a failure of the watch counts. A watch that keeps failing reports it again before that.
const UNWATCHED: Duration = Duration::from_secs(15);

/// Time for which changes are collected before a reconciliation.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// Time between two checks of readiness while the replica is unready.
const POLL: Duration = Duration::from_millis(250);

/// Result of a reconciliation, with the time of the next one.
enum Reconciled {
    /// Nothing is left to do.
    InSync(Instant),
    /// A write is still to come.
    Pending(Instant),
}

/// Reconciles the configurations for one replica.
pub(super) struct Registrar {
    registration: Registration,
    template: EntryTemplate,
    signals: Signals,
    configurations: Configurations,
    intents: IntentSource,
    /// Token for inspections if none is stored.
    fresh: InspectionToken,
    foreign: ForeignAuthorities,
    pace: Pace,
    /// Intent of the last time at which the configurations were in sync or were written.
    settled: Option<Intent>,
    /// Start of the current readiness.
    ready: Option<Instant>,
    /// While unready, the configurations are not read before this time unless a change is reported.
    idle_until: Option<Instant>,
    /// The configurations are not read before this time.
    not_before: Instant,
    failures: FailureLog,
    /// Time of the last failure of the watch.
    watch_failed: Option<Instant>,
    /// True while the Service's namespace is being deleted.
    namespace_ends: bool,
    /// The other installation that was logged last.
    other: Option<String>,
}

impl Registrar {
    pub(super) fn new(
        registration: Registration,
        signals: Signals,
        configurations: Configurations,
        declarable: watch::Receiver<bool>,
        fresh: InspectionToken,
    ) -> Self {
        let Registration { service, entries, excluded_namespaces, .. } = &registration;
        Self {
            template: EntryTemplate::new(service.clone(), entries.clone(), excluded_namespaces),
            intents: IntentSource::new(&registration, &signals, configurations.clone(), declarable),
            registration,
            signals,
            configurations,
            fresh,
            foreign: ForeignAuthorities::default(),
            pace: Pace::default(),
            settled: None,
            ready: None,
            idle_until: None,
            not_before: Instant::now(),
            failures: FailureLog::default(),
            watch_failed: None,
            namespace_ends: false,
            other: None,
        }
    }

    /// Notes an event of the watches.
    pub(super) fn heard(&mut self, event: watcher::Result<ConfigurationEvent>) {
        match event {
            Ok(ConfigurationEvent::Changed) => self.watch_failed = None,
            Ok(ConfigurationEvent::NamespaceEnds) => {
                if !std::mem::replace(&mut self.namespace_ends, true) {
                    let namespace = &*self.registration.service.namespace;
                    tracing::warn!(namespace, "the Service's namespace is being deleted: removing all entries");
                }
            }
            Err(error) => {
                self.watch_failed = Some(Instant::now());
                self.failures.watch_failed(&error);
            }
        }
    }

    /// Returns when to reconcile after a change. `next` is the time that was planned.
    pub(super) fn soon(&mut self, next: Instant) -> Instant {
        self.idle_until = None;
        next.min(Instant::now() + DEBOUNCE).max(self.not_before)
    }

    /// Reconciles the configurations. Returns when to do so again.
    pub(super) async fn reconcile(&mut self) -> Instant {
        let now = Instant::now();
        if (self.signals.ready)() {
            self.ready.get_or_insert(now);
        } else {
            self.ready = None;
            // A replica may be unready for long. It polls its readiness and does not read the configurations each time.
            if self.idle_until.is_some_and(|until| now < until) {
                return now + POLL;
            }
        }
        let next = match self.step(now).await {
            Ok(reconciled) => {
                let next = match reconciled {
                    Reconciled::InSync(next) => {
                        self.failures.recovered();
                        next
                    }
                    Reconciled::Pending(next) => next,
                };
                if self.ready.is_some() {
                    next
                } else {
                    self.idle_until = Some(next);
                    next.min(now + POLL)
                }
            }
            // Another replica was faster: read again.
            Err(error) if error.is_conflict() => now + DEBOUNCE,
            Err(error) => {
                self.signals.metrics.registered.set(0);
                // Changes do not shorten the wait after a failure.
                self.not_before = Instant::now() + self.failures.failed(&error);
                return self.not_before;
            }
        };
        self.not_before = Instant::now() + DEBOUNCE;
        next.max(self.not_before)
    }

    async fn step(&mut self, now: Instant) -> Result<Reconciled, ConfigurationError> {
        let [mutating, validating] = ConfigurationKind::BOTH;
        let mut stored: StoredPair = [
            (mutating, self.configurations.read(mutating).await?),
            (validating, self.configurations.read(validating).await?),
        ];
        if self.is_of_another_installation(&stored) {
            return Ok(Reconciled::Pending(self.next_resync(now)));
        }
        self.report(&stored);
        // Without an intent of its own, this replica leaves the configurations to replicas that have one.
        let Some(intent) = self.intents.current(self.namespace_ends).await? else {
            return Ok(Reconciled::InSync(self.next_resync(now)));
        };
        if let Trust::Agreed(pem) | Trust::Local(pem) = &intent.trust
            && CaBundle::from_pem(&**pem).is_empty()
        {
            // With an empty bundle the API server would trust the CAs of its own machine.
            return Err(ConfigurationError::NoCa);
        }
        if self.registration.registering == Registering::Bundles {
            return self.write_bundles(&mut stored, intent, now).await;
        }
        let wanted = self.wanted(&intent, &stored, now);
        let writes: Writes = [0, 1].map(|index: usize| {
            let (stored, wanted) = (stored.get(index)?, wanted.get(index)?);
            desired(stored.1.as_ref(), wanted)
        });
        if writes.iter().all(Option::is_none) {
            self.signals.metrics.registered.set(1);
            self.confirm(&intent);
            return Ok(Reconciled::InSync(self.in_sync(intent, now)));
        }
        self.signals.metrics.registered.set(0);
        // The removal of all entries does not wait for readiness: a namespace that is being deleted may be gone by then.
        if !self.namespace_ends {
            let Some(ready) = self.ready else {
                // The API server may have to trust the agreed CA before any replica can be ready.
                return self.write_bundles(&mut stored, intent, now).await;
            };
            let delayed = ready + self.registration.delay;
            if our_entries(&stored).next().is_none() && now < delayed {
                return Ok(Reconciled::Pending(delayed));
            }
        }
        let divergence = self.divergence(&intent, &stored, &writes);
        if divergence == Divergence::Drift {
            publish(&self.signals.registered, RegisteredKinds::default());
        }
        let due = self.pace.due(divergence, now);
        if due > now {
            return Ok(Reconciled::Pending(due));
        }
        let differences = differences_of(&stored, &writes);
        let written = self.write(&mut stored, writes, Some(&wanted)).await;
        self.report(&stored);
        if matches!(written, Ok(()) | Err(ConfigurationError::NotKept(..))) {
            self.pace.wrote(divergence, now);
            if divergence != Divergence::Intent {
                self.signals.metrics.corrections.inc();
            }
            self.settled = Some(intent.clone());
        }
        written?;
        self.confirm(&intent);
        log_write(divergence, &intent.rules, &differences);
        self.signals.metrics.registered.set(1);
        Ok(Reconciled::InSync(self.next_resync(now)))
    }

    /// Writes the agreed bundle into existing entries, and nothing else.
    async fn write_bundles(
        &mut self,
        stored: &mut StoredPair,
        intent: Intent,
        now: Instant,
    ) -> Result<Reconciled, ConfigurationError> {
        let Trust::Agreed(pem) = &intent.trust else { return Ok(Reconciled::Pending(self.next_resync(now))) };
        let writes: Writes = stored.each_ref().map(|(_, stored)| with_bundle(stored.as_ref()?, pem));
        let bundles_only = self.registration.registering == Registering::Bundles;
        let is_in_sync = writes.iter().all(Option::is_none);
        if bundles_only {
            self.signals.metrics.registered.set(i64::from(is_in_sync));
        }
        if is_in_sync {
            return Ok(if bundles_only {
                Reconciled::InSync(self.in_sync(intent, now))
            } else {
                Reconciled::Pending(self.next_resync(now))
            });
        }
        let divergence = self.divergence(&intent, stored, &writes);
        let due = self.pace.due(divergence, now);
        if due > now {
            return Ok(Reconciled::Pending(due));
        }
        let written = self.write(stored, writes, None).await;
        self.report(stored);
        written?;
        self.pace.wrote(divergence, now);
        tracing::info!("wrote the agreed CA bundle into the webhook configurations");
        if bundles_only {
            self.settled = Some(intent);
            self.signals.metrics.registered.set(1);
        }
        Ok(Reconciled::InSync(self.next_resync(now)))
    }

    /// Writes both configurations. A failure of one does not prevent the write of the other.
    async fn write(
        &mut self,
        stored: &mut StoredPair,
        writes: Writes,
        wanted: Option<&[Wanted; 2]>,
    ) -> Result<(), ConfigurationError> {
        let mut outcome = Ok(());
        for (index, ((phase, stored), write)) in stored.iter_mut().zip(writes).enumerate() {
            let Some(object) = write else { continue };
            let wanted = wanted.and_then(|wanted| wanted.get(index));
            match self.write_one(*phase, stored.as_ref(), &object, wanted).await {
                Ok(object) => *stored = Some(object),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    async fn write_one(
        &mut self,
        phase: ConfigurationKind,
        stored: Option<&Value>,
        object: &Value,
        wanted: Option<&Wanted>,
    ) -> Result<Value, ConfigurationError> {
        let written = match (stored, self.intents.owner()) {
            (Some(_), _) => self.configurations.replace(phase, object).await,
            // Without its owner the configuration would outlive an uninstallation.
            (None, Some(owner)) if wanted.is_some_and(|wanted| wanted.owner.is_none()) => {
                return Err(ConfigurationError::NoOwner(phase, owner.to_owned()));
            }
            (None, _) => self.configurations.create(phase, object).await,
        };
        let outcome = match &written {
            Ok(_) => "applied",
            Err(error) if error.is_conflict() => return written,
            Err(_) => "failed",
        };
        self.signals.metrics.writes.get_or_create(&[("outcome", outcome)]).inc();
        if written.as_ref().is_err_and(ConfigurationError::is_owner_refused) {
            self.intents.give_up_owner();
        }
        let written = written?;
        match wanted.and_then(|wanted| desired(Some(&written), wanted)) {
            Some(still) => Err(ConfigurationError::NotKept(phase, shortened(&differences(&written, &still)))),
            None => Ok(written),
        }
    }

    /// Returns true if another installation keeps the configurations. They are left to it.
    fn is_of_another_installation(&mut self, stored: &StoredPair) -> bool {
        let service = &self.registration.service;
        let other = stored.iter().find_map(|(_, stored)| other_installation(stored.as_ref()?, service));
        self.signals.metrics.other_installation.set(i64::from(other.is_some()));
        let Some(other) = other else {
            if self.other.take().is_some() {
                tracing::info!("no other installation keeps the webhook configurations any more");
            }
            return false;
        };
        self.signals.metrics.registered.set(0);
        publish(&self.signals.registered, RegisteredKinds::default());
        // The API server calls the other installation, so no caller has to trust this one.
        self.publish(RegisteredBundle::Nothing, None);
        if self.other.as_ref() != Some(&other) {
            tracing::error!(
                other,
                "another installation keeps the webhook configurations `{NAME}`, and a cluster can have only one: nothing is \
                 registered here; uninstall one of the two, or, if the other is gone, run `kubectl delete \
                 mutatingwebhookconfiguration,validatingwebhookconfiguration {NAME}`"
            );
            self.other = Some(other);
        }
        true
    }

    /// Returns the wanted configurations.
    fn wanted(&mut self, intent: &Intent, stored: &StoredPair, now: Instant) -> [Wanted; 2] {
        let ca = match &intent.trust {
            Trust::Agreed(pem) => BundleSource::Ours(pem.to_string()),
            Trust::Local(pem) => {
                let found = our_entries(stored).map(bundle_of).fold(CaBundle::default(), CaBundle::union);
                BundleSource::Ours(
                    self.foreign.beside(&CaBundle::from_pem(&**pem), &found, now, self.signals.clock.now()).to_pem(),
                )
            }
            Trust::InjectedFrom(certificate) => BundleSource::Injected(certificate.to_string()),
        };
        let mut stored = stored.iter();
        ConfigurationKind::BOTH.map(|phase| {
            let (ca, owner, fresh) = (ca.clone(), intent.owner.clone(), self.fresh.clone());
            let mut wanted = self.template.wanted(phase, &intent.rules, intent.inspections, ca, owner, fresh);
            let stored = stored.next().and_then(|(_, stored)| stored.as_ref());
            if intent.keeps_rules {
                wanted.keep_rules(stored);
            }
            wanted
        })
    }

    fn divergence(&self, intent: &Intent, stored: &StoredPair, writes: &Writes) -> Divergence {
        Divergence::of(self.settled.as_ref() != Some(intent), &intent.trust, stored, writes)
    }

    fn in_sync(&mut self, intent: Intent, now: Instant) -> Instant {
        self.pace.in_sync();
        self.settled = Some(intent);
        self.next_resync(now)
    }

    fn next_resync(&self, now: Instant) -> Instant {
        let unwatched = self.watch_failed.is_some_and(|since| since.elapsed() < UNWATCHED);
        now + if unwatched { RESYNC_UNWATCHED } else { RESYNC }
    }
}

/// Returns the entries of both configurations that have one of our names.
fn our_entries(stored: &StoredPair) -> impl Iterator<Item = &Value> {
    stored.iter().filter_map(|(_, stored)| stored.as_ref()).flat_map(ours).map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests;
