//! Lists a resource, and watches it from there, for ever.
//!
//! A watch is short, and renewed from the last version. An API server sends a bookmark before it ends one. So a watch without
//! an event or bookmark comes from a server that does not follow this history: a connection that is half open, a proxy in
//! between, or an etcd that was restored, whose versions begin again below the last one. Then everything is listed anew.

use super::retry::{CALM, Retry};
use futures::stream::{BoxStream, StreamExt, unfold};
use kube::api::{ListParams, WatchParams};
use kube::core::{Status, WatchEvent};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Error, Event, Result};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Lifetime of a watch, which the API server keeps.
const WATCH: Duration = Duration::from_secs(30);

/// Wait for the API server to end a watch.
const GRACE: Duration = Duration::from_secs(10);

/// Factor by which pages shrink after one that did not arrive as a whole.
const SHRINKING: u32 = 8;

/// Selects one object. With the name in the selector, a right by name is enough.
pub(crate) fn by_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// The first and later lists of a resource: tells which objects are gone at the end of a list.
#[derive(Debug, Default)]
pub(crate) struct ListProgress {
    /// The names that the list in progress has brought.
    seen: Option<HashSet<Box<str>>>,
    is_complete: bool,
}

/// A change of one object.
pub(crate) enum WatchChange<K> {
    Set(K),
    /// The object of this name does not exist any more.
    Gone(Box<str>),
}

impl ListProgress {
    /// Returns the changes that an event brings. At the end of a list, objects of `known` that it has not brought are gone.
    pub(crate) fn changes<'k, K: Resource>(
        &mut self,
        event: Event<K>,
        known: impl Iterator<Item = &'k str>,
    ) -> Vec<WatchChange<K>> {
        let name = |object: &K| Box::from(object.meta().name.as_deref().unwrap_or_default());
        match event {
            Event::Init => self.seen = Some(HashSet::new()),
            Event::InitApply(object) | Event::Apply(object) => {
                self.seen.as_mut().map(|seen| seen.insert(name(&object)));
                return vec![WatchChange::Set(object)];
            }
            Event::InitDone => {
                self.is_complete = true;
                let Some(seen) = self.seen.take() else { return Vec::new() };
                let gone = known.filter(|name| !seen.contains(*name));
                return gone.map(|name| WatchChange::Gone(name.into())).collect();
            }
            Event::Delete(object) => return vec![WatchChange::Gone(name(&object))],
        }
        Vec::new()
    }

    /// Gives up a list that cannot be read. The known objects stay.
    pub(crate) fn give_up(&mut self) {
        (self.seen, self.is_complete) = (None, true);
    }

    /// Returns true if a list was completed, or was given up.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns true during a list.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.seen.is_some()
    }
}

/// Yields the events of a resource, with back-off after each error. A page of a list is held as a whole. Calls `proven` whenever the API server proves to be followed:
/// a watch begins, or has an event or bookmark.
pub(crate) fn list_and_watch<K>(
    api: Api<K>,
    selection: ListParams,
    proven: impl Fn() + Send + 'static,
) -> BoxStream<'static, Result<Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let shrunk = selection.limit;
    let follower = Follower { api, selection, proven, shrunk, stage: WatchStage::Start, last_expiry: None };
    let events = unfold(follower, async |mut follower| {
        loop {
            if let Some(event) = follower.step().await {
                return Some((event, follower));
            }
        }
    });
    events.backoff(Retry::default()).boxed()
}

struct Follower<K, F> {
    api: Api<K>,
    selection: ListParams,
    proven: F,
    /// Objects in the next page.
    shrunk: Option<u32>,
    stage: WatchStage<K>,
    /// The time at which the API server has last forgotten the version of a watch.
    last_expiry: Option<Instant>,
}

enum WatchStage<K> {
    Start,
    Listing { objects: VecDeque<K>, next: Option<String>, version: Option<String> },
    Listed { version: String },
    Watching(RunningWatch<K>),
}

struct RunningWatch<K> {
    events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
    version: String,
    /// True after an event or bookmark.
    heard: bool,
    began: Instant,
}

