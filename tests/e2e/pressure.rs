//! The webhook as a process under hundreds of connections that do nothing, or little. `tests/it/webhook/pressure.rs` has the rules.

use fixtures::reviews;
use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::cluster::some_or_all;
use crate::kind::samples;
use crate::tls::Connection;
use crate::webhook::Webhook;
use fixtures::wait::{eventually, for_some};

/// Files that the tests of this module have open at a time, all together, with room for the others.
const OPEN_FILES: u64 = 13_000;

/// The time that a stopping webhook grants to requests in flight.
const FINISH: Duration = Duration::from_secs(10);

/// For all slow clients to have connected once, those included that were turned away before.
const GATHERED_WITHIN: Duration = Duration::from_mins(3);

const ROOM: Duration = Duration::from_secs(15);

const MIB: usize = 1024 * 1024;

const HALF_OPEN_EVICTED: &str = "kube_unions_connections_evicted_total{port=\"webhook\",reason=\"half_open\"}";

#[test]
fn half_open_connections_and_slow_clients_keep_nobody_waiting_and_do_not_delay_the_end_beyond_its_limit() {
    allow_open_files();
    let few = (300, 20, Slow { half_open: 600, headers: 20, bodies: 20, readers: 5 });
    let (places, reviews, slow) =
        some_or_all(few, (1024, 200, Slow { half_open: 5_000, headers: 200, bodies: 200, readers: 40 }));
    let mut webhook = serve(&[&format!("--max-connections={places}"), "--shutdown-delay=5s"]);
    let body = review("the-uid");
    // A connection that the API server keeps open between two reviews.
    let mut kept = Connection::open(&webhook);
    kept.post("/validate", &body);
    assert_eq!(kept.answer().unwrap().status, 200);
    let crowd = Crowd::gather(&webhook, &slow);
    // A new connection waits behind all half-open ones.
    for _ in 0..reviews {
        let mut new = Connection::try_open(webhook.port(), webhook.ca(), ROOM).expect("a new connection");
        for (connection, path) in [(&mut kept, "/validate"), (&mut new, "/mutate")] {
            connection.post(path, &body);
            assert_eq!(connection.answer().expect("an answer").status, 200, "{path}");
        }
        assert_eq!(webhook.ops().get("/readyz").expect("the ops port answers").status, 200);
    }
    assert!(webhook.metric(HALF_OPEN_EVICTED) > 0, "there was no pressure: {crowd}");
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());

    let began = Instant::now();
    let ops = webhook.ops();
    webhook.process().terminate();
    assert!(eventually(ROOM, || ops.get("/readyz").is_ok_and(|answer| answer.status == 503)), "unready at once");
    kept.post("/validate", &body);
    let answer = kept.answer().expect("it serves on");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    let status = webhook.process().wait_for_exit(Duration::from_secs(5) + FINISH + ROOM);
    eprintln!("{crowd}: ended after {:.1?} with {status}", began.elapsed());
    assert!(status.success(), "{status}");
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

/// The number of slow clients of each kind.
struct Slow {
    /// Connect, and say nothing.
    half_open: usize,
    /// Send a header without an end, byte by byte.
    headers: usize,
    /// Announce 7 MiB; send 100 bytes of it or 300 KiB, and then byte by byte.
    bodies: usize,
    /// Send a review whose answer is large, and do not read it.
    readers: usize,
}

/// Slow clients in the background. Whoever is turned away comes again.
struct Crowd {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Connections so far, of the first kind and of the others.
    opened: Arc<[AtomicUsize; 2]>,
}

impl Crowd {
    /// Returns when all have connected once. The half-open clients come again only from then on: before, they would keep
    /// the others waiting.
    fn gather(webhook: &Webhook, slow: &Slow) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let opened = Arc::<[AtomicUsize; 2]>::default();
        let mut crowd = Self { stop, threads: Vec::new(), opened };
        let port = webhook.port();
        let half_open = slow.half_open;
        let slow_clients = slow.headers + slow.bodies + slow.readers;
        crowd.spawn(move |stop, [opened, opened_by_slow]| {
            let mut streams = VecDeque::with_capacity(half_open);
            while !stop.load(Ordering::Relaxed) {
                if streams.len() == half_open {
                    thread::sleep(Duration::from_millis(1));
                    if opened_by_slow.load(Ordering::Relaxed) < slow_clients {
                        continue;
                    }
                    // Has been cut off long ago, most likely.
                    streams.pop_front();
                }
                if let Ok(stream) = tcp(port) {
                    streams.push_back(stream);
                    opened.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let ca = webhook.ca().to_owned();
        let open = move || Connection::try_open(port, &ca, Duration::from_secs(1));
        crowd.tease(slow.headers, b"x", {
            let open = open.clone();
            move |_| {
                let mut connection = open()?;
                connection.write(b"POST /mutate HTTP/1.1\r\nx-slow: ")?;
                Ok(connection)
            }
        });
        crowd.tease(slow.bodies, b" ", {
            let open = open.clone();
            move |number| {
                let mut connection = open()?;
                connection.write(Connection::head("/validate", 7 * MIB).as_bytes())?;
                connection.write(&vec![b' '; if number % 2 == 0 { 100 } else { 300 * 1024 }])?;
                Ok(connection)
            }
        });
        let echoed = review(&"u".repeat(6 * MIB));
        crowd.tease(slow.readers, b"", move |_| {
            let mut connection = open()?;
            connection.narrow();
            connection.try_post("/mutate", &echoed)?;
            Ok(connection)
        });
        let gathered = || {
            let [silent, others] = [0, 1].map(|kind| crowd.opened[kind].load(Ordering::Relaxed));
            (silent >= half_open && others >= slow_clients).then_some(())
        };
        for_some(GATHERED_WITHIN, gathered).unwrap_or_else(|| panic!("only {crowd} have come"));
        crowd
    }

    /// Opens connections that send `byte` now and then.
    fn tease(
        &mut self,
        count: usize,
        byte: &'static [u8],
        open: impl Fn(usize) -> io::Result<Connection> + Send + 'static,
    ) {
        self.spawn(move |stop, [_, opened]| {
            let mut connections: Vec<Option<Connection>> = (0..count).map(|_| None).collect();
            while !stop.load(Ordering::Relaxed) {
                for (number, slot) in connections.iter_mut().enumerate() {
                    match slot {
                        _ if stop.load(Ordering::Relaxed) => return,
                        None => {
                            *slot = open(number).ok();
                            opened.fetch_add(usize::from(slot.is_some()), Ordering::Relaxed);
                        }
                        Some(connection) => {
                            if connection.write(byte).is_err() {
                                *slot = None;
                            }
                        }
                    }
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
    }

    fn spawn(&mut self, work: impl FnOnce(&AtomicBool, &[AtomicUsize; 2]) + Send + 'static) {
        let (stop, opened) = (Arc::clone(&self.stop), Arc::clone(&self.opened));
        self.threads.push(thread::spawn(move || work(&stop, &opened)));
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that has failed has said so.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Display for Crowd {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [silent, others] = [0, 1].map(|kind| self.opened[kind].load(Ordering::Relaxed));
        write!(out, "connections opened by half-open clients {silent}, by slow ones {others}")
    }
}
