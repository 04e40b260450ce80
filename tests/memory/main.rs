//! The heap that a followed cluster takes, as the allocator counts it.
//!
//! These tests have a binary of their own, and take turns, because the allocator counts for the whole process. The API server is in the
//! same process: its objects count twice.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

use fixtures::api_server::in_process;
use fixtures::object_server::{ObjectServer, ServedObjects};
use fixtures::wait::SOON;
use kube::Client;
use kube_unions_core::catalog::Catalog;
use kube_unions_webhook::follow::{BuiltinUnions, Cluster, Link};
use kube_unions_webhook::telemetry::Metrics;
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::task::JoinHandle;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that the allocator may count for something else: connections, growing tables, text in flight.
const SLACK: usize = 48 * 1024;

/// Returns the turn of a test.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// A cluster that is followed.
struct Followed {
    server: ObjectServer,
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    task: JoinHandle<()>,
}

impl Followed {
    /// Follows the cluster of a server, and waits for its first catalog.
    async fn start(server: &ObjectServer) -> Self {
        let metrics = Metrics::new();
        let link = Link::new(metrics.watch_connected.clone(), metrics.watch_proven.clone());
        let client = Client::new(in_process(server.answers()), "default");
        let (publish, catalogs) = watch::channel(None);
        let cluster = Cluster::new(client, BuiltinUnions::Ignored, metrics.own_groups_known.clone());
        let task = tokio::spawn(async move { cluster.follow(link, publish).await });
        let mut followed = Self { server: server.clone(), catalogs, task };
        followed.until("a first catalog comes", |_| true).await;
        followed
    }

    /// Waits for another catalog.
    async fn until_changed(&mut self) {
        tokio::time::timeout(SOON, self.catalogs.changed()).await.expect("a catalog comes").unwrap();
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Catalog) -> bool) {
        let wait = self.catalogs.wait_for(|catalog| catalog.as_deref().is_some_and(&holds));
        let waited = tokio::time::timeout(SOON, wait).await;
        drop(waited.unwrap_or_else(|_| panic!("waited in vain until {what}")).unwrap());
    }

    /// Stops it, and has the server forget the watches and the requests.
    async fn stop(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.server.set(forget_requests);
    }

    /// Returns the bytes in use once no more than `most` are.
    async fn shrunk_to(&self, most: usize) -> usize {
        fixtures::wait::until(&format!("at most {most} bytes are in use"), async || {
            self.server.set(|it| it.log = Vec::new());
            ALLOCATOR.current_usage() <= most
        })
        .await;
        ALLOCATOR.current_usage()
    }

    /// Waits until the statuses of these declarations are written.
    async fn until_judged(&self, declarations: usize) {
        fixtures::wait::until("every declaration is judged", async || self.server.judged() == declarations).await;
    }
}

fn forget_requests(objects: &mut ServedObjects) {
    (objects.streams, objects.log) = (Vec::new(), Vec::new());
}

/// Returns the spec of a declaration about a kind.
fn spec(kind: &str, members: &Value) -> Value {
    json!({"target": {"group": "watch.example", "kind": kind},
        "unions": [{"path": "", "fieldsToDiscriminateBy": members}]})
}

/// A name of declarations, and the spec of each by its number.
type NumberedSpecs = (&'static str, fn(usize) -> Value);

/// Declarations by what becomes of them.
const DECLARATIONS: [NumberedSpecs; 4] = [
    ("in force", |_| spec("Apple", &json!({"spec": "Spec", "data": "Data"}))),
    ("without a target", |number| spec(&format!("Kind{number}"), &json!({"spec": "Spec", "data": "Data"}))),
    ("with faults", |number| spec("Apple", &json!({format!("no{number}"): "No", format!("such{number}"): "Such"}))),
    ("unreadable", |number| json!({"target": number})),
];

/// Declarations of each kind.
const MANY: usize = 150;

fn name(number: usize) -> String {
    format!("declaration-{number:05}")
}

#[tokio::test]
async fn declarations_cost_as_much_one_by_one_as_at_once_and_nothing_once_they_are_gone() {
    let _turn = turn().await;
    for (which, spec) in DECLARATIONS {
        let server = ObjectServer::with(|it| {
            it.define("Apple");
            it.declarations = Some(BTreeMap::new());
        });
        let mut followed = Followed::start(&server).await;
        // The first declaration brings what all others need.
        server.set(|it| it.declare("first", &spec(0)));
        followed.until_judged(1).await;
        server.set(|it| it.withdraw("first"));
        followed.until_judged(0).await;
        let before = followed.shrunk_to(usize::MAX).await;
        ALLOCATOR.reset_peak_usage();
        for number in 0..MANY {
            followed.catalogs.mark_unchanged();
            server.set(|it| it.declare(&name(number), &spec(number)));
            followed.until_changed().await;
        }
        followed.until_judged(MANY).await;
        let peak = ALLOCATOR.peak_usage() - before;
        let one_by_one = followed.shrunk_to(usize::MAX).await - before;
        followed.stop().await;

        let followed = Followed::start(&server).await;
        let at_once = followed.shrunk_to(before + one_by_one + SLACK).await - before;
        server.set(|it| (0..MANY).for_each(|number| it.withdraw(&name(number))));
        let after = followed.shrunk_to(before + SLACK).await.saturating_sub(before);
        eprintln!(
            "{MANY} declarations {which}: {one_by_one} bytes one by one (peak {peak}), {at_once} at once, {after} afterwards"
        );
        followed.stop().await;
        assert!(one_by_one <= at_once + at_once / 4 + SLACK, "{which}: {one_by_one} one by one, {at_once} at once");
    }
}

#[tokio::test]
async fn statuses_that_the_api_server_does_not_take_wait_once_for_each_declaration() {
    let _turn = turn().await;
    for (which, spec) in DECLARATIONS {
        let server = ObjectServer::with(|it| {
            (0..MANY).for_each(|number| it.declare(&name(number), &spec(number)));
            it.silent = true;
        });
        let mut followed = Followed::start(&server).await;
        let mut used = Vec::new();
        // Each kind is a new catalog, from which the verdicts on all declarations may follow.
        for round in 0..60 {
            let kind = format!("Round{round}");
            server.set(|it| it.define(&kind));
            let wanted = |catalog: &Catalog| catalog.lookup("watch.example", "v1", &kind).is_some();
            followed.until("the kind is in force", wanted).await;
            used.push(ALLOCATOR.current_usage());
        }
        let (early, late) = (used[19], used[59]);
        eprintln!("{MANY} declarations {which}: {early} bytes after 20 catalogs, {late} after 60");
        followed.stop().await;
        // A kind takes a few KiB.
        assert!(late <= early + 40 * 16 * 1024, "{which}: {early} bytes after 20 catalogs, {late} after 60");
    }
}
