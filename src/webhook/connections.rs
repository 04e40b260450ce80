//! The connections of one listener: how many there are, and which one gives way when another needs its place.
//!
//! A listener accepts every connection. When all places are taken, the connection that is worth least is told to end:
//!
//! 1. Strangers go before proven connections. A connection is proven by its first request that is answered with 200, where
//!    that proves anything: on the health port everybody is a stranger, and the one that has waited longest goes.
//! 2. Among equals, connections that wait go before slow transfers. A connection waits when it is idle between two requests,
//!    or when its first request has not begun. A transfer is a body that arrives or an answer that is taken.
//! 3. Among these, a connection of the source address with the most such connections goes first, and of that address the one
//!    that has waited longest, or the slowest.
//!
//! A request that is being answered is never cut off, nor is a transfer that keeps up with [`RATE`]. A new connection has a
//! short grace for its handshake and its first request. While more than a quarter of the places is taken by connections
//! within their grace, the next one waits for the end of a grace instead of a proven connection's place: a crowd of half-open
//! connections drives out itself and not the connections that the API server keeps.
//!
//! The API server sends no POST a second time, so a close that races a request loses a write. An idle connection is therefore
//! told to end, and closes itself only if no byte of a request has arrived by then.
//!
//! When the budget of bytes runs out (`routes`), slow transfers give way in the same order. This module knows nothing of HTTP or
//! TLS: `accept` and `pace` tell it what a connection does.

use crate::telemetry::ConnectionsEvicted;
use prometheus_client::metrics::counter::Counter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a transfer may stand still before it counts as slow: TCP sends a packet that was lost again after 200 and 400
/// milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes per second that keep a transfer from being slow. The largest body has ten seconds, which is three times as fast, and
/// API servers are a thousand times as fast.
const RATE: u64 = 256 * 1024;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its first request has not arrived: handshake, silence, or a part of a header.
    HalfOpen,
    /// Between two requests.
    Idle,
    /// The header of a later request arrives.
    Header,
    /// A body arrives.
    Body,
    /// The server's turn: it answers, or has no room for more of the body.
    Busy,
    /// The client takes an answer.
    Answer,
    /// It was told to end.
    Leaving,
}

/// The label `reason` of evictions, by phase.
const REASONS: [(Phase, &str); 5] = [
    (Phase::HalfOpen, "half_open"),
    (Phase::Idle, "idle"),
    (Phase::Header, "slow_header"),
    (Phase::Body, "slow_body"),
    (Phase::Answer, "slow_answer"),
];

impl Phase {
    const ALL: [Self; 7] =
        [Self::HalfOpen, Self::Idle, Self::Header, Self::Body, Self::Busy, Self::Answer, Self::Leaving];

    fn is_transfer(self) -> bool {
        matches!(self, Self::Header | Self::Body | Self::Answer)
    }
}

/// The phase of a connection and the moment from which it may be told to end (microseconds since [`Places::epoch`]) in one
/// word, so that a connection is told to end only as long as nothing has happened on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    fn new(phase: Phase, due: u64) -> Self {
        Self(due << 3 | phase as u64)
    }

    fn phase(self) -> Phase {
        usize::try_from(self.0 & 7).ok().and_then(|it| Phase::ALL.get(it).copied()).unwrap_or(Phase::Busy)
    }

    fn due(self) -> u64 {
        self.0 >> 3
    }
}

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    limits: PlaceLimits,
    epoch: Instant,
    open: Mutex<Open>,
    /// The accept loop waits for a place.
    wanted: AtomicBool,
    /// A place may be free, or a connection may give way that did not before. Only the accept loop waits for it.
    changed: Notify,
    evicted: [Counter; REASONS.len()],
    refused: Counter,
}

/// How many connections, and how long a new one is left alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceLimits {
    pub(super) connections: usize,
    pub(super) per_source: usize,
    /// For the handshake and the first request of a new connection.
    pub(super) grace: Duration,
    /// True if an answer of 200 proves a connection.
    pub(super) answers_prove: bool,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Arc<Connection>>,
    sources: HashMap<IpAddr, Arc<Source>>,
}

/// An address that connections come from.
#[derive(Debug)]
struct Source {
    address: IpAddr,
    strangers: AtomicUsize,
    proven: AtomicUsize,
}

impl Source {
    fn count(&self, proven: bool) -> &AtomicUsize {
        if proven { &self.proven } else { &self.strangers }
    }

