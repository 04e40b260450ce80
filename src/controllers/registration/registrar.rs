//! One replica's reconciliation of the configurations: read both, compute the desired ones, write what is due.

use super::desired::{Intent, Registering, Registration, desired};
use super::differences::{differences, divergence};
use super::foreign::ForeignAuthorities;
use super::refused::{RefusedCondition, refused_conditions};
use super::rules::{KindCondition, RegistrationRules};
use super::stored::{
    ConfigurationKind, ConfigurationPair, NAME, bundle_of, inspection_token, other_installation, our_entries,
};
use crate::controllers::handover::{Coverage, RegisteredBundle, RegisteredKinds, Trust, ca_bundle, certificate_to_pem};
use crate::controllers::object::{OwnerReader, shortened};
use crate::controllers::pace::{Divergence, Pace};
use crate::controllers::reconciler::{Controller, Reconciled, StepError, StepRequest, publish};
use crate::telemetry::{LogOnce, RegistrationMetrics};
use kube::Client;
use kube_unions_api::{MANAGER, RequestError, ServerClock};
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time between two resyncs while the watch works.
pub(in crate::controllers) const RESYNC: Duration = Duration::from_secs(5);

/// Time between two resyncs after the watch has failed.
const RESYNC_UNWATCHED: Duration = Duration::from_secs(2);

/// Time for which a failure of the watch counts. A watch that keeps failing reports it again before that.
const UNWATCHED: Duration = Duration::from_secs(15);

/// Time between two checks of readiness while the replica is unready.
const POLL: Duration = Duration::from_millis(250);

/// Inputs and outputs of the registration.
pub struct Signals {
    /// Catalog in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// True while the cluster has the CRD of `UnionDeclaration`.
    pub declarable: watch::Receiver<bool>,
    /// CAs to register. Nothing is registered before they are known.
    pub trust: watch::Receiver<Option<Trust>>,
    /// Kinds that policies enforce.
    pub coverage: watch::Receiver<Coverage>,
    /// Receives the kinds that are registered.
    pub registered: watch::Sender<RegisteredKinds>,
    /// Receives the CAs that the configurations hold.
    pub held: watch::Sender<RegisteredBundle>,
    /// Receives the registered token of the path for inspections; `None` while no entry has a well-formed one.
    pub inspection: watch::Sender<Option<InspectionToken>>,
    /// Returns true while this replica can answer.
    pub ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Clock by which certificates expire.
    pub clock: ServerClock,
    pub metrics: RegistrationMetrics,
}

/// A reason to reconcile.
#[derive(Debug)]
pub(super) enum RegistrationEvent {
    /// A configuration or an input has changed.
    Changed,
    /// The watch of a configuration works, or not.
    Watched(Result<(), RequestError>),
    /// The Service's namespace is being deleted.
    NamespaceEnds,
}

