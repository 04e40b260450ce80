//! The cost of a review, next to a floor measured in the same run: the time that `serde_json` needs to skip the same bytes
//! with `RawValue`. On a shared machine only the ratio is meaningful.
//!
//! In addition to criterion's figures, prints the memory of compiled CRDs first and a table of ratios last.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a bench"
)]

use criterion::{BenchmarkId, Criterion, Throughput};
use kube_unions_core::admission::{Phase, Ratcheting, ReviewOutcome, review};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::Definition;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Approximate sizes of bodies, in bytes.
const SIZES: [usize; 3] = [2_300, 57_000, 925_000];

fn main() {
    let listing = std::env::args().any(|argument| argument == "--list");
    if !listing {
        // First, while the process is empty.
        print_memory();
    }
    let catalog = catalog(1);
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for size in SIZES {
        let bodies = [body(size, false), body(size, true)];
        let mut group = criterion.benchmark_group("review");
        group.throughput(Throughput::Bytes(bodies[0].len() as u64));
        group.bench_function(BenchmarkId::new("skip", size), |bencher| bencher.iter(|| skip(black_box(&bodies[0]))));
        for (name, phase, body) in [("mutate", Phase::Mutate, &bodies[0]), ("validate", Phase::Validate, &bodies[1])] {
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter(|| answer(&catalog, phase, black_box(body)));
            });
        }
        group.finish();
    }
    let many = self::catalog(2_000);
    criterion.bench_function("lookup/one of 2000 kinds", |bencher| {
        bencher.iter(|| {
            black_box(&many).lookup(black_box("g999.example.com"), black_box("v1"), black_box("Thing999")).is_some()
        });
    });
    let crd = crd(0);
    let name = format!("compile/CRD of {} KB", crd.len() / 1000);
    criterion.bench_function(&name, |bencher| {
        bencher.iter(|| {
            let mut builder = Builder::new();
            builder.apply(Definition::from_json(black_box(&crd)).unwrap());
            builder.build()
        });
    });
    criterion.final_summary();
    if !listing {
        print_ratios(&catalog);
    }
}

fn skip(body: &[u8]) -> usize {
    serde_json::from_slice::<&RawValue>(body).unwrap().get().len()
}

fn answer(catalog: &Catalog, phase: Phase, body: &[u8]) -> Vec<u8> {
    review(catalog, phase, Ratcheting::Enabled, body).unwrap().to_json()
}

/// Measures floor and review alternately, so that other load affects both. Prints the best of many runs.
fn print_ratios(catalog: &Catalog) {
    println!("\n{:>10}  {:>10}  {:<10}  {:>10}  {:>6}", "body", "skip", "review", "time", "ratio");
    for size in SIZES {
        for (name, phase, body, expected) in [
            ("mutate", Phase::Mutate, body(size, false), (3, ReviewOutcome::Patched)),
            ("validate", Phase::Validate, body(size, true), (0, ReviewOutcome::Allowed)),
            ("untouched", Phase::Mutate, untouched(size), (0, ReviewOutcome::Allowed)),
            ("list", Phase::Mutate, list(size), (3, ReviewOutcome::Patched)),
        ] {
            let review = review(catalog, phase, Ratcheting::Enabled, &body).unwrap();
            assert_eq!((review.changes().len(), review.outcome()), expected, "{name}");
            let [mut floor, mut judged] = [Duration::MAX; 2];
            for _ in 0..(20_000_000 / size).clamp(200, 20_000) {
                floor = floor.min(time(|| skip(black_box(&body))));
                judged = judged.min(time(|| answer(catalog, phase, black_box(&body))));
            }
            let ratio = judged.as_secs_f64() / floor.as_secs_f64();
            println!("{:>8} B  {floor:>10.1?}  {name:<10}  {judged:>10.1?}  {ratio:>6.2}", body.len());
        }
    }
}

/// Returns an update that changes no union.
fn untouched(size: usize) -> Vec<u8> {
    let mut review: Value = serde_json::from_slice(&body(size, true)).unwrap();
    let mut old = review["request"]["object"].clone();
    old["metadata"]["generation"] = json!(1);
    review["request"]["oldObject"] = old;
    review.to_string().into_bytes()
}

