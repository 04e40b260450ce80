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
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
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

/// The queue of statuses to write, and the writes in progress.
pub(super) struct StatusWriter {
    client: Client,
    queue: BTreeMap<Box<str>, DueStatus>,
    /// The declaration whose status was taken from the queue last.
    last_taken: Box<str>,
    in_progress: FuturesUnordered<BoxFuture<'static, WrittenStatus>>,
    /// The verdict that this replica wrote last, or is writing, by declaration.
    last_written: HashMap<Box<str>, DeclarationVerdict>,
    paused: Option<Instant>,
    /// The last logged error. `None` after a successful write.
    logged: Option<String>,
}

/// A status to write.
#[derive(Debug, Clone)]
struct DueStatus {
    verdict: DeclarationVerdict,
    /// The last transition times of the conditions, by type, in RFC 3339.
    times: BTreeMap<ConditionType, String>,
}

struct WrittenStatus {
    name: Box<str>,
    due: DueStatus,
    result: Result<Value, RequestError>,
}

impl StatusWriter {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            queue: BTreeMap::new(),
            last_taken: Box::default(),
            in_progress: FuturesUnordered::new(),
            last_written: HashMap::new(),
            paused: None,
            logged: None,
        }
    }

    /// Queues the verdict on a declaration, unless `stored` already says it or this replica has written it before.
    pub(super) fn publish(&mut self, name: &str, verdict: DeclarationVerdict, stored: &StoredStatus) {
        if stored.says(&verdict) {
            self.queue.remove(name);
        } else if stored.lacks_a_part_of(&verdict) || self.last_written.get(name) != Some(&verdict) {
            let since = |condition: &JudgedCondition| stored.unchanged_since(condition).map_or_else(now, str::to_owned);
            let times = verdict.conditions().map(|(name, condition)| (name, since(condition))).into();
            self.queue.insert(name.into(), DueStatus { verdict, times });
        }
    }

    /// Forgets a deleted declaration.
    pub(super) fn forget(&mut self, name: &str) {
        self.last_written.remove(name);
        self.queue.remove(name);
    }

    /// Writes queued statuses. Stays pending when the queue is empty; cancel it to [`publish`](Self::publish) more.
    pub(super) async fn run(&mut self) {
        loop {
            if let Some(since) = self.paused {
                tokio::time::sleep_until((since + PAUSE).into()).await;
                self.paused = None;
            }
            while self.in_progress.len() < CONCURRENT_WRITES {
                let Some((name, due)) = self.take_next() else { break };
                self.last_written.insert(name.clone(), due.verdict.clone());
                self.in_progress.push(write(self.client.clone(), name, due).boxed());
            }
            match self.in_progress.next().await {
                Some(written) => self.finish(written),
                None => return std::future::pending().await,
            }
            // Writes that failed together are paused for together.
            while let Some(Some(written)) = self.in_progress.next().now_or_never() {
                self.finish(written);
            }
        }
    }

    /// Takes the next status in the order of names, round and round: writes that fail again and again keep no others waiting.
    fn take_next(&mut self) -> Option<(Box<str>, DueStatus)> {
        let behind = (Bound::Excluded(&*self.last_taken), Bound::Unbounded);
        let next = self.queue.range::<str, _>(behind).next().or_else(|| self.queue.first_key_value());
        self.last_taken = next?.0.clone();
        self.queue.remove_entry(&self.last_taken)
    }

    fn finish(&mut self, written: WrittenStatus) {
        let WrittenStatus { name, due, result } = written;
        match result {
            Ok(_) => self.logged = None,
            // Deleted meanwhile.
            Err(error) if error.is_not_found() => self.forget(&name),
            Err(error) => {
                if self.last_written.get(&name) == Some(&due.verdict) {
                    self.last_written.remove(&name);
                    // A newer verdict in the queue wins.
                    self.queue.entry(name).or_insert(due);
                }
                self.paused = Some(Instant::now());
                let reason = reason(&error);
                if self.logged.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "cannot write the status of a UnionDeclaration; retrying");
                    self.logged = Some(reason);
                }
            }
        }
    }
}

async fn write(client: Client, name: Box<str>, due: DueStatus) -> WrittenStatus {
    let DueStatus { verdict, times } = &due;
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
    let path = UnionDeclarations::path(&name);
    let path = format!("{path}/status?fieldManager={FIELD_MANAGER}&force=true");
    let result = api::write(&client, Method::PATCH, &path, APPLY, &body).await;
    WrittenStatus { name, due, result }
}

fn now() -> String {
    Timestamp::now().round(Unit::Second).unwrap_or_else(|_| Timestamp::now()).to_string()
}
