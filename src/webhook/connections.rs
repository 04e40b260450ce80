//! The connections of one listener: their number, and which one is evicted when another needs its place.
//!
//! A listener accepts every connection. When the table is full, it evicts the connection with the lowest [`Rank`]. A request
//! that is being answered is never evicted. When the byte budget runs out (`budget`), slow transfers are evicted in the same
//! order. Each rule has the attack that it repels beside it, and tests of that attack are in `tests/it/webhook/pressure.rs`
//! and `tests.rs`.
//!
//! This module must not know HTTP or TLS: `accept`, `deadline_stream` and `body` report what a connection does.

use crate::telemetry::LabelledCounters;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longest pause of a transfer that is not slow. TCP resends a lost packet after 200 and 400 milliseconds.
///
/// Attack: bodies that arrive almost whole and then stall hold the memory of honest requests.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes per second that keep a transfer from being slow. The largest body has ten seconds, which is three times as fast, and
/// API servers are a thousand times as fast.
///
/// Attack: a client that sends or reads a byte now and then holds as much memory as one that stalls.
const RATE: u64 = 256 * 1024;

/// The present activity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Its first request has not arrived: it is in the handshake, is silent, or has sent a part of a header.
    HalfOpen,
    /// It is between two requests: the client has read a whole answer.
    Idle,
    /// The header of a later request is arriving, after its first byte.
    Header,
    /// A body is arriving.
    Body,
    /// The server is preparing an answer, or has no memory for more of the body.
    Busy,
    /// The client is reading an answer.
    Response,
    /// It was evicted, and has not closed yet.
    Evicted,
}

/// The label `reason` of evictions, by activity.
pub(super) const REASONS: [(Activity, &str); 5] = [
    (Activity::HalfOpen, "half_open"),
    (Activity::Idle, "idle"),
    (Activity::Header, "slow_header"),
    (Activity::Body, "slow_body"),
    (Activity::Response, "slow_answer"),
];

impl Activity {
    /// Returns true while bytes pass, and a slow client holds memory.
    pub(super) fn is_transfer(self) -> bool {
        matches!(self, Self::Header | Self::Body | Self::Response)
    }
}

/// Everything about a connection that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionState {
    pub(super) activity: Activity,
    /// The earliest time of an eviction. An idle connection has waited since then.
    pub(super) evictable_from: Instant,
    /// A request was answered with status 200.
    pub(super) proven: bool,
}

/// The entry of one connection in the table.
#[derive(Debug)]
struct ConnectionSlot {
    source: IpAddr,
    progress: Mutex<ConnectionState>,
    evicted: Notify,
}

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    /// From the oldest to the newest.
    open: Mutex<Vec<Arc<ConnectionSlot>>>,
    /// True while the accept loop waits for a place.
    wanted: AtomicBool,
    /// Wakes the accept loop when a place may be free or another connection may have become evictable.
    changed: Notify,
    evicted: [Counter; REASONS.len()],
    refused: Counter,
}

/// The limits of one listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Most connections.
    pub(super) connections: usize,
    /// Most connections from one address.
    ///
    /// Attack: one address holds many connections with requests that are being answered, which are never evicted.
    pub(super) per_source: usize,
    /// Time that a new connection has for its handshake and its first request.
    ///
    /// Attack: a flood evicts each new connection of another client before that client can prove it.
    pub(super) grace: Duration,
}

/// The worth of a connection that may be evicted now. The lowest goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Attack: a client that only collects answers with 404 fills the table, and the connections that the API server keeps
    /// open are evicted.
    proven: bool,
    /// An idle connection costs its client a handshake, a transfer its request. Attack: silent connections fill the table,
    /// and the requests of slow clients are lost.
    transfers: bool,
    /// Attack: one address fills the table with proven connections, and those of others, which are older, are evicted.
    of_its_address: Reverse<usize>,
    /// Attack: idle connections fill the table, and the one that was used last is evicted.
    waits_since: Instant,
}

/// The result of a search for the connection to evict.
#[derive(Default)]
struct Search<'a> {
    /// The connection with the lowest rank, and its state when it was found.
    first: Option<(Rank, &'a ConnectionSlot, ConnectionState)>,
    /// The earliest time at which a connection becomes evictable that is not evictable now.
    next: Option<Instant>,
    in_grace: usize,
    evicted: usize,
}

