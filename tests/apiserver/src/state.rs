//! The state that all API servers of a cluster share: the storage, the settings, and the work that is due later.
//!
//! Nothing runs in the background. Work has a time, and every access to the state carries out first what is due by then, in the order
//! of these times. So the answers follow from the requests and their times alone.

use crate::admission::Webhooks;
use crate::clock::{Clock, rfc3339};
use crate::conditions::Conditions;
use crate::controllers;
use crate::resource::{self, DEFINITIONS, NAMESPACES, ResourceInfo};
use crate::storage::{Storage, StoredObject};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Times after which the control plane has done its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// From the write of a CRD until its names are accepted.
    pub accept_names: Duration,
    /// From then until it is established.
    pub establish: Duration,
    /// From the deletion of a CRD until its objects are deleted.
    pub clean_up: Duration,
    /// From a change until garbage is collected, and from the deletion of a namespace until its contents are deleted. `None`: there is no
    /// kube-controller-manager.
    pub controllers: Option<Duration>,
    /// Time between two renewals of a lease that the API server holds, so that revisions proceed in a cluster in which nothing else
    /// happens. `None`: it holds no lease.
    pub heartbeat: Option<Duration>,
    /// Version of Kubernetes, for example 1.36.
    pub version: (u32, u32),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            accept_names: Duration::ZERO,
            establish: Duration::ZERO,
            clean_up: Duration::ZERO,
            controllers: Some(Duration::from_millis(100)),
            heartbeat: Some(Duration::from_secs(10)),
            version: (1, 36),
        }
    }
}

/// Work that is due at some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    AcceptNames(String),
    Establish(String),
    CleanUp(String),
    SyncServices,
    EndNamespace(String),
    CollectGarbage,
    Heartbeat,
}

/// The state of a cluster.
pub(crate) struct State {
    pub(crate) storage: Storage,
    /// Number of restores.
    pub(crate) epoch: u64,
    /// True if watches from before the last restore stay open.
    pub(crate) keeps_watches: bool,
    pub(crate) settings: Settings,
    pub(crate) webhooks: Option<Arc<dyn Webhooks>>,
    /// OpenAPI documents by path.
    pub(crate) documents: BTreeMap<String, String>,
    pub(crate) conditions: Conditions,
    /// By the name of a CRD, the version at which its last change was written. API servers begin anew with its objects then.
    pub(crate) redefined: BTreeMap<String, u64>,
    jobs: BTreeSet<(Instant, Job)>,
    uids: u64,
    names: u64,
    clock: Clock,
    /// Time of the last write.
    written: Option<Instant>,
}

/// The state, and the news that it has changed.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes those that wait for something new, in the order in which they began to wait.
    pub(crate) changed: Notify,
    pub(crate) clock: Clock,
}

/// The state of a moment, to be restored.
#[derive(Clone)]
pub struct Snapshot(Storage);

impl Shared {
    pub(crate) fn new(clock: Clock) -> Self {
        let mut state = State {
            storage: Storage::new(),
            epoch: 0,
            keeps_watches: false,
            settings: Settings::default(),
            webhooks: None,
            documents: BTreeMap::new(),
            conditions: Conditions::default(),
            redefined: BTreeMap::new(),
            jobs: BTreeSet::new(),
            uids: 0,
            names: 0,
            clock: Arc::clone(&clock),
            written: None,
        };
        controllers::bootstrap(&mut state);
        Self { state: Mutex::new(state), changed: Notify::new(), clock }
    }

    /// Returns the state, with everything done that is due. The lock is never kept over an `await`.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let before = (state.storage.revision(), state.epoch);
        state.run_due(Instant::now());
        if before != (state.storage.revision(), state.epoch) {
            self.notify();
        }
        state
    }

    /// Tells the watches that there is something new.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }
}

impl State {
    /// Returns the time of the next work.
    pub(crate) fn next_job(&self) -> Option<Instant> {
        self.jobs.first().map(|(time, _)| *time)
    }

    pub(crate) fn schedule(&mut self, after: Duration, job: Job, now: Instant) {
        self.jobs.insert((now + after, job));
    }

    /// Schedules work of kube-controller-manager.
    pub(crate) fn schedule_controller(&mut self, job: Job, now: Instant) {
        if let Some(after) = self.settings.controllers {
            self.schedule(after, job, now);
        }
    }

    fn run_due(&mut self, now: Instant) {
        while let Some((due, _)) = self.jobs.first().filter(|(due, _)| *due <= now) {
            let due = *due;
            let Some((_, job)) = self.jobs.pop_first() else { return };
            controllers::run(self, &job, due);
        }
    }

