//! Writes the status of each `UnionDeclaration` when its verdict changes.
//!
//! Every replica writes. Replicas compute equal verdicts from equal objects, so the first write spares the others theirs.
//! During an upgrade two versions of the program may disagree; they do not fight, because a replica writes a verdict once,
//! and again only if a part of it disappears.
//!
//! Knows nothing of schemas and unions; [`verdict`](super::verdict) has the content of a status.

use super::raw::{RawResource, UnionDeclarations};
use super::verdict::{ConditionType, DeclarationVerdict, JudgedCondition, StoredStatus};
use crate::api::{self, APPLY, RequestError, reason};
use crate::controllers::{Controller, LogOnce, Reconciled, run};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use hyper::Method;
use k8s_openapi::jiff::{Timestamp, Unit};
use kube::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

const FIELD_MANAGER: &str = "kube-unions";

const CONCURRENT_WRITES: usize = 4;

/// Wait after a failed write.
const PAUSE: Duration = Duration::from_secs(5);

/// Time between two steps without a change, which find nothing to do.
const IDLE: Duration = Duration::from_hours(1);

/// Sends verdicts to the controller that writes them.
pub(super) struct StatusWriter {
    changes: UnboundedSender<StatusChange>,
    controller: BoxFuture<'static, ()>,
}

/// A reason to write, or not to write.
enum StatusChange {
    /// A verdict on a declaration with this status.
    Judged(Box<str>, Box<(DeclarationVerdict, StoredStatus)>),
    /// The declaration was deleted.
    Deleted(Box<str>),
}

/// The statuses to write.
struct StatusController {
    client: Client,
    queue: BTreeMap<Box<str>, DueStatus>,
    /// The verdict that this replica wrote last, by declaration.
    last_written: HashMap<Box<str>, DeclarationVerdict>,
    /// The declaration whose status was tried last.
    last_tried: Box<str>,
    failure: LogOnce,
}

/// A status to write.
#[derive(Debug, Clone)]
struct DueStatus {
    verdict: DeclarationVerdict,
    /// The last transition times of the conditions, by type, in RFC 3339.
    times: BTreeMap<ConditionType, String>,
}

impl StatusWriter {
    pub(super) fn new(client: Client) -> Self {
        let (changes, received) = unbounded();
        let mut controller = StatusController {
            client,
            queue: BTreeMap::new(),
            last_written: HashMap::new(),
            last_tried: Box::default(),
            failure: LogOnce::default(),
        };
        Self { changes, controller: async move { run(&mut controller, received.boxed()).await }.boxed() }
    }

    /// Queues the verdict on a declaration, unless `stored` already says it or this replica has written it before.
    pub(super) fn publish(&mut self, name: &str, verdict: DeclarationVerdict, stored: &StoredStatus) {
        self.send(StatusChange::Judged(name.into(), Box::new((verdict, stored.clone()))));
    }

    /// Forgets a deleted declaration.
    pub(super) fn forget(&mut self, name: &str) {
        self.send(StatusChange::Deleted(name.into()));
    }

    fn send(&self, change: StatusChange) {
        // The controller receives as long as this exists.
        self.changes.unbounded_send(change).unwrap_or_default();
    }

    /// Writes queued statuses, and never ends. Cancel it to [`publish`](Self::publish) more.
    pub(super) async fn run(&mut self) {
        (&mut self.controller).await;
    }
}

impl Controller for StatusController {
    type Event = StatusChange;
    type Error = RequestError;

    fn waits(&self) -> [Duration; 2] {
        [PAUSE, PAUSE]
    }

    fn heard(&mut self, change: StatusChange) {
        match change {
            StatusChange::Judged(name, judged) => {
                let (verdict, stored) = *judged;
                if stored.says(&verdict) {
                    self.queue.remove(&name);
                } else if stored.lacks_a_part_of(&verdict) || self.last_written.get(&name) != Some(&verdict) {
                    let since =
                        |condition: &JudgedCondition| stored.unchanged_since(condition).map_or_else(now, str::to_owned);
                    let times = verdict.conditions().map(|(kind, condition)| (kind, since(condition))).into();
                    self.queue.insert(name, DueStatus { verdict, times });
                }
            }
            StatusChange::Deleted(name) => {
                self.last_written.remove(&name);
                self.queue.remove(&name);
            }
        }
    }

    async fn step(&mut self, now: Instant) -> Result<Reconciled, RequestError> {
        // Round and round in the order of names: writes that fail again and again keep no others waiting.
        let last = &*self.last_tried;
        let behind = self.queue.range::<str, _>((Bound::Excluded(last), Bound::Unbounded));
        let due = behind.chain(self.queue.range::<str, _>((Bound::Unbounded, Bound::Included(last))));
        let due: Vec<_> = due.map(|(name, due)| (name.clone(), due.clone())).collect();
        for due in due.chunks(CONCURRENT_WRITES) {
            let mut outcome = Ok(());
            for ((name, due), result) in due.iter().zip(join_all(due.iter().map(|due| write(&self.client, due))).await)
            {
                self.last_tried.clone_from(name);
                match result {
                    Ok(_) => drop(self.last_written.insert(name.clone(), due.verdict.clone())),
                    // Deleted meanwhile.
                    Err(error) if error.is_not_found() => drop(self.last_written.remove(name)),
                    Err(error) => {
                        outcome = Err(error);
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

    fn failed(&mut self, error: &RequestError) {
        let reason = reason(error);
        if self.failure.is_new(&reason) {
            tracing::warn!(reason, "cannot write the status of a UnionDeclaration; retrying");
        }
    }

    fn in_sync(&mut self) {
        self.failure.is_over();
    }
}

async fn write(
    client: &Client,
    (name, DueStatus { verdict, times }): &(Box<str>, DueStatus),
) -> Result<Value, RequestError> {
    let conditions = verdict.conditions().map(|(name, condition)| {
        let JudgedCondition { status, reason, message, .. } = condition;
        let mut written = json!({
            "type": name.name(),
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": times.get(&name),
        });
        if let (Some(generation), Some(written)) = (condition.generation, written.as_object_mut()) {
            written.insert("observedGeneration".to_owned(), generation.into());
        }
        written
    });
    let mut status = json!({"conditions": conditions});
    if let (Some(unions), Some(status)) = (&verdict.unions, status.as_object_mut()) {
        status.insert("unions".to_owned(), unions.as_str().into());
    }
    let body = json!({
        "apiVersion": format!("{}/{}", UnionDeclarations::GROUP, UnionDeclarations::VERSION),
        "kind": UnionDeclarations::KIND,
        "metadata": {"name": name},
        "status": status,
    });
    let path = UnionDeclarations::path(name);
    let path = format!("{path}/status?fieldManager={FIELD_MANAGER}&force=true");
    api::write(client, Method::PATCH, &path, APPLY, &body).await
}

fn now() -> String {
    Timestamp::now().round(Unit::Second).unwrap_or_else(|_| Timestamp::now()).to_string()
}
