//! Lists a resource, and watches it from there, for ever.
//!
//! A watch is short, and renewed from the last version. An API server sends a bookmark before it ends one. So a watch that lasted
//! and had no bookmark comes from a server that may not follow this history to its end: a connection that is half open, a proxy
//! in between, or an etcd that was restored, whose versions begin again below the last one, and soon pass it. Then everything is
//! listed anew, even if there were events. A watch that breaks early goes on from its last event: a restored server does not know
//! that version yet.

use super::endless::{EndlessList, MOST_OBJECTS};
use super::list::{ItemMetadata, ListedObject, PageSize, Pages};
use super::refusal::LiveError;
use super::request::RequestError;
use super::retry::{Doubling, WAITS};
use futures::channel::mpsc::{Sender, channel};
use futures::stream::{BoxStream, StreamExt, poll_fn};
use futures::{FutureExt, SinkExt};
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, Status, WatchEvent};
use kube_unions_core::causes::with_causes;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Lifetime of a watch, which the API server keeps.
const WATCH: Duration = Duration::from_secs(30);

/// Wait for the API server to end a watch.
const GRACE: Duration = Duration::from_secs(10);

/// Time in which a version that expires once more is no accident.
const CALM: Duration = Duration::from_secs(10);

/// Wait after a list without an end, which costs the API server more than other failures.
const ENDLESS: Duration = Duration::from_secs(10);

/// Objects in the first page of a list. A CRD can exceed a megabyte.
const FIRST: u32 = 10;

/// Selects one object. With the name in the selector, a right by name is enough.
pub fn by_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// A change of the objects of a resource.
#[derive(Debug)]
pub enum WatchChange {
    /// A list begins. What is known stays until the list says otherwise.
    Listing,
    /// An object is as in this JSON text.
    Set {
        /// `metadata.name`.
        name: Box<str>,
        /// The object.
        text: Box<str>,
    },
    /// The object of this name does not exist any more.
    Gone(Box<str>),
    /// The list is complete. What it did not bring was reported as gone.
    Listed,
}

impl From<ListedObject<'_>> for WatchChange {
    fn from(ListedObject { name, text, .. }: ListedObject<'_>) -> Self {
        Self::Set { name: name.into(), text: text.into() }
    }
}

/// A change, or the reason why there is none. The next attempt follows by itself.
pub type Watched = Result<WatchChange, RequestError>;

/// The progress of the lists of a resource.
#[derive(Debug, Default)]
pub struct ListProgress {
    /// True if a list was completed, or was given up.
    pub is_complete: bool,
    /// True during a list.
    pub is_in_progress: bool,
}

impl ListProgress {
    /// Notes a change.
    pub fn observe(&mut self, change: &WatchChange) {
        match change {
            WatchChange::Listing => self.is_in_progress = true,
            WatchChange::Listed => self.give_up(),
            WatchChange::Set { .. } | WatchChange::Gone(_) => {}
        }
    }

    /// Waits for no list any longer: it is complete, or cannot be read.
    pub fn give_up(&mut self) {
        *self = Self { is_complete: true, is_in_progress: false };
    }
}

/// Yields the changes of the selected objects at the path of a collection, with back-off after each error. A page of a list is held
/// as a whole. Calls `proven` whenever the API server proves to be followed: a watch begins, or has an event or bookmark.
pub fn list_and_watch(
    client: &Client,
    path: impl Into<String>,
    selection: ListParams,
    proven: impl Fn() + Send + 'static,
) -> BoxStream<'static, Watched> {
    let (changes, mut received) = channel(0);
    let (client, path, size, known) = (client.clone(), path.into(), PageSize::of(FIRST), HashSet::new());
    let follower = Follower {
        client,
        path,
        selection,
        proven,
        changes,
        size,
        known,
        waits: Doubling::new(WAITS),
        last_expiry: None,
    };
    let mut following = follower.follow().boxed();
    let next = move |context: &mut Context<'_>| {
        let waiting = received.poll_next_unpin(context);
        // A change that has arrived is yielded now: callers handle all that there are before they go on.
        if waiting.is_ready() || following.poll_unpin(context).is_ready() {
            return waiting;
        }
        received.poll_next_unpin(context)
    };
    poll_fn(next).boxed()
}

