//! The webhook as a process under thousands of connections that do nothing, or little: what they cost others, and memory.

use fixtures::reviews;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::kind::samples;
use crate::tls::{Connection, RawAnswer};
use crate::webhook::Webhook;
use fixtures::wait::{eventually, for_some};

const HALF_OPEN: usize = 5_000;

/// Files that the tests of this module have open at a time, all together, with room for the others.
const OPEN_FILES: u64 = 13_000;

/// Reviews of each kind that are answered while the pressure stands.
const REVIEWS: usize = 200;

/// Clients that connect for each review. A connection waits behind all half-open ones, so one client alone would take minutes beside
/// other tests.
const CONNECTING: usize = 4;

/// The time that a stopping webhook grants to requests in flight.
const FINISH: Duration = Duration::from_secs(10);

/// For all slow clients to have connected once, those included that were turned away before.
const GATHERED_WITHIN: Duration = Duration::from_mins(3);

/// The webhook closes an idle connection by itself after 150 s.
const IDLE: Duration = Duration::from_secs(140);

const ROOM: Duration = Duration::from_secs(15);

const MIB: usize = 1024 * 1024;

const HALF_OPEN_EVICTED: &str = "kube_unions_connections_evicted_total{port=\"webhook\",reason=\"half_open\"}";

#[test]
fn half_open_connections_and_slow_clients_keep_nobody_waiting_and_memory_bounded() {
    allow_open_files();
    let mut webhook = serve(&[]);
    let body = review("the-uid");
    // A connection that the API server keeps open between two reviews.
    let mut kept = Connection::open(&webhook);
    kept.post("/validate", &body);
    let idle_since = Instant::now();
    assert_eq!(kept.answer().unwrap().status, 200);
    let at_rest = memory(&webhook);

    let crowd = Crowd::gather(&webhook, &Slow { half_open: HALF_OPEN, headers: 200, bodies: 200, readers: 40 });
    let connecting = [(); CONNECTING].map(|()| {
        Reviews::start(&webhook, |port, ca, body| {
            let mut connection = Connection::try_open(port, ca, ROOM)?;
            connection.try_post("/mutate", body)?;
            connection.answer()
        })
    });
    let staying = Reviews::start(&webhook, {
        let mut connection = Connection::open(&webhook);
        move |_, _, body| {
            connection.try_post("/validate", body)?;
            connection.answer()
        }
    });
    while connecting.iter().map(Reviews::count).sum::<usize>().min(staying.count()) < REVIEWS {
        assert_eq!(webhook.ops().get("/readyz").expect("the ops port answers").status, 200);
    }
    let (connecting, staying) = (connecting.map(Reviews::finish), staying.finish());
    let evicted = webhook.metric(HALF_OPEN_EVICTED);
    eprintln!("half-open {HALF_OPEN}, {crowd}, driven out {evicted}");
    for client in &connecting {
        eprintln!("a connection for each review: {client}");
    }
    eprintln!("one connection for all: {staying}");
    let under_pressure = memory(&webhook);
    eprintln!("memory at rest {at_rest}, under pressure {under_pressure}");

    if idle_since.elapsed() < IDLE {
        kept.post("/validate", &body);
        assert_eq!(kept.answer().expect("the idle connection is still open").status, 200);
    }
    drop(crowd);
    connecting.iter().chain([&staying]).for_each(Answers::assert_answered);
    assert!(evicted > 0, "there was no pressure");
    webhook.process().assert_running();
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "{}", webhook.log());
}

