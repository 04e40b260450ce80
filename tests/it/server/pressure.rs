//! More than is taken on at a time: connections, bytes, and clients that are in no hurry.

use super::wire::{Request, Running, SOON, Wire, padded_review, review, until};
use super::{MIB, gated};
use kube_unions::server::{Limits, Timeouts};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};

const EVICTED: &str = "kube_unions_connections_evicted_total";
const HELD: &str = "kube_unions_admission_in_flight_bytes";

/// Waits until requests hold so many bytes, or more, or less. To ask by a request would take from them what they need.
async fn until_held(server: &Running, compare: fn(&f64, &f64) -> bool, bytes: usize) {
    let bytes = f64::from(u32::try_from(bytes).unwrap());
    until(async || server.metric(HELD).await.is_some_and(|held| compare(&held, &bytes))).await;
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
async fn large_bodies_that_stop_half_way_keep_no_small_review_out() {
    let limits = Limits { body: MIB, in_flight: 3 * MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        slow.push(half_sent(&server, MIB, MIB - 1).await);
    }
    until_held(&server, f64::eq, 2 * MIB).await;
    // Two thirds of the budget are for what bodies have beyond their first bytes.
    let large = Request::post("/mutate", padded_review("large", MIB));
    assert_eq!(server.send(&large).await.code, 429);
    for _ in 0..3 {
        let answer = server.send(&Request::post("/mutate", padded_review("u", 16 * 1024))).await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }
    for wire in &mut slow {
        wire.write(b" ").await;
        assert_eq!(wire.answer().await.code, 200);
    }
    assert_eq!(server.send(&large).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_for_which_the_budget_runs_out_half_way_is_told_to_come_again() {
    let limits = Limits { body: MIB, in_flight: MIB, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    // Both find room for their first half, and while the one has that, the other does not for its second.
    let mut slow = half_sent(&server, MIB, MIB / 4).await;
    until_held(&server, f64::ge, MIB / 4).await;
    let mut refused = server.connect().await;
    let answer = refused.exchange(&Request::post("/mutate", padded_review("u", MIB))).await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")), "nobody waits for anybody");
    assert_eq!(answer.json()["reason"], "TooManyRequests");
    slow.write(" ".repeat(MIB - MIB / 4).as_bytes()).await;
    assert_eq!(slow.answer().await.code, 200);
    // On the connection that was refused, too.
    let quick = Request::post("/mutate", review("quick"));
    for wire in [&mut refused, &mut slow] {
        assert_eq!(wire.exchange(&quick).await.code, 200);
    }
    // An answer counts until it is sent, for longer than until it is here.
    until_held(&server, f64::eq, 0).await;
    assert_eq!(server.send(&Request::post("/mutate", padded_review("u", MIB))).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_whose_client_has_gone_counts_until_it_is_made() {
    let (reviewer, mut begins) = gated();
    let limits = Limits { body: MIB, in_flight: MIB, ..Limits::default() };
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

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_until_it_is_taken_and_its_reader_is_let_go() {
    // More than the system buffers by itself.
    let limits = Limits { body: 16 * MIB, in_flight: 16 * MIB, ..Limits::default() };
    let timeouts = Timeouts { write: Duration::from_secs(3), ..Timeouts::default() };
    let server = Running::with(|config| (config.limits, config.timeouts) = (limits, timeouts)).await;
    let mut slow = narrow(&server).await;
    let large = echoed(12 * MIB);
    slow.write(large.head.as_bytes()).await;
    let (most, last) = large.body.split_at(large.body.len() - 1);
    slow.write(most).await;
    let begin = Instant::now();
    slow.write(last).await;
    until_held(&server, f64::ge, 12 * MIB).await;
    let other = Request::post("/mutate", padded_review("u", 12 * MIB));
    assert_eq!(server.send(&other).await.code, 429);
    // A little now and then does not make it faster.
    let trickle = tokio::spawn(async move {
        let mut taken = 0;
        while let more @ 1.. = slow.trickle().await {
            taken += more;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        taken
    });
    until(async || server.send(&other).await.code == 200).await;
    assert!(begin.elapsed() >= timeouts.write, "held for {:?} only", begin.elapsed());
    let taken = tokio::time::timeout(SOON, trickle).await.expect("it is let go").unwrap();
    assert!((1..12 * MIB).contains(&taken), "it has had {taken} bytes, all there were");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_takes_the_place_of_the_oldest_and_never_of_one_that_has_sent_a_request() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let server = Running::with(|config| config.limits = limits).await;
    let request = Request::post("/mutate", review("u"));
    let mut kept = server.connect().await;
    assert_eq!(kept.exchange(&request).await.code, 200);
    // Six places: one is taken, five are for those who come and say nothing, whatever they have got done so far.
    let mut body = half_sent(&server, 1000, 10).await;
    let mut header = server.connect().await;
    header.write(b"POST /mutate HTTP/1.1\r\n").await;
    let mut silent = server.connect().await;
    let mut handshake = Wire::plain(server.addresses.webhook).await;
    handshake.write(b"\x16\x03\x01").await;
    let mut half_open = Wire::plain(server.addresses.webhook).await;

    let mut stay = Vec::new();
    for (oldest, evicted) in [(&mut body, 1.0), (&mut header, 2.0), (&mut silent, 3.0)] {
        let mut wire = server.connect().await;
        assert_eq!(wire.exchange(&request).await.code, 200);
        oldest.closed().await;
        assert_eq!(server.metric(EVICTED).await, Some(evicted));
        stay.push(wire);
    }
    // As many stay now as may. Who comes is told, and still has not to wait for those who say nothing.
    let mut late = server.connect().await;
    handshake.closed().await;
    let answer = late.exchange(&request).await;
    assert_eq!((answer.code, answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.header("connection"), Some("close"));
    late.closed().await;
    let _silent = [Wire::plain(server.addresses.webhook).await, Wire::plain(server.addresses.webhook).await];
    half_open.closed().await;
    assert_eq!(server.metric(EVICTED).await, Some(5.0));

    for wire in [&mut kept].into_iter().chain(&mut stay) {
        assert_eq!(wire.exchange(&request).await.code, 200);
    }
    drop(kept);
    until(async || server.send(&request).await.code == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ops_port_cannot_be_held_by_doing_nothing_either() {
    let server = Running::start().await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(server.addresses.ops).await.unwrap());
    }
    let begin = Instant::now();
    assert_eq!(server.ops("/readyz").await.code, 200);
    assert!(begin.elapsed() < Timeouts::default().first_byte / 2, "after {:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_never_ends_is_refused() {
    let server = Running::start().await;
    let mut wire = server.connect().await;
    let header = Request::get(&format!("/mutate?{}", "x".repeat(20_000)));
    assert_eq!(wire.exchange(&header).await.code, 431);
    wire.closed().await;
}
