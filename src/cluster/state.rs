//! What is known of the cluster, event by event, and the catalog that comes of it.
//!
//! The catalog follows from what the cluster stores and from nothing else, so that replicas agree whatever each has seen
//! before. Only what could not be fetched stays as it was until it can be: that is not what the cluster stores.

mod declared;
mod defined;

use super::compiling::Compiling;
use super::known::Known;
use super::rounds::{Answers, Fetched, Order, Schedule};
use super::schemas::Schemas;
use super::services::Services;
use super::status::StatusWriter;
use super::{BuiltinUnions, Cluster};
use crate::causes::with_causes;
use declared::Declared;
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::names::GroupKind;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Under an unbroken stream of changes a catalog is published at least this often.
const PUBLISH_WITHIN: Duration = Duration::from_millis(200);

/// So many times as long as it took to publish is rested after it, so that with thousands of declarations, too, there is
/// time for anything else. A small catalog takes no time at all.
const REST: u32 = 4;

/// The CRD that the declarations need themselves.
pub(super) const OWN_DEFINITION: &str = "uniondeclarations.kube-unions.dev";

/// Nobody receives catalogs any more.
pub(super) struct Unwanted;

/// What is known of the cluster. Definitions are compiled as they arrive and then dropped: what stays are plans.
pub(super) struct State {
    builder: Builder,
    compiling: Compiling,
    services: Services,
    own_groups_known: Gauge,
    known: Arc<Mutex<Known>>,
    schemas: Arc<Schemas>,
    builtin_unions: BuiltinUnions,
    fingerprints: RandomState,
    /// A fingerprint of each CRD, by name.
    definitions: HashMap<Box<str>, u64>,
    declarations: BTreeMap<Box<str>, Declared>,
    /// Kinds in force whose schema came from documents.
    builtin: BTreeMap<GroupKind, Builtin>,
    /// Kinds whose documents are being compiled.
    editions: BTreeMap<GroupKind, Vec<String>>,
    /// Targets that nothing describes, with the documents of their group.
    missing: BTreeMap<GroupKind, Vec<String>>,
    /// Kinds of which the server's own documents declare unions.
    publishing: BTreeSet<GroupKind>,
    schedule: Schedule,
    /// A round is under way.
    fetching: bool,
    /// What lists that are under way have brought so far.
    listing: Listing,
    /// Since when the builder holds something that is not published.
    changed: Option<Instant>,
    /// Nothing is published before.
    rest: Instant,
    /// The CRDs have been listed completely at least once.
    defined: bool,
    /// The declarations, too, or there are none.
    declared: bool,
    published: Option<Arc<Catalog>>,
    /// Whether there is the CRD of declarations.
    declarable: watch::Sender<bool>,
    /// Declarations whose condition may have something new to say.
    unsaid: BTreeSet<Box<str>>,
}

#[derive(Default)]
struct Listing {
    definitions: Option<HashSet<String>>,
    declarations: Option<HashSet<String>>,
}

struct Builtin {
    name: Box<str>,
    urls: Vec<String>,
}

