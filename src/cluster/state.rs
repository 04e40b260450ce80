//! Follows the inputs of a cluster event by event, and publishes the catalog and the conditions that result.
//!
//! ```text
//! watch, documents ─▶ inputs ─▶ queue ─▶ rebuild ─▶ catalog builder ─▶ catalog, conditions
//! ```
//!
//! The published catalog depends only on the objects that the cluster stores, so that replicas agree. The exception is a
//! document that cannot be fetched: until it can, the unions of its kinds stay in force as they are.
//!
//! Sends no requests: [`watch`](super::watch) feeds it, and runs the jobs that it hands out.

mod declarations;
mod definitions;

use super::documents::{DocumentFetch, DocumentSchedule};
use super::inputs::Inputs;
use super::queue::{RebuildJob, RebuildQueue};
use super::schemas::Schemas;
use super::services::Services;
use super::status::StatusWriter;
use super::{BuiltinUnions, Cluster};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::names::GroupKind;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Under an unbroken stream of changes a catalog is published at least this often.
const PUBLISH_WITHIN: Duration = Duration::from_millis(200);

/// After a publication this many times its duration pass before the next, so that thousands of declarations leave time for
/// everything else. A small catalog takes no time at all.
const REST: u32 = 4;

/// The CRD of `UnionDeclaration`.
pub(super) const OWN_DEFINITION: &str = "uniondeclarations.kube-unions.dev";

/// The receiver of catalogs is gone.
pub(super) struct NoReceiver;

/// The inputs of a cluster, the unions that follow from them, and the work that is left to do.
pub(super) struct ClusterState {
    inputs: Arc<Mutex<Inputs>>,
    services: Services,
    definitions: ListProgress,
    declarations: ListProgress,
    documents: DocumentSchedule,
    /// Documents are being fetched.
    fetching: bool,
    queue: RebuildQueue,
    builder: Builder,
    /// Targets that no CRD defines and no document describes.
    missing: BTreeSet<GroupKind>,
    publication: Publication,
    schemas: Arc<Schemas>,
    own_groups_known: Gauge,
    /// Tells whether the CRD of declarations is installed.
    declarable: watch::Sender<bool>,
}

/// The first and later lists of one resource.
#[derive(Debug, Default)]
struct ListProgress {
    /// The names that the list in progress has brought.
    listed: Option<HashSet<String>>,
    /// A list was completed, or cannot be.
    complete: bool,
}

/// The last catalog, and the changes since.
#[derive(Debug)]
struct Publication {
    catalog: Option<Arc<Catalog>>,
    /// The time of the first change that is not published.
    changed: Option<Instant>,
    /// Nothing is published before.
    not_before: Instant,
    /// Declarations whose verdict may have changed.
    due_verdicts: BTreeSet<Box<str>>,
}

impl ListProgress {
    fn begin(&mut self) {
        self.listed = Some(HashSet::new());
    }

    fn see(&mut self, name: &str) {
        if let Some(listed) = &mut self.listed {
            listed.insert(name.to_owned());
        }
    }

    /// Ends the list. Returns the known names that it has not brought.
    fn end<'k>(&mut self, known: impl Iterator<Item = &'k str>) -> Vec<Box<str>> {
        self.complete = true;
        let Some(listed) = self.listed.take() else { return Vec::new() };
        known.filter(|name| !listed.contains(*name)).map(Box::from).collect()
    }
}

impl Publication {
    fn mark_changed(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }
}

