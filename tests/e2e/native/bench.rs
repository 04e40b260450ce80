//! Latency of a write and CPU of the API server: without unions, by policies, and by the webhook on loopback. `make
//! bench-native` prints them. Nothing is asserted about them.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::builtin::POLICIES;
use crate::cluster::{Cluster, say};
use crate::kind::forget_unions;
use fixtures::crds::{annotated, crd};
use fixtures::reviews::{catalog, version};
use fixtures::wait::for_some;
use kube_unions_policies::{PolicyOptions, PolicyTarget, compile};

const IN_FORCE: Duration = Duration::from_mins(1);

/// Rounds, and writes of each way in a round.
const ROUNDS: usize = 40;
const WRITES: usize = 6;

/// The ways to enforce unions, each for a kind of its own: mutating and validating policies, and the webhook.
const WAYS: [(&str, bool, bool, bool); 5] = [
    ("nothing", false, false, false),
    ("validating policies", false, true, false),
    ("mutating policy", true, false, false),
    ("both policies", true, true, false),
    ("webhook on loopback", false, false, true),
];

#[derive(Default)]
struct Measured {
    latencies: Vec<Duration>,
    ticks: u64,
}

impl Measured {
    fn median(&mut self) -> Duration {
        self.latencies.sort();
        self.latencies[self.latencies.len() / 2]
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "type": {"type": "string", "x-kubernetes-unions": union()},
        "a": {"type": "object", "properties": {"x": {"type": "string"}}}, "b": {"type": "string"}, "note": {"type": "string"}}}}})
}

