//! Every order of the requests of two replicas, up to a depth: a breadth-first search over the real registrar.
//!
//! A step is one request of a replica and its answer, a second, or an accident. Two orders that show every replica the same lead to
//! the same cluster, so one of them is enough.

use super::super::super::stored::entries as stored_entries;
use super::*;
use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Builder as RuntimeBuilder;
use tokio::task::JoinHandle;

const REPLICAS: usize = 2;

/// The time within which nothing is left to write after the last accident, in seconds.
const QUIET: usize = 12;

/// The kinds with unions: the second one is learnt later.
const KINDS: [&str; 2] = ["Thing", "Other"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStep {
    /// The API server answers the request of a replica, which goes on to its next one.
    Turn(usize),
    /// A replica learns of the second kind.
    Learns(usize),
    Second,
    Happens(Accident),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accident {
    /// A replica of a new version takes the place of the first one.
    Upgrade,
    /// The second replica crashes, and starts again.
    Crash,
    /// A stranger adds an entry, and changes one of ours.
    Edit,
    /// The mutating configuration is deleted.
    Deletion,
    /// The second replica is not ready any more.
    Unready,
}

use Accident::{Crash, Deletion, Edit, Unready, Upgrade};

const ACCIDENTS: [Accident; 5] = [Upgrade, Crash, Edit, Deletion, Unready];

struct SearchedReplica {
    calls: Arc<Mutex<VecDeque<Call>>>,
    catalogs: watch::Sender<Option<Arc<Catalog>>>,
    is_ready: Arc<AtomicBool>,
    is_new: bool,
    /// `None` while a step runs.
    registrar: Option<Registrar>,
    running: Option<JoinHandle<(Registrar, Result<Reconciled, StepError>)>>,
    /// When it takes its next step. `None`: at once.
    next: Option<Instant>,
    is_in_sync: bool,
    /// Whatever it has seen.
    history: String,
}

/// A cluster after some steps.
struct SearchedCluster {
    server: FakeServer,
    replicas: [SearchedReplica; REPLICAS],
    catalogs: [Arc<Catalog>; 2],
    seconds: usize,
    has_stranger: bool,
}

fn service_of(calls: &Arc<Mutex<VecDeque<Call>>>) -> Client {
    let calls = Arc::clone(calls);
    Client::new(in_process(move |call| calls.lock().unwrap().push_back(call)), "default")
}

impl SearchedReplica {
    fn new(number: u8, is_new: bool, known: &Arc<Catalog>, begins_ready: bool) -> Self {
        let (catalogs, is_ready) =
            (watch::Sender::new(Some(Arc::clone(known))), Arc::new(AtomicBool::new(begins_ready)));
        let ready = Arc::clone(&is_ready);
        let is_ready_now = Box::new(move || ready.load(Ordering::Relaxed));
        let signals = signals(catalogs.subscribe(), Some(agreed("new")), Coverage::none(), is_ready_now);
        let calls = Arc::default();
        let mut registration = registration(Duration::from_secs(1));
        registration.entries.timeout_seconds = if is_new { 3 } else { 10 };
        let registrar =
            Registrar::new(service_of(&calls), registration, signals, InspectionToken::from_random([number; 16]));
        Self {
            calls,
            catalogs,
            is_ready,
            is_new,
            registrar: Some(registrar),
            running: None,
            next: None,
            is_in_sync: false,
            history: format!("{is_new} {begins_ready} {};", known.digest()),
        }
    }

    /// Goes on until its next request, or the end of its step.
    async fn go_on(&mut self) {
        loop {
            if !self.calls.lock().unwrap().is_empty() {
                return;
            }
            if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
                break;
            }
            tokio::task::yield_now().await;
        }
        let (registrar, taken) = self.running.take().unwrap().await.unwrap();
        self.registrar = Some(registrar);
        self.is_in_sync = taken.as_ref().is_ok_and(|step| step.is_in_sync);
        self.next = match taken {
            Ok(step) => Some(step.next),
            Err(error) if error.is_conflict => None,
            Err(_) => Some(Instant::now() + Duration::from_secs(1)),
        };
    }

    fn is_due(&self) -> bool {
        self.running.is_some() || self.next.is_none_or(|next| next <= Instant::now())
    }
}

impl SearchedCluster {
    fn new(catalogs: &[Arc<Catalog>; 2], forgets_versions: bool) -> Self {
        let server = FakeServer { has_owner: true, forgets_versions, ..FakeServer::default() };
        let replicas = [0, 1].map(|number| SearchedReplica::new(number, false, &catalogs[0], true));
        Self { server, replicas, catalogs: catalogs.clone(), seconds: 0, has_stranger: false }
    }

    /// Returns the steps that can be next. `taken`: those before.
    fn steps(&self, taken: &[SearchStep]) -> Vec<SearchStep> {
        let is_first = |step: &SearchStep| !taken.contains(step);
        let turns = (0..REPLICAS).filter(|which| self.replicas[*which].is_due()).map(SearchStep::Turn);
        let learns = (0..REPLICAS).map(SearchStep::Learns).filter(is_first);
        let is_calm = !taken.iter().any(|step| matches!(step, SearchStep::Happens(_)));
        let accidents = ACCIDENTS.map(SearchStep::Happens).into_iter().filter(|_| is_calm);
        turns.chain(learns).chain([SearchStep::Second]).chain(accidents).collect()
    }

    async fn take(&mut self, step: SearchStep) {
        let written = self.server.changes;
        match step {
            SearchStep::Turn(which) => self.turn(which).await,
            SearchStep::Learns(which) => self.learn(which),
            SearchStep::Second => {
                tokio::time::advance(Duration::from_secs(1)).await;
                self.seconds += 1;
            }
            SearchStep::Happens(Upgrade) => self.replace(0, true),
            SearchStep::Happens(Crash) => self.replace(1, self.replicas[1].is_new),
            SearchStep::Happens(Unready) => {
                self.replicas[1].is_ready.store(false, Ordering::Relaxed);
                self.replicas[1].history.push_str("unready;");
            }
            SearchStep::Happens(Edit) => self.edit(),
            SearchStep::Happens(Deletion) => {
                self.has_stranger = false;
                let path = self.server.stored.keys().next().cloned().unwrap();
                self.server.stored.remove(&path);
                self.server.changes += 1;
            }
        }
        if self.server.changes != written {
            // Watches tell every replica.
            for replica in &mut self.replicas {
                replica.next = None;
            }
        }
    }

    async fn turn(&mut self, which: usize) {
        let replica = &mut self.replicas[which];
        if let Some(mut registrar) = replica.registrar.take() {
            registrar.observe(RegistrationEvent::Changed);
            replica.next = Some(Instant::now() + Duration::from_mins(1));
            write!(replica.history, "{}:", self.seconds).unwrap();
            replica.running = Some(tokio::spawn(async move {
                let taken = registrar.step(Instant::now()).await;
                (registrar, taken)
            }));
            replica.go_on().await;
        }
        let call = replica.calls.lock().unwrap().pop_front();
        if let Some(call) = call {
            let stored = self.server.stored.get(&call.path);
            write!(replica.history, "{} {} {stored:?};", call.method, call.path).unwrap();
            self.server.answer(call);
        }
        replica.go_on().await;
    }

    fn learn(&mut self, which: usize) {
        let replica = &mut self.replicas[which];
        replica.catalogs.send_replace(Some(Arc::clone(&self.catalogs[1])));
        replica.history.push_str("learns;");
        replica.next = None;
    }

    fn replace(&mut self, which: usize, is_new: bool) {
        let known = self.replicas[which].catalogs.borrow().clone().unwrap();
        let is_ready = self.replicas[which].is_ready.load(Ordering::Relaxed);
        let new = SearchedReplica::new(u8::try_from(which).unwrap() + 2, is_new, &known, is_ready);
        if let Some(running) = std::mem::replace(&mut self.replicas[which], new).running {
            running.abort();
        }
    }

    fn edit(&mut self) {
        let (path, mut object) = self.server.stored.pop_first().unwrap();
        let webhooks = object["webhooks"].as_array_mut().unwrap();
        webhooks[0]["timeoutSeconds"] = json!(30);
        webhooks.push(entry(STRANGER));
        self.server.put(&path, object);
        self.has_stranger = true;
    }

    /// Returns what is wrong now.
    fn fault(&self) -> Option<String> {
        let all: Vec<&Value> = self.server.stored.values().collect();
        let has_stranger = all.iter().any(|object| stored_entries(object).contains(&entry(STRANGER)));
        if self.has_stranger && !has_stranger {
            return Some("the entry of a stranger is gone or changed".to_owned());
        }
        for entry in all.iter().flat_map(|object| ours(object)).map(|(_, entry)| entry) {
            if entry["failurePolicy"] == "Fail" && bundle_of(entry).is_empty() {
                return Some(format!("an entry fails without a CA: {entry}"));
            }
            let is_of = |kind: &str| entry["rules"].to_string().contains(&plural(kind));
            let knows = |known: &Catalog, kind: &str| known.entries().iter().any(|it| &*it.gvk().kind == kind);
            let catalogs = || self.replicas.iter().filter_map(|replica| replica.catalogs.borrow().clone());
            let is_known = |kind: &str| catalogs().any(|known| knows(&known, kind));
            if let Some(kind) = KINDS.into_iter().find(|kind| is_of(kind) && !is_known(kind)) {
                return Some(format!("no replica knows {kind}: {entry}"));
            }
        }
        None
    }

    /// Returns what tells this cluster from others.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seconds, self.has_stranger, format!("{:?}", self.server.stored)).hash(&mut hasher);
        for replica in &self.replicas {
            (&replica.history, replica.next.is_none(), replica.calls.lock().unwrap().len()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Has the replicas become equal, and returns what is wrong when they had their time.
    async fn settle(&mut self) -> Option<String> {
        for which in 0..REPLICAS {
            if !self.replicas[which].is_new {
                self.replace(which, true);
            }
            self.replicas[which].is_ready.store(true, Ordering::Relaxed);
            self.learn(which);
        }
        let mut settled = 0;
        for second in 0..2 * QUIET {
            for _ in 0..50 {
                let Some(which) = (0..REPLICAS).find(|which| self.replicas[*which].is_due()) else { break };
                self.take(SearchStep::Turn(which)).await;
            }
            if let Some(fault) = self.fault() {
                return Some(fault);
            }
            if second == QUIET {
                settled = self.server.changes;
            }
            self.take(SearchStep::Second).await;
        }
        if self.server.changes != settled {
            return Some(format!("it is still written after {QUIET} seconds"));
        }
        let stored: Vec<String> = self.server.stored.values().map(entries).collect();
        let is_whole = stored.iter().zip(BOTH).all(|(stored, want)| {
            let stored: Vec<&str> = stored.split(", ").filter(|it| *it != STRANGER).collect();
            want.is_some_and(|want| stored == want.split(", ").collect::<Vec<_>>())
        });
        let rules = format!("{:?}", self.server.stored);
        let has_all = KINDS.iter().all(|kind| rules.contains(&plural(kind)));
        (!is_whole || !has_all || !self.replicas.iter().all(|replica| replica.is_in_sync))
            .then(|| format!("it does not become what both want: {stored:?}"))
    }
}

/// Takes steps from the beginning. Returns the cluster, and the first fault.
async fn replay(
    steps: &[SearchStep],
    catalogs: &[Arc<Catalog>; 2],
    forgets: bool,
) -> (SearchedCluster, Option<String>) {
    let mut cluster = SearchedCluster::new(catalogs, forgets);
    while cluster.replicas.iter().any(|replica| !replica.is_in_sync) {
        let due = (0..REPLICAS).find(|which| cluster.replicas[*which].is_due());
        cluster.take(due.map_or(SearchStep::Second, SearchStep::Turn)).await;
    }
    cluster.replicas.iter_mut().for_each(|replica| replica.next = Some(Instant::now()));
    for step in steps {
        cluster.take(*step).await;
        if let Some(fault) = cluster.fault() {
            return (cluster, Some(fault));
        }
    }
    (cluster, None)
}

/// Returns the number of different clusters up to a depth, and the steps to a fault.
fn search(depth: usize, forgets: bool) -> (usize, Option<(Vec<SearchStep>, String)>) {
    let runtime = RuntimeBuilder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let catalogs = [catalog(&KINDS[..1]), catalog(&KINDS)];
    let mut seen = HashSet::new();
    let mut level = vec![Vec::new()];
    for number in 0..=depth {
        let mut next = Vec::new();
        for steps in level {
            let (found, fault, after) = runtime.block_on(async {
                let (mut cluster, mut fault) = replay(&steps, &catalogs, forgets).await;
                let (key, after) = (cluster.key(), cluster.steps(&steps));
                if fault.is_none() && !seen.contains(&key) && number == depth {
                    fault = cluster.settle().await;
                }
                (key, fault, after)
            });
            if let Some(fault) = fault {
                return (seen.len(), Some((steps, fault)));
            }
            if seen.insert(found) {
                next.extend(after.into_iter().map(|step| [&steps[..], &[step]].concat()));
            }
        }
        level = next;
    }
    (seen.len(), None)
}

#[test]
fn no_order_of_requests_loses_an_entry_or_leaves_the_configurations_unsettled() {
    // Each more takes four times as long.
    let depth = std::env::var("SEARCH_DEPTH").map_or(5, |depth| depth.parse().unwrap());
    let (clusters, fault) = search(depth, false);
    assert!(fault.is_none(), "{fault:?}");
    println!("{clusters} clusters within {depth} steps");
}

#[test]
fn the_search_finds_the_order_in_which_an_entry_is_lost_without_versions() {
    let (_, fault) = search(7, true);
    assert!(fault.is_some(), "the search cannot fail");
}
