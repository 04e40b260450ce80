//! Follows a cluster event by event: each event changes the [`Workspace`], and the documents that it needs.
//!
//! ```text
//! watch, documents ─▶ workspace ─▶ catalog, conditions
//! ```
//!
//! The catalog depends only on the objects that the cluster stores, so that replicas agree. The exception is a document that
//! cannot be fetched: until it can, the unions of its kinds stay in force as they are.
//!
//! Sends no requests: [`watch`](super::watch) feeds it, and runs the jobs that it hands out.
//! [`publication`](super::publication) decides when a catalog is published.

use super::documents::{DocumentFetch, DocumentSchedule, FetchedDocuments};
use super::publication::Publication;
use super::raw::RawCrd;
use super::services::Services;
use super::status::StatusQueue;
use super::{BuiltinUnions, Cluster};
use crate::compute::compute;
use kube_unions_api::{ListProgress, WatchChange};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::Declaration;
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::{CompileJob, CompiledSubject, JobTicket, Workspace};
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// The CRD of `UnionDeclaration`.
pub(super) const OWN_DEFINITION: &str = "uniondeclarations.kube-unions.dev";

/// The inputs of a cluster, the unions that follow from them, and the work that is left to do.
pub(super) struct ClusterState {
    cluster: Cluster,
    /// The `APIService`s.
    pub(super) services: Services,
    definitions: ListProgress,
    declarations: ListProgress,
    pub(super) documents: DocumentSchedule,
    /// The reasons for which documents cannot be read, as they were logged.
    unread: BTreeSet<String>,
    pub(super) publication: Publication,
}