impl ClusterState {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            inputs: Arc::clone(&cluster.inputs),
            services: Services::default(),
            definitions: ListProgress::default(),
            declarations: ListProgress::default(),
            documents: DocumentSchedule::new(cluster.builtin_unions == BuiltinUnions::OpenApi),
            fetching: false,
            queue: RebuildQueue::default(),
            builder: Builder::new(),
            missing: BTreeSet::new(),
            publication: Publication {
                catalog: None,
                changed: None,
                not_before: Instant::now(),
                due_verdicts: BTreeSet::new(),
            },
            schemas: Arc::clone(&cluster.schemas),
            own_groups_known: cluster.own_groups_known.clone(),
            declarable: cluster.declarable.clone(),
        }
    }

    /// Returns the `APIService`s, for events. Call [`services_changed`](Self::services_changed) after them.
    pub(super) fn services(&mut self) -> &mut Services {
        &mut self.services
    }

    /// Polls the index of documents soon: the API server may have been replaced.
    pub(super) fn watch_failed(&mut self) {
        self.documents.poll_soon();
    }

    /// Returns the next subject to rebuild.
    pub(super) fn next_rebuild(&mut self) -> Option<RebuildJob> {
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        self.queue.next(&inputs)
    }

    /// Returns the documents to fetch now, if any. The result goes to [`fetched`](Self::fetched).
    pub(super) fn next_fetch(&mut self) -> Option<DocumentFetch> {
        // A list in progress is about to bring most of what a declaration needs.
        if !self.definitions.complete || !self.declarations.complete {
            return None;
        }
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let fetch = self.documents.start(&inputs, !self.missing.is_empty());
        self.fetching = fetch.is_some();
        fetch
    }

    /// Returns the time of the next fetch if no event arrives.
    pub(super) fn next_fetch_at(&self) -> Option<Instant> {
        (self.definitions.complete && self.declarations.complete).then(|| self.documents.next())
    }

    /// Returns the time of the next publication if no event arrives.
    pub(super) fn next_publication_at(&self) -> Option<Instant> {
        let Publication { changed, not_before, due_verdicts, .. } = &self.publication;
        let pending = changed.is_some() || !due_verdicts.is_empty();
        let rested = (*not_before > Instant::now() && pending).then_some(*not_before);
        let overdue = changed.filter(|_| !self.queue.is_idle()).map(|since| since + PUBLISH_WITHIN);
        rested.into_iter().chain(overdue).min()
    }

    /// Returns true if a change has waited too long.
    pub(super) fn is_overdue(&self) -> bool {
        self.publication.changed.is_some_and(|since| since.elapsed() > PUBLISH_WITHIN)
    }

    /// Returns true if every input that is needed was read and rebuilt, or cannot be.
    pub(super) fn is_settled(&self) -> bool {
        self.documents.is_settled() && self.queue.is_idle()
    }

    /// Publishes the changes, unless CRDs are being listed, or the first inputs are not settled.
    pub(super) fn publish(
        &mut self,
        catalogs: &watch::Sender<Option<Arc<Catalog>>>,
        statuses: &mut StatusWriter,
    ) -> Result<(), NoReceiver> {
        let settled = self.declarations.complete && !self.fetching && self.is_settled();
        if !self.definitions.complete || self.definitions.listed.is_some() {
            return Ok(());
        }
        if self.publication.catalog.is_none() && !settled {
            return Ok(());
        }
        // Changes that come together are published together, unless one of them takes its time.
        if !self.queue.is_idle() && !self.is_overdue() {
            return Ok(());
        }
        let start = Instant::now();
        if start < self.publication.not_before {
            return Ok(());
        }
        if self.publication.changed.take().is_some() {
            let declarable = self.has_definition(OWN_DEFINITION);
            self.declarable.send_if_modified(|known| std::mem::replace(known, declarable) != declarable);
            let catalog = Arc::new(self.builder.build_for_admission());
            catalogs.send(Some(Arc::clone(&catalog))).map_err(|_| NoReceiver)?;
            self.publication.catalog = Some(catalog);
            let all: Vec<_> = self.inputs().declarations().cloned().collect();
            self.publication.due_verdicts.extend(all);
        }
        self.publish_verdicts(statuses);
        self.publication.not_before = Instant::now() + start.elapsed().saturating_mul(REST).min(PUBLISH_WITHIN);
        Ok(())
    }

    /// Returns the catalog as it is now.
    pub(super) fn catalog(&self) -> Catalog {
        self.builder.build()
    }

    fn inputs(&self) -> MutexGuard<'_, Inputs> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
