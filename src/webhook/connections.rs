//! The connections of one listener: their number, and which one is evicted when another needs its place.
//!
//! A listener accepts every connection. When the table is full, it evicts the connection that is worth least:
//!
//! 1. Unproven connections go before proven ones. The first answer with status 200 proves a connection. Without this, a
//!    client that only collects 404s would evict the connections that the API server keeps open.
//! 2. Among equals, waiting connections go before slow transfers. A connection waits between two requests, and before its
//!    first request. A transfer is a body that the client sends or an answer that it reads.
//! 3. Among these, a connection of the address with the most connections goes first. Of one address, the connection that
//!    has waited longest goes first, or the slowest.
//!
//! A request that is being answered is never evicted, nor is a transfer that keeps up with [`RATE`]. A new connection has a
//! short grace for its handshake and its first request. While more than a quarter of the table is in its grace, the next
//! connection waits for the end of a grace instead of evicting a proven connection: a flood of half-open connections evicts
//! only itself. A smaller share does not wait, because then each silent connection would hold up all that follow.
//!
//! The API server never repeats a POST, so a close that races a request loses a write. An evicted idle connection therefore
//! closes only if no byte of a request has arrived in the meantime.
//!
//! When the byte budget runs out (`budget`), slow transfers are evicted in the same order. This module must not know HTTP or
//! TLS: `accept`, `pace` and `body` report what a connection does.

mod activity;

use crate::telemetry::ConnectionsEvicted;
use activity::{Activity, Progress, REASONS};
use prometheus_client::metrics::counter::Counter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longest pause of a transfer that is not slow. TCP resends a lost packet after 200 and 400 milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes per second that keep a transfer from being slow. The largest body has ten seconds, which is three times as fast, and
/// API servers are a thousand times as fast.
const RATE: u64 = 256 * 1024;

/// The entry of one connection in the table.
#[derive(Debug)]
struct Slot {
    source: IpAddr,
    progress: Mutex<Progress>,
    evicted: Notify,
}

impl Slot {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
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
    pub(super) per_source: usize,
    /// Time that a new connection has for its handshake and its first request.
    pub(super) grace: Duration,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_number: u64,
    slots: BTreeMap<u64, Arc<Slot>>,
    /// INVARIANT: counts the slots of each address; no address has zero.
    sources: HashMap<IpAddr, usize>,
}

/// A connection that may be evicted now. The lowest rank is evicted first.
struct Candidate<'a> {
    rank: (bool, bool, Reverse<usize>, Instant),
    slot: &'a Slot,
    progress: Progress,
}

