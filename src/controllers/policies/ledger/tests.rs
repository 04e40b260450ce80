use super::*;
use crate::controllers::policies::api::PolicyResource;
use crate::controllers::policies::stored::{PolicyFrame, labels};
use crate::controllers::reconciler::DEBOUNCE;
use fixtures::dice::Dice;
use serde_json::json;

const HANDOVER: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const NEARLY: Duration = Duration::from_secs(9);

fn kind(name: &str) -> GroupKind {
    GroupKind::new("g", name)
}

fn key(resource: PolicyResource, name: &str) -> PolicyKey {
    PolicyKey { resource, name: name.into() }
}

/// An object in one of its versions.
fn body(version: u64) -> Value {
    json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"labels": labels()}, "spec": {"version": version}})
}

/// A kind with two objects in this version.
fn desired(name: &str, version: u64) -> DesiredKind {
    let object = |resource| (key(resource, name), Arc::new(body(version)));
    let resources = [PolicyResource::ValidatingPolicy, PolicyResource::ValidatingBinding];
    DesiredKind { objects: resources.map(object).into(), refusals: Vec::new(), is_registrable: true }
}

fn refused() -> DesiredKind {
    DesiredKind { objects: BTreeMap::new(), refusals: vec!["no".to_owned()], is_registrable: true }
}

/// A reconciler, and the kinds that the webhook is registered for.
struct PolicyRig {
    reconciler: PolicyReconciler,
    registered: BTreeMap<GroupKind, Instant>,
    now: Instant,
}

impl PolicyRig {
    fn new(duty: PolicyDuty) -> Self {
        Self { reconciler: PolicyReconciler::new(duty, HANDOVER), registered: BTreeMap::new(), now: Instant::now() }
    }

    fn with(mut self, desired: impl IntoIterator<Item = (&'static str, DesiredKind)>) -> Self {
        self.want(desired);
        self.reconciler.listed(self.now);
        self
    }

    fn want(&mut self, desired: impl IntoIterator<Item = (&'static str, DesiredKind)>) {
        self.reconciler.want(desired.into_iter().map(|(name, desired)| (kind(name), Arc::new(desired))).collect());
    }

    fn store(&mut self, key: PolicyKey, version: u64) {
        let mut object = body(version);
        object["metadata"]["annotations"] = json!({"kube-unions.dev/kind": format!("g/{}", key.name)});
        self.store_object(key, object);
    }

    fn store_object(&mut self, key: PolicyKey, object: Value) {
        let stored = StoredPolicy::of_this_installation(object, &PolicyFrame::default());
        self.reconciler.put(key, stored.unwrap());
    }

    fn store_both(&mut self, name: &str, version: u64) {
        for resource in [PolicyResource::ValidatingPolicy, PolicyResource::ValidatingBinding] {
            self.store(key(resource, name), version);
        }
    }

    fn step(&mut self) -> ReconcileStep {
        self.reconciler.step(&self.registered, self.now)
    }

    /// Returns what is written now, and carries it out.
    fn write(&mut self) -> Vec<String> {
        let writes = self.step().writes;
        let names = writes.iter().map(|PolicyWrite { key, wanted, .. }| match wanted {
            None => format!("delete {key}"),
            Some(_) if self.reconciler.stored.contains_key(key) => format!("replace {key}"),
            Some(_) => format!("create {key}"),
        });
        let names = names.collect();
        for PolicyWrite { key, wanted, .. } in writes {
            let Some(wanted) = wanted else {
                self.reconciler.remove(&key);
                continue;
            };
            self.reconciler.wrote(&key);
            self.store(key, wanted["spec"]["version"].as_u64().unwrap());
        }
        names
    }

    fn write_all(&mut self) {
        while !self.write().is_empty() {}
    }

    fn coverage(&mut self) -> Coverage {
        self.step();
        self.reconciler.coverage(self.now)
    }
}

fn kinds(names: &[&str]) -> Coverage {
    Coverage::Kinds(Arc::new(names.iter().map(|name| kind(name)).collect()))
}

#[test]
fn nothing_is_written_before_the_lists_and_the_catalog_are_known() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook);
    trial.want([("a", desired("a", 1))]);
    assert!(trial.step().writes.is_empty());
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook);
    trial.store_both("a", 1);
    trial.reconciler.listed(trial.now);
    assert!(trial.step().writes.is_empty());
    assert_eq!(trial.coverage(), Coverage::Unknown);
}

#[test]
fn the_objects_of_a_kind_are_written_in_order_and_those_of_other_kinds_beside_them() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1)), ("b", desired("b", 1))]);
    assert_eq!(trial.write(), ["create ValidatingAdmissionPolicy `a`", "create ValidatingAdmissionPolicy `b`"]);
    assert_eq!(
        trial.write(),
        ["create ValidatingAdmissionPolicyBinding `a`", "create ValidatingAdmissionPolicyBinding `b`"]
    );
    assert!(trial.write().is_empty());
    assert_eq!(trial.step().in_sync, 4);
}

