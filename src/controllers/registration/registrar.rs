//! One replica's reconciliation of the configurations: read both, compute the desired ones, write what is due.

use super::desired::{desired, with_bundle};
use super::differences::{differences, differences_of, divergence, log_write};
use super::error::{ConfigurationError, request};
use super::foreign::ForeignAuthorities;
use super::intent::{Intent, KnownInputs};
use super::settings::{Registering, Registration, Signals};
use super::stored::{
    ConfigurationKind, ConfigurationPair, NAME, bundle_of, inspection_token, other_installation, our_entries,
};
use super::wanted::{BundleSource, EntryTemplate, Wanted};
use crate::api::{code, reason};
use crate::controllers::bundle::CaBundle;
use crate::controllers::handover::RegisteredKinds;
use crate::controllers::object::shortened;
use crate::controllers::pace::{Divergence, Pace};
use crate::controllers::reconciler::{Controller, LogOnce, Reconciled, StepError};
use crate::controllers::trust::{RegisteredBundle, Trust};
use crate::controllers::watch_channel::publish;
use kube::Client;
use kube::runtime::watcher;
use kube_unions_core::admission::InspectionToken;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time between two resyncs while the watch works.
pub(in crate::controllers) const RESYNC: Duration = Duration::from_secs(5);

/// Time between two resyncs after the watch has failed.
const RESYNC_UNWATCHED: Duration = Duration::from_secs(2);

/// Time for which a failure of the watch counts. A watch that keeps failing reports it again before that.
const UNWATCHED: Duration = Duration::from_secs(15);

/// Time between two checks of readiness while the replica is unready.
const POLL: Duration = Duration::from_millis(250);

/// A reason to reconcile.
#[derive(Debug)]
pub(super) enum RegistrationEvent {
    /// A configuration or an input has changed.
    Changed,
    /// The watch of a configuration works, or not.
    Watched(watcher::Result<()>),
    /// The Service's namespace is being deleted.
    NamespaceEnds,
}

/// Reconciles the configurations for one replica.
pub(super) struct Registrar {
    client: Client,
    registration: Registration,
    signals: Signals,
    /// True while the cluster has the CRD of `UnionDeclaration`.
    declarable: watch::Receiver<bool>,
    known: KnownInputs,
    /// True while the Service's namespace is being deleted.
    namespace_ends: bool,
    template: EntryTemplate,
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
    failure: LogOnce,
    /// Time of the last failure of the watch.
    watch_failed: Option<Instant>,
    /// Reasons for which the watch is forbidden. Each is logged once.
    forbidden: BTreeSet<String>,
    /// A reason for which the watch is forbidden, to be logged when nothing worse fails.
    pending: Option<String>,
    /// The other installation that was logged last.
    other: LogOnce,
}

impl Registrar {
    pub(super) fn new(
        client: Client,
        registration: Registration,
        signals: Signals,
        declarable: watch::Receiver<bool>,
        fresh: InspectionToken,
    ) -> Self {
        let template = registration.template();
        Self {
            client,
            registration,
            signals,
            declarable,
            known: KnownInputs::default(),
            namespace_ends: false,
            template,
            fresh,
            foreign: ForeignAuthorities::default(),
            pace: Pace::default(),
            settled: None,
            ready: None,
            idle_until: None,
            failure: LogOnce::default(),
            watch_failed: None,
            forbidden: BTreeSet::new(),
            pending: None,
            other: LogOnce::default(),
        }
    }