/// The result of a search for the connection to evict.
#[derive(Default)]
struct Search<'a> {
    first: Option<Candidate<'a>>,
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
        evicted: &ConnectionsEvicted,
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
        let open = self.open();
        let found = search(&open, |_, _| true);
        if found.evicted > 0 {
            return Eviction::Started;
        }
        match &found.first {
            Some(first) if first.progress.proven && found.in_grace > self.limits.connections / 4 => {
                Eviction::after(found.next)
            }
            first => self.start_eviction(first.as_ref(), found.next),
        }
    }

    /// Evicts the slow transfer that is worth least, so that it frees its memory.
    pub(super) fn evict_transfer(&self) -> Eviction {
        let open = self.open();
        let found = search(&open, |_, activity| activity.is_transfer());
        let eviction = self.start_eviction(found.first.as_ref(), found.next);
        if eviction == Eviction::Impossible && found.evicted > 0 { Eviction::Started } else { eviction }
    }

    fn source_may_connect(&self, source: IpAddr) -> bool {
        let open = self.open();
        if open.sources.get(&source).is_none_or(|count| *count < self.limits.per_source) {
            return true;
        }
        let found = search(&open, |slot, _| slot.source == source);
        self.start_eviction(found.first.as_ref(), None) == Eviction::Started
    }

    fn try_admit(self: &Arc<Self>, source: IpAddr) -> Option<Connection> {
        let mut open = self.open();
        if open.slots.len() >= self.limits.connections {
            return None;
        }
        let evictable_from = Instant::now() + self.limits.grace;
        let progress = Progress { activity: Activity::HalfOpen, evictable_from, proven: false };
        let slot = Arc::new(Slot { source, progress: Mutex::new(progress), evicted: Notify::new() });
        let number = open.next_number;
        open.next_number += 1;
        open.slots.insert(number, Arc::clone(&slot));
        *open.sources.entry(source).or_default() += 1;
        Some(Connection { table: Arc::clone(self), number, slot })
    }

    fn start_eviction(&self, first: Option<&Candidate<'_>>, next: Option<Instant>) -> Eviction {
        let Some(&Candidate { slot, progress, .. }) = first else { return Eviction::after(next) };
        let mut current = slot.progress();
        // The connection has done something since the search: the caller searches again.
        if *current != progress {
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

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the connection to evict. It looks at all connections, and only runs while something is short.
fn search(open: &OpenConnections, may_go: impl Fn(&Slot, Activity) -> bool) -> Search<'_> {
    let now = Instant::now();
    let mut found = Search::default();
    for slot in open.slots.values() {
        let progress = *slot.progress();
        let Progress { activity, evictable_from, proven } = progress;
        found.evicted += usize::from(activity == Activity::Evicted);
        if matches!(activity, Activity::Busy | Activity::Evicted) || !may_go(slot, activity) {
            continue;
        }
        if evictable_from > now {
            found.next = Some(found.next.map_or(evictable_from, |next| next.min(evictable_from)));
            found.in_grace += usize::from(activity == Activity::HalfOpen);
            continue;
        }
        let connections = open.sources.get(&slot.source).copied().unwrap_or_default();
        let rank = (proven, activity.is_transfer(), Reverse(connections), evictable_from);
        if found.first.as_ref().is_none_or(|first| rank < first.rank) {
            found.first = Some(Candidate { rank, slot, progress });
        }
    }
    found
}

/// One connection. It has its place in the table until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    table: Arc<Connections>,
    number: u64,
    slot: Arc<Slot>,
}

impl Connection {
    /// Records that the client has read a whole answer and has not begun the next request.
    pub(super) fn mark_idle(&self) {
        self.set(Activity::Idle, Duration::ZERO);
    }

    /// Records the first byte of a request on an idle connection.
    pub(super) fn mark_header(&self) {
        self.set(Activity::Header, PATIENCE);
    }

    /// Records that the server reads a body from now on.
    pub(super) fn mark_body(&self) {
        self.set(Activity::Body, PATIENCE);
    }

    /// Records that the client waits for the server from now on.
    pub(super) fn mark_busy(&self) {
        self.set(Activity::Busy, Duration::ZERO);
    }

    /// Records that the server sends an answer from now on.
    pub(super) fn mark_response(&self) {
        self.set(Activity::Response, PATIENCE);
    }

    /// Records an answer with status 200.
    pub(super) fn mark_proven(&self) {
        self.slot.progress().proven = true;
    }

    /// Records bytes of a transfer. They postpone its eviction, by [`PATIENCE`] at most.
    pub(super) fn transferred(&self, bytes: usize) {
        let now = Instant::now();
        let earned = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000) / RATE;
        let earned = Duration::from_micros(earned).min(PATIENCE);
        let mut progress = self.slot.progress();
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

    /// Resolves after an eviction, unless a request has arrived since.
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

    /// Returns the table that holds this connection.
    pub(super) fn table(&self) -> &Connections {
        &self.table
    }

    fn activity(&self) -> Activity {
        self.slot.progress().activity
    }