/// The result of an attempt to evict a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    /// A connection is closing.
    Started,
    /// No connection can be evicted before this time.
    NotBefore(Instant),
    /// No connection can be evicted at any known time.
    Impossible,
}

impl Eviction {
    fn after(time: Option<Instant>) -> Self {
        time.map_or(Self::Impossible, Self::NotBefore)
    }
}

impl Connections {
    /// Returns an empty table that counts its evictions under the label `port`.
    pub(super) fn new(
        limits: ConnectionLimits,
        port: &'static str,
        evicted: &LabelledCounters<2>,
        refused: Counter,
    ) -> Arc<Self> {
        let evicted = REASONS.map(|(_, reason)| evicted.get_or_create_owned(&[("port", port), ("reason", reason)]));
        Arc::new(Self {
            limits,
            open: Mutex::default(),
            wanted: AtomicBool::new(false),
            changed: Notify::new(),
            evicted,
            refused,
        })
    }

    /// Waits for a place for a connection from `source`. Returns `None` if that address has as many connections as it may
    /// have and none of them can be evicted.
    ///
    /// Only one task may call it: two would evict more connections than they need.
    pub(super) async fn admit(self: &Arc<Self>, source: IpAddr) -> Option<Connection> {
        if !self.source_may_connect(source) {
            self.refused.inc();
            return None;
        }
        self.wanted.store(true, SeqCst);
        let connection = loop {
            if let Some(connection) = self.try_admit(source) {
                break connection;
            }
            match self.evict() {
                Eviction::NotBefore(time) => drop(tokio::time::timeout_at(time, self.changed.notified()).await),
                Eviction::Started | Eviction::Impossible => self.changed.notified().await,
            }
        };
        self.wanted.store(false, SeqCst);
        Some(connection)
    }

    /// Evicts the connection that is worth least, unless an evicted connection has yet to close.
    pub(super) fn evict(&self) -> Eviction {
        let open = self.open.lock();
        let found = search(&open, |_, _| true);
        if found.evicted > 0 {
            return Eviction::Started;
        }
        // Attack: a flood of half-open connections evicts proven ones while each is in its grace. It evicts only itself if
        // proven ones wait for the end of a grace. They do not wait for a few, because each silent connection would then hold
        // up all that follow.
        let is_flood = found.in_grace > self.limits.connections / 4;
        if is_flood && matches!(found.first, Some((Rank { proven: true, .. }, ..))) {
            return Eviction::after(found.next);
        }
        self.start_eviction(&found)
    }

    /// Evicts the slow transfer that is worth least, so that it frees its memory.
    pub(super) fn evict_transfer(&self) -> Eviction {
        let open = self.open.lock();
        let found = search(&open, |_, activity| activity.is_transfer());
        let eviction = self.start_eviction(&found);
        if eviction == Eviction::Impossible && found.evicted > 0 { Eviction::Started } else { eviction }
    }

    fn source_may_connect(&self, source: IpAddr) -> bool {
        let open = self.open.lock();
        if open.iter().filter(|slot| slot.source == source).count() < self.limits.per_source {
            return true;
        }
        let found = search(&open, |slot, _| slot.source == source);
        self.start_eviction(&found) == Eviction::Started
    }

    fn try_admit(self: &Arc<Self>, source: IpAddr) -> Option<Connection> {
        let mut open = self.open.lock();
        if open.len() >= self.limits.connections {
            return None;
        }
        let evictable_from = Instant::now() + self.limits.grace;
        let progress = ConnectionState { activity: Activity::HalfOpen, evictable_from, proven: false };
        let slot = Arc::new(ConnectionSlot { source, progress: Mutex::new(progress), evicted: Notify::new() });
        open.push(Arc::clone(&slot));
        Some(Connection { table: Arc::clone(self), slot })
    }

    fn start_eviction(&self, found: &Search<'_>) -> Eviction {
        let Some((_, slot, progress)) = found.first.as_ref() else { return Eviction::after(found.next) };
        let mut current = slot.progress.lock();
        // The connection has done something since the search: the caller searches again.
        if *current != *progress {
            return Eviction::NotBefore(Instant::now());
        }
        current.activity = Activity::Evicted;
        drop(current);
        slot.evicted.notify_one();
        let counters = REASONS.iter().zip(&self.evicted);
        if let Some((_, counter)) = counters.into_iter().find(|((activity, _), _)| *activity == progress.activity) {
            counter.inc();
        }
        Eviction::Started
    }
}

