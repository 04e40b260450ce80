//! Some seeds, the schedules of faults that were found, and two seeds many times. `make simulate` runs a thousand, optimised.

use serde::Deserialize;
use simulation::schedule::{Event, events};
use simulation::sweep::sweep;
use simulation::world;
use std::fs;
use std::path::Path;

/// A schedule that an earlier version of the program did not survive.
#[derive(Deserialize)]
struct Row {
    seed: u64,
    events: Vec<Event>,
}

#[test]
fn every_invariant_holds_for_each_seed() {
    let swept = sweep(1..9, 1);
    let failures = swept.failures.iter();
    let shown: Vec<String> = failures
        .map(|it| format!("seed {}: {}\n{}", it.seed, it.fault.what, serde_json::to_string(&it.events).unwrap()))
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    assert!(swept.idle * 4 < swept.seeds, "{} of {} seeds do nothing", swept.idle, swept.seeds);
}

#[test]
fn what_was_mended_stays_mended() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("rows");
    for entry in fs::read_dir(rows).unwrap() {
        let path = entry.unwrap().path();
        let row: Row = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let report = world::run(row.seed, &row.events, false);
        assert_eq!(report.faults, [], "{}", path.display());
    }
}

#[test]
fn a_seed_has_one_trace() {
    for seed in [7, 8] {
        let first = world::run(seed, &events(seed), true);
        for _ in 0..3 {
            let again = world::run(seed, &events(seed), true);
            let different = first.lines.iter().zip(&again.lines).find(|(first, again)| first != again);
            assert_eq!((different, again.hash), (None, first.hash));
        }
    }
}
