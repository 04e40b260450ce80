//! Watches CRDs, `UnionDeclaration`s and `APIService`s, and publishes a catalog whenever the unions change.
//!
//! Nothing is published before the first lists are complete, since a catalog without a kind admits all of its objects. During a
//! relist the last catalog stays in force; objects that the relist does not bring are removed at its end.
//!
//! Knows nothing of schemas: [`state`](super::state) turns events into catalogs.

use super::Cluster;
use super::documents::FetchedDocuments;
use super::state::{ClusterState, OWN_DEFINITION, run};
use super::status::{StatusQueue, write_statuses};
use crate::telemetry::LogOnce;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Resource;
use kube::api::ListParams;
use kube_unions_api::{RequestError, WatchChange, Watched, list_and_watch};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::UnionDeclaration;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use std::iter;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;
use tokio::time::Instant;

/// Most CRDs and built-in kinds that are compiled at a time, each on a thread of its own, so that a large CRD keeps no other
/// change waiting.
const CONCURRENT_JOBS: usize = 4;

/// The health of the watch of CRDs: gauges, and a log line at each change.
#[derive(Debug, Clone)]
pub struct Link {
    connected: Gauge,
    /// The time of the newest evidence, in seconds since 1970.
    proven: Gauge,
    health: Arc<Mutex<LinkHealth>>,
}

/// The watch is up if there is evidence, and no failure since.
#[derive(Debug, Default)]
struct LinkHealth {
    /// The time of the newest evidence.
    proven: Option<Instant>,
    /// The reason of the failure since then, as it was logged.
    failure: Option<String>,
}

impl LinkHealth {
    fn is_up(&self) -> bool {
        self.proven.is_some() && self.failure.is_none()
    }
}

impl Link {
    /// Returns a link that is down. `connected` is 1 while it is up, and `proven` the time of the last evidence that the catalog
    /// is current.
    pub fn new(connected: Gauge, proven: Gauge) -> Self {
        connected.set(0);
        Self { connected, proven, health: Arc::default() }
    }

    /// Returns true while the watch is up.
    pub fn is_up(&self) -> bool {
        self.health.lock().is_up()
    }

    /// Says how old the newest evidence is that the catalog is current, and why there is no newer one.
    pub fn evidence(&self) -> String {
        let LinkHealth { proven, failure } = &*self.health.lock();
        let age = proven.map_or("never read".to_owned(), |at| format!("current {} s ago", at.elapsed().as_secs()));
        match failure {
            Some(reason) => format!("{age}; {reason}"),
            None => age,
        }
    }

    /// Records evidence that the catalog is current.
    fn up(&self) {
        self.connected.set(1);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.proven.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        let mut health = self.health.lock();
        if !health.is_up() {
            tracing::info!("watching the cluster's definitions");
        }
        *health = LinkHealth { proven: Some(Instant::now()), failure: None };
    }

    /// Logs a reason once, not at each attempt.
    fn down(&self, error: &RequestError) {
        self.connected.set(0);
        let reason = error.to_string();
        let mut health = self.health.lock();
        match &health.failure {
            None if health.proven.is_none() => tracing::warn!(reason, "the cluster cannot be watched yet; retrying"),
            None => tracing::warn!(reason, "the watch broke; the last catalog stays in force, retrying"),
            Some(logged) if *logged == reason => tracing::debug!(reason, "still no watch"),
            Some(_) => tracing::warn!(reason, "still no watch; retrying"),
        }
        health.failure = Some(reason);
    }
}