    async fn reconcile(&mut self, now: Instant) -> Result<Reconciled, ConfigurationError> {
        let resync = now + if self.is_unwatched() { RESYNC_UNWATCHED } else { RESYNC };
        let mut stored: ConfigurationPair = [None, None];
        for (kind, stored) in ConfigurationKind::BOTH.into_iter().zip(&mut stored) {
            let read = kind.path().read(&self.client).await;
            *stored = read.map_err(|error| request(format!("read {}/{NAME}", kind.kind()), error))?;
        }
        if self.is_of_another_installation(&stored) {
            return Ok(Reconciled::pending(resync));
        }
        self.report(&stored);
        // Without an intent of its own, this replica leaves the configurations to replicas that have one.
        let Self { client, registration, signals, known, .. } = self;
        let declarable = *self.declarable.borrow();
        let intent = known.intent(client, registration, signals, declarable, self.namespace_ends).await?;
        let Some(intent) = intent else { return Ok(Reconciled::in_sync(resync)) };
        if let Trust::Agreed(pem) | Trust::Local(pem) = &intent.trust
            && CaBundle::from_pem(&**pem).is_empty()
        {
            // With an empty bundle the API server would trust the CAs of its own machine.
            return Err(ConfigurationError::NoCa);
        }
        let is_whole = self.registration.registering == Registering::Everything;
        let wanted = is_whole.then(|| self.wanted(&intent, &stored, now));
        let writes = wanted.as_ref().map_or_else(|| bundles(&stored, &intent.trust), |wanted| all(&stored, wanted));
        let is_in_sync = writes == [None, None];
        self.signals.metrics.registered.set(is_in_sync.into());
        if is_in_sync {
            self.pace.in_sync();
            self.settle(intent);
            return Ok(Reconciled::in_sync(resync));
        }
        // The removal of all entries does not wait for readiness: a namespace that is being deleted may be gone by then.
        if is_whole && !self.namespace_ends {
            let Some(ready) = self.ready else {
                // The API server may have to trust the agreed CA before any replica can be ready.
                let writes = bundles(&stored, &intent.trust);
                return self.write_due(&mut stored, writes, None, intent, now, resync).await;
            };
            let delayed = ready + self.registration.delay;
            if our_entries(&stored).next().is_none() && now < delayed {
                return Ok(Reconciled::pending(delayed));
            }
        }
        self.write_due(&mut stored, writes, wanted.as_ref(), intent, now, resync).await
    }