    /// Changes the activity, which cancels an eviction. The connection becomes evictable after `patience`.
    fn set(&self, activity: Activity, patience: Duration) {
        let mut progress = self.slot.progress();
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
        let mut open = self.table.open();
        open.slots.remove(&self.number);
        if let Some(count) = open.sources.get_mut(&self.slot.source) {
            *count -= 1;
            if *count == 0 {
                open.sources.remove(&self.slot.source);
            }
        }
        drop(open);
        self.table.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HOUR: Duration = Duration::from_hours(1);

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn table(connections: usize, grace: Duration) -> Arc<Connections> {
        let limits = ConnectionLimits { connections, per_source: usize::MAX, grace };
        Connections::new(limits, "webhook", &ConnectionsEvicted::default(), Counter::default())
    }

    /// A connection after its grace, which is evictable after `patience`.
    fn connection(
        table: &Arc<Connections>,
        source: u8,
        proven: bool,
        activity: Activity,
        patience: Duration,
    ) -> Connection {
        let connection = table.try_admit(address(source)).unwrap();
        if proven {
            connection.mark_proven();
        }
        connection.set(activity, patience);
        connection
    }

    /// Evicts and drops connections for as long as there is one to evict. Returns their positions in order.
    fn evict_all(table: &Connections, connections: Vec<Connection>) -> Vec<usize> {
        let mut connections: Vec<Option<Connection>> = connections.into_iter().map(Some).collect();
        let mut order = Vec::new();
        while table.evict() == Eviction::Started {
            let is_evicted = |it: &Option<Connection>| it.as_ref().is_some_and(Connection::is_evicted);
            let evicted = connections.iter().position(is_evicted).unwrap();
            connections[evicted] = None;
            order.push(evicted);
        }
        order
    }

    #[test]
    fn unproven_connections_go_first_then_waiting_ones_then_slow_ones_and_the_longest_wait_first() {
        let table = table(16, Duration::ZERO);
        let now = Duration::ZERO;
        let taken = vec![
            connection(&table, 1, true, Activity::Idle, now),
            connection(&table, 1, true, Activity::Response, now),
            connection(&table, 1, false, Activity::Body, now),
            connection(&table, 1, false, Activity::Idle, now),
            connection(&table, 1, true, Activity::Busy, now),
            connection(&table, 1, false, Activity::HalfOpen, now),
            connection(&table, 1, false, Activity::Busy, now),
            connection(&table, 1, true, Activity::Idle, now),
            connection(&table, 1, true, Activity::Body, HOUR),
            connection(&table, 1, true, Activity::Header, now),
        ];
        assert_eq!(evict_all(&table, taken), [3, 5, 2, 0, 7, 1, 9], "neither the busy connections nor the fast body");
        let counts: Vec<_> = REASONS.iter().zip(&table.evicted).map(|((_, reason), it)| (*reason, it.get())).collect();
        let expected = [("half_open", 1), ("idle", 3), ("slow_header", 1), ("slow_body", 1), ("slow_answer", 1)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn the_address_with_the_most_connections_loses_one_first() {
        let table = table(16, Duration::ZERO);
        let idle = |source| connection(&table, source, true, Activity::Idle, Duration::ZERO);
        let taken = vec![idle(1), idle(1), idle(2), idle(2), idle(2), idle(2)];
        assert_eq!(evict_all(&table, taken), [2, 3, 0, 4, 1, 5]);
    }

    #[test]
    fn a_flood_of_new_connections_evicts_only_itself() {
        let table = table(4, HOUR);
        let kept: Vec<Connection> =
            (0..3).map(|_| connection(&table, 1, true, Activity::Idle, Duration::ZERO)).collect();
        let new = table.try_admit(address(2)).unwrap();
        assert_eq!(table.evict(), Eviction::Started, "one new connection is not a flood");
        drop((kept, new));

        let kept = connection(&table, 1, true, Activity::Idle, Duration::ZERO);
        let crowd: Vec<Connection> = (0..3).map(|_| table.try_admit(address(2)).unwrap()).collect();
        assert!(matches!(table.evict(), Eviction::NotBefore(when) if when > Instant::now()));
        crowd[1].set(Activity::HalfOpen, Duration::ZERO);
        assert_eq!(table.evict(), Eviction::Started);
        assert!(crowd[1].is_evicted() && !kept.is_evicted());
    }

    #[test]
    fn busy_connections_and_fast_transfers_are_never_evicted() {
        let table = table(2, HOUR);
        let _busy = connection(&table, 1, false, Activity::Busy, Duration::ZERO);
        assert_eq!((table.evict(), table.evict_transfer()), (Eviction::Impossible, Eviction::Impossible));
        let _body = connection(&table, 1, false, Activity::Body, HOUR);
        for eviction in [table.evict(), table.evict_transfer()] {
            assert!(matches!(eviction, Eviction::NotBefore(when) if when > Instant::now()), "{eviction:?}");
        }
    }

    #[test]
    fn evict_transfer_evicts_slow_transfers_only() {
        let table = table(8, Duration::ZERO);
        let now = Duration::ZERO;
        let _idle = connection(&table, 1, false, Activity::Idle, now);
        let slowest = connection(&table, 1, false, Activity::Response, now);
        let slow = connection(&table, 1, false, Activity::Body, now);
        for leaves in [&slowest, &slow] {
            assert_eq!(table.evict_transfer(), Eviction::Started);
            assert!(leaves.is_evicted());
        }
        assert_eq!(table.evict_transfer(), Eviction::Started, "their memory is about to be free");
        drop((slowest, slow));
        assert_eq!(table.evict_transfer(), Eviction::Impossible);
    }

    #[test]
    fn each_byte_postpones_the_eviction_of_a_transfer() {
        let table = table(1, Duration::ZERO);
        let body = connection(&table, 1, false, Activity::Body, Duration::ZERO);
        let ahead = |bytes: usize| {
            body.set(Activity::Body, Duration::ZERO);
            let before = Instant::now();
            body.transferred(bytes);
            body.slot.progress().evictable_from - before
        };
        let rate = usize::try_from(RATE).unwrap();
        assert!(ahead(rate / 2) >= Duration::from_millis(500));
        // A fast start does not allow a longer pause later.
        body.transferred(100 * rate);
        let Eviction::NotBefore(when) = table.evict_transfer() else { panic!("it keeps up") };
        assert!(when <= Instant::now() + PATIENCE);
    }

    #[test]
    fn a_request_that_arrives_cancels_the_eviction() {
        let table = table(1, Duration::ZERO);
        let idle = connection(&table, 1, true, Activity::Idle, Duration::ZERO);
        assert_eq!(table.evict(), Eviction::Started);
        assert!(idle.is_evicted());
        idle.mark_header();
        assert!(!idle.is_evicted());
        assert!(matches!(table.evict(), Eviction::NotBefore(_)));

        idle.set(Activity::Body, Duration::ZERO);
        assert_eq!(table.evict(), Eviction::Started);
        idle.transferred(100);
        assert!(idle.is_evicted(), "a few more bytes change nothing");
        idle.mark_busy();
        assert!(!idle.is_evicted(), "the whole body does");
    }

    #[tokio::test]
    async fn a_place_is_free_when_the_evicted_connection_has_closed() {
        let table = table(1, Duration::ZERO);
        let first = table.admit(address(1)).await.unwrap();
        let second = tokio::spawn({
            let table = Arc::clone(&table);
            async move { table.admit(address(2)).await }
        });
        first.evicted().await;
        assert_eq!(table.open().slots.len(), 1);
        drop(first);
        assert!(second.await.unwrap().is_some());
        assert!(table.open().sources.is_empty(), "an address without connections is forgotten");
    }

    #[tokio::test]
    async fn an_address_at_its_limit_evicts_its_own_connections() {
        let limits = ConnectionLimits { connections: 8, per_source: 2, grace: HOUR };
        let table = Connections::new(limits, "webhook", &ConnectionsEvicted::default(), Counter::default());
        let (first, _second) = (table.admit(address(1)).await.unwrap(), table.admit(address(1)).await.unwrap());
        assert!(table.admit(address(1)).await.is_none(), "both are in their grace");
        assert_eq!(table.refused.get(), 1);
        assert!(table.admit(address(2)).await.is_some(), "another address is not affected");
        first.mark_idle();
        assert!(table.admit(address(1)).await.is_some());
        assert!(first.is_evicted());
        assert_eq!(table.refused.get(), 1);
    }
}