impl ClusterState {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.clone(),
            services: Services::default(),
            definitions: ListProgress::default(),
            declarations: ListProgress::default(),
            documents: DocumentSchedule::new(cluster.builtin_unions == BuiltinUnions::OpenApi),
            unread: BTreeSet::new(),
            publication: Publication::new(),
        }
    }

    /// Takes in an event of the `APIService`s: CRDs in the groups that the API server serves from its own code do not count.
    pub(super) fn observe_service(&mut self, change: WatchChange) {
        self.services.observe(change);
        if self.services.list.is_in_progress {
            return;
        }
        self.cluster.own_groups_known.set(i64::from(self.services.are_known()));
        if self.cluster.schemas.set_from_definitions(self.services.defined()) {
            self.documents.poll_soon();
        }
        let groups = self.services.builtin_groups();
        self.change(|workspace| workspace.set_builtin_groups(groups));
    }

    /// Takes in an event of the CRDs.
    pub(super) fn observe_definition(&mut self, change: WatchChange) {
        let was_complete = self.definitions.is_complete;
        self.definitions.observe(&change);
        if self.definitions.is_complete && !was_complete {
            self.publication.mark_changed();
        }
        match change {
            WatchChange::Set { name, .. } if name.is_empty() => tracing::warn!("ignoring a CRD without a name"),
            WatchChange::Set { name, text } => {
                self.change(|workspace| workspace.set_crd(&name, RawCrd::texts(&RawCrd::read(&text))));
            }
            WatchChange::Gone(name) => self.change(|workspace| workspace.remove_crd(&name)),
            WatchChange::Listing | WatchChange::Listed => {}
        }
    }

    pub(super) fn workspace(&self) -> MutexGuard<'_, Workspace> {
        self.cluster.workspace.lock()
    }

    /// Takes in an event of the declarations.
    pub(super) fn observe_declaration(&mut self, change: WatchChange) {
        self.declarations.observe(&change);
        match change {
            WatchChange::Set { name, text } if !name.is_empty() => {
                let read = Declaration::from_json(&text).map_err(|error| with_causes(&error));
                self.change(|workspace| workspace.set_declaration(&name, read));
                self.publication.declared(name, &text);
            }
            WatchChange::Gone(name) => {
                self.publication.undeclared(&name);
                self.change(|workspace| workspace.remove_declaration(&name));
            }
            WatchChange::Set { .. } | WatchChange::Listing | WatchChange::Listed => {}
        }
    }

    /// Waits for declarations no longer, since they cannot be listed. `none`: the cluster has none; otherwise those that are
    /// known stay.
    pub(super) fn declarations_unavailable(&mut self, none: bool) {
        let known: Vec<Box<str>> = self.publication.declarations().map(Box::from).collect();
        for name in known.into_iter().filter(|_| none) {
            self.observe_declaration(WatchChange::Gone(name));
        }
        self.declarations.give_up();
    }

    /// Returns the documents to fetch now, if any. The result goes to [`fetched`](Self::fetched).
    pub(super) fn next_fetch(&mut self) -> Option<DocumentFetch> {
        // A list in progress is about to bring most of what a declaration needs.
        if !self.definitions.is_complete || !self.declarations.is_complete {
            return None;
        }
        self.documents.start(&self.cluster.workspace.lock())
    }

    /// Returns the time of the next fetch if no event arrives.
    pub(super) fn next_fetch_at(&self) -> Option<Instant> {
        self.documents.next().filter(|_| self.definitions.is_complete && self.declarations.is_complete)
    }

    /// Takes in fetched documents.
    pub(super) fn fetched(&mut self, fetched: FetchedDocuments) {
        match fetched.publishing {
            None => {}
            Some(Ok(publishing)) => self.change(|workspace| workspace.set_publishing(publishing)),
            Some(Err(error)) => {
                tracing::warn!(
                    reason = error.to_string(),
                    "cannot read the unions that built-in types publish; retrying"
                );
                self.documents.poll_soon();
            }
        }
        let current = self.documents.finish();
        let mut workspace = self.cluster.workspace.lock();
        let mut failed: BTreeMap<String, BTreeSet<GroupKind>> = BTreeMap::new();
        for (kind, documents) in fetched.kinds.into_iter().filter(|(kind, _)| current.contains(kind)) {
            for declaration in workspace.declarations_of(&kind) {
                self.publication.mark_verdict(declaration.name());
            }
            match documents {
                Ok(documents) => workspace.set_documents(&kind, documents),
                Err(error) => {
                    failed.entry(error.to_string()).or_default().insert(kind);
                }
            }
        }
        self.unread.retain(|reason| failed.contains_key(reason));
        for (reason, kinds) in &failed {
            if self.unread.insert(reason.clone()) {
                let (first, kinds) = (kinds.first().map(ToString::to_string), kinds.len());
                tracing::warn!(first, kinds, reason, "cannot read OpenAPI documents; unions in force stay, retrying");
            }
        }
        self.documents.retry(failed.into_values().flatten().collect());
        self.cluster.schemas.retain(&workspace.documented().map(|kind| &*kind.group).collect());
    }

    /// Puts the result of a job of the workspace in force.
    pub(super) fn compiled(&mut self, compiled: Result<CompiledSubject, JobTicket>) {
        let not_described = match compiled {
            Ok(compiled) => self.cluster.workspace.lock().finish(compiled),
            Err(ticket) => {
                tracing::error!(subject = %ticket, "compiling panicked; the unions in force of the kind stay");
                self.cluster.workspace.lock().give_up(&ticket);
                false
            }
        };
        if not_described {
            // Its API may be starting.
            self.documents.poll_soon();
        }
        self.change(|_| Vec::new());
    }

    /// Returns true if every input that is needed was read and compiled, or cannot be.
    pub(super) fn is_settled(&self) -> bool {
        self.documents.is_settled() && self.workspace().is_idle()
    }

    /// Returns the time of the next publication if no event arrives.
    pub(super) fn next_publication_at(&self) -> Option<Instant> {
        self.publication.next(self.workspace().is_idle())
    }

    /// Publishes the changes, unless CRDs are being listed, or the first inputs are not settled.
    pub(super) fn publish(
        &mut self,
        catalogs: &watch::Sender<Option<Arc<Catalog>>>,
        statuses: &watch::Sender<StatusQueue>,
    ) {
        let settled = self.declarations.is_complete && self.is_settled();
        let workspace = self.cluster.workspace.lock();
        let is_listed = self.definitions.is_complete && !self.definitions.is_in_progress;
        if is_listed && self.publication.may_begin(settled, workspace.is_idle()) {
            let declarable = workspace.has_crd(OWN_DEFINITION);
            self.cluster.declarable.send_if_modified(|known| std::mem::replace(known, declarable) != declarable);
            self.publication.publish(&workspace, &self.documents, catalogs, statuses);
        }
    }

    /// Changes the workspace, and schedules the documents of the kinds that the change affects.
    fn change(&mut self, change: impl FnOnce(&mut Workspace) -> Vec<GroupKind>) {
        let mut workspace = self.cluster.workspace.lock();
        for kind in change(&mut workspace) {
            if workspace.wants_documents(&kind) {
                // The documents may be newer, or of other versions.
                self.documents.request(&kind);
            } else {
                self.documents.cancel(&kind);
            }
        }
        if workspace.take_changed() {
            self.publication.mark_changed();
        }
    }
}

/// Runs a job. The error is the ticket of a job that panicked.
pub(super) async fn run(job: CompileJob) -> Result<CompiledSubject, JobTicket> {
    let ticket = job.ticket().clone();
    compute(move || job.compile()).await.map_err(|_| ticket)
}
