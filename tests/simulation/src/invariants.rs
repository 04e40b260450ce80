//! The invariants: at each step, and after the last fault.

use crate::replica::SERVICE;
use crate::schedule::{Action, KINDS, REPLICAS};
use crate::trace::Trace;
use crate::users;
use crate::world::{CONFIGURATIONS, NAME, World};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time in which a change of what replicas keep is repaired, with the time of a restart.
const REPAIRED: Duration = Duration::from_secs(30);

/// Time in which a restore is noticed: the longest time of a watch, and that of the repair.
const FORGOTTEN: Duration = Duration::from_secs(90);

/// Time in which all replicas learn of a CRD, and the configurations with them.
const LEARNT: Duration = Duration::from_secs(15);

/// Time for which a replica must have been ready, to be counted on.
const STEADY: Duration = Duration::from_secs(10);

/// Most writes of a replica in a minute.
const MOST_WRITES: usize = 40;

/// An invariant that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The time since the beginning.
    pub at: Duration,
    /// The invariant, and how it was broken.
    pub what: String,
}

/// The invariants, and the facts of the run on which they depend.
#[derive(Default)]
pub struct Invariants {
    faults: Vec<Fault>,
    /// The answers to honest writes and the stored objects are excused until this time.
    disturbed: Option<Instant>,
    /// The last change of each kind.
    changed: [Option<Instant>; KINDS],
    /// Further kinds that were installed.
    installed: usize,
    /// The time since which each replica is ready.
    ready: [Option<Instant>; REPLICAS],
    /// The last time at which any replica was ready.
    last_ready: Option<Instant>,
    had_entries: bool,
    /// The last revision that was checked, and the CAs of the entries then.
    revision: u64,
    bundles: Vec<Vec<u8>>,
    stranger: Option<Value>,
    injected: usize,
    writes: [usize; 2],
}

impl Invariants {
    /// Keeps the configuration of a stranger, as it is stored.
    pub fn stranger(&mut self, stored: Value) {
        self.stranger = Some(stored);
    }

    /// Records a fault, each kind of fault once.
    pub fn broken(&mut self, trace: &Trace, what: String) {
        trace.note(format!("BROKEN {what}"));
        if !self.faults.iter().any(|fault| fault.what == what) {
            self.faults.push(Fault { at: trace.elapsed(), what });
        }
    }

    /// Returns the faults, the number of events that could do harm, and the writes that were stored and refused.
    pub fn report(&self) -> (Vec<Fault>, usize, [usize; 2]) {
        (self.faults.clone(), self.injected, self.writes)
    }

    /// Excuses what happens for a time.
    pub fn disturb(&mut self, lasts: Duration) {
        let end = Instant::now() + lasts;
        self.disturbed = Some(self.disturbed.map_or(end, |until| until.max(end)));
    }

    /// Notes an event that is about to happen.
    pub fn note(&mut self, action: Action, is_noticed: bool) {
        self.injected += usize::from(is_noticed && action.is_fault());
        match action {
            Action::DefineKind { kind, .. } | Action::DeleteKind { kind } => self.changed[kind] = Some(Instant::now()),
            Action::InstallKinds { kinds } => self.installed = kinds,
            // Repaired faults and forgotten kinds may come back.
            Action::Restore { .. } => {
                self.changed = [Some(Instant::now() + FORGOTTEN); KINDS];
                self.disturb(FORGOTTEN);
            }
            Action::Tamper(_) => self.disturb(REPAIRED),
            Action::Network { .. } | Action::Outage { .. } | Action::Lag { .. } => {
                self.disturb(Duration::from_millis(action.lasts()) + REPAIRED);
            }
            _ => {}
        }
    }

    fn is_disturbed(&self) -> bool {
        self.disturbed.is_some_and(|until| Instant::now() < until)
    }