struct Follower<F> {
    client: Client,
    path: String,
    selection: ListParams,
    proven: F,
    changes: Sender<Watched>,
    /// The size of the first page of a list.
    size: PageSize,
    /// The names of the objects that were set and are not gone.
    known: HashSet<Box<str>>,
    waits: Doubling,
    /// The time at which the API server has last forgotten the version of a watch.
    last_expiry: Option<Instant>,
}

impl<F: Fn()> Follower<F> {
    async fn follow(mut self) {
        // `None` lists everything anew.
        let mut version = None;
        loop {
            let followed = match &mut version {
                None => self.list().await.map(|listed| version = Some(listed)),
                Some(_) => self.watch(&mut version).await.map(|()| self.waits.reset()),
            };
            if let Err(error) = followed {
                let wait = if matches!(error, RequestError::Endless(_)) { ENDLESS } else { self.waits.next_wait() };
                self.emit(Err(error)).await;
                tokio::time::sleep(wait).await;
            }
        }
    }

    async fn emit(&mut self, change: Watched) {
        // The receiver is dropped together with this.
        self.changes.send(change).await.unwrap_or_default();
    }

    /// Returns true if the object was not known.
    async fn set(&mut self, name: &str, text: &str) -> bool {
        let is_new = self.known.insert(name.into());
        self.emit(Ok(WatchChange::Set { name: name.into(), text: text.into() })).await;
        is_new
    }

    async fn remove(&mut self, name: Box<str>) {
        self.known.remove(&name);
        self.emit(Ok(WatchChange::Gone(name))).await;
    }

