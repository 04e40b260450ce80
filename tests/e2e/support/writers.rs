//! Counted writes through the API server at a steady rate. Each needs the webhook's work to be right.
//!
//! Every object is a sample's `Backup` and lives the same life ([`life`]): it is created without its discriminator, is
//! switched from member to member, and is asked twice to become invalid. A write counts as answered when it is what it
//! should be: the object in the answer is normalised, or the rejection has the union's words. A write that got past the
//! webhook counts as lost, like a failed one.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::background::Background;
use crate::support::http::{Answer, Client};
use crate::support::load::causes;

/// Threads, each with a connection of its own and one write at a time.
const WRITERS: u32 = 12;
/// The usual rate of all writers together on an idle machine, writes per second.
const RATE: u32 = 360;
/// The writes in a row of each writer in a burst.
const BURST: u32 = 10;
/// A writer that is this late starts a new schedule instead of catching up in one burst.
const LATE: Duration = Duration::from_millis(500);
/// The pause between two attempts while the API server is down.
const RETRY: Duration = Duration::from_millis(50);
/// The most failed writes that are printed in full.
const PRINTED: usize = 5;

/// Running writers.
pub(crate) struct Writers {
    began: Instant,
    shared: Arc<Shared>,
    client: Client,
    collection: String,
    /// The prefix of its objects' names.
    names: String,
    writing: Option<Background>,
}

/// The distribution of writes over time, at the same rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// One after the other.
    Even,
    /// All writers at once, then a pause: connections of the API server are idle, and then wanted all together.
    Bursts,
}

/// The outcome of the writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Attempts that failed because the API server itself was down. The writes were sent again.
    pub(crate) again: u64,
    /// The failed ones.
    pub(crate) losses: Vec<Loss>,
    /// Objects that were created.
    created: usize,
}

/// A write that failed.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    pub(crate) sent: Instant,
    pub(crate) ended: Instant,
    /// The answer and the expected answer.
    pub(crate) story: String,
}

#[derive(Default)]
struct Shared {
    count: Mutex<Count>,
    downtimes: Mutex<Vec<Downtime>>,
}

/// The time from an API server's SIGTERM until its successor is ready.
#[derive(Debug, Clone, Copy)]
struct Downtime {
    began: Instant,
    /// `None`: the downtime is not over.
    ended: Option<Instant>,
}

impl Writers {
    /// Starts writers to the collection at `path`, of `Backup`s of this API group.
    pub(crate) fn start(new_client: impl Fn() -> Client, group: &str, path: &str, spread: Spread) -> Self {
        Self::start_at(RATE, new_client, group, path, spread)
    }

    /// Starts writers of updates that touch no union, of objects that it creates first.
    pub(crate) fn start_untouched(new_client: impl Fn() -> Client, group: &str, path: &str) -> Self {
        Self::start_with(untouched, RATE, new_client, group, path, Spread::Even)
    }

    /// The same as [`start`](Self::start) at another rate, in writes per second.
    pub(crate) fn start_at(
        rate: u32,
        new_client: impl Fn() -> Client,
        group: &str,
        path: &str,
        spread: Spread,
    ) -> Self {
        Self::start_with(life, rate, new_client, group, path, spread)
    }