    fn connections(&self) -> usize {
        self.strangers.load(SeqCst) + self.proven.load(SeqCst)
    }
}

#[derive(Debug)]
struct Connection {
    word: AtomicU64,
    proven: AtomicBool,
    source: Arc<Source>,
    told: Notify,
}

/// The connection that gives way first, and when others may.
#[derive(Default)]
struct Search<'a> {
    first: Option<(Rank, &'a Connection, Word)>,
    /// The earliest moment at which a connection may give way that may not now.
    next: Option<u64>,
    /// Connections within their grace.
    graced: usize,
    leaving: usize,
}

/// Proven, in a transfer, how many others its source has, since when it may end: the least gives way first.
type Rank = (bool, bool, Reverse<usize>, u64);

/// Who gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    /// Somebody was told to end, or had been.
    Told,
    /// Nobody before this moment.
    NotBefore(Instant),
    /// Nobody that could be foreseen.
    Nobody,
}

impl Places {
    /// All places are free. Evictions are counted under the label `port`.
    pub(super) fn new(
        limits: PlaceLimits,
        port: &'static str,
        evicted: &ConnectionsEvicted,
        refused: Counter,
    ) -> Arc<Self> {
        let evicted = REASONS.map(|(_, reason)| evicted.get_or_create_owned(&[("port", port), ("reason", reason)]));
        Arc::new(Self {
            limits,
            epoch: Instant::now(),
            open: Mutex::default(),
            wanted: AtomicBool::new(false),
            changed: Notify::new(),
            evicted,
            refused,
        })
    }

    /// Returns a place for a connection from `source`, as soon as there is one. `None`: that address has as many
    /// connections as it may have, and none of them can give way.
    ///
    /// Only one task may call it: two would drive out more connections than they need.
    pub(super) async fn take(self: &Arc<Self>, source: IpAddr) -> Option<Place> {
        if !self.source_may_connect(source) {
            self.refused.inc();
            return None;
        }
        self.wanted.store(true, SeqCst);
        let place = loop {
            if let Some(place) = self.try_take(source) {
                break place;
            }
            match self.make_room() {
                Eviction::NotBefore(when) => drop(tokio::time::timeout_at(when, self.changed.notified()).await),
                Eviction::Told | Eviction::Nobody => self.changed.notified().await,
            }
        };
        self.wanted.store(false, SeqCst);
        Some(place)
    }

    /// Tells the connection that is worth least to end. One at a time: as long as one is leaving, nobody else is told.
    pub(super) fn make_room(&self) -> Eviction {
        let open = self.open();
        let found = self.search(&open, |_, _| true);
        if found.leaving > 0 {
            return Eviction::Told;
        }
        match found.first {
            // A crowd of new connections drives out itself.
            Some(((true, ..), ..)) if found.graced > self.limits.connections / 4 => self.not_before(found.next),
            first => self.tell(first, found.next),
        }
    }

    /// Tells the slow transfer that is worth least to end, so that it gives its bytes back.
    pub(super) fn evict_slowest(&self) -> Eviction {
        let open = self.open();
        let found = self.search(&open, |_, phase| phase.is_transfer());
        let eviction = self.tell(found.first, found.next);
        if eviction == Eviction::Nobody && found.leaving > 0 { Eviction::Told } else { eviction }
    }

    fn source_may_connect(&self, source: IpAddr) -> bool {
        let open = self.open();
        let Some(source) = open.sources.get(&source) else { return true };
        if source.connections() < self.limits.per_source {
            return true;
        }
        let found = self.search(&open, |it, _| Arc::ptr_eq(&it.source, source));
        self.tell(found.first, None) == Eviction::Told
    }

