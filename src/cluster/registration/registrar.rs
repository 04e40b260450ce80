//! One replica's work on the configurations: a look at both, what is wanted, and the writes that are due.

use super::bundle::{Bundle, Strangers};
use super::configurations::{ConfigurationError, Configurations, Event};
use super::desired::{
    bundle_of, desired, differences, differs_only_in_bundles, inspection_token, other_installation, ours, with_bundle,
};
use super::entries::{CaBundle, Frame, Inspections, NAME, Owner, Phase, Wanted};
use super::pace::{Change, Pace};
use super::report::{Look, Pair, Writes, all_of, changes, log, pairwise, publish, shortened};
use super::rules::Rules;
use super::trouble::Trouble;
use super::{Registering, Registration, Signals};
use crate::cluster::reason::reason;
use crate::cluster::trust::{Held, Trust};
use kube::runtime::watcher;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the configurations are looked at if nothing happens.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The same while changes may go unnoticed.
const LOOK_UNHEARD: Duration = Duration::from_secs(2);

/// For so long after a watch has failed: if it still fails, it says so again before that.
const UNHEARD: Duration = Duration::from_secs(15);

/// What happens together is looked at together.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// How often readiness is asked while it is waited for.
const POLL: Duration = Duration::from_millis(250);

/// What this replica wants, whatever is stored.
#[derive(Debug, Clone, PartialEq)]
struct Intent {
    rules: Arc<Rules>,
    inspections: Inspections,
    trust: Trust,
    owner: Option<Owner>,
}