#[test]
fn a_kind_is_covered_when_its_policies_have_been_there_for_the_handover_time() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1)), ("b", refused())]);
    assert_eq!(trial.coverage(), Coverage::none());
    trial.write_all();
    let start = trial.now;
    assert_eq!(trial.step().wake, Some(start + HANDOVER));
    trial.now = start + NEARLY;
    assert_eq!(trial.coverage(), Coverage::none());
    trial.now = start + HANDOVER;
    assert_eq!(trial.coverage(), kinds(&["a"]));
    // A change of the kind is written at once. The webhook would learn of it no sooner.
    trial.want([("a", desired("a", 2)), ("b", refused())]);
    assert_eq!(trial.coverage(), kinds(&["a"]));
    assert_eq!(trial.write(), ["replace ValidatingAdmissionPolicy `a`"]);
}

#[test]
fn a_kind_whose_policy_the_api_server_refuses_goes_back_to_the_webhook_and_is_tried_again_later_and_later() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    trial.write_all();
    trial.now += HANDOVER;
    assert_eq!(trial.coverage(), kinds(&["a"]));
    trial.want([("a", desired("a", 2))]);
    let mut waits = Vec::new();
    for _ in 0..9 {
        assert_eq!(trial.step().writes.len(), 1);
        trial.reconciler.failed(key(PolicyResource::ValidatingPolicy, "a"), true, trial.now);
        let step = trial.step();
        assert!(step.writes.is_empty(), "no hot loop");
        waits.push((step.wake.unwrap() - trial.now).as_millis());
        trial.now = step.wake.unwrap();
    }
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(trial.coverage(), Coverage::none());
    trial.want([("a", desired("a", 3))]);
    assert_eq!(trial.step().writes.len(), 1, "a changed object is tried at once");
}

#[test]
fn drift_is_corrected_after_a_wait_that_doubles() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    trial.write_all();
    let mut waits = Vec::new();
    for _ in 0..4 {
        trial.reconciler.remove(&key(PolicyResource::ValidatingBinding, "a"));
        let step = trial.step();
        assert!(step.writes.is_empty());
        waits.push((step.wake.unwrap() - trial.now).as_secs());
        trial.now = step.wake.unwrap();
        assert_eq!(trial.write(), ["create ValidatingAdmissionPolicyBinding `a`"]);
        trial.step();
    }
    assert_eq!(waits, [1, 2, 4, 4]);
    trial.now += HANDOVER;
    assert_eq!(trial.coverage(), kinds(&["a"]));
}

/// Replicas of two releases, which want different versions of one kind, at one API server.
struct Dispute {
    start: Instant,
    now: Instant,
    /// Each with the version that it wants, and the time of its next step.
    replicas: Vec<(PolicyRig, u64, Instant)>,
    /// The version that is stored of each object.
    stored: BTreeMap<PolicyKey, u64>,
    /// Events on their way: the time, the replica, the object, and the version that the replica learns.
    events: Vec<(Instant, usize, PolicyKey, u64)>,
    /// Writes that are on their way: the time, the replica, the object, and the version that was read.
    writes: Vec<(Instant, usize, PolicyKey, Option<u64>)>,
    /// The times of the writes of one object.
    written: Vec<Duration>,
    dice: Dice,
}

impl Dispute {
    const TICK: Duration = Duration::from_millis(10);

    fn new(versions: &[u64], seed: u64) -> Self {
        let now = Instant::now();
        let replica = |version: &u64| {
            let mut rig = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", *version))]);
            rig.now = now;
            (rig, *version, now)
        };
        let replicas = versions.iter().map(replica).collect();
        let (stored, dice) = (BTreeMap::new(), Dice(seed));
        Self { start: now, now, replicas, stored, events: Vec::new(), writes: Vec::new(), written: Vec::new(), dice }
    }

    /// Returns how often each object was written on average within a time.
    fn writes_within(mut self, time: Duration) -> usize {
        while self.now < self.start + time {
            self.now += Self::TICK;
            self.deliver();
            self.write();
            self.take_steps();
        }
        self.written.len() / 2
    }

    fn soon(&mut self, most: usize) -> Instant {
        self.now + Self::TICK * u32::try_from(self.dice.below(most)).unwrap()
    }

    fn deliver(&mut self) {
        let now = self.now;
        let (due, later): (Vec<_>, _) = std::mem::take(&mut self.events).into_iter().partition(|(at, ..)| *at <= now);
        self.events = later;
        for (_, number, key, version) in due {
            let (rig, _, next) = &mut self.replicas[number];
            rig.store(key, version);
            *next = (*next).min(now + DEBOUNCE);
        }
    }

