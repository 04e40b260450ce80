//! The condition `Accepted` of each `UnionDeclaration`, written when it says something new.
//!
//! Several replicas do this at the same time. They come to the same words from the same objects, so whoever is first
//! spares the others the write. One that says something else, as during an upgrade, is not argued with: the same words
//! are written once, and again only if they are missing altogether.

use super::events::Events;
use super::raw::{Declarations, Parts, RawResource};
use super::schemas::is_not_found;
use crate::cluster::reason::reason;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use k8s_openapi::jiff::{Timestamp, Unit};
use kube::Client;
use kube_unions_core::declaration::{Fault, Severity};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::time::{Duration, Instant};

const FIELD_MANAGER: &str = "kube-unions";
const CONDITION: &str = "Accepted";

/// Writes under way at a time.
const AT_A_TIME: usize = 4;

/// Longest message. The log and `lint` have the rest.
const LONGEST: usize = 2048;

/// After a failure nothing is written for so long.
const PAUSE: Duration = Duration::from_secs(5);

/// What a condition says, apart from since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    generation: Option<i64>,
    status: String,
    reason: String,
    message: String,
}

/// A condition as it stands in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    verdict: Verdict,
    since: String,
}

#[derive(Deserialize)]
struct WireStatus {
    #[serde(default)]
    conditions: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCondition {
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    observed_generation: Option<i64>,
    #[serde(default)]
    last_transition_time: String,
}

impl Verdict {
    /// From everything that is wrong with a declaration.
    pub(super) fn new(generation: Option<i64>, missing: bool, faults: &[&Fault]) -> Self {
        let (errors, warnings): (Vec<_>, Vec<_>) = faults.iter().partition(|fault| fault.severity == Severity::Error);
        let (status, reason, message) = if missing {
            ("False", "TargetNotFound", summary(&errors))
        } else if !errors.is_empty() {
            ("False", "Invalid", summary(&errors))
        } else if warnings.is_empty() {
            ("True", "Compiled", "in force".to_owned())
        } else {
            ("True", "Compiled", format!("in force, and may surprise: {}", summary(&warnings)))
        };
        Self { generation, status: status.to_owned(), reason: reason.to_owned(), message }
    }

    /// Whether the declaration is in force.
    pub(super) fn accepts(&self) -> bool {
        self.status == "True"
    }

    /// Whether nothing is wrong with it but that the cluster does not have its target.
    pub(super) fn misses_target(&self) -> bool {
        self.reason == "TargetNotFound"
    }

    /// What it says for people.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Whether it says something else, of whatever generation.
    fn differs(&self, other: &Self) -> bool {
        (&self.status, &self.reason, &self.message) != (&other.status, &other.reason, &other.message)
    }
}

impl Condition {
    /// From the status of a declaration, whatever else that holds.
    pub(super) fn read(parts: &Parts) -> Option<Self> {
        let status: WireStatus = serde_json::from_str(parts.status.as_ref()?.get()).ok()?;
        let found = status.conditions.into_iter().find(|condition| condition["type"] == CONDITION)?;
        let found: WireCondition = serde_json::from_value(found).ok()?;
        let WireCondition { status, reason, message, observed_generation, last_transition_time } = found;
        let verdict = Verdict { generation: observed_generation, status, reason, message };
        Some(Self { verdict, since: last_transition_time })
    }
}

/// The writes that are due or under way.
pub(super) struct Statuses {
    client: Client,
    events: Events,
    due: BTreeMap<Box<str>, Due>,
    writing: FuturesUnordered<BoxFuture<'static, Written>>,
    /// What was written last, or is being written.
    said: HashMap<Box<str>, Verdict>,
    paused: Option<Instant>,
    /// What was logged last.
    trouble: Option<String>,
}

/// A condition to write.
#[derive(Debug, Clone)]
struct Due {
    verdict: Verdict,
    since: String,
    /// The version of the declaration that it is about, where the verdict is another than the one that stands there.
    news: Option<Box<str>>,
}

struct Written {
    name: Box<str>,
    due: Due,
    /// The API server's answer.
    outcome: kube::Result<String>,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    uid: String,
}

impl Statuses {
    pub(super) fn new(client: Client) -> Self {
        Self {
            events: Events::new(client.clone()),
            client,
            due: BTreeMap::new(),
            writing: FuturesUnordered::new(),
            said: HashMap::new(),
            paused: None,
            trouble: None,
        }
    }