    /// Notes the answer to a user's write.
    pub fn written(
        &mut self,
        world: &World,
        kind: usize,
        is_valid: bool,
        began: Instant,
        answer: Result<Value, kube::Error>,
    ) {
        let known = self.changed[kind].is_some_and(|changed| began > changed + LEARNT);
        self.writes[usize::from(answer.is_err())] += 1;
        match answer {
            Err(kube::Error::Api(status)) if is_valid && status.code != 404 && status.code != 409 => {
                let steady = |since: &Option<Instant>| since.is_some_and(|since| began > since + STEADY);
                if !self.is_disturbed() && self.ready.iter().any(steady) {
                    self.broken(&world.trace, format!("a valid write was refused: {}", status.message));
                }
            }
            Ok(stored) if users::has_two_members(&stored) && known && !self.is_disturbed() => {
                let how = if is_valid { "a switch left two members" } else { "an invalid object was stored" };
                self.broken(&world.trace, how.to_owned());
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Checks what holds at each moment.
    pub fn check(&mut self, world: &World) {
        let (now, ready) = (Instant::now(), world.service.ready());
        for replica in 0..REPLICAS {
            let since = &mut self.ready[replica];
            *since = ready.contains(&replica).then(|| since.unwrap_or(now));
        }
        if !ready.is_empty() {
            self.last_ready = Some(now);
        }
        let revision = world.revision();
        if std::mem::replace(&mut self.revision, revision) != revision {
            self.check_stored(world);
        }
        if !self.is_disturbed() {
            for fault in untrusted(world, &self.bundles, &ready) {
                self.broken(&world.trace, fault);
            }
        }
        for (replica, slot) in world.slots.iter().enumerate() {
            let minute = slot.link.writes().iter().filter(|at| at.elapsed() < Duration::from_mins(1)).count();
            if minute > MOST_WRITES {
                self.broken(&world.trace, format!("replica {replica} writes more than {MOST_WRITES} times a minute"));
            }
        }
    }

    /// Checks what holds for the configurations.
    fn check_stored(&mut self, world: &World) {
        let entries = entries(world);
        self.bundles = bundles(&entries);
        if !entries.is_empty() && !self.had_entries && !self.is_disturbed() {
            let answered = self.last_ready.is_some_and(|at| at.elapsed() < Duration::from_secs(5));
            if !answered {
                self.broken(&world.trace, "entries were registered without a ready replica".to_owned());
            }
        }
        self.had_entries = !entries.is_empty();
        let stored = world.stored(&format!("{}/stranger", CONFIGURATIONS[0]));
        if stored.as_deref() != self.stranger.as_ref() {
            self.broken(&world.trace, "the configuration of a stranger was changed".to_owned());
        }
    }

    /// Checks what holds some time after the last fault.
    pub fn settled(&mut self, world: &World) {
        let ready = world.service.ready();
        if ready.len() < REPLICAS {
            self.broken(&world.trace, format!("only the replicas {ready:?} are ready after the last fault"));
        }
        let digest = |replica: &usize| {
            let catalog = world.service.endpoint(*replica)?.state.in_force().borrow().clone();
            catalog.map(|catalog| catalog.digest())
        };
        let digests: BTreeSet<_> = ready.iter().map(digest).collect();
        if digests.len() > 1 {
            self.broken(&world.trace, "the replicas have different catalogs".to_owned());
        }
        let entries = entries(world);
        for kind in (0..KINDS + self.installed).filter(|kind| world.stored(&users::definition_path(*kind)).is_some()) {
            let plural = format!("kind{kind}s");
            let registers = |entry: &&(usize, Value)| {
                let rules = entry.1["rules"].as_array().into_iter().flatten();
                let mut resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
                resources.any(|resource| *resource == *plural) && entry.1["failurePolicy"] == "Fail"
            };
            let configurations: BTreeSet<usize> = entries.iter().filter(registers).map(|(which, _)| *which).collect();
            if configurations.len() < 2 {
                self.broken(&world.trace, format!("a kind is registered in {configurations:?} of both configurations"));
            }
        }
    }

    /// Compares the numbers of writes before and after a time without events.
    pub fn quiet(&mut self, before: usize, after: usize) {
        if after > before {
            let what = format!("{} writes of replicas without a reason", after - before);
            self.faults.push(Fault { at: Duration::ZERO, what });
        }
    }
}

/// Returns the entries of the replicas' configurations that call their Service, each with the number of its configuration.
fn entries(world: &World) -> Vec<(usize, Value)> {
    let stored = CONFIGURATIONS.iter().map(|collection| world.stored(&format!("{collection}/{NAME}")));
    let entries = |(which, stored): (usize, Option<Arc<Value>>)| {
        let entries = stored.map(|stored| stored["webhooks"].as_array().cloned().unwrap_or_default());
        entries.unwrap_or_default().into_iter().map(move |entry| (which, entry))
    };
    stored.enumerate().flat_map(entries).filter(|(_, entry)| entry["clientConfig"]["service"].is_object()).collect()
}

/// Returns the CAs of entries, PEM, each bundle once.
fn bundles(entries: &[(usize, Value)]) -> Vec<Vec<u8>> {
    let mut bundles: Vec<Vec<u8>> = entries
        .iter()
        .map(|(_, entry)| entry["clientConfig"]["caBundle"].as_str().unwrap_or_default())
        .map(|bundle| STANDARD.decode(bundle).unwrap_or_default())
        .collect();
    bundles.sort();
    bundles.dedup();
    bundles
}

/// Returns the ready replicas whose certificate the API server does not trust.
fn untrusted(world: &World, bundles: &[Vec<u8>], ready: &[usize]) -> Vec<String> {
    let (namespace, name) = SERVICE.split_once('/').unwrap_or_default();
    let name = format!("{name}.{namespace}.svc");
    let mut faults = Vec::new();
    for replica in ready {
        let Some(endpoint) = world.service.endpoint(*replica) else { continue };
        for bundle in bundles {
            if let Err(reason) = world.service.refusal(&endpoint, &name, bundle) {
                faults
                    .push(format!("replica {replica} is ready, and the API server refuses its certificate: {reason}"));
            }
        }
    }
    faults
}