impl Cluster {
    /// Follows the cluster until nobody receives `catalogs` any more.
    pub async fn follow(&self, link: Link, catalogs: watch::Sender<Option<Arc<Catalog>>>) {
        let (client, all, proof) = (&self.client, ListParams::default, link.clone());
        let definitions = CustomResourceDefinition::url_path(&(), None);
        let mut definitions = list_and_watch(client, definitions, all(), move || proof.up());
        let mut declarations = list_and_watch(client, UnionDeclaration::url_path(&(), None), all(), || {});
        let mut services = list_and_watch(client, APIService::url_path(&(), None), all(), || {});

        let mut state = ClusterState::new(self);
        let statuses = watch::Sender::new(StatusQueue::default());
        let mut writing = pin!(write_statuses(client.clone(), statuses.clone()));
        let mut declarations_failure = LogOnce::default();
        let mut services_failure = LogOnce::default();
        let mut fetch: Option<BoxFuture<'static, FetchedDocuments>> = None;
        let mut jobs = FuturesUnordered::new();
        // CRDs wait for the declarations, so that each is compiled once, and for the services, which tell whether a CRD counts; but
        // not if either cannot be listed.
        let (mut tried_declarations, mut tried_services) = (false, false);
        // Everything that has arrived is handled before a catalog is built: a change of many objects costs one catalog.
        let mut all_handled = false;
        loop {
            if all_handled && let Some(next) = state.next_fetch() {
                fetch = Some(next.run(Arc::clone(&self.schemas)).boxed());
            }
            if all_handled || state.publication.is_overdue() {
                state.publish(&catalogs, &statuses);
            }
            let free = CONCURRENT_JOBS.saturating_sub(jobs.len());
            jobs.extend(iter::from_fn(|| state.workspace().next_job()).take(free).map(run));
            let ready = tried_declarations && tried_services;
            let wake = state.next_fetch_at().into_iter().chain(state.next_publication_at()).min();
            tokio::select! {
                biased;
                Some(compiled) = jobs.next(), if !jobs.is_empty() => state.compiled(compiled),
                Some(event) = services.next() => tried_services |= handle_service(event, &mut state, &mut services_failure),
                Some(event) = declarations.next() => {
                    tried_declarations |= handle_declaration(event, &mut state, &mut declarations_failure);
                }
                Some(event) = definitions.next(), if ready => handle_definition(event, &mut state, &link),
                () = std::future::ready(()), if !all_handled => {
                    all_handled = true;
                    continue;
                }
                Some(fetched) = async { Some(fetch.as_mut()?.await) }, if fetch.is_some() => {
                    fetch = None;
                    state.fetched(fetched);
                }
                () = &mut writing => {}
                () = sleep_until(wake) => {}
                () = catalogs.closed() => return,
            }
            all_handled = false;
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn handle_definition(event: Watched, state: &mut ClusterState, link: &Link) {
    match event {
        Ok(change) => state.observe_definition(change),
        Err(error) => {
            link.down(&error);
            // The API server may have been replaced.
            state.documents.poll_soon();
        }
    }
}

/// Returns true if the event ends an attempt at a list.
fn handle_declaration(event: Watched, state: &mut ClusterState, failure: &mut LogOnce) -> bool {
    let ends = matches!(event, Ok(WatchChange::Listed) | Err(_));
    match event {
        Ok(change) => {
            if ends && failure.is_over() {
                tracing::info!("watching UnionDeclarations");
            }
            state.observe_declaration(change);
        }
        Err(error) => declarations_failed(&error, state, failure),
    }
    ends
}

fn declarations_failed(error: &RequestError, state: &mut ClusterState, failure: &mut LogOnce) {
    let reason = error.to_string();
    let is_new = failure.is_new(&reason);
    match error.code() {
        Some(404) => {
            if is_new {
                tracing::info!("the cluster has no CRD of UnionDeclaration; retrying until it has");
            }
            // An API server that starts may not serve them yet.
            let has_definition = state.workspace().has_crd(OWN_DEFINITION);
            state.declarations_unavailable(!has_definition);
        }
        Some(403) => {
            // An API server that starts may not know the roles yet.
            if is_new {
                let consequence = if state.publication.declarations().len() > 0 {
                    "those known stay in force"
                } else {
                    "none is in force"
                };
                tracing::warn!(reason, consequence, "may not list UnionDeclarations; retrying");
            }
            state.declarations_unavailable(false);
        }
        Some(_) | None if is_new => {
            tracing::warn!(reason, "cannot watch UnionDeclarations; those known stay in force, retrying");
        }
        Some(_) | None => {}
    }
}

/// Returns true if the event ends an attempt at a list.
fn handle_service(event: Watched, state: &mut ClusterState, failure: &mut LogOnce) -> bool {
    let ends = matches!(event, Ok(WatchChange::Listed) | Err(_));
    match event {
        Ok(change) => {
            if ends && failure.is_over() {
                tracing::info!("watching the groups that the API server serves from its own code");
            }
            state.observe_service(change);
        }
        Err(error) => {
            let reason = error.to_string();
            if failure.is_new(&reason) {
                let consequence = if state.services.are_known() {
                    "the groups known stay"
                } else {
                    "no CRD counts whose group ends in .k8s.io or .kubernetes.io"
                };
                tracing::warn!(reason, consequence, "cannot watch APIServices; retrying");
            }
        }
    }
    ends
}
