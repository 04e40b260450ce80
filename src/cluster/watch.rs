//! Follows the definitions of custom resources and the declarations in a cluster, and publishes a catalog whenever they
//! change.
//!
//! Nothing is published before the first lists are complete, since a catalog that misses a kind lets everything of it pass. A later
//! list (after the API server has forgotten where the watch stood) leaves the last catalog in force until it is
//! complete, and only then does go what has vanished meanwhile.

use super::Cluster;
use super::connection::Link;
use super::documents::FetchedDocuments;
use super::queue::CONCURRENT_REBUILDS;
use super::raw::{RawDeclaration, RawDefinition};
use super::state::{ClusterState, OWN_DEFINITION};
use super::status::StatusWriter;
use crate::cluster::reason::reason;
use futures::future::{BoxFuture, ready};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube_unions_core::catalog::Catalog;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Objects a page of a list. A definition can pass a megabyte, and a page is held whole.
const PAGE: u32 = 50;

/// The same of declarations, which are small.
const DECLARATIONS_PAGE: u32 = 500;

/// The same of `APIService`s.
const SERVICES_PAGE: u32 = 500;

/// A watch is asked for anew after so long. It also bounds how long a connection that died in silence goes unnoticed.
const WATCH_SECONDS: u32 = 120;

/// Follows the cluster until nobody receives `catalogs` any more.
pub(super) async fn follow(cluster: &Cluster, link: Link, catalogs: watch::Sender<Option<Arc<Catalog>>>) {
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    let definitions = Api::<RawDefinition>::all(cluster.client.clone());
    let mut definitions = pin!(persistent(watcher(definitions, config.clone().page_size(PAGE))));
    let declarations = Api::<RawDeclaration>::all(cluster.client.clone());
    let declarations = watcher(declarations, config.clone().page_size(DECLARATIONS_PAGE));
    let mut declarations = pin!(persistent(declarations));
    let services = Api::<APIService>::all(cluster.client.clone());
    let mut services = pin!(persistent(watcher(services, config.clone().page_size(SERVICES_PAGE))));

    let mut state = ClusterState::new(cluster);
    let mut statuses = StatusWriter::new(cluster.client.clone());
    let mut declared = DeclarationsLog::default();
    let mut served = ServicesLog::default();
    let mut fetch: Option<BoxFuture<'static, FetchedDocuments>> = None;
    let mut running = FuturesUnordered::new();
    // Definitions wait for the declarations, so that each is compiled once, and for the services, which say whether one counts;
    // but not for what can't be had.
    let (mut heard_declarations, mut heard_services) = (false, false);
    loop {
        if state.is_overdue() && state.publish(&catalogs, &mut statuses).is_err() {
            return;
        }
        while running.len() < CONCURRENT_REBUILDS
            && let Some(job) = state.next_rebuild()
        {
            running.push(job.run());
        }
        // What has already arrived is worked off before a catalog is built: a change of many objects costs one.
        if let Some(event) = services.next().now_or_never() {
            heard_services |= served.handle(event, &mut state);
            state.services_changed();
            continue;
        }
        if let Some(event) = declarations.next().now_or_never() {
            heard_declarations |= declared.handle(event, &mut state);
            continue;
        }
        let opened = heard_declarations && heard_services;
        if opened && let Some(event) = definitions.next().now_or_never() {
            handle(event, &mut state, &link);
            continue;
        }
        if let Some(Some(finished)) = running.next().now_or_never() {
            state.rebuilt(finished);
            continue;
        }
        if fetch.is_none() {
            fetch = state.next_fetch().map(|fetch| fetch.run(Arc::clone(&cluster.schemas)).boxed());
        }
        if state.publish(&catalogs, &mut statuses).is_err() {
            return;
        }
        let next_fetch = state.next_fetch_at().filter(|_| fetch.is_none());
        let wake = next_fetch.into_iter().chain(state.next_publication_at()).min();
        tokio::select! {
            Some(fetched) = async { Some(fetch.as_mut()?.await) }, if fetch.is_some() => {
                fetch = None;
                state.fetched(fetched);
            }
            Some(finished) = running.next(), if !running.is_empty() => state.rebuilt(finished),
            event = services.next() => {
                heard_services |= served.handle(event, &mut state);
                state.services_changed();
            }
            event = declarations.next() => heard_declarations |= declared.handle(event, &mut state),
            event = definitions.next(), if opened => handle(event, &mut state, &link),
            () = statuses.run() => {}
            () = until(wake) => {}
            () = catalogs.closed() => return,
        }
    }
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}

