//! Years of rotations: replicas with stale views of the Secret and the configurations, and an API server whose view of the
//! configurations is stale too. Accidents delete the Secret and restart replicas.

use super::super::state::{Certificate, LEAF_LIFETIME, SKEW, Settling};
use super::tests::{DAY, NOW, carried_out, id, made, signed, state};
use super::*;
use proptest::prelude::*;
use std::time::Duration;

/// Time for which the configurations hold a new CA before it signs.
const SETTLE: Seconds = 60;

/// Greatest age of a replica's view of the Secret. Another replica registers what that view shows.
const SECRET_LAG: Seconds = 35;
/// Greatest age of a replica's view of the configurations.
const CONFIGURATION_LAG: Seconds = 15;
/// Greatest age of the API server's view of the configurations.
const CLIENT_LAG: Seconds = 10;
/// Greatest difference between the clocks of a replica and the API server. A greater one is corrected.
const CLOCK_DIFFERENCE: Seconds = 30;

struct Simulation {
    random: u64,
    now: Seconds,
    settle: Duration,
    /// Every version, each with the time at which it was written.
    secret: Vec<(Seconds, CertificateState)>,
    configuration: Vec<(Seconds, Vec<Certificate>)>,
    replicas: Vec<RotatingReplica>,
    authorities: u32,
    last_change: Seconds,
    faults: Vec<String>,
}

#[derive(Default)]
struct RotatingReplica {
    /// Seconds by which its clock is ahead.
    ahead: Seconds,
    seen: usize,
    in_force: CertificateState,
    settling: Settling,
}

impl Simulation {
    fn new(seed: u64, replicas: usize, settle: Seconds) -> Self {
        let mut this = Self {
            random: seed | 1,
            now: NOW,
            settle: Duration::from_secs(settle.cast_unsigned()),
            secret: vec![(NOW, CertificateState::default())],
            configuration: vec![(NOW, Vec::new())],
            replicas: (0..replicas).map(|_| RotatingReplica::default()).collect(),
            authorities: 0,
            last_change: NOW,
            faults: Vec::new(),
        };
        for index in 0..replicas {
            this.replicas[index].ahead = this.below(2 * CLOCK_DIFFERENCE + 1) - CLOCK_DIFFERENCE;
        }
        // A CA is replaced after some six years and eight months.
        if this.below(2) == 0 {
            let made_at = NOW - this.below(8 * 365 * DAY);
            this.secret[0].1 = state(&[made(id("0"), made_at)], "0", signed(&id("0"), NOW));
        }
        this
    }

    fn below(&mut self, bound: Seconds) -> Seconds {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        Seconds::try_from(self.random >> 33).unwrap() % bound
    }

    fn run(mut self, years: Seconds) -> Self {
        let end = NOW + years * 365 * DAY;
        let mut next_accident = self.now + 20 * DAY;
        while self.now < end && self.faults.is_empty() {
            for index in 0..self.replicas.len() {
                self.look(index);
                self.check();
            }
            if self.now - self.last_change < 300 {
                // An accident may interrupt a rotation.
                if self.below(400) == 0 {
                    self.accident();
                }
                self.now += 1 + self.below(7);
            } else {
                if self.now >= next_accident {
                    next_accident = self.now + 10 * DAY + self.below(90 * DAY);
                    self.accident();
                    continue;
                }
                self.now = self.next_event().min(next_accident);
            }
            self.check();
        }
        self
    }

    /// Returns the next time at which a certificate ends or is due, by any clock.
    fn next_event(&self) -> Seconds {
        let (_, stored) = self.secret.last().unwrap();
        let of_authorities =
            stored.authorities.iter().flat_map(|it| [it.due(), it.last_leaf_expiry(&stored.authorities)]);
        let of_leaf = stored.leaf.iter().flat_map(|it| [it.due(), it.not_after - SKEW]);
        let by_clocks = |at: Seconds| [at - CLOCK_DIFFERENCE, at, at + CLOCK_DIFFERENCE];
        of_authorities.chain(of_leaf).flat_map(by_clocks).filter(|it| *it > self.now).min().unwrap()
    }

    /// Deletes the Secret or restarts a replica. It never does both before the Secret is written again: then no
    /// replica would know the old CA, and the guarantee does not extend to that.
    fn accident(&mut self) {
        let stored = self.secret.last().is_some_and(|(_, state)| state.leaf.is_some());
        if !stored || self.replicas.iter().any(|it| it.in_force.leaf.is_none()) {
            return;
        }
        if self.below(2) == 0 {
            self.store(CertificateState::default());
        } else {
            let which = usize::try_from(self.below(2)).unwrap();
            let seen = self.secret.len() - 1;
            let ahead = self.replicas[which].ahead;
            self.replicas[which] = RotatingReplica { ahead, seen, ..RotatingReplica::default() };
            self.last_change = self.now;
        }
    }