pub(super) struct Registrar {
    registration: Registration,
    frame: Frame,
    signals: Signals,
    configurations: Configurations,
    declarable: watch::Receiver<bool>,
    /// The rules of a catalog that was looked at.
    rules: Option<(Arc<Catalog>, Arc<Rules>)>,
    /// The token for inspections where none is stored.
    fresh: InspectionToken,
    strangers: Strangers,
    pace: Pace,
    /// The intent when the configurations last were as they should be, or were last written.
    settled: Option<Intent>,
    ready: Option<Instant>,
    /// While it is unready nothing is looked at before, unless something happens.
    idle: Option<Instant>,
    /// Nothing is looked at before.
    not_before: Instant,
    trouble: Trouble,
    /// The watch has failed since.
    unheard: Option<Instant>,
    passed_over: BTreeSet<GroupVersionKind>,
    /// The namespace of our Service is being deleted.
    ends: bool,
    /// The API server does not let this replica set an owner.
    owner_refused: bool,
    /// Why the owner could not be read, as it was logged last.
    ownerless: Option<String>,
    /// True if the API server keeps `matchConditions`, once that is known.
    conditions: Option<bool>,
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
            frame: Frame::new(service.clone(), entries.clone(), excluded_namespaces),
            registration,
            signals,
            configurations,
            declarable,
            rules: None,
            fresh,
            strangers: Strangers::default(),
            pace: Pace::default(),
            settled: None,
            ready: None,
            idle: None,
            not_before: Instant::now(),
            trouble: Trouble::default(),
            unheard: None,
            passed_over: BTreeSet::new(),
            ends: false,
            owner_refused: false,
            ownerless: None,
            conditions: None,
            other: None,
        }
    }

    /// A configuration has changed, or changes may go unnoticed.
    pub(super) fn heard(&mut self, event: watcher::Result<Event>) {
        match event {
            Ok(Event::Changed) => self.unheard = None,
            Ok(Event::NamespaceEnds) => {
                if !std::mem::replace(&mut self.ends, true) {
                    let namespace = &*self.registration.service.namespace;
                    tracing::warn!(namespace, "the namespace is being deleted: nothing is to be sent here any more");
                }
            }
            Err(error) => {
                self.unheard = Some(Instant::now());
                self.trouble.watch_failed(&error);
            }
        }
    }

    /// When to look, now that something has happened.
    pub(super) fn soon(&mut self, next: Instant) -> Instant {
        self.idle = None;
        next.min(Instant::now() + DEBOUNCE).max(self.not_before)
    }

    /// Looks at the configurations, and puts right what is due. Returns when to look again.
    pub(super) async fn look(&mut self) -> Instant {
        let now = Instant::now();
        if (self.signals.ready)() {
            self.ready.get_or_insert(now);
        } else {
            self.ready = None;
            // It may be so for long: that is no reason to read the same again and again.
            if self.idle.is_some_and(|until| now < until) {
                return now + POLL;
            }
        }
        let next = match self.keep(now).await {
            Ok(look) => {
                let next = match look {
                    Look::InStep(next) => {
                        self.trouble.end();
                        next
                    }
                    Look::Pending(next) => next,
                };
                if self.ready.is_some() {
                    next
                } else {
                    // Since when it is ready is to be known; the rest can wait.
                    self.idle = Some(next);
                    next.min(now + POLL)
                }
            }
            // Another replica was faster.
            Err(error) if error.is_conflict() => now + DEBOUNCE,
            Err(error) => {
                self.signals.metrics.registered.set(0);
                // However often something happens meanwhile.
                self.not_before = Instant::now() + self.trouble.begin(&error);
                return self.not_before;
            }
        };
        self.not_before = Instant::now() + DEBOUNCE;
        next.max(self.not_before)
    }

    async fn keep(&mut self, now: Instant) -> Result<Look, ConfigurationError> {
        let [mutating, validating] = Phase::BOTH;
        let mut stored: Pair = [
            (mutating, self.configurations.read(mutating).await?),
            (validating, self.configurations.read(validating).await?),
        ];
        if self.is_refused(&stored) {
            return Ok(Look::Pending(self.next_look(now)));
        }
        self.report(&stored);
        // Another replica with newer information will write.
        let Some(intent) = self.intent().await? else { return Ok(Look::InStep(self.next_look(now))) };
        if let Trust::Agreed(pem) | Trust::Local(pem) = &intent.trust
            && Bundle::read(pem.as_bytes()).is_empty()
        {
            // With an empty one the API server would trust what its machine does, and nobody here has that.
            return Err(ConfigurationError::NoCa);
        }
        if self.registration.registering == Registering::Bundles {
            return self.keep_bundles(&mut stored, intent, now).await;
        }
        let entries = || stored.iter().filter_map(|(_, stored)| stored.as_ref()).flat_map(ours);
        let (stand, found) = (entries().next().is_some(), all_of(entries().map(|(_, entry)| bundle_of(entry))));
        let ca = self.ca_bundle(&intent.trust, &found, now);
        let wanted = Phase::BOTH.map(|phase| {
            let (ca, owner, fresh) = (ca.clone(), intent.owner.clone(), self.fresh.clone());
            self.frame.wanted(phase, &intent.rules, intent.inspections, ca, owner, fresh)
        });
        let writes: Writes = pairwise(&stored, &wanted, |(_, stored), wanted| desired(stored.as_ref(), wanted));
        if writes.iter().all(Option::is_none) {
            self.signals.metrics.registered.set(1);
            return Ok(Look::InStep(self.in_step(intent, now)));
        }
        self.signals.metrics.registered.set(0);
        // A namespace that is being deleted has no time to wait for readiness, and nothing is sent to it in the end.
        if !self.ends {
            let Some(ready) = self.ready else {
                // The CA that the replicas have agreed on may have to be trusted before any of them can be ready.
                return self.keep_bundles(&mut stored, intent, now).await;
            };
            let delayed = ready + self.registration.delay;
            if !stand && now < delayed {
                return Ok(Look::Pending(delayed));
            }
        }
        let change = self.change(&intent, &stored, &writes);
        let due = self.pace.due(change, now);
        if due > now {
            return Ok(Look::Pending(due));
        }
        let changes = changes(&stored, &writes);
        let written = self.write(&mut stored, writes, Some(&wanted)).await;
        self.report(&stored);
        if matches!(written, Ok(()) | Err(ConfigurationError::NotKept(..))) {
            self.settled = Some(intent);
            self.pace.wrote(change, now);
            if change != Change::Ours {
                self.signals.metrics.corrections.inc();
            }
        }
        written?;
        if let Some((_, rules)) = &self.rules {
            log(change, rules, &changes);
        }
        self.signals.metrics.registered.set(1);
        Ok(Look::InStep(self.next_look(now)))
    }

    /// Gives the entries that there are the bundle that the replicas have agreed on.
    async fn keep_bundles(
        &mut self,
        stored: &mut Pair,
        intent: Intent,
        now: Instant,
    ) -> Result<Look, ConfigurationError> {
        let Trust::Agreed(pem) = &intent.trust else { return Ok(Look::Pending(self.next_look(now))) };
        let writes: Writes = stored.each_ref().map(|(_, stored)| with_bundle(stored.as_ref()?, pem));
        let bundles_only = self.registration.registering == Registering::Bundles;
        if bundles_only {
            self.signals.metrics.registered.set(i64::from(writes.iter().all(Option::is_none)));
        }
        if writes.iter().all(Option::is_none) {
            return Ok(if bundles_only {
                Look::InStep(self.in_step(intent, now))
            } else {
                Look::Pending(self.next_look(now))
            });
        }
        let change = self.change(&intent, stored, &writes);
        let due = self.pace.due(change, now);
        if due > now {
            return Ok(Look::Pending(due));
        }
        let written = self.write(stored, writes, None).await;
        self.report(stored);
        written?;
        self.pace.wrote(change, now);
        tracing::info!("the CA that the replicas have agreed on was registered");
        if bundles_only {
            self.settled = Some(intent);
            self.signals.metrics.registered.set(1);
        }
        Ok(Look::InStep(self.next_look(now)))
    }

    /// Writes what differs. A configuration that can't be written keeps the other from nothing.
    async fn write(
        &mut self,
        stored: &mut Pair,
        writes: Writes,
        wanted: Option<&[Wanted; 2]>,
    ) -> Result<(), ConfigurationError> {
        let mut outcome = Ok(());
        for (index, ((phase, stored), write)) in stored.iter_mut().zip(writes).enumerate() {
            let Some(object) = write else { continue };
            let wanted = wanted.and_then(|wanted| wanted.get(index));
            let written = self.write_one(*phase, stored.as_ref(), &object, wanted).await;
            match written {
                Ok(object) => *stored = Some(object),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    async fn write_one(
        &mut self,
        phase: Phase,
        stored: Option<&Value>,
        object: &Value,
        wanted: Option<&Wanted>,
    ) -> Result<Value, ConfigurationError> {
        let written = match (stored, &self.registration.owner) {
            (Some(_), _) => self.configurations.replace(phase, object).await,
            // It would stay when everything else is gone.
            (None, Some(owner)) if !self.owner_refused && wanted.is_some_and(|wanted| wanted.owner.is_none()) => {
                return Err(ConfigurationError::NoOwner(phase, owner.clone()));
            }
            (None, _) => self.configurations.create(phase, object).await,
        };
        let outcome = match &written {
            Ok(_) => "applied",
            Err(error) if error.is_conflict() => return written,
            Err(_) => "failed",
        };
        self.signals.metrics.writes.get_or_create(&[("outcome", outcome)]).inc();
        if written.as_ref().is_err_and(ConfigurationError::is_owner_refused) && !self.owner_refused {
            self.owner_refused = true;
            tracing::warn!(
                "the API server lets only those set an owner who may delete the object, so the configurations get none; grant \
                 `delete` of both by name, or remove them yourself when the webhook is gone"
            );
        }
        let written = written?;
        match wanted.and_then(|wanted| desired(Some(&written), wanted)) {
            Some(still) => Err(ConfigurationError::NotKept(phase, shortened(&differences(&written, &still)))),
            None => Ok(written),
        }
    }

    /// Returns whether another installation keeps the configurations, which then are left to it.
    fn is_refused(&mut self, stored: &Pair) -> bool {
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
        // The API server calls the other one, so that nobody has to trust this one.
        self.publish(Held::Nothing, None);
        if self.other.as_ref() != Some(&other) {
            tracing::error!(
                other,
                "another installation keeps the webhook configurations `{NAME}`, and there can be one in a cluster: nothing is \
                 registered here; uninstall one of the two, or, if the other is gone, run `kubectl delete \
                 mutatingwebhookconfiguration,validatingwebhookconfiguration {NAME}`"
            );
            self.other = Some(other);
        }
        true
    }

    /// Why something differs from what is wanted.
    fn change(&self, intent: &Intent, stored: &Pair, writes: &Writes) -> Change {
        if self.settled.as_ref() != Some(intent) {
            return Change::Ours;
        }
        // A CA more than the replicas have agreed on, as far as this one knows: another may know of a newer agreement.
        if let Trust::Agreed(pem) = &intent.trust {
            let agreed = Bundle::read(pem.as_bytes());
            let harmless = stored.iter().zip(writes).all(|((_, stored), write)| match (stored, write) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(stored), Some(write)) => {
                    differs_only_in_bundles(stored, write)
                        && ours(stored).all(|(_, entry)| bundle_of(entry).includes(&agreed))
                }
            });
            if harmless {
                return Change::Harmless;
            }
        }
        Change::Drift
    }

    fn in_step(&mut self, intent: Intent, now: Instant) -> Instant {
        self.pace.in_step();
        self.settled = Some(intent);
        self.next_look(now)
    }

    fn next_look(&self, now: Instant) -> Instant {
        let unheard = self.unheard.is_some_and(|since| since.elapsed() < UNHEARD);
        now + if unheard { LOOK_UNHEARD } else { LOOK }
    }

    /// What this replica wants now, `None` as long as it cannot know.
    async fn intent(&mut self) -> Result<Option<Intent>, ConfigurationError> {
        let Some(trust) = self.signals.trust.borrow().clone() else { return Ok(None) };
        let catalog = self.signals.catalogs.borrow().clone();
        let none = Inspections { declarations: false, definitions: false };
        if self.registration.registering == Registering::Bundles {
            return Ok(Some(Intent { rules: Arc::default(), inspections: none, trust, owner: None }));
        }
        let Some(catalog) = catalog else { return Ok(None) };
        let owner = self.owner().await?;
        if self.ends {
            return Ok(Some(Intent { rules: Arc::default(), inspections: none, trust, owner }));
        }
        let definitions = if let Some(known) = self.conditions {
            known
        } else {
            *self.conditions.insert(self.configurations.knows_conditions().await?)
        };
        let rules = self.rules(catalog);
        let inspections = Inspections { declarations: *self.declarable.borrow(), definitions };
        Ok(Some(Intent { rules, inspections, trust, owner }))
    }

    fn rules(&mut self, catalog: Arc<Catalog>) -> Arc<Rules> {
        if let Some((of, rules)) = &self.rules
            && Arc::ptr_eq(of, &catalog)
        {
            return Arc::clone(rules);
        }
        let rules = if self.registration.enforcing { Rules::of(&catalog) } else { Rules::default() };
        for (kind, reason) in &rules.passed_over {
            if self.passed_over.insert(kind.clone()) {
                tracing::warn!(%kind, reason, "never registered, although it has unions");
            }
        }
        let rules = Arc::new(rules);
        self.rules = Some((catalog, Arc::clone(&rules)));
        rules
    }

    /// The owner as it is now, `None` where there is none to set.
    async fn owner(&mut self) -> Result<Option<Owner>, ConfigurationError> {
        let Some(name) = self.registration.owner.clone().filter(|_| !self.owner_refused) else { return Ok(None) };
        let trouble = match self.configurations.cluster_role(&name).await {
            Ok(Some(uid)) => {
                self.ownerless = None;
                return Ok(Some(Owner { name, uid }));
            }
            Ok(None) => "it is not there".to_owned(),
            Err(error) if error.is_answer() => reason(&error),
            Err(error) => return Err(error),
        };
        if self.ownerless.as_ref() != Some(&trouble) {
            tracing::warn!(
                cluster_role = name,
                reason = trouble,
                "the ClusterRole that owns the webhook configurations cannot be read: those that are there are kept true without \
                 it, and none is created"
            );
            self.ownerless = Some(trouble);
        }
        Ok(None)
    }

    /// The bundle that every entry is to hold; `found` are all that are held anywhere.
    fn ca_bundle(&mut self, trust: &Trust, found: &Bundle, now: Instant) -> CaBundle {
        match trust {
            Trust::Agreed(pem) => CaBundle::Ours(pem.to_string()),
            Trust::Local(pem) => {
                CaBundle::Ours(self.strangers.beside(&Bundle::read(pem.as_bytes()), found, now).to_pem())
            }
            Trust::InjectedFrom(from) => CaBundle::Injected(from.to_string()),
        }
    }

    /// Tells what the configurations hold.
    fn report(&self, stored: &Pair) {
        let stored = || stored.iter().filter_map(|(_, stored)| stored.as_ref());
        let bundles = stored().flat_map(ours).map(|(_, entry)| bundle_of(entry));
        let held = match bundles.reduce(|all, one| all.intersection(&one)) {
            None => Held::Nothing,
            Some(bundle) => Held::Bundle(bundle.to_pem().into()),
        };
        self.publish(held, stored().find_map(inspection_token));
    }

    fn publish(&self, held: Held, token: Option<InspectionToken>) {
        publish(&self.signals.held, held);
        publish(&self.signals.inspection, token);
    }
}