    /// Has the condition of a declaration say so, which had `stands` at `version`.
    pub(super) fn want(&mut self, name: &str, version: &str, verdict: Verdict, stands: Option<&Condition>) {
        if stands.is_some_and(|stands| stands.verdict == verdict) {
            self.due.remove(name);
            return;
        }
        if self.said.get(name) == Some(&verdict) {
            return;
        }
        let since = stands
            .filter(|stands| stands.verdict.status == verdict.status && !stands.since.is_empty())
            .map_or_else(now, |stands| stands.since.clone());
        let news = stands.is_none_or(|stands| stands.verdict.differs(&verdict)).then(|| version.into());
        self.due.insert(name.into(), Due { verdict, since, news });
    }

    /// It has no condition, so what was said before is to be said again.
    pub(super) fn wiped(&mut self, name: &str) {
        self.said.remove(name);
    }

    /// Forgets a declaration that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.said.remove(name);
        self.due.remove(name);
    }

    /// Works until there is nothing to do but wait for [`want`](Self::want).
    pub(super) async fn work(&mut self) {
        loop {
            if let Some(since) = self.paused {
                tokio::time::sleep_until((since + PAUSE).into()).await;
                self.paused = None;
            }
            while self.writing.len() < AT_A_TIME {
                let Some((name, due)) = self.due.pop_first() else { break };
                self.said.insert(name.clone(), due.verdict.clone());
                self.writing.push(write(self.client.clone(), name, due).boxed());
            }
            match self.writing.next().await {
                Some(written) => self.settle(written),
                None => return std::future::pending().await,
            }
        }
    }

    fn settle(&mut self, written: Written) {
        let Written { name, due, outcome } = written;
        match outcome {
            Ok(answer) => {
                self.trouble = None;
                if let Some(version) = &due.news
                    && let Ok(Answer { metadata }) = serde_json::from_str(&answer)
                {
                    self.events.tell(&name, &metadata.uid, version, &due.verdict);
                }
            }
            // It was deleted meanwhile.
            Err(error) if is_not_found(&error) => self.forget(&name),
            Err(error) => {
                if self.said.get(&name) == Some(&due.verdict) {
                    self.said.remove(&name);
                    // Unless there is something newer to say.
                    self.due.entry(name).or_insert(due);
                }
                self.paused = Some(Instant::now());
                let reason = reason(&error);
                if self.trouble.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "the status of a declaration cannot be written; retrying");
                    self.trouble = Some(reason);
                }
            }
        }
    }
}

async fn write(client: Client, name: Box<str>, due: Due) -> Written {
    let Due { verdict, since, .. } = &due;
    let mut condition = json!({
        "type": CONDITION,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": since,
    });
    if let (Some(generation), Some(condition)) = (verdict.generation, condition.as_object_mut()) {
        condition.insert("observedGeneration".to_owned(), generation.into());
    }
    let body = json!({
        "apiVersion": format!("{}/{}", Declarations::GROUP, Declarations::VERSION),
        "kind": Declarations::KIND,
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let path = Declarations::path(&name);
    let request = Request::patch(format!("{path}/status?fieldManager={FIELD_MANAGER}&force=true"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(body.to_string().into_bytes());
    let outcome = match request {
        Ok(request) => client.request_text(request).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    Written { name, due, outcome }
}

/// Every message once, with its place; the versions of a kind mostly have the same to say.
fn summary(faults: &[&Fault]) -> String {
    let mut all = Vec::new();
    for fault in faults {
        let one = (fault.path.as_str(), fault.message.as_str());
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let mut text = String::new();
    for (position, (path, message)) in all.iter().enumerate() {
        let (separator, colon) = (if position == 0 { "" } else { "; " }, if path.is_empty() { "" } else { ": " });
        if text.len() + path.len() + message.len() > LONGEST {
            // Writing to a string can't fail.
            let _ = write!(text, "{separator}and {} more", all.len() - position);
            break;
        }
        let _ = write!(text, "{separator}{path}{colon}{message}");
    }
    text
}

fn now() -> String {
    Timestamp::now().round(Unit::Second).unwrap_or_else(|_| Timestamp::now()).to_string()
}