#[test]
fn where_there_are_places_for_them_thousands_of_half_open_connections_are_held_in_little_memory() {
    allow_open_files();
    let webhook = serve(&["--max-connections=5000"]);
    let at_rest = memory(&webhook);
    let files = format!("/proc/{}/fd", webhook.pid());
    let open_files = || fs::read_dir(&files).expect("the webhook's files can be listed").count();
    let mut half_open = Vec::with_capacity(HALF_OPEN);
    while half_open.len() < HALF_OPEN {
        // No more at once than the system's queue holds.
        half_open.extend((0..500).map(|_| tcp(webhook.port()).unwrap()));
        // The dozen files that it has open besides counts for nothing here.
        let all = half_open.len();
        assert!(eventually(ROOM, || open_files() >= all), "{} of {all} are held", open_files());
    }
    let held = memory(&webhook);
    eprintln!("memory at rest {at_rest}, with {HALF_OPEN} half-open connections {held}");
    let reviews = Reviews::start(&webhook, |port, ca, body| {
        let mut connection = Connection::try_open(port, ca, ROOM)?;
        connection.try_post("/mutate", body)?;
        connection.answer()
    });
    assert!(eventually(ROOM, || reviews.count() >= 50));
    let reviews = reviews.finish();
    eprintln!("a connection for each review: {reviews}");
    reviews.assert_answered();
    drop(half_open);
}

#[test]
fn slow_clients_do_not_delay_the_end_beyond_its_limit() {
    allow_open_files();
    let mut webhook = serve(&["--shutdown-delay=5s"]);
    let crowd = Crowd::gather(&webhook, &Slow { half_open: 500, headers: 20, bodies: 20, readers: 5 });
    let mut kept = Connection::open(&webhook);
    let began = Instant::now();
    let ops = webhook.ops();
    webhook.process().terminate();
    assert!(eventually(ROOM, || ops.get("/readyz").is_ok_and(|answer| answer.status == 503)), "unready at once");
    kept.post("/validate", &review("the-uid"));
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

/// Resident memory of a process, bytes.
struct Memory {
    now: usize,
    peak: usize,
}

fn memory(webhook: &Webhook) -> Memory {
    let status = fs::read_to_string(format!("/proc/{}/status", webhook.pid())).expect("the webhook runs");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a process has memory");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number of KiB") * 1024
    };
    Memory { now: value("VmRSS:"), peak: value("VmHWM:") }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} MiB (peak {} MiB)", self.now / MIB, self.peak / MIB)
    }
}

/// Reviews in the background, one after the other, and how long each took.
struct Reviews {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: JoinHandle<Answers>,
}

impl Reviews {
    /// `ask` is given the webhook's port and CA, and a review.
    fn start(
        webhook: &Webhook,
        mut ask: impl FnMut(u16, &str, &str) -> io::Result<RawAnswer> + Send + 'static,
    ) -> Self {
        let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (port, ca) = (webhook.port(), webhook.ca().to_owned());
        let thread = thread::spawn({
            let (stop, count) = (Arc::clone(&stop), Arc::clone(&count));
            move || {
                let body = review("the-uid");
                let mut answers = Answers::default();
                while !stop.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    match ask(port, &ca, &body) {
                        Ok(answer) if answer.status == 200 => answers.took.push(sent.elapsed()),
                        other => answers.others.push(format!("after {:?}: {other:?}", sent.elapsed())),
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
                answers.took.sort_unstable();
                answers
            }
        });
        Self { stop, count, thread }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn finish(self) -> Answers {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the reviews have not failed")
    }
}

/// The outcomes of reviews.
#[derive(Default)]
struct Answers {
    /// Sorted.
    took: Vec<Duration>,
    /// Answers other than 200, and errors.
    others: Vec<String>,
}

impl Answers {
    #[track_caller]
    fn assert_answered(&self) {
        assert!(self.others.is_empty(), "{:?}", self.others);
        assert!(!self.took.is_empty(), "{self}");
    }
}

impl std::fmt::Display for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |percent: usize| self.took.get(self.took.len() * percent / 100).copied().unwrap_or_default();
        let most = self.took.last().copied().unwrap_or_default();
        let (answered, others) = (self.took.len(), self.others.len());
        write!(out, "{answered} answered, {others} not; p50 {:.1?}, p99 {:.1?}, max {most:.1?}", at(50), at(99))
    }
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