fn union() -> Value {
    json!({"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}, "None": null}})
}

#[test]
#[ignore = "a benchmark: run `make bench-native`"]
fn writes_by_policies_and_by_the_webhook() {
    let Some(cluster) = Cluster::own() else { return };
    let client = cluster.control_plane.client();
    let ticks = || cpu_ticks(cluster.control_plane.port());
    let apply = |object: &Value| drop(cluster.kubectl("bench").apply(&object.to_string()).accepted());
    let group = |number: usize| format!("bench{number}.example");
    let things = |number: usize| format!("/apis/{}/v1/namespaces/default/things", group(number));
    let patch = |path: &str, patch: &Value| {
        let started = Instant::now();
        let body = patch.to_string();
        let answer = client.send("PATCH", path, "application/merge-patch+json", body.as_bytes()).unwrap();
        assert!(answer.is_success(), "{path}: {}", answer.body);
        (started.elapsed(), answer.body)
    };
    for (number, (_, mutate, validate, webhook)) in WAYS.into_iter().enumerate() {
        let whole = crd(&group(number), "Thing", &[version("v1", &schema(), false)]);
        let mut plain = whole.clone();
        if webhook {
            let declared = json!({"v1": {"/properties/spec/properties/type": union()}}).to_string();
            plain = annotated(&group(number), "Thing", &[version("v1", &schema(), false)], &declared);
            apply(&cluster.registration(&group(number)).expect("the webhook is registered by hand"));
        }
        forget_unions(&mut plain);
        apply(&plain);
        let object = json!({"apiVersion": format!("{}/v1", group(number)), "kind": "Thing",
            "metadata": {"name": "x"}, "spec": {"type": "A", "a": {"x": "1"}, "note": "0"}});
        for_some(IN_FORCE, || client.post(&things(number), &object).ok()?.is_success().then_some(())).unwrap();
        let (catalog, options) = (catalog(&[&whole]), PolicyOptions { mutate, validate, ..PolicyOptions::default() });
        for target in PolicyTarget::of_catalog(&catalog) {
            compile(&target, &options).objects.iter().for_each(|it| apply(&it.to_json()));
        }
        // In force: a switch clears, or a contradiction is denied.
        let bad = json!({"spec": {"b": "v"}}).to_string();
        let dry = format!("{}/x?dryRun=All", things(number));
        if validate || webhook {
            for_some(IN_FORCE, || {
                let answer = client.send("PATCH", &dry, "application/merge-patch+json", bad.as_bytes()).ok()?;
                (answer.status == 422).then_some(())
            })
            .unwrap();
        }
        if mutate || webhook {
            for_some(IN_FORCE, || {
                let body = json!({"spec": {"type": "None"}}).to_string();
                let answer = client.send("PATCH", &dry, "application/merge-patch+json", body.as_bytes()).ok()?;
                answer.body["spec"]["a"].is_null().then_some(())
            })
            .unwrap();
        }
    }
    let mut table = String::from("\n| write | way | median | API server's CPU a write |\n|---|---|---|---|\n");
    for what in ["the choice is switched", "another field changes"] {
        let mut measured: Vec<Measured> = WAYS.iter().map(|_| Measured::default()).collect();
        for round in 0..ROUNDS {
            for (number, it) in measured.iter_mut().enumerate() {
                let before = ticks();
                for write in 0..WRITES {
                    let spec = match (what, write % 2) {
                        ("another field changes", _) => json!({"note": format!("{round}-{write}")}),
                        // Without mutation a client has to clear the member itself.
                        (_, 0) => json!({"type": "B", "b": "v", "a": null}),
                        (_, _) => json!({"type": "A", "a": {"x": "1"}, "b": null}),
                    };
                    it.latencies.push(patch(&format!("{}/x", things(number)), &json!({"spec": spec})).0);
                }
                it.ticks += ticks() - before;
            }
        }
        for ((way, ..), mut it) in WAYS.into_iter().zip(measured) {
            line(&mut table, what, way, &mut it);
        }
    }
    deployments(&cluster, &mut table, &ticks);
    windows(&cluster, &mut table);
    say(&table);
}

/// Measures writes of a Deployment in a namespace that the presets' policies leave alone, and in one that they do not.
fn deployments(cluster: &Cluster, table: &mut String, ticks: &dyn Fn() -> u64) {
    let kubectl = cluster.kubectl("bench");
    let client = cluster.control_plane.client();
    kubectl.run(&["apply", "-f", &format!("{POLICIES}/strategies.yaml")]).accepted();
    let namespaces = [("nothing", "disabled"), ("policies of the presets", "enabled")];
    for (_, namespace) in namespaces {
        let labels = json!({"kube-unions.dev/enforcement": namespace});
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        kubectl.apply(&object.to_string()).accepted();
        let pod =
            json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:0"}]}});
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": pod}});
        kubectl.apply(&object.to_string()).accepted();
    }
    let patch = |namespace: &str, query: &str, spec: &Value| {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/x{query}");
        let body = json!({"spec": spec}).to_string();
        let started = Instant::now();
        let answer = client.send("PATCH", &path, "application/strategic-merge-patch+json", body.as_bytes()).unwrap();
        (started.elapsed(), answer)
    };
    let in_force = for_some(IN_FORCE, || {
        let (_, answer) = patch("enabled", "?dryRun=All", &json!({"strategy": {"type": "Recreate"}}));
        answer.is_success().then_some(())
    });
    assert!(in_force.is_some(), "the policies of the presets are not in force");
    for what in ["the strategy of a Deployment is switched", "the image of a Deployment changes"] {
        let mut measured = [Measured::default(), Measured::default()];
        for round in 0..ROUNDS {
            for ((_, namespace), it) in namespaces.iter().zip(&mut measured) {
                let before = ticks();
                for write in 0..WRITES {
                    let image = format!("i:{round}-{write}");
                    let spec = match (what, write % 2) {
                        ("the image of a Deployment changes", _) => {
                            json!({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})
                        }
                        (_, 0) => json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
                        (_, _) => json!({"strategy": {"type": "RollingUpdate"}}),
                    };
                    let (latency, answer) = patch(namespace, "", &spec);
                    assert!(answer.is_success(), "{}", answer.body);
                    it.latencies.push(latency);
                }
                it.ticks += ticks() - before;
            }
        }
        for ((way, _), mut it) in namespaces.into_iter().zip(measured) {
            line(table, what, way, &mut it);
        }
    }
}

/// Measures how long a new kind, and a kind with a new policy, are not covered.
fn windows(cluster: &Cluster, table: &mut String) {
    let client = cluster.control_plane.client();
    let apply = |object: &Value| drop(cluster.kubectl("bench").apply(&object.to_string()).accepted());
    table.push_str("\n| window | until the first denial |\n|---|---|\n");
    for (what, kind_first) in
        [("policies stand when the kind is created", false), ("policies are created for a kind", true)]
    {
        let group = if kind_first { "window1.example" } else { "window0.example" };
        let whole = crd(group, "Thing", &[version("v1", &schema(), false)]);
        let mut plain = whole.clone();
        forget_unions(&mut plain);
        let path = format!("/apis/{group}/v1/namespaces/default/things?dryRun=All");
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "x"},
            "spec": {"type": "A", "a": {}, "b": "v"}});
        let install = || {
            let catalog = catalog(&[&whole]);
            for target in PolicyTarget::of_catalog(&catalog) {
                compile(&target, &PolicyOptions::default()).objects.iter().for_each(|it| apply(&it.to_json()));
            }
        };
        let (first, second): (&dyn Fn(), &dyn Fn()) =
            if kind_first { (&|| apply(&plain), &install) } else { (&install, &|| apply(&plain)) };
        first();
        if kind_first {
            for_some(IN_FORCE, || client.post(&path, &object).ok()?.is_success().then_some(())).unwrap();
        }
        second();
        let started = Instant::now();
        let mut let_through = 0;
        for_some(IN_FORCE, || {
            let answer = client.post(&path, &object).ok()?;
            let_through += usize::from(answer.is_success());
            (answer.status == 422).then_some(())
        })
        .unwrap();
        let _ =
            writeln!(table, "| {what} | {:.1} s, {let_through} writes let through |", started.elapsed().as_secs_f64());
    }
}

fn line(table: &mut String, what: &str, way: &str, it: &mut Measured) {
    let (median, writes) = (it.median().as_secs_f64() * 1e3, it.latencies.len());
    // The kernel counts in hundredths of a second.
    let cpu = 10.0 * f64::from(u32::try_from(it.ticks).unwrap()) / f64::from(u32::try_from(writes).unwrap());
    let _ = writeln!(table, "| {what} | {way} | {median:.1} ms | {cpu:.1} ms |");
}

/// Returns the time that the API server on a port has spent on the CPU, in clock ticks.
fn cpu_ticks(port: u16) -> u64 {
    let flag = format!("--secure-port={port}");
    let processes = fs::read_dir("/proc").expect("Linux has /proc").filter_map(Result::ok);
    let mut folders = processes.map(|entry| entry.path());
    let server = folders.find(|folder| {
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        let is_server = words.next().is_some_and(|word| word.ends_with(b"/kube-apiserver"));
        is_server && words.any(|word| word == flag.as_bytes())
    });
    let stat = fs::read_to_string(server.expect("the API server runs").join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
