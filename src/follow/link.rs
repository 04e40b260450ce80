//! The health of the watch of CRDs.

use crate::api::reason;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

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
    pub(super) fn up(&self) {
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
    pub(super) fn down(&self, error: &(dyn std::error::Error + 'static)) {
        self.connected.set(0);
        let reason = reason(error);
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