impl State {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            builder: Builder::new(),
            compiling: Compiling::default(),
            services: Services::default(),
            own_groups_known: cluster.own_groups_known.clone(),
            known: Arc::clone(&cluster.known),
            schemas: Arc::clone(&cluster.schemas),
            builtin_unions: cluster.builtin_unions,
            fingerprints: RandomState::new(),
            definitions: HashMap::new(),
            declarations: BTreeMap::new(),
            builtin: BTreeMap::new(),
            editions: BTreeMap::new(),
            missing: BTreeMap::new(),
            publishing: BTreeSet::new(),
            schedule: Schedule::new(cluster.builtin_unions == BuiltinUnions::OpenApi),
            fetching: false,
            listing: Listing::default(),
            changed: None,
            rest: Instant::now(),
            defined: false,
            declared: false,
            published: None,
            declarable: cluster.declarable.clone(),
            unsaid: BTreeSet::new(),
        }
    }

    /// The `APIService`s, to be told of events.
    pub(super) fn services(&mut self) -> &mut Services {
        &mut self.services
    }

    /// Draws the conclusions of a change of `APIService`s. Tells whether every CRD is to be looked at again: none is kept.
    #[must_use]
    pub(super) fn services_changed(&mut self) -> bool {
        if self.services.are_listed_now() {
            return false;
        }
        self.own_groups_known.set(i64::from(self.services.are_known()));
        if self.schemas.set_from_definitions(self.services.defined()) {
            self.schedule.hurry();
        }
        self.known().set_own_groups(self.services.own_groups())
    }

    /// Whether a CRD is there.
    pub(super) fn has_definition(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    /// The server may be another one now.
    pub(super) fn suspect(&mut self) {
        self.schedule.hurry();
    }

    /// When there will be something to fetch, if nothing happens.
    pub(super) fn next_fetch(&self) -> Option<Instant> {
        (self.defined && self.declared).then(|| self.schedule.next())
    }

    /// When there will be something to publish, if nothing happens.
    pub(super) fn next_publication(&self) -> Option<Instant> {
        let rested =
            (self.rest > Instant::now() && (self.changed.is_some() || !self.unsaid.is_empty())).then_some(self.rest);
        let overdue = self.changed.filter(|_| !self.compiling.is_idle()).map(|since| since + PUBLISH_WITHIN);
        rested.into_iter().chain(overdue).min()
    }

    /// What is to be fetched now.
    pub(super) fn orders(&mut self) -> Option<(Vec<Order>, bool)> {
        // Until the lists are complete most of what is wanted is about to come by itself.
        if !self.defined || !self.declared {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let editions = self.builtin.iter().map(|(kind, builtin)| (kind, builtin.urls.as_slice()));
        let whole = self.builtin_unions == BuiltinUnions::OpenApi;
        let orders = self.schedule.orders(&known, editions, &self.missing, whole);
        self.fetching = orders.is_some();
        orders
    }

    /// Takes in what a round has brought.
    pub(super) fn answer(&mut self, answers: Answers) {
        self.fetching = false;
        match answers.publishing {
            None => {}
            Some(Ok(publishing)) => {
                let changed: Vec<_> = publishing.symmetric_difference(&self.publishing).cloned().collect();
                self.publishing = publishing;
                for kind in changed {
                    if self.known().definition(&kind).is_none() {
                        self.kind_changed(&kind);
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(reason = with_causes(&error), "published unions cannot be read; retrying");
                self.schedule.hurry();
            }
        }
        let mut failed: BTreeMap<String, Vec<GroupKind>> = BTreeMap::new();
        for (kind, fetched) in answers.kinds {
            if !self.schedule.take(&kind) {
                continue;
            }
            self.unsay(&kind);
            match fetched {
                Err(error) => {
                    let reason = with_causes(&error);
                    if self.schedule.fail(&kind, &reason) {
                        failed.entry(reason).or_default().push(kind);
                    }
                }
                // The watch is about to say so.
                Ok(Fetched::Gone) => drop(self.schedule.fail(&kind, "")),
                Ok(Fetched::Unchanged) => self.schedule.succeed(&kind),
                Ok(Fetched::Definition(raw)) => {
                    self.schedule.succeed(&kind);
                    self.define_again(*raw);
                }
                Ok(Fetched::Documents(edition)) => {
                    self.schedule.succeed(&kind);
                    self.describe(&kind, edition);
                }
            }
        }
        for (reason, kinds) in failed {
            let first = kinds.first().map(ToString::to_string);
            tracing::warn!(
                first,
                kinds = kinds.len(),
                reason,
                "schemas cannot be had; what is in force stays, retrying"
            );
        }
        let (builtin, missing) = (&self.builtin, &self.missing);
        self.schemas.retain(|group| builtin.keys().chain(missing.keys()).any(|kind| *kind.group == *group));
    }

    /// Whether a change has waited too long.
    pub(super) fn is_overdue(&self) -> bool {
        self.changed.is_some_and(|since| since.elapsed() > PUBLISH_WITHIN)
    }

    /// Publishes what has changed, unless a list is under way, or what it takes was not tried yet.
    pub(super) fn publish(
        &mut self,
        catalogs: &watch::Sender<Option<Arc<Catalog>>>,
        statuses: &mut StatusWriter,
    ) -> Result<(), Unwanted> {
        let first = self.published.is_none();
        if !self.defined || self.listing.definitions.is_some() {
            return Ok(());
        }
        if first && !(self.declared && !self.fetching && self.is_tried()) {
            return Ok(());
        }
        // Changes that come together are published together, unless one of them takes its time.
        if !self.compiling.is_idle() && !self.is_overdue() {
            return Ok(());
        }
        let start = Instant::now();
        if start < self.rest {
            return Ok(());
        }
        if self.changed.take().is_some() {
            let declarable = self.has_definition(OWN_DEFINITION);
            self.declarable.send_if_modified(|known| std::mem::replace(known, declarable) != declarable);
            let catalog = Arc::new(self.builder.build_for_admission());
            catalogs.send(Some(Arc::clone(&catalog))).map_err(|_| Unwanted)?;
            self.published = Some(catalog);
            self.unsaid.extend(self.declarations.keys().cloned());
        }
        self.say(statuses);
        self.rest = Instant::now() + start.elapsed().saturating_mul(REST).min(PUBLISH_WITHIN);
        Ok(())
    }

    /// Whether everything that is wanted was fetched, or could not be.
    pub(super) fn is_tried(&self) -> bool {
        self.schedule.is_tried() && self.compiling.is_idle()
    }

    /// The catalog of what is known now.
    pub(super) fn catalog(&self) -> Catalog {
        self.builder.build()
    }

    fn touch(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
