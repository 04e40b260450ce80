//! One replica's work on the configurations: a look at both, what is wanted, and the writes that are due.

use super::bundle::{Bundle, Strangers};
use super::configurations::{ConfigurationError, Configurations};
use super::entries::{CaBundle, Frame, Phase, Wanted};
use super::pace::{Change, Pace};
use super::rules::Rules;
use super::stored::{Stored, Write, bundle_of};
use super::trouble::Trouble;
use super::{Registering, Registration, Signals};
use crate::catalog::{Catalog, GroupVersionKind};
use crate::cluster::trust::{Held, Trust};
use kube::runtime::watcher;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the configurations are looked at if nothing happens.
pub(super) const LOOK: Duration = Duration::from_secs(6);

/// The same while changes may go unnoticed.
const LOOK_UNHEARD: Duration = Duration::from_secs(2);

/// For so long after a watch has failed: if it still fails, it says so again before that.
const UNHEARD: Duration = Duration::from_secs(15);

/// What happens together is looked at together.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// How often readiness is asked while it is waited for.
const POLL: Duration = Duration::from_millis(250);

/// Writes of one configuration at a time: at the most an address put right, an apply, and what that leaves behind.
const WRITES: u32 = 4;

/// Who applies whole configurations.
const MANAGER: &str = "kube-unions";

/// Who applies `caBundle` alone: what an applier no longer states goes, so that it has to be another one.
const BUNDLE_MANAGER: &str = "kube-unions-ca";

/// What this replica wants, whatever is stored.
#[derive(Debug, Clone, PartialEq)]
struct Intent {
    rules: Arc<Rules>,
    declarations: bool,
    trust: Trust,
}

/// What is stored of each [`Phase`], `None` where it is not there.
type Pair = [(Phase, Option<Stored>); 2];

pub(super) struct Registrar {
    registration: Registration,
    frame: Frame,
    signals: Signals,
    configurations: Configurations,
    declarable: watch::Receiver<bool>,
    /// The rules of a catalog that was looked at.
    rules: Option<(Arc<Catalog>, Arc<Rules>)>,
    strangers: Strangers,
    pace: Pace,
    /// What was wanted when everything last was as it should be.
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
}

impl Registrar {
    pub(super) fn new(
        registration: Registration,
        signals: Signals,
        configurations: Configurations,
        declarable: watch::Receiver<bool>,
    ) -> Self {
        Self {
            frame: Frame::new(registration.service.clone(), &registration.excluded_namespaces),
            registration,
            signals,
            configurations,
            declarable,
            rules: None,
            strangers: Strangers::default(),
            pace: Pace::default(),
            settled: None,
            ready: None,
            idle: None,
            not_before: Instant::now(),
            trouble: Trouble::default(),
            unheard: None,
            passed_over: BTreeSet::new(),
        }
    }

    /// A configuration has changed, or changes may go unnoticed.
    pub(super) fn heard(&mut self, change: watcher::Result<()>) {
        let Err(error) = change else {
            self.unheard = None;
            return;
        };
        self.unheard = Some(Instant::now());
        self.trouble.deaf(&error);
    }

    /// When to look, now that something has happened.
    pub(super) fn soon(&mut self, next: Instant) -> Instant {
        self.idle = None;
        next.min(Instant::now() + DEBOUNCE).max(self.not_before)
    }