impl<K, F: Fn()> Follower<K, F>
where
    K: Resource + Clone + DeserializeOwned + Debug + 'static,
{
    /// Goes one step. Returns `None` if it brings no event.
    async fn step(&mut self) -> Option<Result<Event<K>>> {
        // After an error everything is listed anew, unless the stage is set again.
        match std::mem::replace(&mut self.stage, WatchStage::Start) {
            WatchStage::Start => {
                self.stage = WatchStage::Listing { objects: VecDeque::new(), next: None, version: None };
                Some(Ok(Event::Init))
            }
            WatchStage::Listing { mut objects, next, version } => {
                if let Some(object) = objects.pop_front() {
                    self.stage = WatchStage::Listing { objects, next, version };
                    return Some(Ok(Event::InitApply(object)));
                }
                match (next, version) {
                    (None, Some(version)) => {
                        self.stage = WatchStage::Listed { version };
                        self.shrunk = self.selection.limit;
                        Some(Ok(Event::InitDone))
                    }
                    (next, _) => self.page(next).await.err().map(Err),
                }
            }
            WatchStage::Listed { version } => self.watch(version).await.err().map(Err),
            WatchStage::Watching(mut watch) => {
                match timeout_at(watch.began + WATCH + GRACE, watch.events.next()).await {
                    Ok(Some(event)) => self.event(event, watch),
                    Ok(None) | Err(_) if watch.heard => {
                        self.stage = WatchStage::Listed { version: watch.version };
                        None
                    }
                    Ok(None) if watch.began.elapsed() < WATCH / 2 => {
                        let reason = "the watch ended before its time, without an event";
                        Some(Err(Error::WatchFailed(kube::Error::ReadEvents(io::Error::other(reason)))))
                    }
                    Ok(None) | Err(_) => None,
                }
            }
        }
    }

    async fn page(&mut self, next: Option<String>) -> Result<()> {
        let parameters = ListParams { limit: self.shrunk, continue_token: next, ..self.selection.clone() };
        let list = self.api.list(&parameters).await.map_err(|error| {
            if !matches!(error, kube::Error::Api(_)) {
                self.shrunk = self.shrunk.map(|page| (page / SHRINKING).max(1));
            }
            Error::InitialListFailed(error)
        })?;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (next, version) = (given(list.metadata.continue_), given(list.metadata.resource_version));
        if next.is_none() && version.is_none() {
            return Err(Error::NoResourceVersion);
        }
        self.stage = WatchStage::Listing { objects: list.items.into(), next, version };
        Ok(())
    }

    async fn watch(&mut self, version: String) -> Result<()> {
        let parameters = WatchParams {
            field_selector: self.selection.field_selector.clone(),
            label_selector: self.selection.label_selector.clone(),
            timeout: u32::try_from(WATCH.as_secs()).ok(),
            ..WatchParams::default()
        };
        let began = Instant::now();
        match self.api.watch(&parameters, &version).await {
            Ok(events) => {
                (self.proven)();
                self.stage =
                    WatchStage::Watching(RunningWatch { events: events.boxed(), version, heard: false, began });
                Ok(())
            }
            Err(error) => {
                // A version that the server does not know is no reason to wait for it.
                let unknown = matches!(&error, kube::Error::Api(status) if matches!(status.code, 400 | 410 | 504));
                if !unknown {
                    self.stage = WatchStage::Listed { version };
                }
                Err(Error::WatchStartFailed(error))
            }
        }
    }

    fn event(&mut self, event: kube::Result<WatchEvent<K>>, mut watch: RunningWatch<K>) -> Option<Result<Event<K>>> {
        let (version, event) = match event {
            Ok(WatchEvent::Bookmark(bookmark)) => (Some(bookmark.metadata.resource_version), None),
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                (object.resource_version(), Some(Event::Apply(object)))
            }
            Ok(WatchEvent::Deleted(object)) => (object.resource_version(), Some(Event::Delete(object))),
            // The API server has forgotten the version, as after its restart. A wait would hide the changes meanwhile.
            Ok(WatchEvent::Error(status)) if is_first_expiry(&status, &mut self.last_expiry, Instant::now()) => {
                return None;
            }
            Ok(WatchEvent::Error(status)) => return Some(Err(Error::WatchError(status))),
            Err(error @ kube::Error::ReadEvents(_)) => {
                // If a watch breaks before its first event, the event itself may be too long. A list goes past it.
                if watch.heard {
                    self.stage = WatchStage::Listed { version: watch.version };
                }
                return Some(Err(Error::WatchFailed(error)));
            }
            // A line that is no event. The next one may be.
            Err(error) => {
                self.stage = WatchStage::Watching(watch);
                return Some(Err(Error::WatchFailed(error)));
            }
        };
        let Some(version) = version.filter(|version| !version.is_empty()) else {
            return Some(Err(Error::NoResourceVersion));
        };
        (self.proven)();
        (watch.version, watch.heard) = (version, true);
        self.stage = WatchStage::Watching(watch);
        event.map(Ok)
    }
}

/// Returns true if the version of a watch expired, and has not expired shortly before.
fn is_first_expiry(status: &Status, last: &mut Option<Instant>, now: Instant) -> bool {
    const GONE: u16 = 410;
    let again = |last: Instant| now.saturating_duration_since(last) < CALM;
    status.code == GONE && !last.replace(now).is_some_and(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_watch_is_relisted_at_once_and_not_again_and_again() {
        let error = |code| Status { code, ..Status::default() };
        let (mut last, now) = (None, Instant::now());
        assert!(!is_first_expiry(&error(500), &mut last, now));
        assert!(is_first_expiry(&error(410), &mut last, now));
        assert!(!is_first_expiry(&error(410), &mut last, now + CALM / 2));
        assert!(!is_first_expiry(&error(410), &mut last, now + CALM), "it has expired again meanwhile");
        assert!(is_first_expiry(&error(410), &mut last, now + CALM * 2));
    }
}
