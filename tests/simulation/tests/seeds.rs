//! Some seeds, the schedules of faults that were found, and two seeds many times. `make simulate` runs a thousand, optimised.

use serde::Deserialize;
use simulation::schedule::{Action, Event, events};
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

/// Two hundred, because a thousand take minutes without optimisation.
#[test]
fn many_kinds_at_once_are_registered_through_a_crash_and_a_restore_with_few_writes() {
    let at = |seconds: u64, action: Action| Event { at: seconds * 1_000, action };
    let [one, many] = [1, 200].map(|kinds| {
        let events = [
            at(1, Action::DefineKind { kind: 0, members: 2 }),
            at(40, Action::InstallKinds { kinds }),
            at(41, Action::CrashAtWrite { replica: 0, writes: 0, arrives: true, down: 1_000 }),
            at(60, Action::WriteValid { kind: 0, object: 0, member: 0 }),
            at(61, Action::WriteInvalid { kind: 0, object: 0 }),
            at(90, Action::Save),
            at(100, Action::DeleteKind { kind: 0 }),
            at(110, Action::Restore { hangs: true }),
        ];
        let report = world::run(1, &events, false);
        assert_eq!((report.faults, report.writes[0]), (vec![], 4), "{kinds} kinds");
        report.sent
    });
    assert!(one > 0 && many <= one * 2, "the replicas write {one} times for a kind, and {many} times for many");
}