    /// Looks at the configurations, and puts right what is due. Tells when to look again.
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
            Ok(next) => {
                self.trouble.end();
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
                self.signals.registered.set(0);
                // However often something happens meanwhile.
                self.not_before = Instant::now() + self.trouble.begin(&error);
                return self.not_before;
            }
        };
        self.not_before = Instant::now() + DEBOUNCE;
        next.max(self.not_before)
    }

    async fn keep(&mut self, now: Instant) -> Result<Instant, ConfigurationError> {
        let [mutating, validating] = Phase::BOTH;
        let mut stored: Pair = [
            (mutating, self.configurations.read(mutating).await?),
            (validating, self.configurations.read(validating).await?),
        ];
        self.report(&stored);
        // Whoever knows says so.
        let Some(intent) = self.intent() else { return Ok(self.next_look(now)) };
        if let Trust::Agreed(pem) | Trust::Local(pem) = &intent.trust
            && Bundle::read(pem.as_bytes()).is_empty()
        {
            // With an empty one the API server would trust what its machine does, and nobody here has that.
            return Err(ConfigurationError::NoCa);
        }
        if self.registration.registering == Registering::Bundles {
            return self.keep_bundles(&mut stored, intent, now).await;
        }
        let entries = || stored.iter().filter_map(|(_, stored)| stored.as_ref()).flat_map(Stored::ours);
        let (stand, found) = (entries().next().is_some(), all_of(entries().map(|(_, webhook)| bundle_of(webhook))));
        let bundle = self.bundle(&intent.trust, &found, now);
        let differences = self.differences(&stored, &intent, &bundle);
        self.signals.registered.set(i64::from(differences.is_empty()));
        if differences.is_empty() {
            return Ok(self.in_step(intent, now));
        }
        let Some(ready) = self.ready else {
            // Whom the replicas have agreed on may have to be trusted before any of them can be ready.
            return self.keep_bundles(&mut stored, intent, now).await;
        };
        let delayed = ready + self.registration.delay;
        if !stand && now < delayed {
            return Ok(delayed);
        }
        let change = self.change(&intent, &stored);
        let due = self.pace.due(change, now);
        if due > now {
            return Ok(due);
        }
        for one in &mut stored {
            self.put_right(one, &intent, &bundle).await?;
        }
        log(change, &intent.rules, &differences);
        self.pace.wrote(change, now);
        self.report(&stored);
        self.signals.registered.set(i64::from(self.differences(&stored, &intent, &bundle).is_empty()));
        self.settled = Some(intent);
        Ok(self.next_look(now))
    }

    /// Writes one configuration until it is as wanted.
    async fn put_right(
        &self,
        (phase, stored): &mut (Phase, Option<Stored>),
        intent: &Intent,
        bundle: &Bundles,
    ) -> Result<(), ConfigurationError> {
        let mut applied = false;
        for _ in 0..WRITES {
            let wanted = self.wanted(*phase, stored.as_ref(), intent, bundle);
            let write = match &*stored {
                None if wanted.webhooks.is_empty() => return Ok(()),
                None => Write::Apply(wanted.object(*phase, None)),
                Some(stored) if stored.differences(&wanted, &self.frame.service).is_empty() => return Ok(()),
                Some(stored) => stored.next(*phase, &wanted, &self.frame.service, applied),
            };
            applied |= matches!(write, Write::Apply(_));
            *stored = Some(self.write(*phase, &write, MANAGER).await?);
        }
        let wanted = self.wanted(*phase, stored.as_ref(), intent, bundle);
        let left = stored.as_ref().map_or_else(Vec::new, |it| it.differences(&wanted, &self.frame.service));
        if left.is_empty() { Ok(()) } else { Err(ConfigurationError::NotKept(*phase, left.join(", "))) }
    }

    /// Gives the entries that there are the bundle that the replicas have agreed on.
    async fn keep_bundles(
        &mut self,
        stored: &mut Pair,
        intent: Intent,
        now: Instant,
    ) -> Result<Instant, ConfigurationError> {
        let Trust::Agreed(pem) = &intent.trust else { return Ok(self.next_look(now)) };
        let writes = stored.each_ref().map(|(phase, stored)| stored.as_ref()?.with_bundle(*phase, pem));
        let bundles_only = self.registration.registering == Registering::Bundles;
        if bundles_only {
            self.signals.registered.set(i64::from(writes.iter().all(Option::is_none)));
        }
        if writes.iter().all(Option::is_none) {
            return Ok(if bundles_only { self.in_step(intent, now) } else { self.next_look(now) });
        }
        let change = self.change(&intent, stored);
        let due = self.pace.due(change, now);
        if due > now {
            return Ok(due);
        }
        for ((phase, stored), write) in stored.iter_mut().zip(writes) {
            if let Some(write) = write {
                *stored = Some(self.write(*phase, &write, BUNDLE_MANAGER).await?);
            }
        }
        tracing::info!("the CA that the replicas have agreed on was registered");
        self.pace.wrote(change, now);
        self.report(stored);
        if bundles_only {
            self.signals.registered.set(1);
            self.settled = Some(intent);
        }
        Ok(self.next_look(now))
    }

    /// Why something differs from what is wanted.
    fn change(&self, intent: &Intent, stored: &Pair) -> Change {
        if self.settled.as_ref() != Some(intent) {
            return Change::Ours;
        }
        // A CA more than the replicas have agreed on, as far as this one knows: another may know of a newer agreement.
        if let Trust::Agreed(pem) = &intent.trust
            && (self.registration.registering == Registering::Bundles
                || self.differences(stored, intent, &Bundles::Any).is_empty())
        {
            let agreed = Bundle::read(pem.as_bytes());
            let mut entries = stored.iter().filter_map(|(_, stored)| stored.as_ref()).flat_map(Stored::ours);
            if entries.all(|(_, webhook)| bundle_of(webhook).includes(&agreed)) {
                return Change::Harmless;
            }
        }
        Change::Drift
    }

    fn in_step(&mut self, intent: Intent, now: Instant) -> Instant {
        self.pace.in_step(now);
        self.settled = Some(intent);
        self.next_look(now)
    }

    fn next_look(&self, now: Instant) -> Instant {
        let unheard = self.unheard.is_some_and(|since| since.elapsed() < UNHEARD);
        now + if unheard { LOOK_UNHEARD } else { LOOK }
    }

    async fn write(&self, phase: Phase, write: &Write, manager: &str) -> Result<Stored, ConfigurationError> {
        let written = self.configurations.write(phase, write, manager).await;
        let outcome = match &written {
            Ok(_) => "applied",
            Err(error) if error.is_conflict() => return written,
            Err(_) => "failed",
        };
        self.signals.writes.get_or_create(&[("outcome", outcome)]).inc();
        written
    }

    /// What this replica wants now, `None` as long as it cannot know.
    fn intent(&mut self) -> Option<Intent> {
        let trust = self.signals.trust.borrow().clone()?;
        let catalog = self.signals.catalogs.borrow().clone();
        if self.registration.registering == Registering::Bundles {
            return Some(Intent { rules: Arc::default(), declarations: false, trust });
        }
        let catalog = catalog?;
        let rules = match &self.rules {
            Some((of, rules)) if Arc::ptr_eq(of, &catalog) => Arc::clone(rules),
            Some(_) | None => {
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
        };
        Some(Intent { rules, declarations: *self.declarable.borrow(), trust })
    }

    /// The bundle that every entry is to hold; `found` are all that are held anywhere.
    fn bundle(&mut self, trust: &Trust, found: &Bundle, now: Instant) -> Bundles {
        match trust {
            Trust::Agreed(pem) => Bundles::Ours(pem.to_string()),
            Trust::Local(pem) => {
                Bundles::Ours(self.strangers.beside(&Bundle::read(pem.as_bytes()), found, now).to_pem())
            }
            Trust::InjectedFrom(from) => Bundles::Injected(from.to_string()),
        }
    }

    fn wanted(&self, phase: Phase, stored: Option<&Stored>, intent: &Intent, bundle: &Bundles) -> Wanted {
        let ca = match bundle {
            Bundles::Any => CaBundle::Any,
            Bundles::Ours(pem) => CaBundle::Ours(pem.clone()),
            Bundles::Injected(from) => {
                let held = stored.into_iter().flat_map(Stored::ours).filter(|(_, entry)| !bundle_of(entry).is_empty());
                CaBundle::Injected { from: from.clone(), held_by: held.map(|(name, _)| name.to_owned()).collect() }
            }
        };
        self.frame.wanted(phase, &intent.rules, intent.declarations, &ca)
    }

    fn differences(&self, stored: &Pair, intent: &Intent, bundle: &Bundles) -> Vec<String> {
        let mut all = Vec::new();
        for (phase, stored) in stored {
            let wanted = self.wanted(*phase, stored.as_ref(), intent, bundle);
            match stored {
                Some(stored) => all.extend(stored.differences(&wanted, &self.frame.service)),
                None if wanted.webhooks.is_empty() => {}
                None => all.push(format!("{} is missing", phase.kind())),
            }
        }
        all
    }

    /// Says what the configurations hold.
    fn report(&self, stored: &Pair) {
        let entries = stored.iter().filter_map(|(_, stored)| stored.as_ref()).flat_map(Stored::ours);
        let bundles = entries.map(|(_, webhook)| bundle_of(webhook));
        let held = match bundles.reduce(|all, one| all.intersection(&one)) {
            None => Held::Nothing,
            Some(bundle) => Held::Bundle(bundle.to_pem().into()),
        };
        self.signals.held.send_if_modified(|known| {
            let is_new = *known != held;
            *known = held;
            is_new
        });
        let token = stored.iter().filter_map(|(_, stored)| stored.as_ref()).find_map(Stored::inspection_token);
        self.signals.inspection.send_if_modified(|known| {
            let is_new = *known != token;
            *known = token;
            is_new
        });
    }
}

/// Where bundles come from.
enum Bundles {
    /// It does not matter.
    Any,
    /// Every entry holds this PEM.
    Ours(String),
    /// cert-manager writes them, from this Certificate.
    Injected(String),
}

fn log(change: Change, rules: &Rules, differences: &[String]) {
    const SAID: usize = 8;
    let (custom, builtin) = (rules.custom.len(), rules.builtin.len());
    let mut said = differences.iter().take(SAID).map(String::as_str).collect::<Vec<_>>().join(", ");
    if differences.len() > SAID {
        said.push_str(", …");
    }
    match change {
        Change::Ours => tracing::info!(custom, builtin, differences = said, "the webhook configurations were written"),
        Change::Drift | Change::Harmless => {
            tracing::warn!(differences = said, "the webhook configurations were put right");
        }
    }
}

fn all_of(bundles: impl Iterator<Item = Bundle>) -> Bundle {
    bundles.fold(Bundle::default(), Bundle::union)
}
