//! Writes the status of each `UnionDeclaration` when its verdict changes.
//!
//! Every replica writes, on the loop of all controllers. During an upgrade two versions of the program may disagree; they do not
//! fight, because a replica writes a verdict once, and again only if a part of it disappears.
//!
//! Knows nothing of schemas and unions; [`verdict`](super::verdict) has the content of a status, and
//! [`publication`](super::publication) tells the queue each verdict.

use super::verdict::{dated, digest, has_verdict, lacks_a_part_of};
use crate::controllers::{Controller, Reconciled, StepError, news, run};
use crate::telemetry::LogOnce;
use futures::future::join_all;
use kube::{Client, Resource};
use kube_unions_api::{MANAGER, ObjectPath, RequestError};
use kube_unions_core::declaration::{UnionDeclaration, UnionDeclarationStatus};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

const CONCURRENT_WRITES: usize = 4;

/// Wait after a failed write.
const PAUSE: Duration = Duration::from_secs(5);

/// Time between two steps without a change, which find nothing to do.
const IDLE: Duration = Duration::from_hours(1);

/// The statuses to write. A newer verdict on a declaration replaces the older one, so that the queue never has more statuses than
/// there are declarations, however long a write takes.
#[derive(Debug, Default)]
pub(super) struct StatusQueue {
    /// Statuses by declaration. INVARIANT: an entry has a status to write, or the digest of a written one.
    entries: BTreeMap<Box<str>, QueuedStatus>,
}

#[derive(Debug, Default)]
struct QueuedStatus {
    /// The status to write.
    due: Option<Arc<UnionDeclarationStatus>>,
    /// The digest of the verdict that this replica wrote last. It is kept as long as the declaration, so a status would be too large.
    written: Option<u64>,
}

/// A declaration, and the status to write.
type DueStatus = (Box<str>, Arc<UnionDeclarationStatus>);

impl StatusQueue {
    /// Takes in the verdict on a declaration that has this stored status. Returns true if there is a new status to write.
    pub(super) fn judged(
        &mut self,
        name: &str,
        verdict: UnionDeclarationStatus,
        stored: &UnionDeclarationStatus,
    ) -> bool {
        if has_verdict(stored, &verdict) {
            self.change(name, |queued| queued.due = None);
            return false;
        }
        let queued = self.entries.get(name);
        let is_due = queued.and_then(|queued| queued.due.as_deref()).is_some_and(|due| has_verdict(due, &verdict));
        let was_written = || queued.is_some_and(|queued| queued.written == Some(digest(&verdict)));
        let is_new = !is_due && (lacks_a_part_of(stored, &verdict) || !was_written());
        if is_new {
            self.entries.entry(name.into()).or_default().due = Some(Arc::new(dated(verdict, stored)));
        }
        is_new
    }

    /// Forgets a declaration that was deleted.
    pub(super) fn forget(&mut self, name: &str) {
        self.entries.remove(name);
    }

    /// Returns the next statuses to write: round and round in the order of names, behind `last`. So writes that fail again and again
    /// keep no others waiting.
    fn next(&self, last: &str) -> Vec<DueStatus> {
        let behind = self.entries.range::<str, _>((Bound::Excluded(last), Bound::Unbounded));
        let around = behind.chain(self.entries.range::<str, _>((Bound::Unbounded, Bound::Included(last))));
        let due = around.filter_map(|(name, queued)| Some((name.clone(), queued.due.clone()?)));
        due.take(CONCURRENT_WRITES).collect()
    }

    /// Notes that a status was written, or that its declaration does not exist. A status that became due meanwhile stays: it is of a
    /// newer verdict, or of a new declaration of that name.
    fn done(&mut self, (name, status): &DueStatus, is_written: bool) {
        self.change(name, |queued| {
            queued.written = is_written.then(|| digest(status));
            queued.due.take_if(|due| Arc::ptr_eq(due, status));
        });
    }

    /// Changes the entry of a declaration, if there is one.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut QueuedStatus)) {
        let Some(queued) = self.entries.get_mut(name) else { return };
        change(queued);
        if queued.due.is_none() && queued.written.is_none() {
            self.entries.remove(name);
        }
    }
}

/// Writes the statuses of a queue.
struct StatusController {
    client: Client,
    queue: watch::Sender<StatusQueue>,
    /// The declaration whose status was tried last.
    last_tried: Box<str>,
    failure: LogOnce,
}

/// Writes the statuses of a queue, for ever.
pub(super) async fn write_statuses(client: Client, queue: watch::Sender<StatusQueue>) {
    let changes = news(&queue.subscribe());
    let mut controller = StatusController { client, queue, last_tried: Box::default(), failure: LogOnce::default() };
    run(&mut controller, changes).await;
}

impl Controller for StatusController {
    type Event = ();

    fn waits(&self) -> [Duration; 2] {
        [PAUSE, PAUSE]
    }

    /// The queue has the change.
    fn observe(&mut self, (): ()) {}