    /// Lists everything, and returns the version of the list. A list that is too long takes back the objects that it brought, so that
    /// lists which fail one after the other bring no more than one may have.
    async fn list(&mut self) -> Result<String, RequestError> {
        self.emit(Ok(WatchChange::Listing)).await;
        let mut pages = Pages::snapshot(&self.client, self.path.clone(), self.selection.clone(), self.size);
        let (mut missing, mut brought) = (self.known.clone(), Vec::new());
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(LiveError::Request(error)) => {
                    self.size = pages.size;
                    if matches!(error, RequestError::Unanswered(_)) {
                        self.size.shrink();
                    }
                    if matches!(error, RequestError::Endless(_)) || self.known.len() > MOST_OBJECTS {
                        for name in brought {
                            self.remove(name).await;
                        }
                    }
                    return Err(error);
                }
                Err(error) => return Err(RequestError::Unanswered(error.to_string())),
            };
            for object in page.objects() {
                missing.remove(object.name);
                if self.set(object.name, object.text).await {
                    brought.push(object.name.into());
                }
            }
        }
        let version = pages.version.filter(|version| !version.is_empty()).ok_or_else(without_version)?;
        for name in missing {
            self.remove(name).await;
        }
        self.size = PageSize::of(FIRST);
        self.emit(Ok(WatchChange::Listed)).await;
        Ok(version)
    }

    /// Watches from a version on, which each event replaces. Sets it to `None` if everything has to be listed anew.
    async fn watch(&mut self, version: &mut Option<String>) -> Result<(), RequestError> {
        let parameters = WatchParams {
            field_selector: self.selection.field_selector.clone(),
            label_selector: self.selection.label_selector.clone(),
            timeout: u32::try_from(WATCH.as_secs()).ok(),
            ..WatchParams::default()
        };
        let from = version.as_deref().unwrap_or_default();
        let request = Request::new(&*self.path).watch(&parameters, from).map_err(kube::Error::BuildRequest)?;
        let began = Instant::now();
        let events = match self.client.request_events::<Box<RawValue>>(request).await {
            Ok(events) => events,
            Err(error) => {
                // A version that the server does not know is no reason to wait for it.
                if matches!(&error, kube::Error::Api(status) if matches!(status.code, 400 | 410 | 504)) {
                    *version = None;
                }
                return Err(error.into());
            }
        };
        let mut events = pin!(events);
        (self.proven)();
        // If a watch breaks before its first event, the event itself may be too long. A list goes past it.
        let (mut heard, mut is_marked) = (None, false);
        let ended = loop {
            let event = match timeout_at(began + WATCH + GRACE, events.next()).await {
                Ok(Some(event)) => event,
                Ok(None) if heard.is_none() && began.elapsed() < WATCH / 2 => {
                    let reason = "the watch ended before its time, without an event";
                    break Err(RequestError::Unanswered(reason.to_owned()));
                }
                Ok(None) | Err(_) => break Ok(()),
            };
            let (next, object) = match event {
                Ok(WatchEvent::Bookmark(bookmark)) => (bookmark.metadata.resource_version, None),
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (of(&object), Some((object, true))),
                Ok(WatchEvent::Deleted(object)) => (of(&object), Some((object, false))),
                // The API server has forgotten the version, as after its restart. A wait would hide the changes meanwhile.
                Ok(WatchEvent::Error(status)) => {
                    let at_once = is_first_expiry(&status, &mut self.last_expiry, Instant::now());
                    (heard, *version) = (None, None);
                    break if at_once { Ok(()) } else { Err(RequestError::Status(status)) };
                }
                Err(error @ kube::Error::ReadEvents(_)) => break Err(error.into()),
                // A line that is no event. The next one may be.
                Err(error) => {
                    tracing::warn!(reason = with_causes(&error), "ignoring a malformed watch event");
                    tokio::time::sleep(self.waits.next_wait()).await;
                    continue;
                }
            };
            if next.is_empty() {
                heard = None;
                break Err(without_version());
            }
            (self.proven)();
            heard = Some(next);
            is_marked |= object.is_none();
            let Some((object, exists)) = object else { continue };
            let name = ItemMetadata::of(object.get()).name;
            if !exists {
                self.remove(name.into()).await;
            } else if self.known.len() < MOST_OBJECTS || self.known.contains(&*name) {
                self.set(&name, object.get()).await;
            } else {
                heard = None;
                break Err(EndlessList::Objects.into());
            }
        };
        *version = heard.filter(|_| is_marked || began.elapsed() < WATCH / 2);
        ended
    }
}

/// Returns the version of an object; empty if it has none.
fn of(object: &RawValue) -> String {
    ItemMetadata::of(object.get()).resource_version.into()
}