    fn try_take(self: &Arc<Self>, source: IpAddr) -> Option<Place> {
        let mut open = self.open();
        if open.connections.len() >= self.limits.connections {
            return None;
        }
        let source = Arc::clone(open.sources.entry(source).or_insert_with(|| {
            Arc::new(Source { address: source, strangers: AtomicUsize::new(0), proven: AtomicUsize::new(0) })
        }));
        source.strangers.fetch_add(1, SeqCst);
        let word = Word::new(Phase::HalfOpen, self.now() + micros(self.limits.grace));
        let connection = Arc::new(Connection {
            word: AtomicU64::new(word.0),
            proven: AtomicBool::new(false),
            source,
            told: Notify::new(),
        });
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Arc::clone(&connection));
        Some(Place { places: Arc::clone(self), number, connection })
    }

    /// Looks at every connection. That is linear in their number, and only done where there is no room.
    fn search<'a>(&self, open: &'a Open, among: impl Fn(&Connection, Phase) -> bool) -> Search<'a> {
        let now = self.now();
        let mut found = Search::default();
        for connection in open.connections.values() {
            let word = Word(connection.word.load(SeqCst));
            let (phase, due) = (word.phase(), word.due());
            found.leaving += usize::from(phase == Phase::Leaving);
            if matches!(phase, Phase::Busy | Phase::Leaving) || !among(connection, phase) {
                continue;
            }
            if due > now {
                found.next = Some(found.next.map_or(due, |next| next.min(due)));
                found.graced += usize::from(phase == Phase::HalfOpen);
                continue;
            }
            let proven = connection.proven.load(SeqCst);
            let crowd = Reverse(connection.source.count(proven).load(SeqCst));
            let rank = (proven, phase.is_transfer(), crowd, due);
            if found.first.is_none_or(|(first, ..)| rank < first) {
                found.first = Some((rank, connection.as_ref(), word));
            }
        }
        found
    }

    fn tell(&self, first: Option<(Rank, &Connection, Word)>, next: Option<u64>) -> Eviction {
        let Some((_, connection, word)) = first else { return self.not_before(next) };
        let leaving = Word::new(Phase::Leaving, word.due());
        // Where something has happened on it meanwhile, somebody else is looked for.
        if connection.word.compare_exchange(word.0, leaving.0, SeqCst, SeqCst).is_err() {
            return Eviction::NotBefore(Instant::now());
        }
        connection.told.notify_one();
        if let Some((_, counter)) = REASONS.iter().zip(&self.evicted).find(|((phase, _), _)| *phase == word.phase()) {
            counter.inc();
        }
        Eviction::Told
    }

    fn not_before(&self, next: Option<u64>) -> Eviction {
        next.map_or(Eviction::Nobody, |it| Eviction::NotBefore(self.epoch + Duration::from_micros(it)))
    }

    fn now(&self) -> u64 {
        micros(self.epoch.elapsed())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 3)
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    connection: Arc<Connection>,
}

impl Place {
    /// An answer has been taken whole, and the next request has not begun.
    pub(super) fn is_idle_now(&self) {
        self.set(Phase::Idle, Duration::ZERO);
    }

    /// The first byte of a request has arrived on an idle connection.
    pub(super) fn header_begins(&self) {
        self.set(Phase::Header, PATIENCE);
    }

    /// A body is read from now on.
    pub(super) fn body_begins(&self) {
        self.set(Phase::Body, PATIENCE);
    }

    /// It is the server's turn: whatever takes time from now on is not the client's doing.
    pub(super) fn is_busy_now(&self) {
        self.set(Phase::Busy, Duration::ZERO);
    }

    /// An answer is there to be taken.
    pub(super) fn answer_begins(&self) {
        self.set(Phase::Answer, PATIENCE);
    }

    /// A request was answered with 200.
    pub(super) fn is_proven_now(&self) {
        let Connection { proven, source, .. } = &*self.connection;
        if self.places.limits.answers_prove && !proven.swap(true, SeqCst) {
            source.strangers.fetch_sub(1, SeqCst);
            source.proven.fetch_add(1, SeqCst);
        }
    }

