//! Latency of a write and CPU of the API server: without unions, by policies, and by the webhook on loopback. `make
//! bench-native` prints them. Nothing is asserted about them.
//!
//! `KUBE_UNIONS_BENCH_BEFORE=PATH` names another `kube-unions`, for example of an older commit, whose policies and webhook are measured in
//! turns with those of this one.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::limits::large_kinds;
use super::{Native, policy_message};
use crate::cluster::{Cluster, say};
use crate::compile::presets;
use crate::http::{Answer, Client};
use crate::kind::{documents, forget_unions};
use crate::webhook::{self, Webhook, kube_unions, run_program};
use fixtures::crds::{annotated, crd};
use fixtures::files::root;
use fixtures::policies::{SAMPLES, expressions};
use fixtures::reviews::version;
use fixtures::wait::for_some;

/// The deadline of policies of many kinds, far above the usual time.
const IN_FORCE: Duration = Duration::from_mins(5);

/// Rounds, and writes of each way in a round.
const ROUNDS: usize = 100;
const WRITES: usize = 6;

/// A way to enforce the unions of a kind.
enum Way {
    Nothing,
    /// Policies of this form, which this program compiles.
    Policies(&'static str, PathBuf),
    /// `None`: the webhook of the cluster.
    Webhook(Option<Box<Webhook>>),
}

impl Way {
    fn mutates(&self) -> bool {
        matches!(self, Self::Webhook(_) | Self::Policies("map" | "policies", _))
    }

    fn validates(&self) -> bool {
        matches!(self, Self::Webhook(_) | Self::Policies("vap" | "policies", _))
    }
}

/// Returns the path of the other program.
fn before() -> Option<PathBuf> {
    env::var_os("KUBE_UNIONS_BENCH_BEFORE").map(PathBuf::from)
}

/// The API server under test, and what was measured.
struct Bench {
    cluster: Cluster,
    /// The webhooks' processes.
    webhooks: Vec<u32>,
    table: String,
}

impl Bench {
    fn client(&self) -> &Client {
        self.cluster.control_plane.client()
    }

    fn apply(&self, object: &Value) {
        self.cluster.kubectl("bench").apply(&object.to_string()).accepted();
    }

    fn patch(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.client().send("PATCH", path, "application/strategic-merge-patch+json", body.as_bytes()).unwrap()
    }

    fn merge(&self, path: &str, body: &Value) -> Answer {
        self.client().send("PATCH", path, "application/merge-patch+json", body.to_string().as_bytes()).unwrap()
    }

    /// Sends writes of each way in turns, and prints a line for each way. `write` is given the position of the way and the number of
    /// the write.
    fn in_turns(&mut self, what: &str, ways: &[&str], write: impl Fn(&Self, usize, usize) -> Answer) {
        let mut measured: Vec<(Vec<Duration>, [u64; 2])> = ways.iter().map(|_| Default::default()).collect();
        let server = process_of(self.cluster.control_plane.port());
        let used = || [cpu_ticks(server), self.webhooks.iter().copied().map(cpu_ticks).sum()];
        for round in 0..ROUNDS {
            for turn in 0..ways.len() {
                let way = if round % 2 == 0 { turn } else { ways.len() - 1 - turn };
                let (latencies, ticks) = &mut measured[way];
                let start = used();
                for number in round * WRITES..(round + 1) * WRITES {
                    let started = Instant::now();
                    let answer = write(self, way, number);
                    latencies.push(started.elapsed());
                    assert!(answer.is_success(), "{what}, {}: {}", ways[way], answer.body);
                }
                for (ticks, (now, start)) in ticks.iter_mut().zip(used().into_iter().zip(start)) {
                    *ticks += now - start;
                }
            }
        }
        for (way, (mut latencies, ticks)) in ways.iter().zip(measured) {
            latencies.sort();
            let median = latencies[latencies.len() / 2].as_secs_f64() * 1e3;
            // The kernel counts in hundredths of a second.
            let writes = f64::from(u32::try_from(latencies.len()).unwrap());
            let [server, webhook] = ticks.map(|ticks| 10.0 * f64::from(u32::try_from(ticks).unwrap()) / writes);
            let _ = writeln!(self.table, "| {what} | {way} | {median:.1} ms | {server:.1} ms | {webhook:.2} ms |");
        }
    }
}

#[test]
#[ignore = "a benchmark: run `make bench-native`"]
fn writes_by_policies_and_by_the_webhook() {
    let Some(cluster) = Cluster::own() else { return };
    let webhooks = vec![cluster.webhook.pid()];
    let mut bench = Bench { cluster, webhooks, table: String::new() };
    bench.table.push_str("\n| write | way | median | API server's CPU a write | webhook's |\n|---|---|---|---|---|\n");
    custom_resources(&mut bench);
    deployments(&mut bench);
    windows(&mut bench);
    say(&bench.table);
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "type": {"type": "string", "enum": ["A", "B", "None"], "x-kubernetes-unions": union()},
        "a": {"type": "object", "properties": {"x": {"type": "string"}}}, "b": {"type": "string"}, "note": {"type": "string"}}}}})
}