    /// Carries out writes as the controller does: under the version that was read.
    fn write(&mut self) {
        let now = self.now;
        let (due, later): (Vec<_>, _) = std::mem::take(&mut self.writes).into_iter().partition(|(at, ..)| *at <= now);
        self.writes = later;
        for (_, number, key, read) in due {
            let (stored, wanted) = (self.stored.get(&key).copied(), self.replicas[number].1);
            if stored == Some(wanted) {
                self.replicas[number].0.store(key.clone(), wanted);
                self.replicas[number].0.reconciler.wrote(&key);
            } else if stored != read {
                self.replicas[number].0.reconciler.failed(key, false, now);
            } else {
                self.stored.insert(key.clone(), wanted);
                self.written.push(now - self.start);
                self.replicas[number].0.store(key.clone(), wanted);
                self.replicas[number].0.reconciler.wrote(&key);
                for other in 0..self.replicas.len() {
                    // A watch keeps the order.
                    let last = self.events.iter().filter(|event| event.1 == other).map(|event| event.0).max();
                    let at = self.soon(30).max(last.unwrap_or(now));
                    self.events.push((at, other, key.clone(), wanted));
                }
            }
            self.replicas[number].2 = now + DEBOUNCE;
        }
    }

    fn take_steps(&mut self) {
        for number in 0..self.replicas.len() {
            let is_writing = self.writes.iter().any(|(_, writer, ..)| *writer == number);
            let (rig, _, next) = &mut self.replicas[number];
            if is_writing || *next > self.now {
                continue;
            }
            rig.now = self.now;
            let step = rig.step();
            *next = step.wake.unwrap_or(self.now + HANDOVER);
            for write in step.writes {
                let read = self.stored.get(&write.key).copied();
                let at = self.soon(10);
                self.writes.push((at, number, write.key, read));
            }
        }
    }
}

/// Two sides that wait for 1, 2, 4, 4, … seconds write ten times, in every order of events and writes.
#[test]
fn replicas_of_two_releases_back_off_from_each_other() {
    for versions in [&[1, 2][..], &[1, 1, 2], &[1, 2, 2], &[1, 1, 1, 2, 2, 2]] {
        let writes = (0..40).map(|seed| Dispute::new(versions, seed).writes_within(Duration::from_secs(25)));
        let writes: Vec<_> = writes.collect();
        assert!(writes.iter().all(|writes| (5..=10).contains(writes)), "{versions:?}: {writes:?}");
    }
}

#[test]
fn a_change_of_another_before_this_replica_has_seen_its_own_write_is_drift() {
    let policy = key(PolicyResource::ValidatingPolicy, "a");
    let waits = |trial: &mut PolicyRig| {
        let step = trial.step();
        assert_eq!(step.writes, []);
        (step.wake.unwrap() - trial.now).as_secs()
    };
    // Its own write, one that another replica of its release was faster with, and a correction.
    for settles in [true, false] {
        let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
        assert_eq!(trial.step().writes.len(), 1);
        if settles {
            trial.store(policy.clone(), 1);
        }
        trial.reconciler.wrote(&policy);
        trial.store(policy.clone(), 2);
        assert_eq!(waits(&mut trial), 1);
        trial.now += SECOND;
        assert_eq!(trial.step().writes.len(), 1);
        trial.reconciler.wrote(&policy);
        trial.store(policy.clone(), 3);
        assert_eq!(waits(&mut trial), 2);
    }
    // A correction that another writer was faster than.
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    trial.write_all();
    trial.store(policy.clone(), 2);
    assert_eq!(waits(&mut trial), 1);
    trial.now += SECOND;
    assert_eq!(trial.step().writes.len(), 1);
    trial.reconciler.failed(policy.clone(), false, trial.now);
    trial.store(policy, 3);
    trial.now += SECOND;
    assert_eq!(waits(&mut trial), 2);
}

#[test]
fn the_drifted_objects_of_a_kind_are_corrected_after_one_wait_together() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    trial.write_all();
    trial.store_both("a", 2);
    trial.now = trial.step().wake.unwrap();
    let step = trial.step();
    assert_eq!((step.writes.len(), step.corrected.len()), (1, 2));
    trial.store(key(PolicyResource::ValidatingPolicy, "a"), 1);
    assert_eq!(trial.write(), ["replace ValidatingAdmissionPolicyBinding `a`"]);
}

#[test]
fn policies_of_a_kind_without_unions_are_deleted_at_once_and_bindings_first() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([]);
    trial.store_both("gone", 1);
    assert_eq!(
        trial.write(),
        ["delete ValidatingAdmissionPolicyBinding `gone`", "delete ValidatingAdmissionPolicy `gone`"]
    );
}