    /// Bytes of a transfer have passed.
    pub(super) fn progress(&self, bytes: usize) {
        let now = self.places.now();
        let earned = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000) / RATE;
        let further = |word: u64| {
            let word = Word(word);
            let due = word.due().max(now).saturating_add(earned).min(now + micros(PATIENCE));
            word.phase().is_transfer().then(|| Word::new(word.phase(), due).0)
        };
        self.connection.word.fetch_update(SeqCst, SeqCst, further).ok();
    }

    /// True while the client takes an answer.
    pub(super) fn is_answering(&self) -> bool {
        self.phase() == Phase::Answer
    }

    /// True while a request has been read and is not answered yet, its body included.
    pub(super) fn is_serving(&self) -> bool {
        matches!(self.phase(), Phase::Body | Phase::Busy | Phase::Answer)
    }

    /// True after it was told to end, unless a request has arrived since.
    pub(super) fn is_leaving(&self) -> bool {
        self.phase() == Phase::Leaving
    }

    /// Resolves when it was told to end, and no request has arrived since.
    pub(super) async fn left(&self) {
        loop {
            self.connection.told.notified().await;
            // Once round the runtime, so that a request that has arrived is read before its connection counts as idle.
            tokio::task::yield_now().await;
            if self.is_leaving() {
                return;
            }
        }
    }

    /// The places that this is one of.
    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    fn phase(&self) -> Phase {
        Word(self.connection.word.load(SeqCst)).phase()
    }

    /// Takes back that it is to leave, where it was told so.
    fn set(&self, phase: Phase, after: Duration) {
        let word = Word::new(phase, self.places.now() + micros(after));
        let stays = Word(self.connection.word.swap(word.0, SeqCst)).phase() == Phase::Leaving;
        if stays || phase != Phase::Busy && self.places.wanted.load(SeqCst) {
            self.places.changed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Connection { proven, source, .. } = &*self.connection;
        let mut open = self.places.open();
        open.connections.remove(&self.number);
        source.count(proven.load(SeqCst)).fetch_sub(1, SeqCst);
        if source.connections() == 0 {
            open.sources.remove(&source.address);
        }
        drop(open);
        self.places.changed.notify_one();
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

    fn places(connections: usize, grace: Duration) -> Arc<Places> {
        let limits = PlaceLimits { connections, per_source: usize::MAX, grace, answers_prove: true };
        Places::new(limits, "webhook", &ConnectionsEvicted::default(), Counter::default())
    }

    /// A place for a connection that has had its grace.
    fn place(places: &Arc<Places>, source: u8, proven: bool, phase: Phase, after: Duration) -> Place {
        let place = places.try_take(address(source)).unwrap();
        if proven {
            place.is_proven_now();
        }
        place.set(phase, after);
        place
    }

    /// Has `taken` give way, one after the other, as long as anybody does. Returns them by their position.
    fn give_way(places: &Places, taken: Vec<Place>) -> Vec<usize> {
        let mut taken: Vec<Option<Place>> = taken.into_iter().map(Some).collect();
        let mut order = Vec::new();
        while places.make_room() == Eviction::Told {
            let leaves = |it: &Option<Place>| it.as_ref().is_some_and(Place::is_leaving);
            let leaving = taken.iter().position(leaves).unwrap();
            taken[leaving] = None;
            order.push(leaving);
        }
        order
    }

    #[test]
    fn strangers_go_before_proven_connections_and_waiting_ones_before_slow_ones_the_longest_first() {
        let places = places(16, Duration::ZERO);
        let now = Duration::ZERO;
        let taken = vec![
            place(&places, 1, true, Phase::Idle, now),
            place(&places, 1, true, Phase::Answer, now),
            place(&places, 1, false, Phase::Body, now),
            place(&places, 1, false, Phase::Idle, now),
            place(&places, 1, true, Phase::Busy, now),
            place(&places, 1, false, Phase::HalfOpen, now),
            place(&places, 1, false, Phase::Busy, now),
            place(&places, 1, true, Phase::Idle, now),
            place(&places, 1, true, Phase::Body, HOUR),
            place(&places, 1, true, Phase::Header, now),
        ];
        assert_eq!(give_way(&places, taken), [3, 5, 2, 0, 7, 1, 9], "neither the busy ones nor the one that keeps up");
        let counts: Vec<_> = REASONS.iter().zip(&places.evicted).map(|((_, reason), it)| (*reason, it.get())).collect();
        let expected = [("half_open", 1), ("idle", 3), ("slow_header", 1), ("slow_body", 1), ("slow_answer", 1)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn the_address_with_the_most_connections_gives_way_first() {
        let places = places(16, Duration::ZERO);
        let idle = |source| place(&places, source, true, Phase::Idle, Duration::ZERO);
        let taken = vec![idle(1), idle(1), idle(2), idle(2), idle(2), idle(2)];
        assert_eq!(give_way(&places, taken), [2, 3, 0, 4, 1, 5]);
    }

    #[test]
    fn a_crowd_of_new_connections_drives_out_itself() {
        let places = places(4, HOUR);
        let kept: Vec<Place> = (0..3).map(|_| place(&places, 1, true, Phase::Idle, Duration::ZERO)).collect();
        let new = places.try_take(address(2)).unwrap();
        assert_eq!(places.make_room(), Eviction::Told, "one new connection is no crowd");
        drop((kept, new));

        let kept = place(&places, 1, true, Phase::Idle, Duration::ZERO);
        let crowd: Vec<Place> = (0..3).map(|_| places.try_take(address(2)).unwrap()).collect();
        assert!(matches!(places.make_room(), Eviction::NotBefore(when) if when > Instant::now()));
        crowd[1].set(Phase::HalfOpen, Duration::ZERO);
        assert_eq!(places.make_room(), Eviction::Told);
        assert!(crowd[1].is_leaving() && !kept.is_leaving());
    }

    #[test]
    fn where_all_are_busy_or_keep_up_nobody_gives_way() {
        let places = places(2, HOUR);
        let _busy = place(&places, 1, false, Phase::Busy, Duration::ZERO);
        assert_eq!((places.make_room(), places.evict_slowest()), (Eviction::Nobody, Eviction::Nobody));
        let _body = place(&places, 1, false, Phase::Body, HOUR);
        for eviction in [places.make_room(), places.evict_slowest()] {
            assert!(matches!(eviction, Eviction::NotBefore(when) if when > Instant::now()), "{eviction:?}");
        }
    }

    #[test]
    fn for_bytes_a_slow_transfer_gives_way_and_no_connection_that_holds_none() {
        let places = places(8, Duration::ZERO);
        let now = Duration::ZERO;
        let _idle = place(&places, 1, false, Phase::Idle, now);
        let slowest = place(&places, 1, false, Phase::Answer, now);
        let slow = place(&places, 1, false, Phase::Body, now);
        for leaves in [&slowest, &slow] {
            assert_eq!(places.evict_slowest(), Eviction::Told);
            assert!(leaves.is_leaving());
        }
        assert_eq!(places.evict_slowest(), Eviction::Told, "their bytes are about to be given back");
        drop((slowest, slow));
        assert_eq!(places.evict_slowest(), Eviction::Nobody);
    }

    #[test]
    fn bytes_keep_a_transfer_from_being_slow_in_proportion() {
        let places = places(1, Duration::ZERO);
        let body = place(&places, 1, false, Phase::Body, Duration::ZERO);
        let ahead = |bytes: usize| {
            body.set(Phase::Body, Duration::ZERO);
            let before = places.now();
            body.progress(bytes);
            Word(body.connection.word.load(SeqCst)).due().saturating_sub(before)
        };
        let rate = usize::try_from(RATE).unwrap();
        assert!(ahead(rate / 2) >= 500_000);
        // Nobody saves up for a pause that is longer.
        body.progress(100 * rate);
        let Eviction::NotBefore(when) = places.evict_slowest() else { panic!("it keeps up") };
        assert!(when <= Instant::now() + PATIENCE);
    }

    #[test]
    fn a_request_that_arrives_takes_back_that_its_connection_is_to_leave() {
        let places = places(1, Duration::ZERO);
        let idle = place(&places, 1, true, Phase::Idle, Duration::ZERO);
        assert_eq!(places.make_room(), Eviction::Told);
        assert!(idle.is_leaving());
        idle.header_begins();
        assert!(!idle.is_leaving());
        assert!(matches!(places.make_room(), Eviction::NotBefore(_)));

        idle.set(Phase::Body, Duration::ZERO);
        assert_eq!(places.make_room(), Eviction::Told);
        idle.progress(100);
        assert!(idle.is_leaving(), "more of what is slow changes nothing");
        idle.is_busy_now();
        assert!(!idle.is_leaving(), "the whole of it does");
    }

    #[tokio::test]
    async fn a_place_is_taken_when_whoever_gives_way_has_left() {
        let places = places(1, Duration::ZERO);
        let first = places.take(address(1)).await.unwrap();
        let second = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.take(address(2)).await }
        });
        first.left().await;
        assert_eq!(places.open().connections.len(), 1);
        drop(first);
        assert!(second.await.unwrap().is_some());
        assert!(places.open().sources.is_empty(), "nothing is kept of addresses that have no connection");
    }

    #[tokio::test]
    async fn an_address_has_no_more_connections_than_it_may_and_makes_room_for_its_own() {
        let limits = PlaceLimits { connections: 8, per_source: 2, grace: HOUR, answers_prove: true };
        let places = Places::new(limits, "webhook", &ConnectionsEvicted::default(), Counter::default());
        let (first, _second) = (places.take(address(1)).await.unwrap(), places.take(address(1)).await.unwrap());
        assert!(places.take(address(1)).await.is_none(), "both are within their grace");
        assert_eq!(places.refused.get(), 1);
        assert!(places.take(address(2)).await.is_some(), "another address is not concerned");
        first.is_idle_now();
        assert!(places.take(address(1)).await.is_some());
        assert!(first.is_leaving());
        assert_eq!(places.refused.get(), 1);
    }
}
