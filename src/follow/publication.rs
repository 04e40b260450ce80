//! Decides when catalogs and verdicts are published: changes that come together cost one catalog.

use super::documents::DocumentSchedule;
use super::status::StatusQueue;
use super::verdict::verdict;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Declaration, Fault, UnionDeclarationStatus};
use kube_unions_core::workspace::Workspace;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Under an unbroken stream of changes a catalog is published at least this often.
const PUBLISH_WITHIN: Duration = Duration::from_millis(200);

/// After a publication this many times its duration pass before the next, so that thousands of declarations leave time for
/// everything else. A small catalog takes no time at all.
const REST: u32 = 4;

/// The parts of a `UnionDeclaration` that no union follows from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StoredDeclaration {
    metadata: StoredMetadata,
    status: Option<UnionDeclarationStatus>,
}

#[derive(Debug, Default, Deserialize)]
struct StoredMetadata {
    generation: Option<i64>,
}

/// The last catalog, and the changes since.
#[derive(Debug)]
pub(super) struct Publication {
    catalog: Option<Arc<Catalog>>,
    /// The time of the first change that is not published.
    changed: Option<Instant>,
    /// Nothing is published before.
    not_before: Instant,
    /// Declarations whose verdict may have changed.
    due_verdicts: BTreeSet<Box<str>>,
    /// The `UnionDeclaration`s, by name.
    stored: BTreeMap<Box<str>, StoredDeclaration>,
}

impl Publication {
    pub(super) fn new() -> Self {
        let (due_verdicts, stored) = (BTreeSet::new(), BTreeMap::new());
        Self { catalog: None, changed: None, not_before: Instant::now(), due_verdicts, stored }
    }

    pub(super) fn mark_changed(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    /// Reconsiders the verdict on a declaration.
    pub(super) fn mark_verdict(&mut self, declaration: &str) {
        self.due_verdicts.insert(declaration.into());
    }

    /// Takes in a declaration, given as JSON text. Any text may be stored: a status that cannot be read is none.
    pub(super) fn declared(&mut self, name: Box<str>, text: &str) {
        self.mark_verdict(&name);
        self.stored.insert(name, serde_json::from_str(text).unwrap_or_default());
    }

    /// Forgets a declaration.
    pub(super) fn undeclared(&mut self, name: &str) {
        self.stored.remove(name);
        self.mark_verdict(name);
    }

    /// Returns the names of the declarations.
    pub(super) fn declarations(&self) -> impl ExactSizeIterator<Item = &str> {
        self.stored.keys().map(AsRef::as_ref)
    }

    /// Returns true if a change has waited too long.
    pub(super) fn is_overdue(&self) -> bool {
        self.changed.is_some_and(|since| since.elapsed() > PUBLISH_WITHIN)
    }

    /// Returns the time of the next publication if no event arrives. `idle`: nothing is left to compile.
    pub(super) fn next(&self, idle: bool) -> Option<Instant> {
        let pending = self.changed.is_some() || !self.due_verdicts.is_empty();
        let rested = (self.not_before > Instant::now() && pending).then_some(self.not_before);
        let overdue = self.changed.filter(|_| !idle).map(|since| since + PUBLISH_WITHIN);
        rested.into_iter().chain(overdue).min()
    }

    /// Returns true if now is a time to publish. `settled`: every input that is needed was read.
    pub(super) fn may_begin(&self, settled: bool, idle: bool) -> bool {
        let is_first = self.catalog.is_none();
        // Changes that come together are published together, unless one of them takes its time.
        (!is_first || settled) && (idle || self.is_overdue()) && Instant::now() >= self.not_before
    }

    /// Publishes the changes since the last publication, then rests.
    pub(super) fn publish(
        &mut self,
        workspace: &Workspace,
        documents: &DocumentSchedule,
        catalogs: &watch::Sender<Option<Arc<Catalog>>>,
        statuses: &watch::Sender<StatusQueue>,
    ) {
        let start = Instant::now();
        if self.changed.take().is_some() {
            let catalog = Arc::new(workspace.catalog_for_admission());
            catalogs.send_replace(Some(Arc::clone(&catalog)));
            self.catalog = Some(catalog);
            // The verdicts on all declarations may follow from it.
            self.due_verdicts.extend(self.stored.keys().cloned());
        }
        self.publish_verdicts(workspace, documents, statuses);
        self.not_before = Instant::now() + start.elapsed().saturating_mul(REST).min(PUBLISH_WITHIN);
    }

    /// Publishes the verdicts that follow from the published catalog. A declaration whose kind is being fetched or compiled gets
    /// its verdict after that.
    fn publish_verdicts(
        &mut self,
        workspace: &Workspace,
        documents: &DocumentSchedule,
        statuses: &watch::Sender<StatusQueue>,
    ) {
        let Self { catalog: Some(catalog), due_verdicts, stored, .. } = self else { return };
        if due_verdicts.is_empty() {
            return;
        }
        let mut faults: HashMap<&str, Vec<&Fault>> = HashMap::new();
        for fault in catalog.faults() {
            if let Some(declaration) = &fault.declaration
                && due_verdicts.contains(declaration.as_str())
            {
                faults.entry(declaration).or_default().push(fault);
            }
        }
        let in_force = catalog.in_force();
        let none = UnionDeclarationStatus::default();
        let judge = |name: &str, queue: &mut StatusQueue| {
            let (Some(known), Some(stored)) = (workspace.declaration(name), stored.get(name)) else {
                queue.forget(name);
                return false;
            };
            let target = known.target();
            let target = target.as_ref();
            if target.is_some_and(|kind| documents.is_behind(kind) || workspace.is_dirty(kind)) {
                return false;
            }
            let missing = target.is_some_and(|kind| workspace.missing().contains(kind));
            let faults = faults.get(name).map_or(&[][..], Vec::as_slice);
            let in_force = in_force.get(name).map_or(0, BTreeSet::len);
            let declared = known.declaration().map(Declaration::declared);
            let verdict = verdict(stored.metadata.generation, missing, in_force, declared, faults);
            queue.judged(name, verdict, stored.status.as_ref().unwrap_or(&none))
        };
        let due = std::mem::take(due_verdicts);
        statuses.send_if_modified(|queue| due.iter().filter(|name| judge(name, queue)).count() > 0);
    }
}
