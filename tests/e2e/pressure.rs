//! The webhook as a process under hundreds of connections that do nothing, or little. `tests/it/webhook/pressure.rs` has the rules.

use fixtures::reviews;
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::support::cluster::some_or_all;
use crate::support::kind::samples;
use crate::support::tls::Connection;
use crate::support::webhook::Webhook;
use fixtures::wait::eventually;

/// Files that the tests of this module have open at a time, all together, with room for the others.
const OPEN_FILES: u64 = 13_000;

/// The time that a stopping webhook grants to requests in flight.
const FINISH: Duration = Duration::from_secs(10);

const ROOM: Duration = Duration::from_secs(15);

const MIB: usize = 1024 * 1024;

const HALF_OPEN_EVICTED: &str = "kube_unions_connections_evicted_total{port=\"webhook\",reason=\"half_open\"}";

#[test]
fn half_open_connections_and_slow_clients_keep_nobody_waiting_and_do_not_delay_the_end_beyond_its_limit() {
    allow_open_files();
    let [places, half_open, slow] = some_or_all([300, 600, 20], [1024, 5_000, 200]);
    let mut webhook = serve(&[&format!("--max-connections={places}"), "--shutdown-delay=5s"]);
    let body = review("the-uid");
    // A connection that the API server keeps open between two reviews.
    let mut kept = Connection::open(&webhook);
    kept.post("/validate", &body);
    assert_eq!(kept.answer().unwrap().status, 200);
    let _half_open: Vec<TcpStream> = (0..half_open).map(|_| tcp(webhook.port()).unwrap()).collect();
    let _slow: Vec<Connection> = (0..slow).map(|number| slow_client(&webhook, number)).collect();
    // A new connection waits behind all half-open ones.
    for _ in 0..slow {
        let mut new = Connection::try_open(webhook.port(), webhook.ca(), ROOM).expect("a new connection");
        for (connection, path) in [(&mut kept, "/validate"), (&mut new, "/mutate")] {
            connection.post(path, &body);
            assert_eq!(connection.answer().expect("an answer").status, 200, "{path}");
        }
        assert_eq!(webhook.ops().get("/readyz").expect("the ops port answers").status, 200);
    }
    assert!(webhook.metric(HALF_OPEN_EVICTED) > 0, "there was no pressure");
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());

    let began = Instant::now();
    let ops = webhook.ops();
    webhook.process().terminate();
    assert!(eventually(ROOM, || ops.get("/readyz").is_ok_and(|answer| answer.status == 503)), "unready at once");
    kept.post("/validate", &body);
    let answer = kept.answer().expect("it serves on");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    let status = webhook.process().wait_for_exit(Duration::from_secs(5) + FINISH + ROOM);
    eprintln!("ended after {:.1?} with {status}", began.elapsed());
    assert!(status.success(), "{status}");
}

/// Connects, and sends the beginning of a head, a part of a body, or a review with a large answer that it does not read.
fn slow_client(webhook: &Webhook, number: usize) -> Connection {
    let mut connection = Connection::try_open(webhook.port(), webhook.ca(), ROOM).expect("a slow connection");
    match number % 4 {
        0 => connection.write(b"POST /mutate HTTP/1.1\r\nx-slow: "),
        1 => {
            connection.narrow();
            connection.try_post("/mutate", &review(&"u".repeat(6 * MIB)))
        }
        position => {
            let part = vec![b' '; if position == 2 { 100 } else { 300 * 1024 }];
            let head = Connection::head("/validate", 7 * MIB);
            connection.write(head.as_bytes()).and_then(|()| connection.write(&part))
        }
    }
    .expect("a slow client can begin");
    connection
}

#[test]
fn a_low_limit_on_open_files_is_raised_or_else_lived_with() {
    allow_open_files();
    // The soft limit alone, and both.
    for (limit, is_low) in [("-Sn 256", false), ("-n 256", true)] {
        let webhook = Webhook::with_open_files(&samples(), limit).unwrap_or_else(|message| panic!("{message}"));
        assert_eq!(webhook.log().contains("the limit on open files"), is_low, "{limit}: {}", webhook.log());
        let _half_open: Vec<TcpStream> = (0..600).map(|_| tcp(webhook.port()).unwrap()).collect();
        assert_eq!(webhook.ops().get("/livez").expect("the ops port answers").status, 200, "{limit}");
        let mut connection = Connection::open(&webhook);
        connection.post("/mutate", &review("the-uid"));
        assert_eq!(connection.answer().expect("an answer").status, 200, "{limit}");
        assert!(!webhook.log().contains("no connection could be accepted"), "{limit}: {}", webhook.log());
    }
}

fn serve(more: &[&str]) -> Webhook {
    Webhook::of_files(&samples(), more).unwrap_or_else(|message| panic!("{message}"))
}

/// Raises this process's own limit, and with it that of the servers it starts, as far as it may be.
fn allow_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    assert!(most >= OPEN_FILES, "{OPEN_FILES} open files are needed here and {most} are allowed; see `ulimit -Hn`");
    if limit.current.is_some_and(|current| current < OPEN_FILES) {
        limit.current = Some(OPEN_FILES);
        setrlimit(Resource::Nofile, limit).expect("the limit may be raised to its maximum");
    }
}

fn review(uid: &str) -> String {
    let object = json!({
        "apiVersion": "samples.kube-unions.dev/v1", "kind": "Rollout", "metadata": {"name": "x", "namespace": "default"},
        "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    });
    reviews::review(uid, "CREATE", Some(&object), None).to_string()
}

fn tcp(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", port))
}