    async fn step(&mut self, now: Instant) -> Result<Reconciled, StepError> {
        loop {
            let due = self.queue.borrow().next(&self.last_tried);
            if due.is_empty() {
                return Ok(Reconciled::in_sync(now + IDLE));
            }
            let mut outcome: Result<(), StepError> = Ok(());
            let results = join_all(due.iter().map(|due| write(&self.client, due))).await;
            for (due, result) in due.iter().zip(results) {
                self.last_tried.clone_from(&due.0);
                let is_written = match result {
                    Ok(_) => true,
                    // Deleted meanwhile.
                    Err(error) if error.is_not_found() => false,
                    Err(error) => {
                        outcome = Err(error.into());
                        continue;
                    }
                };
                self.queue.send_if_modified(|queue| {
                    queue.done(due, is_written);
                    false
                });
            }
            // Writes that failed together are paused for together.
            outcome?;
        }
    }

    fn failed(&mut self, error: &StepError) {
        let reason = &error.reason;
        if self.failure.is_new(reason) {
            tracing::warn!(reason, "cannot write the status of a UnionDeclaration; retrying");
        }
    }

    fn in_sync(&mut self) {
        self.failure.is_over();
    }
}

async fn write(client: &Client, (name, status): &DueStatus) -> Result<Value, RequestError> {
    let body = json!({
        "apiVersion": UnionDeclaration::api_version(&()),
        "kind": UnionDeclaration::kind(&()),
        "metadata": {"name": name},
        "status": **status,
    });
    let path = ObjectPath::new(UnionDeclaration::url_path(&(), None), name).with_subresource("status");
    path.apply(client, &body, MANAGER, true).await
}

#[cfg(test)]
mod tests {
    use super::super::verdict::verdict;
    use super::*;

    fn judgement(in_force: usize) -> UnionDeclarationStatus {
        verdict(Some(1), false, in_force, Some(9), &[])
    }

    /// Writes the next statuses. Returns the declarations, and what their statuses say.
    fn write_next(queue: &mut StatusQueue, last: &str) -> Vec<String> {
        let due = queue.next(last);
        for due in &due {
            queue.done(due, true);
        }
        due.iter().map(|(name, status)| format!("{name} {}", status.unions.as_deref().unwrap_or_default())).collect()
    }

    #[test]
    fn a_declaration_has_one_entry_however_often_it_is_judged_and_none_when_it_is_gone() {
        let (mut queue, none) = (StatusQueue::default(), UnionDeclarationStatus::default());
        for in_force in 0..100 {
            for name in ["a", "b", "c", "d", "e", "f"] {
                assert!(queue.judged(name, judgement(in_force % 9), &none), "{name} {in_force}");
                assert!(!queue.judged(name, judgement(in_force % 9), &none), "{name} {in_force} is due already");
            }
        }
        assert_eq!(queue.entries.len(), 6);
        assert_eq!(write_next(&mut queue, "c"), ["d 0/9", "e 0/9", "f 0/9", "a 0/9"]);
        // Not again, unless a part of it disappears.
        let other = judgement(5);
        assert!(!queue.judged("d", judgement(0), &other));
        assert!(queue.judged("e", judgement(0), &none));
        assert!(queue.judged("f", judgement(1), &other));
        assert_eq!(write_next(&mut queue, "a"), ["b 0/9", "c 0/9", "e 0/9", "f 1/9"]);
        assert!(write_next(&mut queue, "f").is_empty());
        for name in ["a", "b", "c", "d", "e", "f"] {
            queue.forget(name);
        }
        assert!(queue.entries.is_empty());
        // A stored status that says the verdict needs no entry.
        assert!(!queue.judged("g", judgement(1), &judgement(1)));
        assert!(queue.judged("g", judgement(2), &judgement(1)) && !queue.judged("g", judgement(1), &judgement(1)));
        assert!(queue.entries.is_empty());
    }

    #[test]
    fn what_changes_while_a_status_is_written_is_not_lost() {
        let (mut queue, none) = (StatusQueue::default(), UnionDeclarationStatus::default());
        let begin = |queue: &mut StatusQueue, in_force: usize| {
            assert!(queue.judged("a", judgement(in_force), &none));
            queue.next("").remove(0)
        };
        let due = |queue: &StatusQueue| queue.next("").iter().map(|(_, due)| due.unions.clone()).collect::<Vec<_>>();
        // A newer verdict.
        let write = begin(&mut queue, 1);
        assert!(queue.judged("a", judgement(2), &none));
        queue.done(&write, true);
        assert_eq!(due(&queue), [Some("2/9".to_owned())]);
        // Deleted: nothing comes back.
        let write = queue.next("").remove(0);
        queue.forget("a");
        queue.done(&write, true);
        assert!(queue.entries.is_empty());
        // Deleted and created again, before the answer: the new one has no status yet.
        for is_written in [true, false] {
            let write = begin(&mut queue, 3);
            queue.forget("a");
            assert!(queue.judged("a", judgement(3), &none));
            queue.done(&write, is_written);
            assert_eq!(due(&queue), [Some("3/9".to_owned())]);
            queue.forget("a");
        }
        // The answer says that it is gone, and the watch tells so later.
        let write = begin(&mut queue, 4);
        queue.done(&write, false);
        assert!(queue.entries.is_empty());
    }
}