    /// Writes both configurations when that is due. `wanted`: `None` if only bundles are written.
    async fn write_due(
        &mut self,
        stored: &mut ConfigurationPair,
        writes: ConfigurationPair,
        wanted: Option<&[Wanted; 2]>,
        intent: Intent,
        now: Instant,
        resync: Instant,
    ) -> Result<Reconciled, ConfigurationError> {
        if writes == [None, None] {
            return Ok(Reconciled::pending(resync));
        }
        let divergence = divergence(self.settled.as_ref() != Some(&intent), &intent.trust, stored, &writes);
        if divergence == Divergence::Drift && wanted.is_some() {
            publish(&self.signals.registered, RegisteredKinds::default());
        }
        let due = self.pace.due(divergence, now);
        if due > now {
            return Ok(Reconciled::pending(due));
        }
        let differences = differences_of(stored, &writes);
        let mut outcome = Ok(());
        for (index, (kind, write)) in ConfigurationKind::BOTH.into_iter().zip(writes).enumerate() {
            let (Some(object), Some(stored)) = (write, stored.get_mut(index)) else { continue };
            // A failure of one does not prevent the write of the other.
            match self.write(kind, stored.is_some(), &object, wanted.and_then(|wanted| wanted.get(index))).await {
                Ok(object) => *stored = Some(object),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        self.report(stored);
        // Bundles alone are not the intent of a replica that registers everything.
        let is_intent = wanted.is_some() || self.registration.registering == Registering::Bundles;
        if matches!(outcome, Ok(()) | Err(ConfigurationError::NotKept(..))) {
            self.pace.wrote(divergence, now);
            if wanted.is_some() && divergence != Divergence::Intent {
                self.signals.metrics.corrections.inc();
            }
            if is_intent {
                self.settled = Some(intent.clone());
            }
        }
        outcome?;
        if wanted.is_some() {
            log_write(divergence, &intent.rules, &differences);
        } else {
            tracing::info!("wrote the agreed CA bundle into the webhook configurations");
        }
        if is_intent {
            self.signals.metrics.registered.set(1);
            self.settle(intent);
        }
        Ok(Reconciled::in_sync(resync))
    }

    /// Writes a configuration, and returns it as it is stored.
    async fn write(
        &mut self,
        kind: ConfigurationKind,
        exists: bool,
        object: &Value,
        wanted: Option<&Wanted>,
    ) -> Result<Value, ConfigurationError> {
        let written = match &self.registration.owner {
            _ if exists => kind.path().replace(&self.client, object).await,
            // Without its owner the configuration would outlive an uninstallation.
            Some(owner) if wanted.is_some_and(|wanted| wanted.owner.is_none()) => {
                return Err(ConfigurationError::NoOwner(kind, owner.clone()));
            }
            _ => kind.path().apply(&self.client, object).await,
        };
        let doing = || format!("write {}/{NAME}", kind.kind());
        let written = written.map_err(|source| ConfigurationError::Request { doing: doing(), writes: true, source });
        if !written.as_ref().is_err_and(ConfigurationError::is_conflict) {
            let outcome = if written.is_ok() { "applied" } else { "failed" };
            self.signals.metrics.writes.get_or_create(&[("outcome", outcome)]).inc();
        }
        if written.as_ref().is_err_and(ConfigurationError::is_owner_refused) && self.registration.owner.take().is_some()
        {
            tracing::warn!(
                "the API server permits an owner only to users who may delete the object, so the webhook configurations get \
                 none; grant `delete` of both by name, or delete them yourself after an uninstallation"
            );
        }
        let written = written?;
        match wanted.and_then(|wanted| desired(Some(&written), wanted)) {
            Some(still) => Err(ConfigurationError::NotKept(kind, shortened(&differences(&written, &still)))),
            None => Ok(written),
        }
    }

    /// Returns true if another installation keeps the configurations. They are left to it.
    fn is_of_another_installation(&mut self, stored: &ConfigurationPair) -> bool {
        let service = &self.registration.service;
        let other = stored.iter().flatten().find_map(|stored| other_installation(stored, service));
        self.signals.metrics.other_installation.set(other.is_some().into());
        let Some(other) = other else {
            if self.other.is_over() {
                tracing::info!("no other installation keeps the webhook configurations any more");
            }
            return false;
        };
        self.signals.metrics.registered.set(0);
        publish(&self.signals.registered, RegisteredKinds::default());
        // The API server calls the other installation, so no caller has to trust this one.
        publish(&self.signals.held, RegisteredBundle::Nothing);
        publish(&self.signals.inspection, None);
        if self.other.is_new(&other) {
            tracing::error!(
                other,
                "another installation keeps the webhook configurations `{NAME}`, and a cluster can have only one: nothing is \
                 registered here; uninstall one of the two, or, if the other is gone, run `kubectl delete \
                 mutatingwebhookconfiguration,validatingwebhookconfiguration {NAME}`"
            );
        }
        true
    }

    /// Returns the wanted configurations.
    fn wanted(&mut self, intent: &Intent, stored: &ConfigurationPair, now: Instant) -> [Wanted; 2] {
        let ca = match &intent.trust {
            Trust::Agreed(pem) => BundleSource::Ours(pem.to_string()),
            Trust::Local(pem) => {
                let found = our_entries(stored).map(bundle_of).fold(CaBundle::default(), CaBundle::union);
                let ours = CaBundle::from_pem(&**pem);
                BundleSource::Ours(self.foreign.beside(&ours, &found, now, self.signals.clock.now()).to_pem())
            }
            Trust::InjectedFrom(certificate) => BundleSource::Injected(certificate.to_string()),
        };
        let mut stored = stored.iter();
        ConfigurationKind::BOTH.map(|kind| {
            let (ca, owner, fresh) = (ca.clone(), intent.owner.clone(), self.fresh.clone());
            let mut wanted = self.template.wanted(kind, &intent.rules, intent.inspections, ca, owner, fresh);
            let stored = stored.next().and_then(Option::as_ref);
            if intent.keeps_rules {
                wanted.keep_rules(stored);
            }
            wanted
        })
    }

    /// Notes that the configurations are as this replica wants them, and publishes the kinds that are registered.
    fn settle(&mut self, intent: Intent) {
        if self.registration.registering == Registering::Everything && !intent.keeps_rules {
            let (now, before) = (Instant::now(), self.signals.registered.borrow().clone());
            let since = |kind| before.get(kind).copied().unwrap_or(now);
            let kinds = intent.rules.kinds.iter().map(|kind| (kind.clone(), since(kind))).collect();
            publish(&self.signals.registered, Arc::new(kinds));
        }
        self.settled = Some(intent);
    }

    /// Publishes the CAs and the token that the configurations hold.
    fn report(&self, stored: &ConfigurationPair) {
        let held = our_entries(stored).map(bundle_of).reduce(|all, one| all.intersection(&one));
        publish(&self.signals.held, held.map_or(RegisteredBundle::Nothing, RegisteredBundle::Bundle));
        publish(&self.signals.inspection, stored.iter().flatten().find_map(inspection_token));
    }

    fn is_unwatched(&self) -> bool {
        self.watch_failed.is_some_and(|since| since.elapsed() < UNWATCHED)
    }
}

impl Controller for Registrar {
    type Event = RegistrationEvent;
    type Error = ConfigurationError;

    fn heard(&mut self, event: RegistrationEvent) {
        self.idle_until = None;
        match event {
            RegistrationEvent::Changed => {}
            RegistrationEvent::Watched(Ok(())) => self.watch_failed = None,
            RegistrationEvent::Watched(Err(error)) => {
                self.watch_failed = Some(Instant::now());
                let reason = reason(&error);
                if code(&error) == Some(403) && self.forbidden.insert(reason.clone()) {
                    self.pending = Some(reason);
                }
            }
            RegistrationEvent::NamespaceEnds => {
                if !std::mem::replace(&mut self.namespace_ends, true) {
                    let namespace = &*self.registration.service.namespace;
                    tracing::warn!(namespace, "the Service's namespace is being deleted: removing all entries");
                }
            }
        }
    }

    async fn step(&mut self, now: Instant) -> Result<Reconciled, ConfigurationError> {
        if (self.signals.ready)() {
            self.ready.get_or_insert(now);
            return self.reconcile(now).await;
        }
        self.ready = None;
        // A replica may be unready for long. It polls its readiness and does not read the configurations each time.
        if self.idle_until.is_some_and(|until| now < until) {
            return Ok(Reconciled::pending(now + POLL));
        }
        let step = self.reconcile(now).await?;
        self.idle_until = Some(step.next);
        Ok(Reconciled { next: step.next.min(now + POLL), ..step })
    }

    fn failed(&mut self, error: &ConfigurationError) {
        self.signals.metrics.registered.set(0);
        let reason = reason(error);
        if self.failure.is_new(&reason) {
            if error.is_answer() {
                tracing::warn!(reason, "cannot reconcile the webhook configurations; retrying");
            } else {
                // The watch of definitions logs that the API server is unreachable.
                tracing::debug!(reason, "cannot read the webhook configurations; retrying");
            }
        }
    }

    fn in_sync(&mut self) {
        if self.failure.is_over() {
            tracing::info!("the webhook configurations are reconciled again");
        }
        if let Some(reason) = self.pending.take() {
            tracing::warn!(
                reason,
                "the webhook configurations may not be watched; they are read every two seconds instead"
            );
        }
    }
}

/// Returns the writes of whole configurations.
fn all(stored: &ConfigurationPair, wanted: &[Wanted; 2]) -> ConfigurationPair {
    let [mutating, validating] = wanted.each_ref();
    let [stored_mutating, stored_validating] = stored.each_ref().map(Option::as_ref);
    [desired(stored_mutating, mutating), desired(stored_validating, validating)]
}

/// Returns the writes of the agreed bundle into existing entries, and of nothing else.
fn bundles(stored: &ConfigurationPair, trust: &Trust) -> ConfigurationPair {
    let Trust::Agreed(pem) = trust else { return [None, None] };
    stored.each_ref().map(|stored| with_bundle(stored.as_ref()?, pem))
}

#[cfg(test)]
mod tests;
