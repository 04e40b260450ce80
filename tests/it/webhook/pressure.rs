//! More than is taken on at a time: connections, bytes, and clients that are in no hurry.

use super::wire::{Request, Running, SOON, Wire, padded_review, review, until};
use super::{MIB, gated};
use kube_unions::webhook::{Config, Limits, Reviewer, Timeouts};
use kube_unions_core::admission::{ReviewError, review_within};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpSocket;

const HELD: &str = "kube_unions_admission_in_flight_bytes";

/// Connections told to end for this reason.
async fn evicted(server: &Running, port: &str, reason: &str) -> Option<f64> {
    let series = format!("kube_unions_connections_evicted_total{{port=\"{port}\",reason=\"{reason}\"}}");
    server.metric(&series).await
}

/// Waits until requests hold so many bytes, or more, or less. To ask by a request would take from them what they need.
async fn until_held(server: &Running, compare: fn(&f64, &f64) -> bool, bytes: usize) {
    let bytes = f64::from(u32::try_from(bytes).unwrap());
    until(async || server.metric(HELD).await.is_some_and(|held| compare(&held, &bytes))).await;
}

/// Lets requests wait for memory for as long as a test does, so that a busy machine changes nothing.
fn wait_for_memory(config: &mut Config) {
    config.timeouts.memory = SOON;
}