    fn start_with(
        life: LifeOf,
        rate: u32,
        new_client: impl Fn() -> Client,
        group: &str,
        path: &str,
        spread: Spread,
    ) -> Self {
        // No two runs write the same objects.
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let names = format!("r{}-", RUNS.fetch_add(1, Ordering::Relaxed));
        let shared = Arc::<Shared>::default();
        let began = Instant::now();
        let writers = (0..WRITERS).map(|index| {
            let mut writer = Writer {
                client: new_client(),
                group: group.to_owned(),
                collection: path.to_owned(),
                name: format!("{names}w{index}"),
                life,
                lives: 0,
                ahead: Vec::new(),
                next: match spread {
                    Spread::Even => began + Duration::from_secs(1) * index / rate,
                    Spread::Bursts => began,
                },
                rate,
                burst: if spread == Spread::Bursts { BURST } else { 1 },
                turns: 0,
                shared: Arc::clone(&shared),
            };
            move || writer.write_next()
        });
        let writing = Background::start(writers);
        Self { began, shared, client: new_client(), collection: path.to_owned(), names, writing: Some(writing) }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn sent(&self) -> u64 {
        self.shared.count.lock().unwrap().sent
    }

    /// Returns the number of writes in flight.
    pub(crate) fn underway(&self) -> u64 {
        let count = self.shared.count.lock().unwrap();
        count.sent - count.answered - count.failed
    }

    pub(crate) fn failed(&self) -> u64 {
        self.shared.count.lock().unwrap().failed
    }

    /// Runs `restart`, which takes the API server down and returns when it is back.
    pub(crate) fn while_down<T>(&self, restart: impl FnOnce() -> T) -> T {
        self.shared.downtimes.lock().unwrap().push(Downtime { began: Instant::now(), ended: None });
        let result = restart();
        let mut downtimes = self.shared.downtimes.lock().unwrap();
        downtimes.last_mut().expect("one has begun").ended = Some(Instant::now());
        result
    }

    /// Stops the writers. Fails unless the stored objects are those of the answers.
    pub(crate) fn finish(mut self) -> Count {
        self.writing.take().expect("writes are ended once").finish();
        let count = self.shared.count.lock().unwrap().clone();
        if count.failed == 0 {
            let stored = self.stored();
            assert_eq!(stored.len(), count.created, "as many objects are stored as were created");
            for object in stored {
                let destination = object["spec"]["destination"].as_object().expect("every destination is kept");
                assert_eq!(destination.len(), 2, "a discriminator and one member: {object}");
            }
        }
        count
    }

    /// The objects of this run.
    fn stored(&self) -> Vec<Value> {
        let (mut stored, mut next) = (Vec::new(), String::new());
        loop {
            let page = self.client.get(&format!("{}?limit=500&continue={next}", self.collection));
            let mut page = page.expect("the API server answers").body;
            let items = page["items"].as_array_mut().expect("a collection can be listed");
            stored.extend(items.drain(..).filter(|object| {
                object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&self.names))
            }));
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => more.clone_into(&mut next),
                _ => return stored,
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, answered, failed, again, .. } = self;
        write!(out, "sent {sent}, answered {answered}, failed {failed}")?;
        if *again > 0 {
            write!(out, ", sent again while the API server was down {again}")?;
        }
        let printed = self.losses.iter().take(PRINTED);
        printed.into_iter().try_for_each(|Loss { sent, ended, story }| {
            write!(out, "\n  after {:?}: {story}", ended.duration_since(*sent))
        })
    }
}

impl Downtime {
    fn touches(&self, from: Instant, to: Instant) -> bool {
        to >= self.began && self.ended.is_none_or(|ended| from <= ended)
    }
}

/// One write and its expected answer.
struct Write {
    /// The object's name; a write to its collection creates it.
    name: String,
    target: Target,
    body: Value,
    expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Collection,
    Object,
    Status,
}

