//! Many seeds, on all processors.

use crate::invariants::Fault;
use crate::schedule::{Event, events};
use crate::world;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The result of many seeds.
#[derive(Default)]
pub struct Sweep {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds whose replicas met no fault, or whose users stored nothing.
    pub idle: u64,
    /// Seeds that failed.
    pub failures: Vec<Failure>,
}

/// A seed that failed.
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The first invariant that was broken.
    pub fault: Fault,
    /// The fewest events with which it still fails.
    pub events: Vec<Event>,
}

/// Runs seeds until this many have failed.
pub fn sweep(seeds: Range<u64>, most_failures: usize) -> Sweep {
    let (next, swept) = (AtomicU64::new(seeds.start), Mutex::new(Sweep::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || swept.lock().failures.len() >= most_failures {
                return;
            }
            let report = world::run(seed, &events(seed), false);
            let failure = report.faults.first().map(|fault| {
                let events = shortest(seed, &events(seed));
                Failure { seed, fault: fault.clone(), events }
            });
            let mut swept = swept.lock();
            swept.seeds += 1;
            swept.idle += u64::from(report.injected == 0 || report.writes[0] == 0);
            swept.failures.extend(failure);
        }
    };
    on_all_processors(work);
    swept.into_inner()
}

/// Runs a seed many times, and returns the hashes of its traces: one, unless something random does not follow from the seed.
pub fn hashes(seed: u64, runs: u64) -> BTreeSet<u64> {
    let (begun, hashes) = (AtomicU64::new(0), Mutex::new(BTreeSet::new()));
    on_all_processors(|| {
        while begun.fetch_add(1, Ordering::Relaxed) < runs {
            let hash = world::run(seed, &events(seed), false).hash;
            hashes.lock().insert(hash);
        }
    });
    hashes.into_inner()
}

fn on_all_processors(work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(&work);
        }
    });
}

/// Returns the fewest events with which a seed still fails: groups of events are dropped, then single ones.
pub fn shortest(seed: u64, events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    let mut size = events.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < events.len() {
            let mut fewer = events.clone();
            fewer.drain(at..(at + size).min(fewer.len()));
            if world::run(seed, &fewer, false).faults.is_empty() {
                at += size;
            } else {
                events = fewer;
            }
        }
        size /= 2;
    }
    events
}
