//! The limits of connections and bytes, under slow clients.

use super::wire::{Request, Running, SOON, Wire, padded_review, review, until};
use super::{MIB, gated, open};
use kube_unions_core::admission::{ReviewError, review_within};
use kube_unions_webhook::webhook::{Config, Limits, Reviewer};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpSocket;

const HELD: &str = "kube_unions_admission_in_flight_bytes";

/// Returns the number of connections evicted for this reason.
async fn evicted(server: &Running, port: &str, reason: &str) -> Option<f64> {
    let series = format!("kube_unions_connections_evicted_total{{port=\"{port}\",reason=\"{reason}\"}}");
    server.metric(&series).await
}

/// Waits until the bytes that requests hold compare so with `bytes`. A review instead of the metric would need bytes itself.
async fn until_held(server: &Running, compare: fn(&f64, &f64) -> bool, bytes: usize) {
    let bytes = f64::from(u32::try_from(bytes).unwrap());
    until(async || server.metric(HELD).await.is_some_and(|held| compare(&held, &bytes))).await;
}

/// Sends the first `sent` bytes of a request that announces more.
async fn half_sent(server: &Running, announced: usize, sent: usize) -> Wire {
    let mut wire = server.connect().await;
    let request = Request::post("/mutate", padded_review("slow", announced));
    wire.write(request.head.as_bytes()).await;
    wire.write(&request.body[..sent]).await;
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_only_announced_use_no_budget() {
    let limits = Limits { body: MIB, in_flight: 2 * MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(half_sent(&server, MIB, 100).await);
    }
    for size in [1000, MIB] {
        let answer = server.send(&Request::post("/mutate", padded_review("u", size))).await;
        assert_eq!(answer.code, 200, "{size} bytes: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_that_stall_leave_room_for_small_reviews() {
    let limits = Limits { body: MIB, in_flight: 3 * MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        slow.push(half_sent(&server, MIB, MIB - 1).await);
    }
    // Large bodies may use two thirds of the budget.
    until_held(&server, f64::eq, 2 * MIB).await;
    for _ in 0..3 {
        let answer = server.send(&Request::post("/mutate", padded_review("u", 16 * 1024))).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    assert_eq!(evicted(&server, "webhook", "slow_body").await, Some(0.0), "there was room for all");
    for wire in &mut slow {
        wire.write(b" ").await;
        assert_eq!(wire.answer().await.code, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slowest_body_is_evicted_with_429_when_bytes_run_out() {
    // Large bodies may use two thirds of it: one body of 1 MiB, one of half, and the memory of the review.
    let limits = Limits { body: MIB, in_flight: 11 * MIB / 4, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    // A body holds at most its announced length. With a longer one, the sum would depend on the pieces in which it arrives.
    let mut slowest = half_sent(&server, MIB / 2 + 1024, MIB / 2).await;
    until_held(&server, f64::ge, MIB / 2).await;
    let mut slow = half_sent(&server, MIB / 2 + 1024, MIB / 2).await;
    until_held(&server, f64::ge, MIB).await;

    let honest = server.send(&Request::post("/mutate", padded_review("u", MIB))).await;
    assert_eq!(honest.code, 200, "{honest:?}");
    let answer = slowest.answer().await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(answer.header("connection"), Some("close"));
    slowest.closed().await;
    assert_eq!(evicted(&server, "webhook", "slow_body").await, Some(1.0), "only one body was evicted");
    slow.write(" ".repeat(1024).as_bytes()).await;
    assert_eq!(slow.answer().await.code, 200);
}

/// Sends honest requests beside bodies that stall.
async fn stalled_bodies_cost_none(reviewer: Reviewer, honest: Request) {
    let server = Running::with(|config| config.reviewer = reviewer).await;
    let mut stalled = Vec::new();
    for _ in 0..92 {
        stalled.push(half_sent(&server, 7 * MIB, 43 * MIB / 92).await);
    }
    // Almost all that large bodies may hold.
    until_held(&server, f64::ge, 42 * MIB).await;
    let reviews = (0..60).map(|_| async { server.send(&honest).await });
    for answer in futures::future::join_all(reviews).await {
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    assert!(evicted(&server, "webhook", "slow_body").await > Some(0.0));
    assert_eq!(evicted(&server, "webhook", "idle").await, Some(0.0), "connections were not short");
}

#[tokio::test(flavor = "multi_thread")]
async fn ninety_two_stalled_bodies_of_43_mebibytes_cost_no_honest_review() {
    let honest = Request::post("/mutate", padded_review("u", 200 * 1024));
    stalled_bodies_cost_none(Arc::new(review_within), honest).await;
}

/// Returns a reviewer that needs 1 MiB besides the body, takes it in two parts, and counts its attempts.
fn needing_much_memory(attempts: &Arc<AtomicUsize>) -> Reviewer {
    let attempts = Arc::clone(attempts);
    Arc::new(move |catalog, phase, ratcheting, body, meter| {
        attempts.fetch_add(1, Relaxed);
        let charge = |bytes| meter.charge(bytes).map_err(ReviewError::Exhausted);
        charge(1024)?;
        let review = charge(MIB).and_then(|()| {
            let review = review_within(catalog, phase, ratcheting, body, meter);
            meter.release(MIB);
            review
        });
        meter.release(1024);
        review
    })
}

/// The body is small, and the memory of its review is not.
#[tokio::test(flavor = "multi_thread")]
async fn stalled_bodies_cost_no_small_review_that_needs_much_memory() {
    let reviewer = needing_much_memory(&Arc::default());
    stalled_bodies_cost_none(reviewer, Request::post("/mutate", review("u"))).await;
}

/// Attack: a body stalls, and reviews that wait for its memory keep a thread busy with attempts in vain.
#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_tried_again_only_when_there_is_room() {
    let attempts = Arc::default();
    let limits = Limits { body: 2 * MIB, in_flight: 3 * MIB, ..Limits::default() };
    let reviewer = needing_much_memory(&attempts);
    let server = Running::with(|config| (config.limits, config.reviewer) = (limits, reviewer)).await;
    let _stalled = half_sent(&server, 2 * MIB, 2 * MIB - 1).await;
    until_held(&server, f64::ge, 2 * MIB - 1).await;
    let answer = server.send(&Request::post("/mutate", review("u"))).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert_eq!(evicted(&server, "webhook", "slow_body").await, Some(1.0));
    assert_eq!(attempts.load(Relaxed), 3, "at once, before the wait, and after the eviction");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_without_room_is_refused_with_429_if_no_client_is_slow() {
    let limits = Limits { body: MIB, in_flight: MIB + ANSWER, ..Limits::default() };
    let (server, mut begins) = gated(|config| config.limits = limits).await;
    let large = Request::post("/mutate", padded_review("u", MIB));
    let mut first = server.sent(&large).await;
    let gate = begins.recv().await.unwrap().go;

    let mut refused = server.connect().await;
    let answer = refused.exchange(&large).await;
    assert_eq!(
        (answer.code, answer.header("retry-after")),
        (429, Some("1")),
        "the server does not wait for another review"
    );
    assert_eq!(answer.json()["reason"], "TooManyRequests");
    gate.send(()).unwrap();
    assert_eq!(first.answer().await.code, 200);
    // An answer holds its bytes until it is sent, a moment longer than until it arrives.
    until_held(&server, f64::eq, 0).await;
    let _open = open(begins);
    for wire in [&mut refused, &mut first] {
        assert_eq!(wire.exchange(&large).await.code, 200, "the refused connection still works");
        until_held(&server, f64::eq, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_without_a_client_holds_its_bytes_until_it_is_done() {
    let limits = Limits { body: MIB, in_flight: MIB + ANSWER, ..Limits::default() };
    let (server, mut begins) = gated(|config| config.limits = limits).await;
    let large = Request::post("/mutate", padded_review("large", MIB));
    let gone = server.sent(&large).await;
    let gate = begins.recv().await.unwrap().go;
    drop(gone);
    // No other review of this size fits. The server has these requests' time to notice that the client is gone.
    for _ in 0..20 {
        assert_eq!(server.send(&large).await.code, 429);
    }
    gate.send(()).unwrap();
    let _open = open(begins);
    until(async || server.send(&large).await.code == 200).await;
}

/// More than the memory of an answer in this module.
const ANSWER: usize = 64 * 1024;

/// Returns a connection with an unread answer of 12 MiB, which is more than the system buffers.
async fn answered(server: &Running) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let stream = socket.connect(server.addresses.webhook).await.unwrap();
    let mut wire = Wire::over(stream, Arc::clone(&server.tls)).await.unwrap();
    // The answer repeats the uid.
    wire.send(&Request::post("/mutate", review(&"u".repeat(12 * MIB)))).await;
    assert!(wire.trickle().await > 0, "the server sends the answer");
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_answer_holds_its_bytes_and_is_evicted() {
    let limits = Limits { body: 40 * MIB, in_flight: 40 * MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut slow = answered(&server).await;
    let other = server.send(&Request::post("/mutate", padded_review("u", 30 * MIB))).await;
    assert_eq!(other.code, 200, "{other:?}");
    assert_eq!(evicted(&server, "webhook", "slow_answer").await, Some(1.0));
    let mut taken = 0;
    while let more @ 1.. = slow.trickle().await {
        taken += more;
    }
    assert!(taken < 12 * MIB, "it has had {taken} bytes, all there were");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_a_little_now_and_then_is_cut_off() {
    let limits = Limits { body: 40 * MIB, in_flight: 40 * MIB, ..Limits::default() };
    let change = |config: &mut Config| (config.limits, config.timeouts.write) = (limits, Duration::from_secs(1));
    let server = Running::with(change).await;
    let mut slow = answered(&server).await;
    let trickle = tokio::spawn(async move {
        let mut taken = 0;
        while let more @ 1.. = slow.trickle().await {
            taken += more;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        taken
    });
    until_held(&server, f64::eq, 0).await;
    let taken = tokio::time::timeout(SOON, trickle).await.expect("it is let go").unwrap();
    assert!((1..12 * MIB).contains(&taken), "it has had {taken} bytes, all there were");
    assert_eq!(evicted(&server, "webhook", "slow_answer").await, Some(0.0), "there was room for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn proven_connections_survive_a_flood_of_half_open_ones() {
    let limits = Limits { connections: 20, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let request = Request::post("/mutate", review("u"));
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut wire = server.connect().await;
        assert_eq!(wire.exchange(&request).await.code, 200);
        kept.push(wire);
    }
    // Silent ones, and ones with half a handshake or half a header.
    let mut strangers = Vec::new();
    for number in 0..60 {
        let mut wire = match number % 3 {
            0 => server.connect().await,
            _ => Wire::plain(server.addresses.webhook).await,
        };
        match number % 3 {
            0 => wire.write(b"POST /mutate HTTP/1.1\r\n").await,
            1 => wire.write(b"\x16\x03\x01").await,
            _ => {}
        }
        strangers.push(wire);
    }
    assert_eq!(server.send(&request).await.code, 200, "a new connection gets through");
    for wire in &mut kept {
        assert_eq!(wire.exchange(&request).await.code, 200);
    }
    assert!(evicted(&server, "webhook", "half_open").await >= Some(40.0));
    assert_eq!(evicted(&server, "webhook", "idle").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_full_of_connections_with_a_404_keeps_no_review_out() {
    let limits = Limits { connections: 64, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut idle = Vec::new();
    for _ in 0..64 {
        let mut wire = server.connect().await;
        assert_eq!(wire.exchange(&Request::get("/nothing")).await.code, 404);
        idle.push(wire);
    }
    let mut reviews = Vec::new();
    for _ in 0..64 {
        let mut wire = server.connect().await;
        let answer = wire.exchange(&Request::post("/mutate", review("u"))).await;
        assert_eq!(answer.code, 200, "{answer:?}");
        reviews.push(wire);
    }
    for wire in &mut idle {
        wire.closed().await;
    }
    assert_eq!(evicted(&server, "webhook", "idle").await, Some(64.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_cannot_exceed_its_limit_of_connections() {
    let limits = Limits { connections_per_source: 2, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let [crowded, other] = [2, 3].map(|last| Ipv4Addr::new(127, 0, 0, last));
    let small = Request::post("/mutate", review("u"));
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut wire = server.connect_from(crowded).await.unwrap();
        wire.begin(&Request::post("/mutate", padded_review("u", MIB))).await;
        busy.push(wire);
    }
    assert!(server.connect_from(crowded).await.is_err(), "both of its connections are in use");
    assert_eq!(server.metric("kube_unions_connections_refused_total").await, Some(1.0));
    let mut wire = server.connect_from(other).await.unwrap();
    assert_eq!(wire.exchange(&small).await.code, 200, "another address is not affected");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_to_the_ops_port_that_are_idle_or_silent_keep_no_probe_out() {
    let server = Running::start().await;
    let mut strangers = Vec::new();
    // More than there is room for.
    for path in [Some("/nothing"), Some("/livez"), None].into_iter().cycle().take(98) {
        let mut wire = Wire::plain(server.addresses.ops).await;
        if let Some(path) = path {
            wire.exchange(&Request::get(path)).await;
        }
        strangers.push(wire);
    }
    for path in ["/readyz", "/livez"].repeat(5) {
        let answer = server.ops(path).await;
        assert_eq!(answer.code, 200, "{path}: {answer:?}");
    }
    // The connections with the longest idle time were evicted. The others are still open.
    assert!(evicted(&server, "ops", "idle").await > Some(0.0));
    assert_eq!(strangers[97].exchange(&Request::get("/livez")).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_too_long_is_refused() {
    let server = Running::start().await;
    let mut wire = server.connect().await;
    let header = Request::get(&format!("/mutate?{}", "x".repeat(20_000)));
    assert_eq!(wire.exchange(&header).await.code, 431);
    wire.closed().await;
}