/// Reconciles the configurations for one replica.
pub(super) struct Registrar {
    client: Client,
    registration: Registration,
    signals: Signals,
    /// Token for inspections if none is stored.
    fresh: InspectionToken,
    /// The rules of the catalog and of the coverage that were read last, for CAs of so many bytes.
    rules: Option<(Arc<Catalog>, Coverage, usize, Arc<RegistrationRules>)>,
    /// Conditions that the API server has refused. Their entries go without.
    refused: BTreeSet<String>,
    /// Kinds whose exclusion was logged.
    excluded: BTreeSet<GroupVersionKind>,
    owner: OwnerReader,
    /// True while the Service's namespace is being deleted.
    namespace_ends: bool,
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
    pub(super) fn new(client: Client, registration: Registration, signals: Signals, fresh: InspectionToken) -> Self {
        Self {
            client,
            registration,
            signals,
            fresh,
            rules: None,
            refused: BTreeSet::new(),
            excluded: BTreeSet::new(),
            owner: OwnerReader::new(
                "the webhook configurations: existing ones are kept without it, and none is created",
            ),
            namespace_ends: false,
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

    async fn reconcile(&mut self, now: Instant) -> Result<Reconciled, StepError> {
        let is_unwatched = self.watch_failed.is_some_and(|since| since.elapsed() < UNWATCHED);
        let resync = now + if is_unwatched { RESYNC_UNWATCHED } else { RESYNC };
        let mut stored: ConfigurationPair = [None, None];
        for (kind, stored) in ConfigurationKind::BOTH.into_iter().zip(&mut stored) {
            let failed = |error| StepError::of(StepRequest::Read, &format!("read {}/{NAME}", kind.kind()), &error);
            *stored = kind.path().read(&self.client).await.map_err(failed)?;
        }
        if self.is_of_another_installation(&stored) {
            return Ok(Reconciled::pending(resync));
        }
        self.report(&stored);
        // Without an intent of its own, this replica leaves the configurations to replicas that have one.
        let Some(mut intent) = self.intent(&stored).await? else { return Ok(Reconciled::in_sync(resync)) };
        if let Trust::Agreed(pem) | Trust::Local(pem) = &intent.trust
            && ca_bundle(&**pem).is_empty()
        {
            // With an empty bundle the API server would trust the CAs of its own machine.
            return Err(StepError::new("cannot register: the CA bundle holds no certificate".to_owned()));
        }
        let is_new = self.settled.as_ref() != Some(&intent);
        let bundle = self.bundle(&intent.trust, &stored, now);
        let mut writes = intent.writes(&stored, bundle.as_deref());
        let is_in_sync = writes == [None, None];
        self.signals.metrics.registered.set(is_in_sync.into());
        if is_in_sync {
            self.pace.in_sync(now);
            self.settle(intent);
            return Ok(Reconciled::in_sync(resync));
        }
        // The removal of all entries does not wait for readiness: a namespace that is being deleted may be gone by then.
        if intent.is_whole && !self.namespace_ends {
            if let Some(ready) = self.ready {
                let delayed = ready + self.registration.delay;
                if our_entries(&stored).next().is_none() && now < delayed {
                    return Ok(Reconciled::pending(delayed));
                }
            } else {
                // The API server may have to trust the agreed CA before any replica can be ready.
                intent.is_whole = false;
                writes = intent.writes(&stored, None);
                if writes == [None, None] {
                    return Ok(Reconciled::pending(resync));
                }
            }
        }
        let divergence = divergence(is_new, &intent.trust, &stored, &writes);
        if divergence == Divergence::Drift && intent.is_whole {
            publish(&self.signals.registered, RegisteredKinds::default());
        }
        let due = self.pace.due(divergence, now);
        if due > now {
            return Ok(Reconciled::pending(due));
        }
        let mut changed = Vec::new();
        let (mut outcome, mut kept) = (Ok(()), Ok(()));
        for ((kind, stored), write) in ConfigurationKind::BOTH.into_iter().zip(&mut stored).zip(writes) {
            let Some(object) = write else { continue };
            changed.extend(differences(kind, stored.as_ref(), &object));
            // A failure of one does not prevent the write of the other.
            match self.write(kind, stored.is_some(), &object, intent.owner.is_some()).await {
                Ok(written) => match desired(kind, Some(&written), &intent, bundle.as_deref()) {
                    Some(wanted) if intent.is_whole => {
                        kept = Err(not_kept(kind, &differences(kind, Some(&written), &wanted)));
                    }
                    Some(_) | None => *stored = Some(written),
                },
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        self.report(&stored);
        if outcome.is_ok() {
            self.pace.wrote(divergence, now);
            if intent.is_whole && divergence != Divergence::Intent {
                self.signals.metrics.corrections.inc();
            }
            if self.is_own(&intent) {
                self.settled = Some(intent.clone());
            }
        }
        outcome.and(kept)?;
        let [custom, builtin] = intent.rules.counts();
        let differences = shortened(&changed);
        if !intent.is_whole {
            tracing::info!("wrote the agreed CA bundle into the webhook configurations");
        } else if divergence == Divergence::Intent {
            tracing::info!(custom, builtin, differences, "the webhook configurations were written");
        } else {
            tracing::warn!(differences, "the webhook configurations were corrected");
        }
        if self.is_own(&intent) {
            self.signals.metrics.registered.set(1);
            self.settle(intent);
        }
        Ok(Reconciled::in_sync(resync))
    }

    /// Returns the current intent; `None` until its inputs are known.
    async fn intent(&mut self, stored: &ConfigurationPair) -> Result<Option<Intent>, StepError> {
        let Some(trust) = self.signals.trust.borrow().clone() else { return Ok(None) };
        let mut intent = Intent::empty(self.registration.clone(), trust, self.fresh.clone());
        if !intent.is_whole {
            return Ok(Some(intent));
        }
        let Some(catalog) = self.signals.catalogs.borrow().clone() else { return Ok(None) };
        if let Some(name) = &intent.settings.owner {
            let doing = format!("read the ClusterRole `{name}`, the owner of the configurations");
            let read = self.owner.read(&self.client, name).await;
            intent.owner = read.map_err(|error| StepError::of(StepRequest::Read, &doing, &error))?;
        }
        let coverage = self.signals.coverage.borrow().clone();
        // No object is to be sent to a Service whose namespace is being deleted.
        if !self.namespace_ends && coverage != Coverage::Everything {
            intent.keeps_rules = coverage == Coverage::Unknown;
            (intent.inspects_declarations, intent.inspects_definitions) = (*self.signals.declarable.borrow(), true);
            let pem = longest_bundle(&intent.trust, stored);
            intent.rules = self.rules_of(catalog, coverage, pem);
        }
        Ok(Some(intent))
    }

    fn rules_of(&mut self, catalog: Arc<Catalog>, coverage: Coverage, pem: usize) -> Arc<RegistrationRules> {
        if let Some((known, covered, for_pem, rules)) = &self.rules
            && Arc::ptr_eq(known, &catalog)
            && (covered, *for_pem) == (&coverage, pem)
        {
            return Arc::clone(rules);
        }
        let conditions = self.registration.conditions(&self.refused, pem);
        let rules = match &coverage {
            Coverage::Kinds(covered) if self.registration.enforcing => {
                RegistrationRules::without(covered, &catalog, conditions)
            }
            Coverage::Unknown if self.registration.enforcing => RegistrationRules::of(&catalog, conditions),
            Coverage::Kinds(_) | Coverage::Unknown | Coverage::Everything => RegistrationRules::default(),
        };
        for (kind, reason) in &rules.excluded {
            if self.excluded.insert(kind.clone()) {
                tracing::warn!(%kind, reason, "this kind has unions but is never registered");
            }
        }
        let rules = Arc::new(rules);
        self.rules = Some((catalog, coverage, pem, Arc::clone(&rules)));
        rules
    }

    /// Returns false for bundles alone, if this replica is to register everything.
    fn is_own(&self, intent: &Intent) -> bool {
        intent.is_whole || self.registration.registering == Registering::Bundles
    }

    /// Writes a configuration, and returns it as it is stored.
    async fn write(
        &mut self,
        kind: ConfigurationKind,
        exists: bool,
        object: &Value,
        has_owner: bool,
    ) -> Result<Value, StepError> {
        let request = if exists { StepRequest::Replace } else { StepRequest::Create };
        let written = match &self.registration.owner {
            _ if exists => kind.path().replace(&self.client, object).await,
            // Without its owner the configuration would outlive an uninstallation.
            Some(owner) if !has_owner => {
                return Err(StepError::new(format!(
                    "cannot create {}/{NAME}: its owner, the ClusterRole `{owner}`, cannot be read; apply the chart or the \
                     manifests again, or name another owner with --owner-cluster-role",
                    kind.kind()
                )));
            }
            // Conflicts are not forced: another replica may have been faster.
            _ => kind.path().apply(&self.client, object, MANAGER, false).await,
        };
        // The admission plugin OwnerReferencesPermissionEnforcement.
        let is_owner_refused = matches!(&written, Err(RequestError::Status(status))
            if status.code == 403 && status.message.contains("ownerRef"));
        if let Err(RequestError::Status(status)) = &written {
            self.leave_out(refused_conditions(object, status));
        }
        let written = written.map_err(|error| StepError::of(request, &format!("write {}/{NAME}", kind.kind()), &error));
        if !written.as_ref().is_err_and(|error| error.is_conflict) {
            let outcome = if written.is_ok() { "applied" } else { "failed" };
            self.signals.metrics.writes.get_or_create(&[("outcome", outcome)]).inc();
        }
        if is_owner_refused && self.registration.owner.take().is_some() {
            tracing::warn!(
                "the API server permits an owner only to users who may delete the object, so the webhook configurations get \
                 none; grant `delete` of both by name, or delete them yourself after an uninstallation"
            );
        }
        written
    }

    /// Notes conditions that the API server refuses. The next step writes their entries without.
    fn leave_out(&mut self, refused: Vec<RefusedCondition>) {
        for RefusedCondition { entry, expression, reason } in refused {
            if self.refused.insert(expression) {
                self.rules = None;
                tracing::warn!(
                    entry,
                    reason,
                    "the API server refuses the condition of an entry, so every write of its kinds is sent to the webhook; \
                     report this with the version of the API server"
                );
            }
        }
    }

    /// Sets the metric of kinds by their conditions.
    fn measure_conditions(&self, rules: &RegistrationRules) {
        for condition in KindCondition::ALL {
            let kinds = rules.conditions.get(&condition).copied().unwrap_or_default();
            let kinds = i64::try_from(kinds).unwrap_or(i64::MAX);
            self.signals.metrics.kinds.get_or_create(&[("condition", condition.name())]).set(kinds);
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
        self.measure_conditions(&RegistrationRules::default());
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

    /// Returns the bundle that the configurations are to hold, PEM; `None` if cert-manager writes it.
    fn bundle(&mut self, trust: &Trust, stored: &ConfigurationPair, now: Instant) -> Option<String> {
        match trust {
            Trust::Agreed(pem) => Some(pem.to_string()),
            Trust::Local(pem) => {
                let found = our_entries(stored).flat_map(bundle_of).collect();
                let ours = ca_bundle(&**pem);
                let all = self.foreign.beside(&ours, &found, now, self.signals.clock.now());
                Some(all.iter().map(|it| certificate_to_pem(it)).collect())
            }
            Trust::InjectedFrom(_) => None,
        }
    }

    /// Notes that the configurations are as this replica wants them, and publishes the kinds that are registered.
    fn settle(&mut self, intent: Intent) {
        if intent.is_whole && !intent.keeps_rules {
            let (now, before) = (Instant::now(), self.signals.registered.borrow().clone());
            let since = |kind| before.get(kind).copied().unwrap_or(now);
            let kinds = intent.rules.kinds.iter().map(|kind| (kind.clone(), since(kind))).collect();
            publish(&self.signals.registered, Arc::new(kinds));
            self.measure_conditions(&intent.rules);
        }
        self.settled = Some(intent);
    }

    /// Publishes the CAs and the token that the configurations hold.
    fn report(&self, stored: &ConfigurationPair) {
        let held = our_entries(stored).map(bundle_of).reduce(|all, one| all.intersection(&one).cloned().collect());
        publish(&self.signals.held, held.map_or(RegisteredBundle::Nothing, RegisteredBundle::Bundle));
        publish(&self.signals.inspection, stored.iter().flatten().find_map(inspection_token));
    }
}

/// Returns the bytes of the CAs that entries hold or are to hold, as PEM.
fn longest_bundle(trust: &Trust, stored: &ConfigurationPair) -> usize {
    let wanted = match trust {
        Trust::Agreed(pem) | Trust::Local(pem) => pem.len(),
        Trust::InjectedFrom(_) => 0,
    };
    let held = our_entries(stored).filter_map(|entry| entry.pointer("/clientConfig/caBundle")?.as_str());
    held.map(|base64| base64.len() / 4 * 3).max().unwrap_or_default().max(wanted)
}

fn not_kept(kind: ConfigurationKind, differences: &[String]) -> StepError {
    StepError::new(format!(
        "{}/{NAME} was stored with changes: {}; find the admission webhook or policy that changes it",
        kind.kind(),
        shortened(differences)
    ))
}

impl Controller for Registrar {
    type Event = RegistrationEvent;

    fn observe(&mut self, event: RegistrationEvent) {
        self.idle_until = None;
        match event {
            RegistrationEvent::Changed => {}
            RegistrationEvent::Watched(Ok(())) => self.watch_failed = None,
            RegistrationEvent::Watched(Err(error)) => {
                self.watch_failed = Some(Instant::now());
                let reason = error.to_string();
                if error.code() == Some(403) && self.forbidden.insert(reason.clone()) {
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

    async fn step(&mut self, now: Instant) -> Result<Reconciled, StepError> {
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

    fn failed(&mut self, error: &StepError) {
        self.signals.metrics.registered.set(0);
        let reason = &error.reason;
        if self.failure.is_new(reason) {
            if error.is_answer {
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

#[cfg(test)]
mod tests;