#[test]
fn policies_under_an_earlier_name_are_deleted_when_their_successors_are_in_force() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    let old = key(PolicyResource::ValidatingBinding, "a-before");
    let mut object = body(1);
    object["metadata"]["annotations"] = json!({"kube-unions.dev/kind": "g/a"});
    trial.store_object(old, object);
    trial.write_all();
    trial.now += NEARLY;
    assert!(trial.write().is_empty());
    trial.now += SECOND;
    assert_eq!(trial.write(), ["delete ValidatingAdmissionPolicyBinding `a-before`"]);
}

#[test]
fn policies_stay_until_the_webhook_has_been_registered_for_the_handover_time() {
    for duty in [PolicyDuty::RemoveOnceRegistered, PolicyDuty::BesideWebhook] {
        let mut trial = PolicyRig::new(duty).with([("a", refused())]);
        trial.store_both("a", 1);
        trial.now += HANDOVER * 10;
        assert!(trial.write().is_empty(), "{duty:?}");
        trial.registered.insert(kind("a"), trial.now);
        trial.now += NEARLY;
        assert!(trial.write().is_empty(), "{duty:?}");
        trial.now += SECOND;
        assert_eq!(trial.write().len(), 2, "{duty:?}");
    }
    for duty in [PolicyDuty::Remove, PolicyDuty::Alone] {
        let mut trial = PolicyRig::new(duty).with([("a", refused())]);
        trial.store_both("a", 1);
        assert_eq!(trial.write().len(), 2, "{duty:?}");
    }
}

#[test]
fn a_registration_of_before_the_kind_was_given_back_does_not_count() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with([("a", desired("a", 1))]);
    trial.registered.insert(kind("a"), trial.now);
    trial.write_all();
    trial.now += HANDOVER * 2;
    assert_eq!(trial.coverage(), kinds(&["a"]));
    // The registration drops the kind while the kind becomes inexpressible.
    trial.want([("a", refused())]);
    assert_eq!(trial.coverage(), Coverage::none());
    assert!(trial.write().is_empty());
    trial.now += HANDOVER;
    assert_eq!(trial.write().len(), 2);
}

#[test]
fn after_a_start_the_coverage_is_unknown_until_the_policies_that_were_there_count() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook);
    trial.store_both("a", 1);
    let mut trial = trial.with([("a", desired("a", 1)), ("b", desired("b", 1))]);
    assert_eq!(trial.coverage(), Coverage::Unknown);
    trial.write_all();
    trial.now += HANDOVER;
    assert_eq!(trial.coverage(), kinds(&["a", "b"]));
    // One that cannot be written holds the others up for a while only.
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook);
    trial.store_both("a", 1);
    let mut trial = trial.with([("a", desired("a", 1)), ("b", desired("b", 1))]);
    trial.step();
    trial.now += HANDOVER * 2;
    assert_eq!(trial.coverage(), Coverage::Unknown);
    trial.now += HANDOVER;
    assert_eq!(trial.coverage(), kinds(&["a"]));
}

#[test]
fn without_a_webhook_the_registration_stays_until_all_policies_are_in_force_once() {
    let mut trial = PolicyRig::new(PolicyDuty::Alone).with([("a", desired("a", 1)), ("b", refused())]);
    trial.write_all();
    assert_eq!(trial.coverage(), Coverage::Unknown);
    trial.now += HANDOVER;
    assert_eq!(trial.coverage(), Coverage::Everything);
    trial.want([("a", desired("a", 1)), ("c", desired("c", 1))]);
    assert_eq!(trial.coverage(), Coverage::Everything);
}

#[test]
fn without_the_right_to_list_policies_the_webhook_has_all_kinds() {
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook);
    trial.want([("a", desired("a", 1))]);
    trial.reconciler.list_refused(trial.now);
    assert_eq!(trial.coverage(), Coverage::Unknown);
    trial.now += HANDOVER;
    trial.reconciler.list_refused(trial.now);
    assert_eq!(trial.coverage(), Coverage::none());
}

#[test]
fn a_step_has_a_bounded_number_of_writes() {
    let names: Vec<&'static str> = (0..500).map(|number| &*format!("k{number:03}").leak()).collect();
    let mut trial = PolicyRig::new(PolicyDuty::BesideWebhook).with(names.iter().map(|name| (*name, desired(name, 1))));
    let mut rounds = 0;
    loop {
        let written = trial.write();
        assert!(written.len() <= MOST_WRITES);
        if written.is_empty() {
            break;
        }
        rounds += 1;
    }
    assert_eq!(rounds, 16, "1,000 objects");
    assert_eq!(trial.step().in_sync, 1_000);
}