    fn store(&mut self, state: CertificateState) {
        self.secret.push((self.now, state));
        self.last_change = self.now;
    }

    fn look(&mut self, index: usize) {
        let since = self.now - self.below(SECRET_LAG + 1);
        let seen = self.secret.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
        let fresh = self.secret.len() - 1;
        let replica = &mut self.replicas[index];
        // A replica that has just started reads the Secret.
        replica.seen = if replica.in_force.leaf.is_none() { fresh } else { replica.seen.max(seen) };
        while !self.step(index) {
            self.replicas[index].seen = self.secret.len() - 1;
        }
    }

    /// Takes one step of a replica. Returns true when it has nothing left to do.
    fn step(&mut self, index: usize) -> bool {
        let known = self.now - self.below(CONFIGURATION_LAG + 1);
        let held = self.configuration_at(known).to_vec();
        let register = self.below(2) == 0;
        let replica = &mut self.replicas[index];
        let now = self.now + replica.ahead;
        let stored = self.secret[replica.seen].1.clone();
        let holds = |id: &Certificate| held.is_empty() || held.contains(id);
        if replica.in_force.adopt(&stored, holds, now) {
            self.last_change = self.now;
        }
        let uptime = Duration::from_secs(now.cast_unsigned());
        let settled = replica.settling.is_over(stored.signer.as_ref(), holds, uptime, self.settle);
        let plan = plan(&stored, &replica.in_force, settled, now);
        let (in_force, seen) = (replica.in_force.clone(), replica.seen);
        let trusted: Vec<_> = in_force.authorities.iter().map(|it| Certificate::clone(&it.certificate)).collect();
        let configuration = &self.configuration.last().unwrap().1;
        if !trusted.is_empty() && *configuration != trusted {
            self.last_change = self.now;
            if register {
                self.configuration.push((self.now, trusted));
            }
        }
        if !plan.changes(&stored) {
            return true;
        }
        if seen + 1 == self.secret.len() {
            let next = carried_out(&plan, &stored, &in_force, now, &mut self.authorities);
            self.store(next);
        }
        false
    }

    fn configuration_at(&self, at: Seconds) -> &[Certificate] {
        &self.configuration.iter().rfind(|(since, _)| *since <= at).unwrap_or(&self.configuration[0]).1
    }

    /// Records a fault if a client refuses what a replica serves.
    fn check(&mut self) {
        let from = self.now - CLIENT_LAG;
        let seen_by_clients = self.configuration.iter().rev().scan(false, |before, (since, held)| {
            let done = std::mem::replace(before, *since <= from);
            (!done).then_some(held)
        });
        for held in seen_by_clients.filter(|held| !held.is_empty()) {
            for leaf in self.replicas.iter().filter_map(|it| it.in_force.leaf.as_ref()) {
                let valid = leaf.not_before <= self.now && self.now < leaf.not_after;
                if !valid || !held.contains(&leaf.issuer) {
                    self.faults.push(format!("at {}: {leaf:?}, trusted: {held:?}", self.now - NOW));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_client_accepts_what_every_replica_serves_for_years(seed: u64, replicas in 2_usize..4) {
        let simulation = Simulation::new(seed, replicas, SETTLE).run(4);
        prop_assert_eq!(&simulation.faults, &Vec::<String>::new());
        prop_assert!(simulation.authorities >= 5, "{} CAs", simulation.authorities);
        let most = simulation.secret.iter().map(|(_, state)| state.authorities.len()).max();
        prop_assert!(most.is_some_and(|it| it < 12), "{most:?} CAs at a time");
        // Only the last two of the CAs older than a leaf lifetime stay.
        for (at, state) in &simulation.secret {
            let is_old = |it: &&StoredAuthority| it.made_at() + LEAF_LIFETIME + SKEW <= *at;
            let old = state.authorities.iter().filter(is_old).count();
            prop_assert!(old <= 2, "{old} old CAs at {}", at - NOW);
        }
    }
}

#[test]
fn without_settling_some_client_refuses_a_replica() {
    let any = (1..40).any(|seed| !Simulation::new(seed * 7919, 3, 0).run(4).faults.is_empty());
    assert!(any, "the simulation cannot fail");
}
