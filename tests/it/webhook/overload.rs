//! More large reviews than the processors can answer, and callers that do not wait for them.

use super::wire::{Request, Running, Wire, padded_review, review, until};
use super::{Begun, MIB, gated, open};
use kube_unions_webhook::webhook::Limits;
use std::num::NonZero;
use std::thread::available_parallelism;
use tokio::sync::mpsc;

fn large(path: &str, uid: &str) -> Request {
    Request::post(path, padded_review(uid, MIB))
}

/// Occupies every turn, and returns the connections and the reviews that wait.
async fn occupied(server: &Running, begins: &mut mpsc::UnboundedReceiver<Begun>) -> (Vec<Wire>, Vec<Begun>) {
    let (mut wires, mut begun) = (Vec::new(), Vec::new());
    for _ in 0..available_parallelism().map_or(1, NonZero::get) {
        wires.push(server.sent(&large("/mutate", "first")).await);
        begun.push(begins.recv().await.unwrap());
    }
    (wires, begun)
}

async fn given_up(server: &Running, reason: &str) -> Option<f64> {
    server.metric(&format!("kube_unions_admission_given_up_total{{reason=\"{reason}\"}}")).await
}

/// Waits until so many large reviews wait for their turn or have it.
async fn until_queued(server: &Running, reviews: usize) {
    let reviews = f64::from(u32::try_from(reviews).unwrap());
    until(async || server.metric("kube_unions_admission_queued").await == Some(reviews)).await;
}

async fn finish(wires: Vec<Wire>, begun: Vec<Begun>) {
    for begun in begun {
        begun.go.send(()).unwrap();
    }
    for mut wire in wires {
        assert_eq!(wire.answer().await.code, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_whose_deadline_passes_before_its_turn_is_not_begun() {
    let (server, mut begins) = gated(|_| {}).await;
    let (wires, begun) = occupied(&server, &mut begins).await;
    let answer = server.send(&large("/validate?timeout=300ms", "late")).await;
    assert_eq!((answer.code, answer.header("retry-after")), (504, None));
    assert_eq!(answer.json()["reason"], "Timeout");
    assert_eq!(given_up(&server, "deadline").await, Some(1.0));
    finish(wires, begun).await;
    until_queued(&server, 0).await;
    assert!(begins.try_recv().is_err(), "nothing else has begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_whose_caller_goes_before_its_turn_is_not_begun() {
    let (server, mut begins) = gated(|_| {}).await;
    let (wires, begun) = occupied(&server, &mut begins).await;
    let gone = server.sent(&large("/mutate?timeout=30s", "gone")).await;
    until_queued(&server, begun.len() + 1).await;
    drop(gone);
    until(async || given_up(&server, "gone").await == Some(1.0)).await;
    until_queued(&server, begun.len()).await;
    finish(wires, begun).await;
    until_queued(&server, 0).await;
    assert!(begins.try_recv().is_err(), "nothing else has begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_stops_at_its_next_charge_when_its_caller_goes() {
    let (server, mut begins) = gated(|_| {}).await;
    let gone = server.sent(&large("/mutate?timeout=30s", "gone")).await;
    let Begun { go, goes_on, .. } = begins.recv().await.unwrap();
    drop(gone);
    until(async || given_up(&server, "gone").await == Some(1.0)).await;
    go.send(()).unwrap();
    assert!(!goes_on.await.unwrap(), "the caller has gone");
    until_queued(&server, 0).await;
    assert_eq!(server.metric("kube_unions_admission_in_flight").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_stops_at_its_next_charge_when_its_deadline_passes() {
    let (server, mut begins) = gated(|_| {}).await;
    let mut late = server.sent(&large("/mutate?timeout=300ms", "late")).await;
    let Begun { go, goes_on, .. } = begins.recv().await.unwrap();
    assert_eq!(late.answer().await.code, 504);
    go.send(()).unwrap();
    assert!(!goes_on.await.unwrap(), "the deadline has passed");
    assert_eq!(given_up(&server, "deadline").await, Some(1.0));
    assert_eq!(given_up(&server, "gone").await, Some(0.0));
    // The connection still works.
    assert_eq!(late.exchange(&Request::post("/mutate", review("u"))).await.code, 200);
}

/// Runs on one thread, so that nothing happens between the metric and the place in the queue.
#[tokio::test]
async fn reviews_take_their_turns_in_the_order_of_their_arrival() {
    let (server, mut begins) = gated(|_| {}).await;
    let (mut wires, mut begun) = occupied(&server, &mut begins).await;
    let first = begun.len();
    for number in 0..5 {
        wires.push(server.sent(&large("/mutate?timeout=30s", &number.to_string())).await);
        until_queued(&server, first + number + 1).await;
    }
    for number in 0..5 {
        begun.remove(0).go.send(()).unwrap();
        let next = begins.recv().await.unwrap();
        assert_eq!(next.uid, number.to_string());
        begun.push(next);
    }
    finish(wires, begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_that_would_be_late_is_refused_at_once_with_429() {
    let (server, mut begins) = gated(|_| {}).await;
    // The server learns that a body like this takes a second or more.
    let mut slow = server.sent(&large("/mutate?timeout=1s", "slow")).await;
    let Begun { go, .. } = begins.recv().await.unwrap();
    assert_eq!(slow.answer().await.code, 504);
    go.send(()).unwrap();
    until_queued(&server, 0).await;

    let (wires, begun) = occupied(&server, &mut begins).await;
    let late = large("/mutate?timeout=1s", "late");
    let answer = server.send(&late).await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(answer.json()["reason"], "TooManyRequests");
    let refused = server.metric("kube_unions_admission_refused_total{reason=\"late\"}").await;
    assert_eq!(refused, Some(1.0));
    let small = server.send(&Request::post("/mutate?timeout=1s", review("small"))).await;
    assert_eq!(small.code, 200, "a small review takes no turn: {small:?}");
    finish(wires, begun).await;
    assert!(begins.try_recv().is_err(), "nothing else has begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_wait_leave_memory_to_the_reviews_that_run() {
    let limits = Limits { body: MIB, in_flight: 9 * MIB, ..Limits::default() };
    let (server, mut begins) = gated(|config| config.limits = limits).await;
    let (mut wires, begun) = occupied(&server, &mut begins).await;
    // A third of the bytes in flight, in all.
    while wires.len() < 3 {
        wires.push(server.sent(&large("/mutate", "waits")).await);
        until_queued(&server, wires.len()).await;
    }
    let answer = server.send(&large("/mutate", "too many")).await;
    assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")));
    let _open = open(begins);
    finish(wires, begun).await;
}