fn without_version() -> RequestError {
    RequestError::Unanswered("its answer has no resourceVersion".to_owned())
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
    use futures::future::pending;
    use http_body_util::StreamBody;
    use hyper::Response;
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;
    use parking_lot::Mutex;
    use std::convert::Infallible;
    use std::sync::Arc;
    use tower::service_fn;

    /// Returns a client of a server that gives these answers, and then none, and the URIs that it asks. An answer may leave its connection open.
    fn client<const ANSWERS: usize>(answers: [(String, bool); ANSWERS]) -> (Client, Arc<Mutex<Vec<String>>>) {
        let (asked, answers) = (Arc::<Mutex<Vec<String>>>::default(), Mutex::new(answers.into_iter()));
        let uris = Arc::clone(&asked);
        let server = service_fn(move |request: hyper::Request<Body>| {
            uris.lock().push(request.uri().to_string());
            let answer = answers.lock().next();
            async move {
                let Some((text, stays_open)) = answer else { return pending().await };
                let frames = futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(text)))]);
                let rest = futures::stream::pending().take(usize::from(stays_open));
                Ok::<_, Infallible>(Response::new(StreamBody::new(frames.chain(rest))))
            }
        });
        (Client::new(server, "default"), asked)
    }

    fn list(version: u32, items: &[&str]) -> String {
        format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#, items.join(","))
    }

    #[tokio::test]
    async fn any_json_of_a_list_or_an_event_is_a_change_and_a_relist_says_what_is_gone() {
        let a = r#"{"metadata":{"name":"a","resourceVersion":"1","annotations":{"k":"v"}},"spec":{"x":1}}"#;
        let b = r#"{"metadata":{"name":"b","annotations":{"k":[]}},"spec":{}}"#;
        let deep = "{\"properties\":".repeat(5_000) + "{}" + &"}".repeat(5_000);
        let deep = format!(r#"{{"metadata":{{"name":"deep","resourceVersion":"10"}},"spec":{deep}}}"#);
        let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        let expired = r#"{"kind":"Status","status":"Failure","code":410}"#;
        let strange = event("SURPRISE", "{}") + "no event\n";
        let events = event("MODIFIED", &deep) + &strange + &event("DELETED", a) + &event("ERROR", expired);
        let odd = [a, b, r#"{"metadata":{"name":"c"}}"#, r#"{"metadata":7}"#, r#""nonsense""#];
        let (client, _) = client([list(9, &odd), events, list(11, &[b])].map(|text| (text, false)));
        let changes = list_and_watch(&client, "/a", ListParams::default(), || {});
        let mut changes = changes.map(|change| match change.unwrap() {
            WatchChange::Listing => "listing".to_owned(),
            WatchChange::Set { name, text } => format!("{name} {}", text.len()),
            WatchChange::Gone(name) => format!("gone {name}"),
            WatchChange::Listed => "listed".to_owned(),
        });
        let mut found: Vec<String> = changes.by_ref().take(2).collect().await;
        // The rest of the page is there at once.
        found.extend(std::iter::from_fn(|| changes.next().now_or_never().flatten()).take(5));
        assert_eq!(found.len(), 7);
        found.extend(changes.take(8).collect::<Vec<_>>().await);
        let set = |name: &str, text: &str| format!("{name} {}", text.len());
        let first = [set("a", a), set("b", b), set("c", odd[2]), set("", odd[3]), set("", odd[4])];
        assert_eq!(found[..2], ["listing".to_owned(), first[0].clone()]);
        assert_eq!(found[1..6], first);
        assert_eq!(
            found[6..11],
            ["listed".to_owned(), set("deep", &deep), "gone a".to_owned(), "listing".to_owned(), set("b", b)]
        );
        let mut gone = found[11..14].to_vec();
        gone.sort();
        assert_eq!(gone, ["gone ", "gone c", "gone deep"]);
        assert_eq!(found[14], "listed");
    }

    /// A restored server soon has versions beyond those of the events that it has forgotten.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_lasts_is_renewed_from_a_version_only_after_a_bookmark() {
        let event = |kind: &str, version: u32| {
            let metadata = format!(r#"{{"name":"a","resourceVersion":"{version}"}}"#);
            format!(
                "{{\"type\":\"{kind}\",\"object\":{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{metadata}}}}}\n"
            )
        };
        let (client, asked) = client([
            (list(9, &[]), false),
            (event("ADDED", 10) + &event("BOOKMARK", 12) + &event("MODIFIED", 13), true),
            (event("MODIFIED", 14), false),
            (event("MODIFIED", 15), true),
            (list(16, &[]), false),
        ]);
        let changes = list_and_watch(&client, "/a", ListParams::default(), || {});
        let changes = changes.map(|change| match change.unwrap() {
            WatchChange::Listing => "listing",
            WatchChange::Set { .. } => "set",
            WatchChange::Gone(_) => "gone",
            WatchChange::Listed => "listed",
        });
        let changes: Vec<_> = changes.take(9).collect().await;
        assert_eq!(changes, ["listing", "listed", "set", "set", "set", "set", "listing", "gone", "listed"]);
        let asked = asked.lock();
        let from = |uri: &String| uri.split('&').find_map(|it| it.strip_prefix("resourceVersion=").map(str::to_owned));
        let watched: Vec<_> = asked.iter().filter(|uri| uri.contains("watch=true")).filter_map(from).collect();
        assert_eq!(watched[..3], ["9", "13", "14"], "{asked:?}");
    }

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
