//! Measures creating and applying patches, from text to text. It prints the processor time next to that which `serde_json` needs to
//! decode the same documents, and next to Go's `strategicpatch` if Go is installed (`KUBE_UNIONS_DIFFERENTIAL=skip` leaves Go out).
//!
//! Each workload has 1,000 and then 10,000 items. A growth of about 10 means linear cost. Compare ratios, not times: other load on
//! the machine takes caches away. The bench fails only if a patch gives a wrong result.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, clippy::indexing_slicing, reason = "a bench")]

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use strategic_merge_patch::Patcher;

struct Workload {
    name: &'static str,
    schema: Value,
    original: String,
    modified: String,
}

fn main() {
    if std::env::args().any(|argument| argument == "--list" || argument == "--test") {
        return;
    }
    let mut go = Go::start();
    println!(
        "{:<28} {:>7}  {:>10} {:>8} {:>8} {:>10}   {:>10} {:>8} {:>8} {:>10}",
        "workload", "items", "create", "decode×", "growth", "Go", "apply", "decode×", "growth", "Go"
    );
    for make in WORKLOADS {
        let mut before: Option<[Duration; 2]> = None;
        for items in [1_000, 10_000] {
            let work = make(items);
            let patcher = Patcher::from_json_schema("Kind", &work.schema.to_string()).unwrap();
            let patch = patcher.create_two_way(&*work.original, &*work.modified).unwrap();
            let applied = patcher.apply(&*work.original, &*patch).unwrap();
            let decoded = |text: &str| serde_json::from_str::<Value>(text).ok();
            // `serde_json` does not decode the deep workload, so compare its text.
            match decoded(&work.modified) {
                Some(modified) => assert_eq!(decoded(&applied), Some(modified), "{}", work.name),
                None => assert_eq!(applied, work.modified, "{}", work.name),
            }
            let decode = |other: &str| {
                let both = || Some((decoded(&work.original)?, decoded(other)?));
                both().map(|_| best(both))
            };
            let create = best(|| patcher.create_two_way(&*work.original, &*work.modified).unwrap());
            let apply = best(|| patcher.apply(&*work.original, &*patch).unwrap());
            let mut cells = Vec::new();
            for (at, (time, floor)) in
                [(create, decode(&work.modified)), (apply, decode(&patch))].into_iter().enumerate()
            {
                let growth = before.map(|before| time.as_secs_f64() / before[at].as_secs_f64());
                let op = [("two-way", "modified", work.modified.as_str()), ("apply", "patch", patch.as_str())][at];
                let ratio =
                    go.as_mut().and_then(|go| go.time(&work, op)).map(|go| go.as_secs_f64() / time.as_secs_f64());
                cells.push(format!(
                    "{time:>10.1?} {:>8} {:>8} {:>10}",
                    floor.map_or("-".to_owned(), |floor| format!("{:.2}", time.as_secs_f64() / floor.as_secs_f64())),
                    growth.map_or(String::new(), |growth| format!("{growth:.1}")),
                    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}×")),
                ));
            }
            println!("{:<28} {items:>7}  {}", work.name, cells.join("   "));
            before = Some([create, apply]);
        }
    }
    println!("times: processor time of the best round");
    println!("decode×: the time divided by the time to decode the documents");
    println!("growth: the time for 10,000 items divided by the time for 1,000");
    println!("Go: the time of Go's package, with its garbage collector, divided by the time here");
}

/// Returns the least processor time of several rounds, since other load can only make a round slower.
fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    let mut best = Duration::MAX;
    for round in 0.. {
        let start_of_round = processor_time();
        black_box(work());
        best = best.min(processor_time().saturating_sub(start_of_round));
        if round >= 4 && start.elapsed() > Duration::from_millis(400) {
            break;
        }
    }
    best
}

/// Returns the time that this thread has run.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// A process that runs Go's package.
struct Go(Child);