/// Finds the connection to evict. It looks at all connections, and only runs while something is short.
fn search(open: &[Arc<ConnectionSlot>], may_go: impl Fn(&ConnectionSlot, Activity) -> bool) -> Search<'_> {
    let now = Instant::now();
    let mut of_address = HashMap::<IpAddr, usize>::new();
    for slot in open {
        *of_address.entry(slot.source).or_default() += 1;
    }
    let mut found = Search::default();
    for slot in open {
        let progress = *slot.progress.lock();
        let ConnectionState { activity, evictable_from, proven } = progress;
        found.evicted += usize::from(activity == Activity::Evicted);
        if matches!(activity, Activity::Busy | Activity::Evicted) || !may_go(slot, activity) {
            continue;
        }
        if evictable_from > now {
            found.next = Some(found.next.map_or(evictable_from, |next| next.min(evictable_from)));
            found.in_grace += usize::from(activity == Activity::HalfOpen);
            continue;
        }
        let rank = Rank {
            proven,
            transfers: activity.is_transfer(),
            of_its_address: Reverse(of_address.get(&slot.source).copied().unwrap_or_default()),
            waits_since: evictable_from,
        };
        if found.first.as_ref().is_none_or(|(lowest, ..)| rank < *lowest) {
            found.first = Some((rank, slot, progress));
        }
    }
    found
}

/// One connection. It has its place in the table until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    /// The table that holds it.
    pub(super) table: Arc<Connections>,
    slot: Arc<ConnectionSlot>,
}

impl Connection {
    /// Records what the connection does from now on. A transfer is not slow at once.
    pub(super) fn mark(&self, activity: Activity) {
        self.set(activity, if activity.is_transfer() { PATIENCE } else { Duration::ZERO });
    }

    /// Records an answer with status 200.
    pub(super) fn mark_proven(&self) {
        self.slot.progress.lock().proven = true;
    }

    /// Records bytes of a transfer. They postpone its eviction, by [`PATIENCE`] at most.
    pub(super) fn transferred(&self, bytes: usize) {
        let now = Instant::now();
        let earned = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000) / RATE;
        let earned = Duration::from_micros(earned).min(PATIENCE);
        let mut progress = self.slot.progress.lock();
        if progress.activity.is_transfer() {
            progress.evictable_from = (progress.evictable_from.max(now) + earned).min(now + PATIENCE);
        }
    }

    /// Returns true while the client is reading an answer.
    pub(super) fn is_responding(&self) -> bool {
        self.activity() == Activity::Response
    }

    /// Returns true from the end of a request's header to the end of its answer.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.activity(), Activity::Body | Activity::Busy | Activity::Response)
    }

    /// Returns true after an eviction, unless a request has arrived since.
    pub(super) fn is_evicted(&self) -> bool {
        self.activity() == Activity::Evicted
    }

    /// Resolves after an eviction, unless a request has arrived since: the API server never repeats a POST, so a close that
    /// races a request loses a write.
    pub(super) async fn evicted(&self) {
        loop {
            self.slot.evicted.notified().await;
            // The runtime reads a request that has already arrived before this task continues.
            tokio::task::yield_now().await;
            if self.is_evicted() {
                return;
            }
        }
    }

    fn activity(&self) -> Activity {
        self.slot.progress.lock().activity
    }

    /// Changes the activity, which cancels an eviction. The connection becomes evictable after `patience`.
    fn set(&self, activity: Activity, patience: Duration) {
        let mut progress = self.slot.progress.lock();
        let was_evicted = progress.activity == Activity::Evicted;
        (progress.activity, progress.evictable_from) = (activity, Instant::now() + patience);
        drop(progress);
        if was_evicted || activity != Activity::Busy && self.table.wanted.load(SeqCst) {
            self.table.changed.notify_one();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.table.open.lock().retain(|slot| !Arc::ptr_eq(slot, &self.slot));
        self.table.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