fn union() -> Value {
    json!({"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}, "None": null}})
}

/// Returns the CRD of a kind with a union, and the same one without it.
fn definitions(group: &str) -> [Value; 2] {
    let whole = crd(group, "Thing", &[version("v1", &schema(), false)]);
    let mut plain = whole.clone();
    forget_unions(&mut plain);
    [whole, plain]
}

/// Returns the policies of a form that a program compiles for a CRD.
fn policies(program: &Path, form: &str, definition: &Value) -> Vec<Value> {
    let compiled = run_program(program, &["compile", "--to", form, "--from", "-"], &definition.to_string()).accepted();
    documents(&compiled.stdout)
}

/// Measures writes of a kind of its own for each way.
fn custom_resources(bench: &mut Bench) {
    let this = webhook::binary().unwrap();
    let policies_by = |form, program: &Path| Way::Policies(form, program.to_owned());
    let mut ways = vec![
        ("nothing", Way::Nothing),
        ("validating policies", policies_by("vap", &this)),
        ("mutating policy", policies_by("map", &this)),
        ("both policies", policies_by("policies", &this)),
        ("webhook on loopback", Way::Webhook(None)),
    ];
    if let Some(program) = before() {
        ways.push(("both policies, before", policies_by("policies", &program)));
        let webhook = Webhook::of_program(&program, &bench.cluster.control_plane.webhook_kubeconfig()).unwrap();
        bench.webhooks.push(webhook.pid());
        ways.push(("webhook on loopback, before", Way::Webhook(Some(Box::new(webhook)))));
    }
    let group = |number: usize| format!("bench{number}.example");
    let things = |number: usize| format!("/apis/{}/v1/namespaces/default/things", group(number));
    let object = |number: usize, name: &str| {
        json!({"apiVersion": format!("{}/v1", group(number)), "kind": "Thing", "metadata": {"name": name},
            "spec": {"type": "A", "a": {"x": "1"}, "note": "0"}})
    };
    for (number, (_, way)) in ways.iter().enumerate() {
        let [whole, mut plain] = definitions(&group(number));
        if let Way::Webhook(other) = way {
            let declared = json!({"v1": {"/properties/spec/properties/type": union()}}).to_string();
            plain = annotated(&group(number), "Thing", &[version("v1", &schema(), false)], &declared);
            forget_unions(&mut plain);
            let webhook = other.as_deref().unwrap_or(&bench.cluster.webhook);
            bench.apply(&webhook.registration(&group(number)));
        }
        bench.apply(&plain);
        let create = || bench.client().post(&things(number), &object(number, "x")).ok()?.is_success().then_some(());
        for_some(IN_FORCE, create).unwrap();
        if let Way::Policies(form, program) = way {
            for policy in policies(program, form, &whole) {
                bench.apply(&policy);
            }
        }
        let dry = format!("{}/x?dryRun=All", things(number));
        if way.validates() {
            let bad = json!({"spec": {"b": "v"}});
            for_some(IN_FORCE, || (bench.merge(&dry, &bad).status == 422).then_some(())).unwrap();
        }
        if way.mutates() {
            let switch = json!({"spec": {"type": "None"}});
            for_some(IN_FORCE, || bench.merge(&dry, &switch).body["spec"]["a"].is_null().then_some(())).unwrap();
        }
    }
    let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
    bench.in_turns("the choice is switched", &names, |bench, way, number| {
        let (mut spec, old) = match number % 2 {
            0 => (json!({"type": "B", "b": "v"}), "a"),
            _ => (json!({"type": "A", "a": {"x": "1"}}), "b"),
        };
        // Without mutation a client has to clear the member itself.
        if !ways[way].1.mutates() {
            spec[old] = Value::Null;
        }
        bench.merge(&format!("{}/x", things(way)), &json!({"spec": spec}))
    });
    bench.in_turns("another field changes", &names, |bench, way, number| {
        bench.merge(&format!("{}/x", things(way)), &json!({"spec": {"note": number.to_string()}}))
    });
    bench.in_turns("an object is created", &names, |bench, way, number| {
        let path = format!("{}?dryRun=All", things(way));
        bench.client().post(&path, &object(way, &format!("n{number}"))).unwrap()
    });
    // The other webhook ends with its way.
    bench.webhooks.truncate(1);
}

/// Returns the patch of a write, by its number.
type Change = fn(usize) -> Value;

/// Measures writes of a Deployment in a namespace that no policy is about, and in one for the policies of all presets.
fn deployments(bench: &mut Bench) {
    let mut ways = vec![("nothing", "nothing", None)];
    ways.push(("policies of the presets", "presets", Some(webhook::binary().unwrap())));
    ways.extend(before().map(|program| ("policies of the presets, before", "before", Some(program))));
    let path = |namespace: &str| format!("/apis/apps/v1/namespaces/{namespace}/deployments/x");
    for (_, namespace, program) in &ways {
        bench.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        bench.apply(&workload(namespace));
        let Some(program) = program else { continue };
        for (_, text) in presets_by(program, &bench.cluster) {
            for policy in documents(&text) {
                bench.apply(&only_for(namespace, policy));
            }
        }
        let dry = format!("{}?dryRun=All", path(namespace));
        for change in [strategy(0), env(0)] {
            let answer = for_some(IN_FORCE, || Some(bench.patch(&dry, &change)).filter(Answer::is_success));
            assert!(answer.is_some(), "{namespace}: the policies of the presets are not in force for {change}");
        }
    }
    let names: Vec<&str> = ways.iter().map(|(name, ..)| *name).collect();
    let writes: [(&str, Change); 3] = [
        ("the strategy of a Deployment is switched", strategy),
        ("one of 35 environment variables is switched", env),
        ("the image of a Deployment changes", |number| of_container(&json!({"image": format!("i:{number}")}))),
    ];
    for (what, write) in writes {
        bench.in_turns(what, &names, |bench, way, number| {
            let mut change = write(number);
            // Without mutation a client has to clear the member itself.
            if ways[way].2.is_none() {
                if let Some(strategy) = change.pointer_mut("/spec/strategy").filter(|it| it["type"] == "Recreate") {
                    strategy["rollingUpdate"] = Value::Null;
                }
                if let Some(variable) = change.pointer_mut("/spec/template/spec/containers/0/env/0") {
                    variable[["value", "valueFrom"][number % 2]] = Value::Null;
                }
            }
            bench.patch(&path(ways[way].1), &change)
        });
    }
}

/// Returns the policies that a program compiles for the presets, by file. Each preset had policies of its own before.
fn presets_by(program: &Path, cluster: &Cluster) -> Vec<(String, String)> {
    let alone = presets::FILES.iter().flat_map(|(_, of)| of.chunks(1)).map(|of| (of[0], of));
    let is_before = before().is_some_and(|before| before == program);
    let files: Vec<(&str, &[&str])> = if is_before { alone.collect() } else { presets::FILES.to_vec() };
    let compiled =
        |(file, of): (&str, &[&str])| (file.to_owned(), presets::compiled(program, &cluster.control_plane, file, of));
    files.into_iter().map(compiled).collect()
}

/// Returns the policies that a program compiles for large kinds, by name.
fn large_by(program: &Path) -> impl Iterator<Item = (String, String)> {
    let compiled = |definition: &Value| {
        run_program(program, &["compile", "--to=policies", "--from=-"], &definition.to_string()).accepted().stdout
    };
    large_kinds().into_iter().map(move |(name, definition)| (name.to_owned(), compiled(&definition)))
}

/// Returns the policies that a program compiles for the samples, by name.
fn samples_by(program: &Path) -> Vec<(String, String)> {
    let compiled = |name: &str| {
        let folder = root().join("manifests/samples").join(name);
        let arguments = ["compile", "--to=policies", "--from", folder.to_str().unwrap()];
        (format!("sample {name}"), run_program(program, &arguments, "").accepted().stdout)
    };
    SAMPLES.map(compiled).into()
}

#[test]
#[ignore = "a benchmark: run `make bench-native`"]
fn sizes_of_policies_and_what_it_costs_to_accept_them() {
    let mut table = String::from(
        "\n| policies | by | bytes | objects | longest expression | API server's CPU to accept them |\n|---|---|---|---|---|---|\n",
    );
    let programs = before().map(|program| ("before", program)).into_iter().chain([("now", webhook::binary().unwrap())]);
    for (by, program) in programs {
        let Some(cluster) = Cluster::own() else { return };
        let server = process_of(cluster.control_plane.port());
        let presets = presets_by(&program, &cluster);
        let all = presets.iter().map(|(_, text)| &**text).collect::<Vec<_>>().join("---\n");
        let of_kinds = samples_by(&program).into_iter().chain(large_by(&program));
        for (name, text) in [("all presets".to_owned(), all)].into_iter().chain(presets).chain(of_kinds) {
            let objects = documents(&text);
            let longest = objects.iter().flat_map(expressions).map(str::len).max().unwrap_or_default();
            let start = settled(server);
            for object in &objects {
                let named = only_for(&format!("{by}-{}", name.replace([' ', '.'], "-")), object.clone());
                // An apply would store the text once more, in an annotation.
                cluster.kubectl("bench").run_with(&["create", "-f", "-"], &named.to_string()).accepted();
            }
            let cpu = Duration::from_millis(10 * (settled(server) - start)).as_secs_f64();
            let _ = writeln!(table, "| {name} | {by} | {} | {} | {longest} | {cpu:.2} s |", text.len(), objects.len());
        }
    }
    say(&table);
}

/// Returns the time that an API server has spent on the CPU when nothing is left to do: it compiles policies after it has answered.
fn settled(server: u32) -> u64 {
    let mut before = cpu_ticks(server);
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = cpu_ticks(server);
        if now - before < 10 {
            return now;
        }
        before = now;
    }
}

fn workload(namespace: &str) -> Value {
    let env: Vec<_> = (0..35).map(|number| json!({"name": format!("E{number}"), "value": "v"})).collect();
    let volumes: Vec<_> = (0..5).map(|number| json!({"name": format!("v{number}"), "emptyDir": {}})).collect();
    let spec = json!({"containers": [{"name": "c", "image": "i", "env": env}], "volumes": volumes});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": spec}}})
}

fn of_container(change: &Value) -> Value {
    let mut container = change.clone();
    container["name"] = "c".into();
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

fn strategy(number: usize) -> Value {
    json!({"spec": {"strategy": {"type": if number.is_multiple_of(2) { "Recreate" } else { "RollingUpdate" }}}})
}

fn env(number: usize) -> Value {
    let variable = match number % 2 {
        0 => json!({"name": "E3", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        _ => json!({"name": "E3", "value": "v"}),
    };
    of_container(&json!({"env": [variable]}))
}

/// Returns a policy or a binding under a name of its own, for one namespace.
fn only_for(namespace: &str, mut policy: Value) -> Value {
    for name in ["/metadata/name", "/spec/policyName"] {
        if let Some(name) = policy.pointer_mut(name) {
            *name = format!("{namespace}-{}", name.as_str().unwrap()).into();
        }
    }
    if let Some(selector) = policy.pointer_mut("/spec/matchConstraints/namespaceSelector") {
        *selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    }
    policy
}

/// Measures how long a new kind, and a kind with a new policy, are not covered.
fn windows(bench: &mut Bench) {
    bench.table.push_str("\n| window | until the first denial |\n|---|---|\n");
    for (what, kind_first) in
        [("policies stand when the kind is created", false), ("policies are created for a kind", true)]
    {
        let group = if kind_first { "window1.example" } else { "window0.example" };
        let [whole, plain] = definitions(group);
        let path = format!("/apis/{group}/v1/namespaces/default/things?dryRun=All");
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "x"},
            "spec": {"type": "A", "a": {}, "b": "v"}});
        let compiled = policies(&webhook::binary().unwrap(), "policies", &whole);
        let install = || compiled.iter().for_each(|policy| bench.apply(policy));
        let create = || bench.apply(&plain);
        let (first, second): (&dyn Fn(), &dyn Fn()) =
            if kind_first { (&create, &install) } else { (&install, &create) };
        first();
        if kind_first {
            for_some(IN_FORCE, || bench.client().post(&path, &object).ok()?.is_success().then_some(())).unwrap();
        }
        second();
        let started = Instant::now();
        let mut let_through = 0;
        for_some(IN_FORCE, || {
            let answer = bench.client().post(&path, &object).ok()?;
            let_through += usize::from(answer.is_success());
            (answer.status == 422).then_some(())
        })
        .unwrap();
        let seconds = started.elapsed().as_secs_f64();
        let _ = writeln!(bench.table, "| {what} | {seconds:.1} s, {let_through} writes let through |");
    }
}

/// Kinds that have policies at the same time.
const KINDS: usize = 200;

#[test]
#[ignore = "takes longer than other tests: run `make bench-native`"]
fn two_hundred_kinds_have_policies_at_once() {
    let Some(native) = Native::start() else { return };
    let kinds: Vec<(String, String)> =
        (0..KINDS).map(|number| (format!("many{}.example", number % 20), format!("Thing{number}"))).collect();
    let definitions: Vec<Value> =
        kinds.iter().map(|(group, kind)| crd(group, kind, &[version("v1", &schema(), false)])).collect();
    let stream: Vec<String> = definitions.iter().map(Value::to_string).collect();
    let compiled = kube_unions(&["compile", "--to=policies", "--from=-"], &stream.join("\n---\n")).accepted();
    assert!(compiled.stderr.is_empty(), "{compiled:?}");
    let policies = documents(&compiled.stdout);
    let number_of = |kind: &str| policies.iter().filter(|policy| policy["kind"] == kind).count();
    assert_eq!((number_of("MutatingAdmissionPolicy"), number_of("ValidatingAdmissionPolicy")), (KINDS, KINDS));

    let server = process_of(native.control_plane().port());
    let mut table = String::from("\n| what | time | API server's CPU |\n|---|---|---|\n");
    let mut step = |what: &str, work: &dyn Fn()| {
        let (started, ticks) = (Instant::now(), cpu_ticks(server));
        work();
        let (time, cpu) = (started.elapsed().as_secs_f64(), Duration::from_millis(10 * (cpu_ticks(server) - ticks)));
        let _ = writeln!(table, "| {what} | {time:.1} s | {:.1} s |", cpu.as_secs_f64());
    };
    let things =
        |(group, kind): &(String, String)| format!("/apis/{group}/v1/namespaces/default/{}s", kind.to_lowercase());
    let object = |(group, kind): &(String, String), spec: &Value| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    step("200 CRDs are accepted and served", &|| {
        for definition in &definitions {
            let mut plain = definition.clone();
            forget_unions(&mut plain);
            native.apply(&plain);
        }
        for kind in &kinds {
            native.wait_until_served(&things(kind));
        }
    });
    step("an object of each kind is stored", &|| {
        for kind in &kinds {
            let answer = native.send("POST", &things(kind), &object(kind, &json!({"type": "A", "a": {"x": "1"}})));
            assert!(answer.is_success(), "{}", answer.body);
        }
    });
    step("their policies are accepted", &|| policies.iter().for_each(|policy| native.apply(policy)));
    step("each kind refuses a wrong object, and clears a member", &|| {
        for kind in &kinds {
            let wrong = object(kind, &json!({"type": "A", "a": {}, "b": "v"}));
            let path = format!("{}?dryRun=All", things(kind));
            let refused = for_some(IN_FORCE, || {
                let answer = native.send("POST", &path, &wrong);
                policy_message(&answer).map(str::to_owned)
            });
            let words = "spec.b: Forbidden: may only be specified when `type` is \"B\"";
            assert_eq!(refused.as_deref(), Some(words), "{kind:?}");
            let path = format!("{}/x", things(kind));
            let body = json!({"spec": {"type": "B", "b": "v"}}).to_string();
            let spec = for_some(IN_FORCE, || {
                let patched = native.client().send("PATCH", &path, "application/merge-patch+json", body.as_bytes());
                Some(patched.unwrap()).filter(Answer::is_success).map(|answer| answer.body["spec"].clone())
            });
            assert_eq!(spec, Some(json!({"type": "B", "b": "v"})), "{kind:?}");
        }
    });
    say(&table);
}

/// Returns the process of the API server on a port.
fn process_of(port: u16) -> u32 {
    let flag = format!("--secure-port={port}");
    let processes = fs::read_dir("/proc").expect("Linux has /proc").filter_map(Result::ok);
    let mut folders = processes.map(|entry| entry.path());
    let server = folders.find(|folder| {
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        let is_server = words.next().is_some_and(|word| word.ends_with(b"/kube-apiserver"));
        is_server && words.any(|word| word == flag.as_bytes())
    });
    server.and_then(|folder| folder.file_name()?.to_str()?.parse().ok()).expect("the API server runs")
}

/// Returns the processor time of a process, in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