fn handle(event: Option<watcher::Result<Event<RawDefinition>>>, state: &mut ClusterState, link: &Link) {
    match event {
        Some(Ok(Event::Init)) => state.list_definitions(),
        Some(Ok(Event::InitApply(raw))) => state.put_definition(&raw),
        Some(Ok(Event::InitDone)) => state.definitions_listed(),
        Some(Ok(Event::Apply(raw))) => {
            link.up();
            state.put_definition(&raw);
        }
        Some(Ok(Event::Delete(raw))) => {
            link.up();
            state.remove_definition(raw.name());
        }
        // The watch itself goes on.
        Some(Err(watcher::Error::WatchFailed(error @ kube::Error::SerdeError(_)))) => {
            tracing::warn!(reason = reason(&error), "an event that cannot be read was passed over");
        }
        Some(Err(error)) => {
            link.down(&error);
            state.watch_failed();
        }
        // The retries never give up, so the stream never ends.
        None => {}
    }
}

/// What was said last of the watch of declarations. That of definitions has a [`Link`]: without it nothing is in force,
/// while a cluster may well have no declarations.
#[derive(Default)]
struct DeclarationsLog {
    trouble: Option<String>,
}

impl DeclarationsLog {
    /// True if an attempt at the first list has had an end.
    fn handle(&mut self, event: Option<watcher::Result<Event<RawDeclaration>>>, state: &mut ClusterState) -> bool {
        match event {
            Some(Ok(Event::Init)) => state.list_declarations(),
            Some(Ok(Event::InitApply(raw) | Event::Apply(raw))) => state.put_declaration(&raw),
            Some(Ok(Event::InitDone)) => {
                if self.trouble.take().is_some() {
                    tracing::info!("watching declarations");
                }
                state.declarations_listed();
                return true;
            }
            Some(Ok(Event::Delete(raw))) => state.remove_declaration(raw.name()),
            Some(Err(watcher::Error::WatchFailed(error @ kube::Error::SerdeError(_)))) => {
                tracing::warn!(reason = reason(&error), "an event that cannot be read was passed over");
            }
            Some(Err(error)) => {
                self.fail(&error, state);
                return true;
            }
            // The retries never give up, so the stream never ends.
            None => {}
        }
        false
    }

    /// Says each reason once, not at each attempt.
    fn fail(&mut self, error: &watcher::Error, state: &mut ClusterState) {
        let reason = reason(error);
        let new = self.trouble.as_ref() != Some(&reason);
        match code(error) {
            Some(404) => {
                if new {
                    tracing::info!("the cluster has no UnionDeclarations; looking again until it has");
                }
                // A server that starts may not know of them yet.
                state.declarations_unavailable(!state.has_definition(OWN_DEFINITION));
            }
            Some(403) => {
                // Nobody may read anything of a server that starts and does not know the roles yet.
                if new && state.has_declarations() {
                    tracing::warn!(reason, "declarations may not be read; those known stay in force, retrying");
                } else if new {
                    tracing::warn!(reason, "declarations may not be read and do not count; retrying");
                }
                state.declarations_unavailable(false);
            }
            Some(_) | None => {
                if new {
                    tracing::warn!(reason, "declarations cannot be watched; those known stay in force, retrying");
                }
            }
        }
        self.trouble = Some(reason);
    }
}

/// What was said last of the watch of `APIService`s. Without them CRDs of some groups do not count.
#[derive(Default)]
struct ServicesLog {
    trouble: Option<String>,
}

