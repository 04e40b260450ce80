//! Every order of the steps of three replicas, up to a depth: a breadth-first search.
//!
//! A replica reads the Secret, decides and writes, learns what the configurations hold, and registers its CAs. Between any two of
//! these steps, others may take theirs. Before a minute passes, each replica takes the steps that it has not taken, since a view is
//! never older than a CA takes to settle. Once each, the Secret is deleted, a replica restarts, and the cluster is restored.

use super::super::state::{Certificate, Settling};
use super::tests::{DAY, NOW, carried_out, id, made, signed, state};
use super::*;
use std::collections::HashSet;
use std::time::Duration;

/// The clocks of the replicas, in seconds by which they are ahead.
const CLOCKS: [Seconds; REPLICAS] = [0, 30, -30];

const REPLICAS: usize = 3;

/// Time for which the configurations hold a new CA before it signs: of two minutes that end, one has passed as a whole.
const SETTLE: Duration = Duration::from_mins(2);

#[derive(Debug, Clone)]
struct SearchedState {
    minutes: u32,
    secret: CertificateState,
    configuration: Vec<Certificate>,
    /// The contents of the configurations that API servers may still have.
    views: Vec<Vec<Certificate>>,
    replicas: [SearchedReplica; REPLICAS],
    authorities: u32,
    saved: Option<(CertificateState, Vec<Certificate>)>,
    accidents: Vec<Accident>,
    /// Minutes in which the configurations may be behind, after a restore.
    excused: u32,
    /// An API server has refused what a replica serves.
    is_refused: bool,
}

