//! `simulate`: runs seeds, and prints the shortest schedule of each that fails.

#![allow(clippy::print_stdout, reason = "a program of the tests")]

use clap::Parser;
use serde_json::json;
use simulation::schedule::events;
use simulation::sweep::{hashes, sweep};
use simulation::world;
use std::process::ExitCode;
use std::time::Instant;

/// Run replicas of the webhook on a simulated API server, once for each seed
#[derive(Debug, Parser)]
struct Arguments {
    /// Run this many seeds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,

    /// Begin with this seed
    #[arg(long, default_value_t = 1)]
    from: u64,

    /// Stop after this many seeds have failed
    #[arg(long, default_value_t = 3)]
    failures: usize,

    /// Run the first seed this many times as well, and fail if its trace is not always the same
    #[arg(long, default_value_t = 0)]
    again: u64,

    /// Print what happens with the first seed, and run no other
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.trace {
        let report = world::run(arguments.from, &events(arguments.from), true);
        report.lines.iter().for_each(|line| println!("{line}"));
        return ExitCode::from(u8::from(!report.faults.is_empty()));
    }
    let began = Instant::now();
    let swept = sweep(arguments.from..arguments.from + arguments.seeds, arguments.failures);
    for failure in &swept.failures {
        println!("seed {}: after {:?}: {}", failure.seed, failure.fault.at, failure.fault.what);
        println!("{}", json!({"seed": failure.seed, "events": failure.events}));
    }
    let (failed, seconds) = (swept.failures.len(), began.elapsed().as_secs());
    println!("{} seeds in {seconds} s: {failed} failed, {} were idle", swept.seeds, swept.idle);
    let traces = hashes(arguments.from, arguments.again).len();
    if arguments.again > 0 {
        println!("seed {}: {} runs, traces: {traces}", arguments.from, arguments.again);
    }
    ExitCode::from(u8::from(failed > 0 || traces > 1))
}
