//! A cluster for one seed: an API server, three replicas, users, and the events that happen to them.

use crate::invariants::{Fault, Invariants};
use crate::network::Link;
use crate::replica::{OWNER, Running, SECRET, Version};
use crate::schedule::{Action, Event, KINDS, REPLICAS, Tampering};
use crate::service::ReplicaService;
use crate::trace::Trace;
use crate::users;
use hyper::{Method, Request};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use simulated_apiserver::{ApiServer, Instance, OpenWatches, Settings, Snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// The configurations of webhooks, and a stranger's.
pub const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

/// The name of the replicas' configurations.
pub const NAME: &str = "kube-unions";

/// The namespace of the replicas.
const NAMESPACE: &str = "kube-unions";

/// The beginning of time, in seconds since 1970: 2026-06-01.
const BEGINNING: u64 = 1_780_272_000;

/// Time after the last event in which everything becomes quiet: a new CA settles for a minute before it signs.
const SETTLES: Duration = Duration::from_mins(2);

/// Time in which nothing is written then.
const QUIET: Duration = Duration::from_mins(2);

/// A run and its result.
pub struct Report {
    /// The hash of the trace.
    pub hash: u64,
    /// Broken invariants, the first first.
    pub faults: Vec<Fault>,
    /// The lines of the trace, if they were kept.
    pub lines: Vec<String>,
    /// Faults that were injected while a replica could notice them.
    pub injected: usize,
    /// Objects that were stored and refused.
    pub writes: [usize; 2],
    /// Writes that the replicas have sent.
    pub sent: usize,
}

/// Everything of a run.
pub struct World {
    api: ApiServer,
    instance: Instance,
    /// The client of users.
    pub users: Client,
    /// The Service of the replicas.
    pub service: Arc<ReplicaService>,
    /// The replicas.
    pub slots: Vec<Slot>,
    /// The trace.
    pub trace: Arc<Trace>,
    /// The invariants.
    pub invariants: Mutex<Invariants>,
    saved: Mutex<Option<Snapshot>>,
}

/// A place for a replica, which a kubelet keeps running.
pub struct Slot {
    /// The way to the API server.
    pub link: Arc<Link>,
    ahead: Arc<AtomicI64>,
    stop: Notify,
    next: Mutex<(Version, Duration)>,
}

impl Slot {
    /// Ends the replica. The next one is of a version, or of the same.
    fn restart(&self, version: Option<Version>, down: Duration) {
        let mut next = self.next.lock();
        *next = (version.unwrap_or(next.0), down);
        self.stop.notify_one();
    }
}

/// Runs a seed's events.
pub fn run(seed: u64, events: &[Event], keep: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(World::run(seed, events, keep)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

impl World {
    async fn run(seed: u64, events: &[Event], keep: bool) -> Report {
        let world = Arc::new(Self::new(seed, keep));
        world.install().await;
        for replica in 0..REPLICAS {
            tokio::spawn(Arc::clone(&world).keep(replica));
        }
        let watched = Arc::clone(&world);
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(500)).await;
                watched.check();
            }
        });
        let began = Instant::now();
        let mut end = began;
        for event in events {
            sleep_until(began + Duration::from_millis(event.at)).await;
            end = end.max(Instant::now() + Duration::from_millis(event.action.lasts()));
            world.apply(event.action).await;
        }
        sleep_until(end).await;
        world.mend();
        sleep(SETTLES).await;
        world.check_settled().await;
        let before = world.writes();
        sleep(QUIET).await;
        let after = world.writes();
        world.invariants.lock().quiet(before, after);
        world.check();
        let (faults, injected, writes) = world.invariants.lock().report();
        Report { hash: world.trace.hash(), faults, lines: world.trace.take(), injected, writes, sent: after }
    }

    fn new(seed: u64, keep: bool) -> Self {
        let trace = Arc::new(Trace::new(keep));
        let began = Instant::now();
        let clock = Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(BEGINNING) + began.elapsed());
        let service = ReplicaService::new(REPLICAS, seed, Arc::clone(&trace), clock.clone());
        let establish = Duration::from_millis(500);
        let settings = Settings { accept_names: establish, establish, clean_up: establish, ..Settings::default() };
        let api = ApiServer::new(clock).with_settings(settings).with_webhooks(service.clone());
        let instance = api.instance();
        let slots = (0..REPLICAS).map(|replica| Slot {
            link: Link::new(replica, seed, Arc::clone(&trace)),
            ahead: Arc::default(),
            stop: Notify::new(),
            next: Mutex::new((Version::Old, Duration::ZERO)),
        });
        let users = instance.client();
        let slots = slots.collect();
        Self { api, instance, users, service, slots, trace, invariants: Mutex::default(), saved: Mutex::default() }
    }

    /// Creates what the chart installs, and what a stranger has.
    async fn install(&self) {
        let owner =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": OWNER}});
        self.must("/apis/rbac.authorization.k8s.io/v1/clusterroles", &owner).await;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.must("/api/v1/namespaces", &namespace).await;
        let stranger = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "stranger"},
            "webhooks": [{
                "name": "stranger.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "clientConfig": {"url": "https://stranger.example.com"},
                "rules": [{"apiGroups": ["stranger.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}],
            }],
        });
        let stored = self.must(CONFIGURATIONS[0], &stranger).await;
        self.invariants.lock().stranger(stored);
    }

    async fn must(&self, collection: &str, object: &Value) -> Value {
        match self.send(Method::POST, collection, Some(object)).await {
            Ok(stored) => stored,
            Err(error) => panic!("the simulated API server refuses {collection}: {error}"),
        }
    }

    /// Sends a request of a user.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request =
            Request::builder().method(method.clone()).uri(path).header("content-type", content_type).body(bytes);
        let request = request.map_err(kube::Error::HttpError)?;
        let answer = self.users.request::<Value>(request).await;
        let code = match &answer {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(_) => 0,
        };
        self.trace.note(format!("user {method} {path} {code}"));
        answer
    }

    /// Returns the last revision of the storage.
    pub fn revision(&self) -> u64 {
        self.api.revision()
    }

    /// Returns a stored object.
    pub fn stored(&self, path: &str) -> Option<Arc<Value>> {
        let (group, rest) = path.strip_prefix("/apis/").and_then(|it| it.split_once('/')).unwrap_or(("", path));
        let rest: Vec<&str> = rest.split('/').filter(|it| !it.is_empty()).collect();
        match rest[..] {
            [_version, "namespaces", namespace, plural, name] => self.api.object(group, plural, namespace, name),
            [_version, plural, name] => self.api.object(group, plural, "", name),
            _ => None,
        }
    }

    /// Keeps a replica running, as a kubelet does.
    async fn keep(self: Arc<Self>, replica: usize) {
        let slot = &self.slots[replica];
        loop {
            let (version, down) = *slot.next.lock();
            sleep(down).await;
            let (ahead, began) = (Arc::clone(&slot.ahead), Instant::now() - self.trace.elapsed());
            let clock = move || {
                let own = Duration::from_secs(BEGINNING.saturating_add_signed(ahead.load(Ordering::Relaxed)));
                SystemTime::UNIX_EPOCH + own + began.elapsed()
            };
            let mut running = match Running::start(version, self.instance.clone(), &slot.link, clock) {
                Ok(running) => running,
                Err(error) => panic!("a replica does not start: {error:#}"),
            };
            self.trace.note(format!("{replica} starts as {version:?}"));
            self.service.set(replica, Some(running.endpoint.clone()));
            tokio::select! {
                biased;
                () = slot.link.ends.notified() => {}
                () = slot.stop.notified() => {}
                ended = running.ended() => self.invariants.lock().broken(&self.trace, format!("replica {replica}: {ended}")),
            }
            self.service.set(replica, None);
            drop(running);
            self.trace.note(format!("{replica} ends"));
        }
    }

    fn check(&self) {
        self.invariants.lock().check(self);
    }

    async fn check_settled(self: &Arc<Self>) {
        for kind in 0..KINDS {
            if self.stored(&users::definition_path(kind)).is_some() {
                self.write(kind, 0, Some(0)).await;
                self.write(kind, 0, None).await;
            }
        }
        self.invariants.lock().settled(self);
    }

    fn writes(&self) -> usize {
        self.slots.iter().map(|slot| slot.link.writes().len()).sum()
    }

    /// Ends what would hold up the replicas for ever: wrong clocks, and an upgrade that nobody completes.
    fn mend(&self) {
        let is_upgrading = self.slots.iter().any(|slot| slot.next.lock().0 == Version::New);
        for slot in &self.slots {
            slot.ahead.store(0, Ordering::Relaxed);
            slot.link.mend();
            if is_upgrading && slot.next.lock().0 == Version::Old {
                slot.restart(Some(Version::New), Duration::from_millis(500));
            }
        }
        self.invariants.lock().disturb(Duration::from_secs(30));
    }

    async fn apply(self: &Arc<Self>, action: Action) {
        self.trace.note(format!("{action:?}"));
        let (now, millis) = (Instant::now(), Duration::from_millis);
        self.invariants.lock().note(action, !self.service.ready().is_empty());
        match action {
            Action::DefineKind { kind, members } => {
                let definition = users::definition(kind, members);
                let path = users::definition_path(kind);
                if self.stored(&path).is_some() {
                    let annotations = &definition["metadata"]["annotations"];
                    let change = json!({"metadata": {"annotations": annotations}, "spec": definition["spec"]});
                    drop(self.send(Method::PATCH, &path, Some(&change)).await);
                } else {
                    drop(self.send(Method::POST, users::definitions(), Some(&definition)).await);
                }
            }
            Action::DeleteKind { kind } => drop(self.send(Method::DELETE, &users::definition_path(kind), None).await),
            Action::InstallKinds { kinds } => {
                for kind in KINDS..KINDS + kinds {
                    drop(self.send(Method::POST, users::definitions(), Some(&users::definition(kind, 2))).await);
                }
            }
            Action::WriteValid { kind, object, member } => self.in_background(kind, object, Some(member)),
            Action::WriteInvalid { kind, object } => self.in_background(kind, object, None),
            Action::Label { kind, object } => {
                let path = format!("{}/{}", users::collection(kind), users::object_name(object));
                let label = format!("{}", self.trace.elapsed().as_millis());
                drop(self.send(Method::PATCH, &path, Some(&json!({"metadata": {"labels": {"at": label}}}))).await);
            }
            Action::Crash { replica, down } => self.slots[replica].restart(None, millis(down)),
            Action::CrashAtWrite { replica, writes, arrives, down } => {
                self.slots[replica].next.lock().1 = millis(down);
                self.slots[replica].link.end_at_write(writes, arrives);
            }
            Action::Upgrade { replica } => self.slots[replica].restart(Some(Version::New), millis(500)),
            Action::Clock { replica, ahead } => self.slots[replica].ahead.store(ahead, Ordering::Relaxed),
            Action::Network { replica, fault, percent, lasts } => {
                self.slots[replica].link.fail(fault, percent, now + millis(lasts));
            }
            Action::Outage { lasts } => self.slots.iter().for_each(|slot| slot.link.refuse(now + millis(lasts))),
            Action::Lag { behind, lasts } => {
                self.instance.set_lag(millis(behind));
                let instance = self.instance.clone();
                tokio::spawn(async move {
                    sleep(millis(lasts)).await;
                    instance.set_lag(Duration::ZERO);
                });
            }
            Action::Compact => self.api.compact(),
            Action::Save => *self.saved.lock() = Some(self.api.snapshot()),
            Action::Restore { hangs } => {
                let saved = self.saved.lock().clone();
                if let Some(saved) = saved {
                    self.api.restore(&saved, if hangs { OpenWatches::Hang } else { OpenWatches::End });
                }
            }
            Action::Tamper(tampering) => self.tamper(tampering).await,
        }
    }

    fn in_background(self: &Arc<Self>, kind: usize, object: usize, member: Option<usize>) {
        let world = Arc::clone(self);
        tokio::spawn(async move { world.write(kind, object, member).await });
    }

    /// Writes an object with one member, or with two.
    async fn write(&self, kind: usize, object: usize, member: Option<usize>) {
        let began = Instant::now();
        let path = format!("{}/{}", users::collection(kind), users::object_name(object));
        let (method, path, body) = match (self.stored(&path), member) {
            (Some(_), Some(member)) => (Method::PATCH, path, users::switch(member)),
            (Some(_), None) => (Method::PATCH, path, users::contradiction()),
            (None, Some(member)) => (Method::POST, users::collection(kind), users::valid(kind, object, member)),
            (None, None) => (Method::POST, users::collection(kind), users::invalid(kind, object)),
        };
        let answer = self.send(method, &path, Some(&body)).await;
        self.invariants.lock().written(self, kind, member.is_some(), began, answer);
    }

    async fn tamper(&self, tampering: Tampering) {
        let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}");
        let configurations = CONFIGURATIONS.map(|collection| format!("{collection}/{NAME}"));
        let of_entries = |change: fn(&mut Value)| {
            configurations.clone().map(|path| {
                let mut entries = self.stored(&path).map(|stored| stored["webhooks"].clone()).unwrap_or_default();
                entries.as_array_mut().into_iter().flatten().for_each(change);
                (path, json!({"webhooks": entries}))
            })
        };
        let patches = match tampering {
            Tampering::EmptyConfigurations => configurations.map(|path| (path, json!({"webhooks": []}))).to_vec(),
            Tampering::ReplaceAuthorities => {
                of_entries(|entry| entry["clientConfig"]["caBundle"] = "bm90aGluZwo=".into()).to_vec()
            }
            Tampering::IgnoreFailures => of_entries(|entry| entry["failurePolicy"] = "Ignore".into()).to_vec(),
            Tampering::SpoilKey => vec![(secret, json!({"data": {"tls.key": "bm90aGluZwo="}}))],
            Tampering::DropAuthorities => vec![(secret, json!({"data": {"ca.crt": ""}}))],
            Tampering::DeleteMutating | Tampering::DeleteValidating | Tampering::DeleteSecret => {
                let path = match tampering {
                    Tampering::DeleteMutating => &configurations[0],
                    Tampering::DeleteValidating => &configurations[1],
                    _ => &secret,
                };
                drop(self.send(Method::DELETE, path, None).await);
                return;
            }
        };
        for (path, patch) in patches {
            drop(self.send(Method::PATCH, &path, Some(&patch)).await);
        }
    }
}
