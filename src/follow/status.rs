//! Writes the status of each `UnionDeclaration` when its verdict changes.
//!
//! Every replica writes, on the loop of all controllers. During an upgrade two versions of the program may disagree; they do not
//! fight, because a replica writes a verdict once, and again only if a part of it disappears.
//!
//! Knows nothing of schemas and unions; [`verdict`](super::verdict) has the content of a status.

use super::verdict::{dated, lacks_a_part_of, says};
use crate::api::{MANAGER, ObjectPath, RequestError};
use crate::controllers::{Controller, Reconciled, StepError, run};
use crate::telemetry::LogOnce;
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::join_all;
use kube::{Client, Resource};
use kube_unions_core::declaration::{UnionDeclaration, UnionDeclarationStatus};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

const CONCURRENT_WRITES: usize = 4;

/// Wait after a failed write.
const PAUSE: Duration = Duration::from_secs(5);

/// Time between two steps without a change, which find nothing to do.
const IDLE: Duration = Duration::from_hours(1);

/// The verdict on a declaration with the stored status, by name; `None` if the declaration was deleted.
pub(super) type StatusChange = (Box<str>, Option<[UnionDeclarationStatus; 2]>);

/// The statuses to write.
struct StatusController {
    client: Client,
    /// By declaration.
    queue: BTreeMap<Box<str>, UnionDeclarationStatus>,
    /// The status that this replica wrote last, by declaration.
    last_written: HashMap<Box<str>, UnionDeclarationStatus>,
    /// The declaration whose status was tried last.
    last_tried: Box<str>,
    failure: LogOnce,
}

/// Writes the status of each declaration whose verdict is not the stored one, until the sender of `verdicts` is dropped.
pub(super) async fn write_statuses(client: Client, verdicts: UnboundedReceiver<StatusChange>) {
    let (queue, last_written, last_tried) = Default::default();
    let mut controller = StatusController { client, queue, last_written, last_tried, failure: LogOnce::default() };
    run(&mut controller, verdicts.boxed()).await;
}

impl Controller for StatusController {
    type Event = StatusChange;

    fn waits(&self) -> [Duration; 2] {
        [PAUSE, PAUSE]
    }

    fn heard(&mut self, (name, judged): StatusChange) {
        let Some([verdict, stored]) = judged else {
            self.last_written.remove(&name);
            self.queue.remove(&name);
            return;
        };
        let was_written = || self.last_written.get(&name).is_some_and(|written| says(written, &verdict));
        if says(&stored, &verdict) {
            self.queue.remove(&name);
        } else if lacks_a_part_of(&stored, &verdict) || !was_written() {
            self.queue.insert(name, dated(verdict, &stored));
        }
    }

    async fn step(&mut self, now: Instant) -> Result<Reconciled, StepError> {
        // Round and round in the order of names: writes that fail again and again keep no others waiting.
        let last = &*self.last_tried;
        let behind = self.queue.range::<str, _>((Bound::Excluded(last), Bound::Unbounded));
        let due = behind.chain(self.queue.range::<str, _>((Bound::Unbounded, Bound::Included(last))));
        let due: Vec<_> = due.map(|(name, due)| (name.clone(), due.clone())).collect();
        for due in due.chunks(CONCURRENT_WRITES) {
            let mut outcome: Result<(), StepError> = Ok(());
            for ((name, due), result) in due.iter().zip(join_all(due.iter().map(|due| write(&self.client, due))).await)
            {
                self.last_tried.clone_from(name);
                match result {
                    Ok(_) => drop(self.last_written.insert(name.clone(), due.clone())),
                    // Deleted meanwhile.
                    Err(error) if error.is_not_found() => drop(self.last_written.remove(name)),
                    Err(error) => {
                        outcome = Err(error.into());
                        continue;
                    }
                }
                self.queue.remove(name);
            }
            // Writes that failed together are paused for together.
            outcome?;
        }
        Ok(Reconciled::in_sync(now + IDLE))
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

async fn write(client: &Client, (name, status): &(Box<str>, UnionDeclarationStatus)) -> Result<Value, RequestError> {
    let body = json!({
        "apiVersion": UnionDeclaration::api_version(&()),
        "kind": UnionDeclaration::kind(&()),
        "metadata": {"name": name},
        "status": status,
    });
    let path = ObjectPath::new(UnionDeclaration::url_path(&(), None), name).with_subresource("status");
    path.apply(client, &body, MANAGER, true).await
}
