use super::*;
use std::net::Ipv4Addr;

const HOUR: Duration = Duration::from_hours(1);

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn table(connections: usize, grace: Duration) -> Arc<Connections> {
    let limits = ConnectionLimits { connections, per_source: usize::MAX, grace };
    Connections::new(limits, "webhook", &LabelledCounters::<2>::default(), Counter::default())
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
    let kept: Vec<Connection> = (0..3).map(|_| connection(&table, 1, true, Activity::Idle, Duration::ZERO)).collect();
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
        body.slot.progress.lock().evictable_from - before
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
    idle.mark(Activity::Header);
    assert!(!idle.is_evicted());
    assert!(matches!(table.evict(), Eviction::NotBefore(_)));

    idle.set(Activity::Body, Duration::ZERO);
    assert_eq!(table.evict(), Eviction::Started);
    idle.transferred(100);
    assert!(idle.is_evicted(), "a few more bytes change nothing");
    idle.mark(Activity::Busy);
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
    assert_eq!(table.open.lock().len(), 1);
    drop(first);
    assert!(second.await.unwrap().is_some());
    assert!(table.open.lock().is_empty(), "a connection that has closed is forgotten");
}

#[tokio::test]
async fn an_address_at_its_limit_evicts_its_own_connections() {
    let limits = ConnectionLimits { connections: 8, per_source: 2, grace: HOUR };
    let table = Connections::new(limits, "webhook", &LabelledCounters::<2>::default(), Counter::default());
    let (first, _second) = (table.admit(address(1)).await.unwrap(), table.admit(address(1)).await.unwrap());
    assert!(table.admit(address(1)).await.is_none(), "both are in their grace");
    assert_eq!(table.refused.get(), 1);
    assert!(table.admit(address(2)).await.is_some(), "another address is not affected");
    first.mark(Activity::Idle);
    assert!(table.admit(address(1)).await.is_some());
    assert!(first.is_evicted());
    assert_eq!(table.refused.get(), 1);
}