#[derive(Debug, Clone, Default)]
struct SearchedReplica {
    /// Seconds by which its clock is ahead.
    ahead: Seconds,
    /// The Secret as it was read, and true while nobody has written it since.
    read: Option<(CertificateState, bool)>,
    held: Vec<Certificate>,
    in_force: CertificateState,
    settling: Settling,
    /// The steps since the last minute.
    taken: [bool; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accident {
    Deletion,
    Restart,
    Save,
    Restore,
}

#[derive(Debug, Clone, Copy)]
enum ReplicaStep {
    Read(usize),
    Decide(usize),
    Learn(usize),
    Register(usize),
    Minute,
    Happens(Accident),
}

impl SearchedState {
    /// A cluster of replicas that serve one CA, which is due if `rotates`.
    fn new(rotates: bool) -> Self {
        let made_at = if rotates { NOW - 2_500 * DAY } else { NOW };
        let secret = state(&[made(id("0"), made_at)], "0", signed(&id("0"), NOW));
        let held = vec![id("0")];
        let replica = SearchedReplica { held: held.clone(), in_force: secret.clone(), ..SearchedReplica::default() };
        Self {
            minutes: 0,
            secret,
            configuration: held.clone(),
            views: vec![held],
            replicas: CLOCKS.map(|ahead| SearchedReplica { ahead, ..replica.clone() }),
            authorities: 0,
            saved: None,
            accidents: Vec::new(),
            excused: 0,
            is_refused: false,
        }
    }

    fn steps(&self) -> Vec<ReplicaStep> {
        let mut steps = Vec::new();
        for (which, replica) in self.replicas.iter().enumerate() {
            steps.push(if replica.read.is_some() { ReplicaStep::Decide(which) } else { ReplicaStep::Read(which) });
            if replica.held != self.configuration || !replica.taken[1] {
                steps.push(ReplicaStep::Learn(which));
            }
            if self.trusted(which).is_some_and(|trusted| trusted != self.configuration) || !replica.taken[2] {
                steps.push(ReplicaStep::Register(which));
            }
        }
        steps.push(ReplicaStep::Minute);
        // Not a deletion and a restart before the Secret is written again: the guarantee does not extend to that.
        let is_whole =
            self.secret.leaf.is_some() && self.replicas.iter().all(|replica| replica.in_force.leaf.is_some());
        for accident in [Accident::Deletion, Accident::Restart, Accident::Save] {
            if is_whole && !self.accidents.contains(&accident) {
                steps.push(ReplicaStep::Happens(accident));
            }
        }
        if self.saved.is_some() && !self.accidents.contains(&Accident::Restore) {
            steps.push(ReplicaStep::Happens(Accident::Restore));
        }
        steps
    }

    fn trusted(&self, which: usize) -> Option<Vec<Certificate>> {
        let authorities = &self.replicas[which].in_force.authorities;
        (!authorities.is_empty()).then(|| authorities.iter().map(|it| Certificate::clone(&it.certificate)).collect())
    }

    fn register(&mut self, configuration: Vec<Certificate>) {
        if configuration != self.configuration {
            self.views.push(configuration.clone());
            self.configuration = configuration;
        }
    }

    fn store(&mut self, secret: CertificateState) {
        self.secret = secret;
        self.replicas.iter_mut().filter_map(|replica| replica.read.as_mut()).for_each(|read| read.1 = false);
    }

    /// `settle`: the time for which a CA settles.
    fn take(&mut self, step: ReplicaStep, settle: Duration) {
        match step {
            ReplicaStep::Read(which) => self.replicas[which].read = Some((self.secret.clone(), true)),
            ReplicaStep::Decide(which) => self.decide(which, settle),
            ReplicaStep::Learn(which) => {
                self.replicas[which].held = self.configuration.clone();
                self.replicas[which].taken[1] = true;
            }
            ReplicaStep::Register(which) => {
                self.replicas[which].taken[2] = true;
                if let Some(trusted) = self.trusted(which) {
                    self.register(trusted);
                }
            }
            ReplicaStep::Minute => {
                for which in 0..REPLICAS {
                    if !self.replicas[which].taken[0] {
                        self.take(ReplicaStep::Read(which), settle);
                    }
                    for step in [ReplicaStep::Decide(which), ReplicaStep::Learn(which), ReplicaStep::Register(which)] {
                        self.take(step, settle);
                    }
                }
                self.minutes += 1;
                self.views = vec![self.configuration.clone()];
                self.excused = self.excused.saturating_sub(1);
                self.replicas.iter_mut().for_each(|replica| replica.taken = [false; 3]);
            }
            ReplicaStep::Happens(accident) => {
                self.accidents.push(accident);
                self.accidents.sort_by_key(|it| *it as u8);
                match accident {
                    Accident::Deletion => self.store(CertificateState::default()),
                    Accident::Restart => {
                        self.replicas[0] = SearchedReplica { ahead: CLOCKS[0], ..SearchedReplica::default() }
                    }
                    Accident::Save => self.saved = Some((self.secret.clone(), self.configuration.clone())),
                    Accident::Restore => {
                        if let Some((secret, configuration)) = self.saved.clone() {
                            self.excused = 2;
                            self.store(secret);
                            self.register(configuration);
                        }
                    }
                }
            }
        }
        let leaves = || self.replicas.iter().filter_map(|replica| replica.in_force.leaf.as_ref());
        let is_refused = self.views.iter().any(|view| leaves().any(|leaf| !view.contains(&leaf.issuer)));
        self.is_refused |= is_refused && self.excused == 0;
    }

    fn decide(&mut self, which: usize, settle: Duration) {
        let replica = &mut self.replicas[which];
        let Some((stored, is_current)) = replica.read.take() else { return };
        replica.taken[0] = true;
        let (now, held) = (NOW + Seconds::from(self.minutes) * 60 + replica.ahead, replica.held.clone());
        let holds = |it: &Certificate| held.contains(it);
        replica.in_force.adopt(&stored, holds, now);
        let uptime = Duration::from_mins(self.minutes.into());
        let settled = replica.settling.is_over(stored.signer.as_ref(), holds, uptime, settle);
        let plan = plan(&stored, &replica.in_force, settled, now);
        let in_force = replica.in_force.clone();
        if plan.changes(&stored) && is_current {
            let next = carried_out(&plan, &stored, &in_force, now, &mut self.authorities);
            // A replica adopts what it has written.
            self.replicas[which].in_force.adopt(&next, |it| held.contains(it), now);
            self.store(next);
        }
    }
}

/// Returns the number of different clusters up to a depth, and the steps to one whose replica an API server refuses.
fn search(start: &SearchedState, depth: usize, settle: Duration) -> (usize, Option<Vec<ReplicaStep>>) {
    let mut seen = HashSet::from([format!("{start:?}")]);
    let mut level = vec![(start.clone(), Vec::new())];
    for _ in 0..depth {
        let mut next = Vec::new();
        for (cluster, steps) in level {
            for step in cluster.steps() {
                let mut after: SearchedState = cluster.clone();
                after.take(step, settle);
                let mut steps: Vec<ReplicaStep> = steps.clone();
                steps.push(step);
                if after.is_refused {
                    return (seen.len(), Some(steps));
                }
                if seen.insert(format!("{after:?}")) {
                    next.push((after, steps));
                }
            }
        }
        level = next;
    }
    (seen.len(), None)
}

#[test]
fn no_order_of_steps_makes_an_api_server_refuse_a_replica() {
    // Seven takes half a minute, and each more six times as long.
    let depth = std::env::var("SEARCH_DEPTH").map_or(6, |depth| depth.parse().unwrap());
    for rotates in [false, true] {
        let (clusters, refused) = search(&SearchedState::new(rotates), depth, SETTLE);
        assert!(refused.is_none(), "{refused:?}");
        println!("rotates: {rotates}, {clusters} clusters within {depth} steps");
    }
}

#[test]
fn the_search_finds_the_order_in_which_a_ca_that_has_not_settled_is_refused() {
    let (_, refused) = search(&SearchedState::new(true), 6, Duration::ZERO);
    assert!(refused.is_some(), "the search cannot fail");
}