/// Returns an update of a list with a union in each item. Three are switched.
fn list(size: usize) -> Vec<u8> {
    let mut review: Value = serde_json::from_slice(&body(0, true)).unwrap();
    let item = |number: usize| json!({"field0": "some text of an item", "git": {"field0": "x"}, "name": format!("n{}", number * 7919 % 100_003)});
    let mut items: Vec<_> = (0..(size / 2 / item(0).to_string().len()).max(3)).map(item).collect();
    review["request"]["oldObject"]["spec"] = json!({ "items": items });
    for at in [0, items.len() / 2, items.len() - 1] {
        items[at]["oci"] = json!({"field0": "y"});
    }
    review["request"]["object"]["spec"] = json!({ "items": items });
    review.to_string().into_bytes()
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// Prints the memory of the process according to the operating system. CRDs are made, compiled and dropped one at a time,
/// as the watch does.
fn print_memory() {
    const CRDS: usize = 2_000;
    let Some(before) = resident() else {
        println!("\nmemory: not told, for this system has no /proc/self/status");
        return;
    };
    let mut builder = Builder::new();
    let mut written = 0;
    for text in (0..CRDS).map(crd) {
        written += text.len();
        builder.apply(Definition::from_json(&text).unwrap());
    }
    let catalog = builder.build();
    let held = resident().unwrap_or(before).saturating_sub(before);
    println!(
        "\n{CRDS} CRDs ({} MB as JSON) with {} unions hold {:.1} MiB once compiled",
        written / 1_000_000,
        catalog.union_count(),
        held as f64 / 1024.0
    );
}

/// Returns the resident memory of this process, in KiB.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

fn catalog(crds: usize) -> Catalog {
    let mut builder = Builder::new();
    for number in 0..crds {
        builder.apply(Definition::from_json(&crd(number)).unwrap());
    }
    builder.build()
}

/// Returns a typical CRD: mostly fields without unions, each with a description.
fn crd(number: usize) -> String {
    let padding = |count: usize| -> serde_json::Map<String, Value> {
        let field =
            |at| (format!("field{at}"), json!({"type": "string", "description": "What this field is for. ".repeat(6)}));
        (0..count).map(field).collect()
    };
    let object = json!({"type": "object", "properties": padding(4)});
    let mut strategy = json!({"type": "object", "properties": padding(10)});
    strategy["properties"]["type"] = json!({"type": "string", "enum": ["Canary", "Recreate", "RollingUpdate"],
        "x-kubernetes-unions": {"fieldMembers": {
            "Canary": {"name": "canary"}, "RollingUpdate": {"name": "rollingUpdate", "optional": true}, "Recreate": null}}});
    strategy["properties"]["canary"] = object.clone();
    strategy["properties"]["rollingUpdate"] = object.clone();
    let mut source = json!({"type": "object", "properties": padding(10),
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"git": "Git", "oci": "OCI"}}]});
    source["properties"]["git"] = object.clone();
    source["properties"]["oci"] = object;
    let mut item = source.clone();
    item["required"] = json!(["name"]);
    item["properties"]["name"] = json!({"type": "string"});
    let mut spec = json!({"type": "object", "properties": padding(60)});
    spec["properties"]["strategy"] = strategy;
    spec["properties"]["source"] = source;
    spec["properties"]["items"] = json!({"type": "array", "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("thing{number}s.g{number}.example.com")},
        "spec": {"group": format!("g{number}.example.com"), "names": {"kind": format!("Thing{number}")}, "versions": [{
            "name": "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}
    })
    .to_string()
}

/// Returns an update of about `size` bytes that switches three unions: one by its discriminator, two by a member. With
/// `normalized` it is the update that is sent to validation: the old members are gone.
fn body(size: usize, normalized: bool) -> Vec<u8> {
    let envelope = 900;
    let half = size.saturating_sub(envelope) / 2;
    let object = |switched: bool| {
        let mut spec = json!({
            "strategy": {"type": "Canary", "canary": {"field0": "5"}},
            "source": {"git": {"field0": "x"}},
            "items": [{"name": "a", "oci": {"field0": "y"}}],
        });
        if switched {
            spec["strategy"]["type"] = json!("Recreate");
            spec["source"]["oci"] = json!({"field1": "z"});
            spec["items"][0]["git"] = json!({"field1": "z"});
        }
        if switched && normalized {
            for (holder, member) in [("/strategy", "canary"), ("/source", "git"), ("/items/0", "oci")] {
                spec.pointer_mut(holder).and_then(Value::as_object_mut).unwrap().remove(member).unwrap();
            }
        }
        let mut object = json!({
            "apiVersion": "g0.example.com/v1", "kind": "Thing0",
            "metadata": {"name": "thing", "namespace": "default", "labels": {}, "annotations": {}},
            "spec": spec,
        });
        // Typical content of objects in a cluster: short strings, nested a few levels deep.
        let mut number = 0;
        while object.to_string().len() < half {
            let entries: serde_json::Map<_, _> = (0..20)
                .map(|at| {
                    (
                        format!("field{at}"),
                        json!({"name": format!("value-{number}-{at}"), "on": at % 2 == 0, "count": at * 17}),
                    )
                })
                .collect();
            if size < 5_000 {
                object["metadata"]["labels"][format!("label-{number}")] = json!("some value of a label");
            } else {
                object["spec"][format!("padding{number}")] = Value::Object(entries);
            }
            number += 1;
        }
        object
    };
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "g0.example.com", "version": "v1", "kind": "Thing0"},
            "resource": {"group": "g0.example.com", "version": "v1", "resource": "thing0s"},
            "requestKind": {"group": "g0.example.com", "version": "v1", "kind": "Thing0"},
            "requestResource": {"group": "g0.example.com", "version": "v1", "resource": "thing0s"},
            "name": "thing", "namespace": "default", "operation": "UPDATE",
            "userInfo": {"username": "admin", "uid": "014fbff9a07c", "groups": ["system:authenticated", "my-admin-group"]},
            "object": object(true), "oldObject": object(false),
            "dryRun": false,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
    })
    .to_string()
    .into_bytes()
}