#[derive(Debug)]
enum Expected {
    /// Accepted, with this value at this path of the object.
    Stored(&'static str, Value),
    /// Rejected as invalid with this message.
    Rejected(&'static str),
}

/// Returns the writes of one object. A write that is sent twice has the same result.
fn life(group: &str, prefix: &str, number: u32) -> Vec<Write> {
    let name = &*format!("{prefix}-{number}");
    let object = |name: &str, destination: Value| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Backup",
            "metadata": {"name": name}, "spec": {"destination": destination},
        })
    };
    let to = |destination: Value| json!({"spec": {"destination": destination}});
    let (s3, gcs, volume) = (json!({"bucket": "b"}), json!({"bucket": "b"}), json!({"claimName": "c"}));
    let destination = |value: Value| Expected::Stored("/spec/destination", value);
    let running = json!({"startedAt": "2026-01-01T00:00:00Z"});
    let failed = json!({"reason": "Full"});
    let writes = [
        (
            Target::Collection,
            object(name, json!({"s3": s3, "gcs": gcs})),
            Expected::Rejected("spec.destination.s3: Forbidden: at most one of `gcs`, `s3` may be set"),
        ),
        (Target::Collection, object(name, json!({"s3": s3})), destination(json!({"s3": s3, "type": "S3"}))),
        (Target::Object, to(json!({"gcs": gcs})), destination(json!({"gcs": gcs, "type": "GCS"}))),
        (
            Target::Object,
            to(json!({"type": "Volume", "s3": s3})),
            Expected::Rejected("spec.destination.s3: Forbidden: may only be specified when `type` is \"S3\""),
        ),
        (
            Target::Object,
            to(json!({"type": "Volume", "volume": volume})),
            destination(json!({"type": "Volume", "volume": volume})),
        ),
        (
            Target::Status,
            json!({"status": {"running": running}}),
            Expected::Stored("/status", json!({"phase": "Running", "running": running})),
        ),
        (
            Target::Status,
            json!({"status": {"failed": failed}}),
            Expected::Stored("/status", json!({"phase": "Failed", "failed": failed})),
        ),
        (Target::Object, to(json!({"s3": s3})), destination(json!({"s3": s3, "type": "S3"}))),
    ];
    let write = |(target, body, expected)| Write { name: name.to_owned(), target, body, expected };
    writes.into_iter().map(write).collect()
}

/// Returns updates of an object that touch no union. In the first life it is created.
fn untouched(group: &str, prefix: &str, number: u32) -> Vec<Write> {
    let name = format!("{prefix}-held");
    let destination = json!({"type": "S3", "s3": {"bucket": "b"}});
    let object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Backup", "metadata": {"name": name}, "spec": {"destination": destination},
    });
    let metadata = |field: &str, value: Value| json!({"metadata": {field: value}});
    let text = |what: &str| json!(format!("{what}-{number}"));
    let finalizers = json!([format!("samples.example/hold-{number}")]);
    let create = (Target::Collection, object, Expected::Stored("/spec/destination", destination));
    let updates = [
        (
            Target::Object,
            metadata("labels", json!({"a": text("label")})),
            Expected::Stored("/metadata/labels/a", text("label")),
        ),
        (
            Target::Object,
            metadata("finalizers", finalizers.clone()),
            Expected::Stored("/metadata/finalizers", finalizers),
        ),
        (Target::Object, json!({"spec": {"schedule": text("at")}}), Expected::Stored("/spec/schedule", text("at"))),
        (Target::Object, metadata("finalizers", Value::Null), Expected::Stored("/kind", json!("Backup"))),
        (
            Target::Status,
            json!({"status": {"observedGeneration": number}}),
            Expected::Stored("/status/observedGeneration", json!(number)),
        ),
    ];
    let write = |(target, body, expected)| Write { name: name.clone(), target, body, expected };
    (number == 1).then_some(create).into_iter().chain(updates).map(write).collect()
}

/// The writes of an object: of this API group, by the prefix of its name, and the number of the life.
type LifeOf = fn(&str, &str, u32) -> Vec<Write>;

struct Writer {
    client: Client,
    group: String,
    collection: String,
    /// The prefix of its objects' names.
    name: String,
    life: LifeOf,
    lives: u32,
    /// The writes of the object at hand, the next one last.
    ahead: Vec<Write>,
    /// The time of its next write.
    next: Instant,
    /// The rate of all writers together, writes per second.
    rate: u32,
    /// Writes in a row, before a pause.
    burst: u32,
    turns: u32,
    shared: Arc<Shared>,
}

impl Writer {
    fn write_next(&mut self) {
        self.wait_for_its_turn();
        let Some(write) = self.ahead.pop() else {
            self.lives += 1;
            self.ahead = (self.life)(&self.group, &self.name, self.lives);
            self.ahead.reverse();
            return;
        };
        let sent = Instant::now();
        self.shared.count.lock().unwrap().sent += 1;
        let outcome = self.send_until_answered(&write);
        let mut count = self.shared.count.lock().unwrap();
        match outcome {
            Ok(()) => {
                count.answered += 1;
                if write.target == Target::Collection && matches!(write.expected, Expected::Stored(..)) {
                    count.created += 1;
                }
            }
            Err(story) => {
                count.failed += 1;
                count.losses.push(Loss { sent, ended: Instant::now(), story });
                // The next write of this life depends on the lost one.
                self.ahead.clear();
            }
        }
    }

