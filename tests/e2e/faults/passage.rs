//! The body of an answer, and what faults make of it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{Asked, Effect, Fault, Requests, Shared};
use fixtures::api_server::{DEFINITIONS, status};

/// The interval between two bytes of an answer that drips, and between two bookmarks of a stale watch.
const DRIP: Duration = Duration::from_secs(1);

/// The body of an answer on its way to the webhook.
pub(super) struct Passage {
    pub(super) shared: Arc<Shared>,
    pub(super) asked: Asked,
    pub(super) faults: watch::Receiver<Option<Fault>>,
    pub(super) sender: mpsc::UnboundedSender<io::Result<Bytes>>,
}

impl Passage {
    /// Passes the body on, and injects a fault into a watch as soon as there is one.
    pub(super) async fn run(mut self, body: Body, mut effect: Option<Effect>) {
        let mut body = body.into_data_stream();
        let mut version = self.asked.parameter("resourceVersion").unwrap_or("0").to_owned();
        let mut late = VecDeque::new();
        let mut ticks = tokio::time::interval(DRIP);
        loop {
            match effect {
                None | Some(Effect::Misspelt(..)) => tokio::select! {
                    chunk = body.next() => {
                        let Some(Ok(chunk)) = chunk else { return };
                        version = last_version(&chunk).unwrap_or(version);
                        self.send(chunk);
                    }
                    Ok(()) = self.faults.changed(), if self.asked.is_watch() => {
                        effect = self.shared.hit(&self.asked);
                        if self.must_relist() {
                            let expired = status(410, "Expired", "too old resource version");
                            return self.event("ERROR", &expired);
                        }
                    }
                    () = self.sender.closed() => return,
                },
                Some(Effect::Drip) => tokio::select! {
                    Some(Ok(chunk)) = body.next() => late.extend(chunk),
                    _ = ticks.tick() => self.send(late.pop_front()),
                    () = self.sender.closed() => return,
                },
                Some(Effect::Stale) => tokio::select! {
                    _ = ticks.tick() => {
                        let bookmark = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                            "metadata": {"resourceVersion": version}});
                        self.event("BOOKMARK", &bookmark);
                    }
                    () = self.sender.closed() => return,
                },
                Some(Effect::Truncated) if self.asked.is_watch() => {
                    return self.send(*br#"{"type":"ADDED","object":{"#);
                }
                Some(Effect::Truncated) => {
                    let rest = body.map(|chunk| chunk.unwrap_or_default().to_vec()).concat().await;
                    return self.send(rest[..rest.len() / 2].to_vec());
                }
                Some(Effect::Silence | Effect::HeadersOnly) => return self.sender.closed().await,
                Some(Effect::Reset) => return drop(self.sender.send(Err(self.asked.reset()))),
                Some(Effect::Status(_) | Effect::Page | Effect::Endless) => return,
            }
        }
    }

    /// Returns true if only a new list meets the fault.
    fn must_relist(&self) -> bool {
        let lists = |fault: Fault| fault.requests == Requests::Definitions;
        self.asked.path == DEFINITIONS && self.faults.borrow().is_some_and(lists)
    }

    /// The webhook may have hung up.
    fn send(&self, bytes: impl IntoIterator<Item = u8>) {
        let bytes: Bytes = bytes.into_iter().collect();
        if !bytes.is_empty() {
            let _ = self.sender.send(Ok(bytes));
        }
    }

    fn event(&self, name: &str, object: &Value) {
        self.send(format!("{}\n", json!({"type": name, "object": object})).into_bytes());
    }
}

/// Returns the last `resourceVersion` in a piece of a watch.
fn last_version(chunk: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(chunk);
    let (_, rest) = text.rsplit_once(r#""resourceVersion":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}