impl ServicesLog {
    /// True if an attempt at the first list has had an end.
    fn handle(&mut self, event: Option<watcher::Result<Event<APIService>>>, state: &mut ClusterState) -> bool {
        match event {
            Some(Ok(Event::Init)) => state.services().list(),
            Some(Ok(Event::InitApply(service) | Event::Apply(service))) => state.services().apply(&service),
            Some(Ok(Event::InitDone)) => {
                if self.trouble.take().is_some() {
                    tracing::info!("watching which groups the API server serves from its own code");
                }
                state.services().listed();
                return true;
            }
            Some(Ok(Event::Delete(service))) => state.services().remove(&service),
            Some(Err(error)) => {
                let reason = reason(&error);
                if self.trouble.as_ref() != Some(&reason) {
                    let consequence = if state.services().are_known() {
                        "what is known of them stays"
                    } else {
                        "no CRD counts whose group ends in .k8s.io or .kubernetes.io"
                    };
                    tracing::warn!(
                        reason,
                        consequence,
                        "which groups the API server serves itself cannot be read; retrying"
                    );
                    self.trouble = Some(reason);
                }
                return true;
            }
            // The retries never give up, so the stream never ends.
            None => {}
        }
        false
    }
}

/// The code of the API server's answer to a list or a watch.
pub(super) fn code(error: &watcher::Error) -> Option<u16> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

/// The events of a watcher, which is tried again after every failure.
///
/// That the API server has forgotten where a watch stood, as it does when it is restarted, is no failure: all that there is
/// follows, and at once, since what changes meanwhile would go unnoticed for as long as is waited.
pub(super) fn persistent<T>(events: impl Stream<Item = watcher::Result<T>>) -> impl Stream<Item = watcher::Result<T>> {
    let mut forgotten = None;
    events.filter(move |event| ready(!is_forgotten(event, &mut forgotten, Instant::now()))).backoff(Retry::default())
}

/// Whether the API server has forgotten where a watch stood. Again and again within a short time that is a failure.
fn is_forgotten<T>(event: &watcher::Result<T>, last: &mut Option<Instant>, now: Instant) -> bool {
    const GONE: u16 = 410;
    let Err(watcher::Error::WatchError(status)) = event else { return false };
    let again = |last: Instant| now.saturating_duration_since(last) < Retry::CALM;
    status.code == GONE && !last.replace(now).is_some_and(again)
}

/// Waits between attempts: short at first and never long, so that a restart of the API server is followed soon.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: u32,
    last: Option<Instant>,
}

impl Retry {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);
    /// So long without a failure, and the next one counts as the first.
    const CALM: Duration = Duration::from_secs(10);
}

impl Iterator for Retry {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.last.replace(Instant::now()).is_none_or(|last| last.elapsed() > Self::CALM) {
            self.failures = 0;
        }
        let wait = Self::FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        Some(wait.min(Self::LONGEST))
    }
}

impl Backoff for Retry {
    /// Does nothing: it is called for every event that is no failure, and each attempt at a list begins with one, so
    /// that the waits would never grow. Only time resets them.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_grow_to_two_seconds_and_never_end() {
        let mut retry = Retry::default();
        let waits: Vec<Duration> = (0..40)
            .filter_map(|_| {
                retry.reset();
                retry.next()
            })
            .collect();
        assert_eq!(waits.len(), 40);
        assert_eq!(waits[0], Duration::from_millis(100));
        assert!(waits.is_sorted());
        assert_eq!(waits[39], Duration::from_secs(2));
    }

    #[test]
    fn what_the_api_server_has_forgotten_is_listed_at_once_and_not_again_and_again() {
        let error = |code| {
            let status = kube::core::Status { code, ..kube::core::Status::default() };
            watcher::Result::<()>::Err(watcher::Error::WatchError(Box::new(status)))
        };
        let (mut last, now) = (None, Instant::now());
        assert!(!is_forgotten(&Ok(()), &mut last, now));
        assert!(!is_forgotten(&error(500), &mut last, now));
        assert!(is_forgotten(&error(410), &mut last, now));
        assert!(!is_forgotten(&error(410), &mut last, now + Retry::CALM / 2));
        assert!(!is_forgotten(&error(410), &mut last, now + Retry::CALM), "it has been said again meanwhile");
        assert!(is_forgotten(&error(410), &mut last, now + Retry::CALM * 2));
    }

    #[test]
    fn a_failure_after_a_calm_time_waits_as_short_as_the_first() {
        let long_ago = Instant::now().checked_sub(Retry::CALM + Duration::from_secs(1));
        assert!(long_ago.is_some());
        let mut retry = Retry { failures: 30, last: long_ago };
        assert_eq!(retry.next(), Some(Retry::FIRST));
    }
}
