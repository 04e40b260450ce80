//! Follows the definitions of custom resources in a cluster and publishes a catalog whenever they change.
//!
//! A definition is compiled as it arrives and then dropped: what stays is the [`Builder`], which holds plans. Nothing is
//! published before the first list is complete, since a catalog that misses a kind lets everything of it pass. A later
//! list (after the API server has forgotten where the watch stood) leaves the last catalog in force until it is
//! complete, and only then does go what has vanished meanwhile.

use super::connection::Link;
use super::raw::RawDefinition;
use crate::catalog::{Builder, Catalog};
use crate::declaration::{Definition, Fault};
use crate::telemetry::with_causes;
use futures::{FutureExt, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Definitions a page of a list. A definition can pass a megabyte, and a page is held whole.
const PAGE: u32 = 50;

/// A watch is asked for anew after so long. It also bounds how long a connection that died in silence goes unnoticed.
const WATCH_SECONDS: u32 = 120;

/// Under an unbroken stream of changes a catalog is published at least this often.
const PUBLISH_WITHIN: Duration = Duration::from_millis(200);

/// Follows the cluster until nobody receives `catalogs` any more.
pub async fn follow(client: Client, link: Link, catalogs: watch::Sender<Option<Arc<Catalog>>>) {
    let config = watcher::Config::default().page_size(PAGE).timeout(WATCH_SECONDS);
    let events = watcher(Api::<RawDefinition>::all(client), config);
    let mut events = pin!(events.backoff(Retry::default()));
    let mut state = State::default();
    loop {
        // What has already arrived is worked off before a catalog is built: a change of many definitions costs one.
        let arrived = events.next().now_or_never();
        if (arrived.is_none() || state.is_overdue()) && state.publish(&catalogs).is_err() {
            return;
        }
        let event = if let Some(event) = arrived {
            event
        } else {
            tokio::select! {
                event = events.next() => event,
                () = catalogs.closed() => return,
            }
        };
        state.handle(event, &link);
    }
}

/// Nobody receives catalogs any more.
struct Unwanted;

/// What is known of the cluster.
#[derive(Default)]
struct State {
    builder: Builder,
    /// A fingerprint of each definition by name, so that a change of what is not read (`status`, mostly) costs nothing.
    known: HashMap<Box<str>, u64>,
    fingerprints: RandomState,
    /// During a list: the names that it has brought so far.
    listing: Option<HashSet<String>>,
    /// Since when the builder holds something that is not published.
    changed: Option<Instant>,
    /// A list has been completed at least once.
    complete: bool,
}

impl State {
    fn handle(&mut self, event: Option<watcher::Result<Event<RawDefinition>>>, link: &Link) {
        match event {
            Some(Ok(Event::Init)) => self.listing = Some(HashSet::new()),
            Some(Ok(Event::InitApply(raw))) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(raw.name().to_owned());
                }
                self.apply(&raw);
            }
            Some(Ok(Event::InitDone)) => {
                if let Some(listed) = self.listing.take() {
                    self.retain(&listed);
                }
                if !self.complete {
                    self.complete = true;
                    self.touch();
                }
            }
            Some(Ok(Event::Apply(raw))) => {
                link.up();
                self.apply(&raw);
            }
            Some(Ok(Event::Delete(raw))) => {
                link.up();
                self.known.remove(raw.name());
                if self.builder.remove(raw.name()) {
                    self.touch();
                }
            }
            // The watch itself goes on.
            Some(Err(watcher::Error::WatchFailed(error @ kube::Error::SerdeError(_)))) => {
                tracing::warn!(reason = with_causes(&error), "an event that cannot be read was passed over");
            }
            Some(Err(error)) => link.down(&error),
            // The retries never give up, so the stream never ends.
            None => {}
        }
    }

    fn apply(&mut self, raw: &RawDefinition) {
        let name = raw.name();
        if name.is_empty() {
            let reason = raw.parts().err().unwrap_or("it has no name");
            tracing::warn!(reason, "a definition without a name was passed over");
            return;
        }
        let fingerprint = self.fingerprints.hash_one(raw.parts().map(|it| (&it.annotations, it.spec.get())));
        if self.known.insert(name.into(), fingerprint) == Some(fingerprint) {
            return;
        }
        let definition = raw.parts().map_err(str::to_owned).and_then(|parts| {
            Definition::from_parts(name, &parts.annotations, parts.spec.get()).map_err(|error| with_causes(&error))
        });
        match definition {
            Ok(definition) => self.builder.apply(definition),
            Err(message) => self.builder.reject(name, Fault::unreadable(name, message)),
        }
        self.touch();
    }

    /// Forgets what a complete list has not brought.
    fn retain(&mut self, listed: &HashSet<String>) {
        let before = self.known.len();
        self.known.retain(|name, _| listed.contains(&**name));
        if self.known.len() != before {
            self.builder.retain(|name| listed.contains(name));
            self.touch();
        }
    }

    fn touch(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    fn is_overdue(&self) -> bool {
        self.changed.is_some_and(|since| since.elapsed() > PUBLISH_WITHIN)
    }

    /// Publishes what has changed, unless a list is under way.
    fn publish(&mut self, catalogs: &watch::Sender<Option<Arc<Catalog>>>) -> Result<(), Unwanted> {
        if !self.complete || self.listing.is_some() || self.changed.take().is_none() {
            return Ok(());
        }
        catalogs.send(Some(Arc::new(self.builder.build()))).map_err(|_| Unwanted)
    }
}

/// Waits between attempts: short at first and never long, so that a restart of the API server is followed soon.
#[derive(Debug, Default)]
struct Retry {
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
    fn a_failure_after_a_calm_time_waits_as_short_as_the_first() {
        let long_ago = Instant::now().checked_sub(Retry::CALM + Duration::from_secs(1));
        assert!(long_ago.is_some());
        let mut retry = Retry { failures: 30, last: long_ago };
        assert_eq!(retry.next(), Some(Retry::FIRST));
    }
}