/// A request that announces more than it sends, of which so much is sent.
async fn half_sent(server: &Running, announced: usize, sent: usize) -> Wire {
    let mut wire = server.connect().await;
    let request = Request::post("/mutate", padded_review("slow", announced));
    wire.write(request.head.as_bytes()).await;
    wire.write(&request.body[..sent]).await;
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_announced_and_never_sent_keeps_nobody_out() {
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
async fn large_bodies_that_stop_half_way_take_no_room_from_small_reviews() {
    let limits = Limits { body: MIB, in_flight: 3 * MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        slow.push(half_sent(&server, MIB, MIB - 1).await);
    }
    // Two thirds of the budget are for what bodies have beyond their first bytes.
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
async fn the_slowest_body_gives_way_when_bytes_run_out_and_is_told_to_come_again() {
    // Two thirds of it are for what bodies have beyond their first bytes: one of MiB, one of half, and what is built.
    let limits = Limits { body: MIB, in_flight: 11 * MIB / 4, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    // What is held is at most what is announced: were more to come, it would depend on the pieces in which the half arrives.
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
    assert_eq!(evicted(&server, "webhook", "slow_body").await, Some(1.0), "no more than had to");
    slow.write(" ".repeat(1024).as_bytes()).await;
    assert_eq!(slow.answer().await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn ninety_two_bodies_that_stall_forty_three_mebibytes_cost_no_honest_review() {
    let server = Running::with(wait_for_memory).await;
    let mut stalled = Vec::new();
    for _ in 0..92 {
        stalled.push(half_sent(&server, 7 * MIB, 43 * MIB / 92).await);
    }
    // As much as bodies may have beyond their first bytes, but for one step of one of them.
    until_held(&server, f64::ge, 42 * MIB).await;
    let honest = Request::post("/mutate", padded_review("u", 200 * 1024));
    let reviews = (0..60).map(|_| async { server.send(&honest).await });
    for answer in futures::future::join_all(reviews).await {
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    assert!(evicted(&server, "webhook", "slow_body").await > Some(0.0));
    assert_eq!(evicted(&server, "webhook", "idle").await, Some(0.0), "connections were not short");
}

/// The body fits into what is kept for the beginning of each request, and what is built for its review does not.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stall_cost_no_small_review_of_which_much_is_built() {
    let reviewer: Reviewer = Arc::new(|catalog, phase, ratcheting, body, meter| {
        meter.charge(MIB).map_err(ReviewError::Exhausted)?;
        let review = review_within(catalog, phase, ratcheting, body, meter);
        meter.release(MIB);
        review
    });
    let server = Running::reviewing(wait_for_memory, reviewer).await;
    let mut stalled = Vec::new();
    for _ in 0..92 {
        stalled.push(half_sent(&server, 7 * MIB, 43 * MIB / 92).await);
    }
    until_held(&server, f64::ge, 42 * MIB).await;
    let honest = Request::post("/mutate", review("u"));
    let reviews = (0..60).map(|_| async { server.send(&honest).await });
    for answer in futures::future::join_all(reviews).await {
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    assert!(evicted(&server, "webhook", "slow_body").await > Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_slow_a_review_without_room_is_told_to_come_again() {
    let (reviewer, mut begins) = gated();
    let limits = Limits { body: MIB, in_flight: MIB + ANSWER, ..Limits::default() };
    let server = Running::reviewing(|config| config.limits = limits, reviewer).await;
    let large = Request::post("/mutate", padded_review("u", MIB));
    let mut first = server.connect().await;
    first.write(large.head.as_bytes()).await;
    first.write(&large.body).await;
    let gate = begins.recv().await.unwrap();

    let mut refused = server.connect().await;
    let answer = refused.exchange(&large).await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")), "nobody waits for a review");
    assert_eq!(answer.json()["reason"], "TooManyRequests");
    gate.send(()).unwrap();
    assert_eq!(first.answer().await.code, 200);
    // An answer counts until it is sent, for longer than until it is here.
    until_held(&server, f64::eq, 0).await;
    let opens = tokio::spawn(async move { while begins.recv().await.is_some_and(|gate| gate.send(()).is_ok()) {} });
    for wire in [&mut refused, &mut first] {
        assert_eq!(wire.exchange(&large).await.code, 200, "on the connection that was refused, too");
        until_held(&server, f64::eq, 0).await;
    }
    drop(server);
    opens.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_whose_client_has_gone_counts_until_it_is_made() {
    let (reviewer, mut begins) = gated();
    let limits = Limits { body: MIB, in_flight: MIB + ANSWER, ..Limits::default() };
    let server = Running::reviewing(|config| config.limits = limits, reviewer).await;
    let large = Request::post("/mutate", padded_review("large", MIB));
    let mut gone = server.connect().await;
    gone.write(large.head.as_bytes()).await;
    gone.write(&large.body).await;
    let gate = begins.recv().await.unwrap();
    drop(gone);
    // It needs as much as another of its size would. That the server has seen it go is not to be seen from here: it has
    // had the time of these.
    for _ in 0..20 {
        assert_eq!(server.send(&large).await.code, 429);
    }
    gate.send(()).unwrap();
    let again = tokio::spawn(async move { while begins.recv().await.is_some_and(|gate| gate.send(()).is_ok()) {} });
    until(async || server.send(&large).await.code == 200).await;
    drop(server);
    again.abort();
}

/// More than the answer to a review of this module takes beside its body.
const ANSWER: usize = 64 * 1024;

/// Connects with little room for answers.
async fn narrow(server: &Running) -> Wire {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    Wire::over(socket.connect(server.addresses.webhook).await.unwrap(), Arc::clone(&server.tls)).await.unwrap()
}

/// A request whose answer is as long as itself: it has to repeat the uid.
fn echoed(bytes: usize) -> Request {
    Request::post("/mutate", review(&"u".repeat(bytes)))
}

/// An answer of 12 MiB, more than the system buffers by itself, that waits for its client.
async fn answered(server: &Running) -> Wire {
    let mut wire = narrow(server).await;
    let large = echoed(12 * MIB);
    wire.write(large.head.as_bytes()).await;
    wire.write(&large.body).await;
    assert!(wire.trickle().await > 0, "it is being sent");
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_until_it_is_taken_and_gives_way_when_it_is_not() {
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
async fn a_reader_that_takes_a_little_now_and_then_is_let_go() {
    let limits = Limits { body: 40 * MIB, in_flight: 40 * MIB, ..Limits::default() };
    let timeouts = Timeouts { write: Duration::from_secs(1), ..Timeouts::default() };
    let server = Running::with(|config| (config.limits, config.timeouts) = (limits, timeouts)).await;
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
async fn idle_strangers_give_way_first_then_idle_clients_of_old_then_slow_ones_and_never_a_review() {
    let (reviewer, mut begins) = gated();
    let limits = Limits { connections: 5, ..Limits::default() };
    let server = Running::reviewing(|config| config.limits = limits, reviewer).await;
    // So large that it is answered on a thread of its own, which waits at the gate.
    let large = Request::post("/mutate", padded_review("u", MIB));
    let mut answered = server.connect().await;
    answered.write(large.head.as_bytes()).await;
    answered.write(&large.body).await;
    let gate = begins.recv().await.unwrap();
    let opens = tokio::spawn(async move { while begins.recv().await.is_some_and(|gate| gate.send(()).is_ok()) {} });
    let mut body = server.connect().await;
    assert_eq!(body.exchange(&large).await.code, 200);
    body.begin(&large).await;
    let mut proven = [server.connect().await, server.connect().await];
    for wire in &mut proven {
        assert_eq!(wire.exchange(&large).await.code, 200);
    }
    let mut stranger = server.connect().await;
    assert_eq!(stranger.exchange(&Request::get("/nothing")).await.code, 404);

    // All places are taken. Whoever comes from now on stays, and is busy.
    let [first, second] = &mut proven;
    let mut stay = Vec::new();
    for (leaves, evictions) in [(&mut stranger, [1.0, 0.0]), (first, [2.0, 0.0]), (second, [3.0, 0.0])] {
        let mut wire = server.connect().await;
        leaves.closed().await;
        assert_eq!(wire.exchange(&large).await.code, 200);
        wire.begin(&large).await;
        stay.push(wire);
        for (reason, count) in ["idle", "slow_body"].into_iter().zip(evictions) {
            assert_eq!(evicted(&server, "webhook", reason).await, Some(count), "{reason}");
        }
    }
    let mut wire = server.connect().await;
    assert_eq!(wire.exchange(&large).await.code, 200);
    assert_eq!(body.answer().await.code, 429, "the oldest body has not moved");
    body.closed().await;
    assert_eq!(evicted(&server, "webhook", "slow_body").await, Some(1.0));
    gate.send(()).unwrap();
    assert_eq!(answered.answer().await.code, 200, "a review is answered under whatever pressure");
    drop(server);
    opens.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_keeps_outlives_a_crowd_of_half_open_connections() {
    let limits = Limits { connections: 20, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let request = Request::post("/mutate", review("u"));
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut wire = server.connect().await;
        assert_eq!(wire.exchange(&request).await.code, 200);
        kept.push(wire);
    }
    // Silent, in the midst of a handshake, and of a header.
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
async fn places_full_of_connections_that_stay_after_a_404_keep_no_review_out() {
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
async fn one_address_has_no_more_connections_than_it_may() {
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
    assert_eq!(wire.exchange(&small).await.code, 200, "another address is not concerned");
}

/// Strangers on the ops port, all of whom stay: some say nothing, some have asked for something.
async fn strangers_on_the_ops_port(server: &Running, count: usize) -> Vec<Wire> {
    let mut strangers = Vec::new();
    for number in 0..count {
        let mut wire = Wire::plain(server.addresses.ops).await;
        match number % 3 {
            0 => drop(wire.exchange(&Request::get("/nothing")).await),
            1 => drop(wire.exchange(&Request::get("/livez")).await),
            _ => {}
        }
        strangers.push(wire);
    }
    strangers
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_port_answers_however_many_strangers_stay_on_it() {
    let server = Running::start().await;
    let strangers = strangers_on_the_ops_port(&server, 300).await;
    for _ in 0..100 {
        for path in ["/readyz", "/livez"] {
            let answer = server.ops(path).await;
            assert_eq!(answer.code, 200, "{path}: {answer:?}");
        }
    }
    assert!(evicted(&server, "ops", "idle").await > Some(0.0));
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_connections_that_stay_on_the_health_port_keep_no_probe_out() {
    let server = Running::start().await;
    let mut idle = Vec::new();
    for _ in 0..64 {
        let mut wire = Wire::plain(server.addresses.ops).await;
        assert_eq!(wire.exchange(&Request::get("/livez")).await.code, 200);
        idle.push(wire);
    }
    for path in ["/readyz", "/livez"] {
        assert_eq!(server.ops(path).await.code, 200, "{path}");
    }
    // Those that had been idle for longest have made room, and the others are still there.
    assert!(evicted(&server, "ops", "idle").await > Some(0.0));
    assert_eq!(idle[63].exchange(&Request::get("/livez")).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_never_ends_is_refused() {
    let server = Running::start().await;
    let mut wire = server.connect().await;
    let header = Request::get(&format!("/mutate?{}", "x".repeat(20_000)));
    assert_eq!(wire.exchange(&header).await.code, 431);
    wire.closed().await;
}