    /// Sleeps until the next write is due: this makes the rate.
    fn wait_for_its_turn(&mut self) {
        if self.ahead.is_empty() {
            return;
        }
        self.turns += 1;
        if !self.turns.is_multiple_of(self.burst) {
            return;
        }
        let now = Instant::now();
        thread::sleep(self.next.saturating_duration_since(now));
        let pause = Duration::from_secs(1) * WRITERS / self.rate * self.burst;
        self.next = self.next.max(now.checked_sub(LATE).unwrap_or(now)) + pause;
    }

    /// Sends a write again that failed because the API server itself was down. Never repeats another write.
    fn send_until_answered(&self, write: &Write) -> Result<(), String> {
        let mut unsure = false;
        loop {
            let sent = Instant::now();
            let answer = self.send(write);
            let excused = || self.shared.was_down_since(sent) && is_of_a_server_that_is_down(&answer);
            match write.expected.check(&answer) {
                Ok(()) => return Ok(()),
                // The attempt before had no answer and was stored.
                Err(_) if unsure && write.target == Target::Collection && is_conflict(&answer) => {
                    return write.expected.check(&self.client.get(&self.object(&write.name)));
                }
                Err(_) if excused() => {
                    unsure |= answer.is_err();
                    self.shared.count.lock().unwrap().again += 1;
                    thread::sleep(RETRY);
                }
                Err(story) => return Err(format!("{} of {}: {story}", write.verb(), write.name)),
            }
        }
    }

    fn send(&self, write: &Write) -> Result<Answer, String> {
        let patch = |path: &str| {
            self.client.send("PATCH", path, "application/merge-patch+json", write.body.to_string().as_bytes())
        };
        match write.target {
            Target::Collection => self.client.post(&self.collection, &write.body),
            Target::Object => patch(&self.object(&write.name)),
            Target::Status => patch(&format!("{}/status", self.object(&write.name))),
        }
    }

    fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.collection)
    }
}

impl Write {
    fn verb(&self) -> &'static str {
        match self.target {
            Target::Collection => "creation",
            Target::Object => "patch",
            Target::Status => "patch of the status",
        }
    }
}

impl Expected {
    fn check(&self, answer: &Result<Answer, String>) -> Result<(), String> {
        let answer = answer.as_ref().map_err(|error| format!("no answer: {error}"))?;
        let kept = match self {
            Self::Stored(place, value) => answer.is_success() && answer.body.pointer(place) == Some(value),
            Self::Rejected(words) => {
                let message = answer.body["message"].as_str().unwrap_or_default();
                // A policy has no causes of its own: its message joins the faults.
                let by_policy = message.contains("ValidatingAdmissionPolicy") && message.contains(words);
                answer.status == 422 && (by_policy || causes(&answer.body) == [*words])
            }
        };
        let message = answer.body.get("message").unwrap_or(&answer.body);
        if kept { Ok(()) } else { Err(format!("{} instead of {self:?}: {message}", answer.status)) }
    }
}

impl Shared {
    fn was_down_since(&self, sent: Instant) -> bool {
        let now = Instant::now();
        self.downtimes.lock().unwrap().iter().any(|downtime| downtime.touches(sent, now))
    }
}

/// Returns true if an API server that stops or starts may answer so: not at all, or that it does not know yet. Its words
/// about a webhook, and an answer to the write itself, are never excused.
fn is_of_a_server_that_is_down(answer: &Result<Answer, String>) -> bool {
    match answer {
        Err(_) => true,
        Ok(answer) => {
            // 403 and 404: it has not read permissions, admission and CRDs yet.
            matches!(answer.status, 403 | 404 | 429 | 500 | 503) && !answer.body.to_string().contains("webhook")
        }
    }
}

fn is_conflict(answer: &Result<Answer, String>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.status == 409)
}