    /// Returns the time on the clock of the API servers at some time that is not in the future.
    pub(crate) fn wall(&self, at: Instant) -> SystemTime {
        let now = (self.clock)();
        let since = Instant::now().saturating_duration_since(at);
        now.checked_sub(since).unwrap_or(now)
    }

    /// Returns a time as metadata has it.
    pub(crate) fn timestamp(&self, at: Instant) -> Value {
        rfc3339(self.wall(at)).into()
    }

    /// Returns a UID that no object has.
    pub(crate) fn new_uid(&mut self) -> String {
        self.uids += 1;
        format!("{:08x}-0000-4000-8000-{:012x}", self.uids, self.uids)
    }

    /// Returns the end of a generated name: five characters, as Kubernetes has them.
    pub(crate) fn new_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.names += 1;
        let mut rest = self.names.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let base = ALPHABET.len() as u64;
        (0..5)
            .map(|_| {
                let index = usize::try_from(rest % base).unwrap_or_default();
                rest /= base;
                ALPHABET.get(index).map_or('b', |byte| char::from(*byte))
            })
            .collect()
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&StoredObject> {
        self.storage.get(collection, key)
    }

    /// Stores an object, `None` to delete it. Returns it with its new version, or the deleted one with the version of its deletion.
    pub(crate) fn store(&mut self, collection: &str, key: &str, object: Option<Value>, at: Instant) -> Arc<Value> {
        // The history is in the order of time, whatever is asked for.
        let at = self.written.map_or(at, |written| written.max(at));
        self.written = Some(at);
        let before = self.get(collection, key).map(|stored| Arc::clone(&stored.object));
        let after = self.storage.write(collection, key, object, at);
        controllers::written(self, collection, key, before.as_deref(), after.as_deref(), at);
        after.unwrap_or_else(|| {
            let mut last = before.map(Arc::unwrap_or_clone).unwrap_or_default();
            crate::storage::set_version(&mut last, self.storage.revision());
            Arc::new(last)
        })
    }

    /// Returns the resource that is served at a group, version and name in paths.
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<ResourceInfo> {
        resource::builtin(group, version, plural).or_else(|| {
            let definition = self.get(DEFINITIONS, &format!("{plural}.{group}"))?;
            resource::defined(&definition.object, version)
        })
    }

    /// Returns the version from which objects of a resource can be watched.
    pub(crate) fn served_since(&self, resource: &ResourceInfo) -> u64 {
        let name = || format!("{}.{}", resource.plural, resource.group);
        let known = resource.custom.as_ref().and_then(|_| self.redefined.get(&name()));
        known.copied().unwrap_or_default()
    }

    pub(crate) fn namespace(&self, name: &str) -> Option<&StoredObject> {
        self.get(NAMESPACES, name)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.storage.clone())
    }

    /// Replaces the storage. Work that was due later is planned anew from what is stored.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, keeps_watches: bool, now: Instant) {
        self.storage = snapshot.0.clone();
        self.epoch += 1;
        self.keeps_watches = keeps_watches;
        self.jobs.clear();
        self.redefined.clear();
        controllers::resume(self, now);
    }

    /// Changes settings. Work that is already due keeps its time.
    pub(crate) fn set(&mut self, settings: Settings, now: Instant) {
        let had_heartbeat = self.settings.heartbeat.is_some();
        self.settings = settings;
        if !had_heartbeat && settings.heartbeat.is_some() {
            self.schedule(Duration::ZERO, Job::Heartbeat, now);
        }
    }
}

/// Returns the condition of an object, changed or added at the end. A time of transition changes with the status only.
pub(crate) fn set_condition(object: &mut Value, condition: [&str; 4], time: &Value) {
    let [of_type, status, reason, message] = condition;
    let Some(object) = object.as_object_mut() else { return };
    let stored = object.entry("status").or_insert_with(|| json!({}));
    let Some(stored) = stored.as_object_mut() else { return };
    let conditions = stored.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let place = conditions.iter().position(|it| it.get("type").and_then(Value::as_str) == Some(of_type));
    let previous = place.and_then(|place| conditions.get(place));
    let is_same = previous.is_some_and(|it| it.get("status").and_then(Value::as_str) == Some(status));
    let time = previous.filter(|_| is_same).and_then(|it| it.get("lastTransitionTime")).unwrap_or(time).clone();
    let condition = json!({
        "lastTransitionTime": time, "message": message, "reason": reason, "status": status, "type": of_type,
    });
    match place.and_then(|place| conditions.get_mut(place)) {
        Some(previous) => *previous = condition,
        None => conditions.push(condition),
    }
}
