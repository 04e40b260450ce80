//! Fetches the OpenAPI documents of built-in kinds: at once when a kind's declarations change, with back-off after a failure,
//! and at each poll of the index if a document has a new URL.
//!
//! One fetch is in progress at a time. A kind that becomes due meanwhile waits for the next, so that ten thousand
//! declarations of one kind cost one fetch. Kinds that failed wait together: most fail for one reason, and a document that was read
//! is cached.
//!
//! Knows nothing of compiling: [`state`](super::state) passes the answers on.

use super::schemas::{SchemaFetchError, Schemas};
use kube_unions_api::Doubling;
use kube_unions_core::declaration::OpenApi;
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::Workspace;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two reads of the index, which changes with the API server's version.
const POLL: Duration = Duration::from_mins(1);

/// The interval while a target is missing, since its API may be starting.
const POLL_MISSING: Duration = Duration::from_secs(10);

/// First and longest wait after a failed fetch.
const WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(15)];

/// The documents to fetch next.
pub(super) struct DocumentFetch {
    /// Kinds with the versions of their documents. `None`: all versions.
    kinds: Vec<(GroupKind, Option<BTreeSet<String>>)>,
    /// Also find the kinds whose documents publish unions.
    publishing: bool,
}

/// The documents of a kind, or the reason why they cannot be read.
pub(super) type Fetched = Result<Vec<Arc<OpenApi>>, SchemaFetchError>;

/// The result of a fetch.
pub(super) struct FetchedDocuments {
    pub(super) kinds: Vec<(GroupKind, Fetched)>,
    /// The kinds whose documents publish unions, if the fetch was to find them.
    pub(super) publishing: Option<Result<BTreeSet<GroupKind>, SchemaFetchError>>,
}

impl DocumentFetch {
    pub(super) async fn run(self, schemas: Arc<Schemas>) -> FetchedDocuments {
        let index = schemas.index().await;
        let publishing = match (self.publishing, &index) {
            (false, _) => None,
            (true, Ok(index)) => Some(schemas.publishing(index).await),
            (true, Err(error)) => Some(Err(error.clone())),
        };
        let mut kinds = Vec::with_capacity(self.kinds.len());
        for (kind, versions) in self.kinds {
            let documents = match &index {
                Ok(index) => schemas.documents(index, &kind, versions.as_ref()).await,
                Err(error) => Err(error.clone()),
            };
            kinds.push((kind, documents));
        }
        FetchedDocuments { kinds, publishing }
    }
}

/// Decides which documents to fetch, and when.
pub(super) struct DocumentSchedule {
    /// The kinds to fetch next.
    due: BTreeSet<GroupKind>,
    /// The time of the next fetch if every kind that is due has failed.
    retry_at: Option<Instant>,
    waits: Doubling,
    /// The kinds of the fetch in progress, without those that were cancelled.
    in_progress: Option<BTreeSet<GroupKind>>,
    next_poll: Instant,
    /// Find the kinds whose documents publish unions, with the next fetch.
    publishing_due: bool,
    /// Unions that documents publish count: find the kinds at each poll, and fetch all versions.
    published_unions: bool,
}

impl DocumentSchedule {
    pub(super) fn new(published_unions: bool) -> Self {
        Self {
            due: BTreeSet::new(),
            retry_at: None,
            waits: Doubling::new(WAITS),
            in_progress: None,
            next_poll: Instant::now() + POLL,
            publishing_due: published_unions,
            published_unions,
        }
    }

    /// Fetches the documents of a kind at the next opportunity.
    pub(super) fn request(&mut self, kind: &GroupKind) {
        self.due.insert(kind.clone());
        self.retry_at = None;
    }

    /// Forgets a kind. The result of a fetch in progress does not count.
    pub(super) fn cancel(&mut self, kind: &GroupKind) {
        self.due.remove(kind);
        self.in_progress.as_mut().map(|kinds| kinds.remove(kind));
    }

    /// Returns true if the documents of a kind may be older than its declarations.
    pub(super) fn is_behind(&self, kind: &GroupKind) -> bool {
        self.due.contains(kind) || self.in_progress.as_ref().is_some_and(|kinds| kinds.contains(kind))
    }

    /// Returns true if every kind was fetched at least once, or failed.
    pub(super) fn is_settled(&self) -> bool {
        let has_failed = self.retry_at.is_some();
        (self.due.is_empty() || has_failed) && self.in_progress.is_none() && !self.publishing_due
    }

    /// Polls the index within a second, because it may have changed.
    pub(super) fn poll_soon(&mut self) {
        self.next_poll = self.next_poll.min(Instant::now() + Duration::from_secs(1));
    }

    /// Returns the time of the next fetch if no event arrives; `None` while one is in progress.
    pub(super) fn next(&self) -> Option<Instant> {
        let next = self.retry_at.map_or(self.next_poll, |retry| retry.min(self.next_poll));
        self.in_progress.is_none().then_some(next)
    }

    /// Returns the fetch to start now, if any.
    pub(super) fn start(&mut self, workspace: &Workspace) -> Option<DocumentFetch> {
        let now = Instant::now();
        if self.next().is_none_or(|next| self.retry_at.is_some() && now < next) {
            return None;
        }
        self.retry_at = None;
        if now >= self.next_poll {
            self.due.extend(workspace.documented().cloned());
            self.publishing_due = self.published_unions;
            self.next_poll = now + if workspace.missing().is_empty() { POLL } else { POLL_MISSING };
        }
        let due = std::mem::take(&mut self.due);
        let publishing = std::mem::take(&mut self.publishing_due);
        if !publishing && due.is_empty() {
            return None;
        }
        let versions = |kind: &GroupKind| if self.published_unions { None } else { workspace.versions_of(kind) };
        let kinds = due.iter().map(|kind| (kind.clone(), versions(kind))).collect();
        self.in_progress = Some(due);
        Some(DocumentFetch { kinds, publishing })
    }

    /// Notes that the fetch in progress ended. Returns its kinds, without those that were cancelled.
    pub(super) fn finish(&mut self) -> BTreeSet<GroupKind> {
        self.in_progress.take().unwrap_or_default()
    }

    /// Fetches the kinds that failed once more, after a wait. Without any, the next wait is the first.
    pub(super) fn retry(&mut self, failed: BTreeSet<GroupKind>) {
        if failed.is_empty() {
            return self.waits.reset();
        }
        if self.due.is_empty() {
            self.retry_at = Some(Instant::now() + self.waits.next_wait());
        }
        self.due.extend(failed);
    }
}