impl Go {
    fn start() -> Option<Self> {
        if std::env::var("KUBE_UNIONS_DIFFERENTIAL").as_deref() == Ok("skip") {
            println!("skipping Go's package: KUBE_UNIONS_DIFFERENTIAL=skip");
            return None;
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential-bench");
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential");
        let built = Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(module).status();
        if !built.is_ok_and(|status| status.success()) {
            println!("skipping Go's package: cannot build tests/differential with `go build`");
            return None;
        }
        Some(Self(Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()))
    }

    /// Returns the processor time of one operation, or `None` if Go's package fails.
    fn time(&mut self, work: &Workload, (op, name, document): (&str, &str, &str)) -> Option<Duration> {
        let stdin = self.0.stdin.as_mut().unwrap();
        writeln!(stdin, "{}", json!({"op": "schema", "schema": work.schema})).unwrap();
        // Go's package is quadratic and takes many seconds for large documents.
        let rounds = if work.original.len() > 200_000 { 1 } else { 5 };
        writeln!(stdin, r#"{{"op":"{op}","rounds":{rounds},"original":{},"{name}":{document}}}"#, work.original)
            .unwrap();
        stdin.flush().unwrap();
        let mut line = String::new();
        let mut answers = BufReader::new(self.0.stdout.as_mut().unwrap());
        answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["nanoseconds"].as_u64().map(Duration::from_nanos)
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const WORKLOADS: [fn(usize) -> Workload; 9] =
    [all_changed, one_changed, reversed, all_deleted, ports, scalars, map, deep, deployment];

fn keyed(name: &'static str, original: &[Value], modified: &[Value]) -> Workload {
    let schema = json!({"type": "object", "properties": {"list": {"type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}, "more": {"type": "string"}}},
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}}});
    Workload {
        name,
        schema,
        original: json!({"list": original}).to_string(),
        modified: json!({"list": modified}).to_string(),
    }
}

fn items(count: usize, value: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({"name": format!("item-{number}"), "value": value, "more": "which stays as it is"}))
        .collect()
}

fn all_changed(count: usize) -> Workload {
    keyed("one key, all changed", &items(count, 1), &items(count, 2))
}

fn one_changed(count: usize) -> Workload {
    let mut modified = items(count, 1);
    modified.get_mut(count / 2).unwrap()["value"] = json!(2);
    keyed("one key, one changed", &items(count, 1), &modified)
}

fn reversed(count: usize) -> Workload {
    keyed("one key, reversed", &items(count, 1), &items(count, 1).into_iter().rev().collect::<Vec<_>>())
}

fn all_deleted(count: usize) -> Workload {
    keyed("one key, all deleted", &items(count, 1), &[])
}

fn ports(count: usize) -> Workload {
    let ports = |target: usize| -> Vec<Value> {
        let port = |number| json!({"port": number / 2, "protocol": if number % 2 == 0 { "TCP" } else { "UDP" }, "targetPort": target});
        (0..count).map(port).collect()
    };
    let schema = json!({"type": "object", "properties": {"list": {"type": "array",
        "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"},
            "protocol": {"type": "string", "default": "TCP"}, "targetPort": {"type": "integer"}}},
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port",
        "x-kubernetes-recommended-patch-merge-key": "port,protocol"}}});
    let document = |list: Vec<Value>| json!({"list": list}).to_string();
    Workload { name: "ports by two keys", schema, original: document(ports(1)), modified: document(ports(2)) }
}

fn scalars(count: usize) -> Workload {
    let schema = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}}});
    let list =
        |from: usize| json!({"list": (from..from + count).map(|number| format!("{number:06}")).collect::<Vec<_>>()});
    Workload {
        name: "scalars, half changed",
        schema,
        original: list(0).to_string(),
        modified: list(count / 2).to_string(),
    }
}

fn map(count: usize) -> Workload {
    let schema = json!({"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let entries = |from: usize| -> Value {
        (from..from + count).map(|number| (format!("key-{number}"), json!(format!("value {}", number % 7)))).collect()
    };
    Workload {
        name: "map, half changed",
        schema,
        original: json!({"map": entries(0)}).to_string(),
        modified: json!({"map": entries(count / 2)}).to_string(),
    }
}

/// Documents with 50 and 500 levels. `serde_json` decodes up to 128 levels.
fn deep(count: usize) -> Workload {
    let depth = count / 20;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let many = |leaf: usize| {
        let nested = format!("{}{leaf}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let all: Vec<String> = (0..10).map(|number| format!(r#""k{number}":{nested}"#)).collect();
        format!("{{{}}}", all.join(","))
    };
    Workload { name: "deep", schema, original: many(1), modified: many(2) }
}

fn deployment(count: usize) -> Workload {
    let env = json!({"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}});
    let schema = json!({"type": "object", "properties": {"containers": {"type": "array",
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "image": {"type": "string"}, "env": env}}}}});
    let container = |number: usize, image: &str| {
        let env: Vec<Value> =
            (0..50).map(|at| json!({"name": format!("VAR_{at}"), "value": format!("{at} of {number}")})).collect();
        json!({"name": format!("container-{number}"), "image": image, "env": env})
    };
    let pod = |image: &str| json!({"containers": (0..count / 100).map(|number| container(number, image)).collect::<Vec<_>>()});
    Workload {
        name: "containers of 50 variables",
        schema,
        original: pod("a:1").to_string(),
        modified: pod("a:2").to_string(),
    }
}
