//! Latency and CPU of a write: without unions, by policies, and by the webhook, which is sent every write or those that touch a union, on
//! loopback and behind a hop like that of a Service. `make bench-native` prints the table of the guide. Nothing is asserted about it.

mod hop;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{IN_FORCE, collection};
use crate::builtin::{POLICIES, apply_presets};
use crate::support::cluster::{Cluster, say};
use crate::support::http::Answer;
use crate::support::kind::{apply, documents, forget_unions};
use crate::support::process::seconds_of_cpu;
use crate::support::webhook::{Endpoint, kube_unions};
use fixtures::crds::{annotated, crd};
use fixtures::reviews::version;
use fixtures::wait::eventually;

/// Writes of each way.
const WRITES: usize = 600;

/// Writes of one way before it is the turn of the next.
const TURN: usize = 20;

/// A way to enforce unions.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Nothing,
    /// The form of compiled policies.
    Policies(&'static str),
    Webhook {
        /// True if only creates and writes that touch a union are sent.
        has_condition: bool,
        /// True if the API server reaches it by a [`hop`].
        is_behind_hop: bool,
    },
}

/// Each way to reach the webhook.
const WEBHOOKS: [Way; 4] = [
    Way::Webhook { has_condition: false, is_behind_hop: false },
    Way::Webhook { has_condition: true, is_behind_hop: false },
    Way::Webhook { has_condition: false, is_behind_hop: true },
    Way::Webhook { has_condition: true, is_behind_hop: true },
];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Policies("vap") => "validating policies",
            Self::Policies("map") => "mutating policy",
            Self::Policies("presets") => "policies of the presets",
            Self::Policies(_) => "both policies",
            Self::Webhook { has_condition: false, is_behind_hop: false } => "webhook, every write is sent",
            Self::Webhook { has_condition: true, is_behind_hop: false } => "webhook",
            Self::Webhook { has_condition: false, is_behind_hop: true } => "webhook behind a hop, every write is sent",
            Self::Webhook { has_condition: true, is_behind_hop: true } => "webhook behind a hop",
        }
    }

    fn mutates(self) -> bool {
        !matches!(self, Self::Nothing | Self::Policies("vap"))
    }

    fn denies(self) -> bool {
        !matches!(self, Self::Nothing | Self::Policies("map"))
    }
}

/// The webhook of a cluster, and a hop in front of it.
struct Reached {
    at_once: Endpoint,
    by_hop: Endpoint,
}

impl Reached {
    fn new(cluster: &Cluster) -> Self {
        let by_hop = Endpoint::new(hop::start(cluster.webhook.port()), cluster.webhook.ca());
        Self { at_once: cluster.webhook.endpoint(), by_hop }
    }

    /// Returns the configurations of a way, with these fields in each entry.
    fn registration(&self, way: Way, name: &str, rule: &Value, condition: &str, entry: &Value) -> Value {
        let Way::Webhook { has_condition, is_behind_hop } = way else { panic!("{} has no webhook", way.name()) };
        let endpoint = if is_behind_hop { &self.by_hop } else { &self.at_once };
        let mut configurations = endpoint.registration_of(name, std::slice::from_ref(rule), "Fail");
        for configuration in configurations["items"].as_array_mut().expect("a list") {
            json_patch::merge(&mut configuration["webhooks"][0], entry);
            if has_condition {
                configuration["webhooks"][0]["matchConditions"] =
                    json!([{"name": "touches-a-union", "expression": condition}]);
            }
        }
        configurations
    }
}

/// A change of an object, by its number.
type Change<'c> = &'c dyn Fn(usize) -> Value;

/// The costs of the writes of a way.
#[derive(Default)]
struct WriteCosts {
    latencies: Vec<Duration>,
    /// Seconds of the API server and of the webhook.
    cpu: [f64; 2],
}

/// Sends writes of each way in turns. Returns a row of the table for each.
fn in_turns(cluster: &Cluster, about: &str, ways: &[Way], write: impl Fn(usize, usize) -> Answer) -> String {
    let cpu = || [cluster.control_plane.api_server_pid(), cluster.webhook.pid()].map(seconds_of_cpu);
    let mut measured: Vec<WriteCosts> = ways.iter().map(|_| WriteCosts::default()).collect();
    for turn in 0..WRITES / TURN {
        for way in 0..ways.len() {
            let way = if turn % 2 == 0 { way } else { ways.len() - 1 - way };
            let costs = &mut measured[way];
            let before = cpu();
            for number in turn * TURN..(turn + 1) * TURN {
                let started = Instant::now();
                let answer = write(way, number);
                costs.latencies.push(started.elapsed());
                assert!(answer.is_success(), "{about}, {}: {}", ways[way].name(), answer.body);
            }
            for (sum, (before, after)) in costs.cpu.iter_mut().zip(before.into_iter().zip(cpu())) {
                *sum += after - before;
            }
        }
    }
    let mut plain = None;
    let row = |(mut costs, way): (WriteCosts, &Way)| {
        costs.latencies.sort();
        let median = costs.latencies[WRITES / 2].as_secs_f64() * 1e3;
        let [of_server, of_webhook] =
            costs.cpu.map(|seconds| seconds * 1e3 / f64::from(u32::try_from(WRITES).expect("not that many")));
        let factor = median / *plain.get_or_insert(median);
        let way = way.name();
        format!("| {about} | {way} | {median:.1} | {factor:.1} | {of_server:.1} | {of_webhook:.2} |\n")
    };
    measured.into_iter().zip(ways).map(row).collect()
}

/// Returns the condition of a kind, as `explain` prints it.
fn condition(arguments: &[&str], input: &str) -> String {
    let explained = kube_unions(&[&["explain", "-o", "json"], arguments].concat(), input).accepted().json();
    explained[0]["condition"].as_str().expect("the kind has a condition").to_owned()
}

#[test]
#[ignore = "a benchmark: run `make bench-native`"]
fn writes_by_policies_and_by_the_webhook() {
    let Some(cluster) = Cluster::own() else { return };
    let reached = Reached::new(&cluster);
    let mut table = String::from(
        "\n| write | way | ms (median) | factor | CPU of the API server, ms | CPU of the webhook, ms |\n\
         |---|---|---|---|---|---|\n",
    );
    custom_resources(&cluster, &reached, &mut table);
    deployments(&cluster, &reached, &mut table);
    say(&table);
}

fn merge(cluster: &Cluster, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    cluster.client().send("PATCH", path, "application/merge-patch+json", body.as_bytes()).unwrap()
}

/// Measures writes of a kind of its own for each way.
fn custom_resources(cluster: &Cluster, reached: &Reached, table: &mut String) {
    let without = [Way::Nothing, Way::Policies("vap"), Way::Policies("map"), Way::Policies("policies")];
    let ways = [&without[..], &WEBHOOKS].concat();
    let union = json!({"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}}});
    let text = json!({"type": "string"});
    let mut fields = json!({"type": text, "a": text, "b": text, "note": text});
    fields["type"]["x-kubernetes-unions"] = union.clone();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let group = |way: usize| format!("bench{way}.example");
    let path = |way: usize| format!("/apis/{}/v1/namespaces/default/things/x", group(way));
    for (number, way) in ways.iter().copied().enumerate() {
        let group = group(number);
        let whole = crd(&group, "Thing", &[version("v1", &schema, false)]);
        let mut plain = whole.clone();
        if let Way::Webhook { .. } = way {
            let declared = json!({"v1": {"/properties/spec/properties/type": union}}).to_string();
            plain = annotated(&group, "Thing", &[version("v1", &schema, false)], &declared);
            let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "resources": ["*", "*/status"],
                "operations": ["CREATE", "UPDATE"]});
            let condition = condition(&["--from=-"], &whole.to_string());
            apply(cluster.client(), &reached.registration(way, &group, &rule, &condition, &json!({})));
        }
        forget_unions(&mut plain["spec"]);
        apply(cluster.client(), &plain);
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing",
            "metadata": {"name": "x", "namespace": "default"}, "spec": {"type": "A", "a": "0"}});
        let things = path(number).replace("/x", "");
        assert!(eventually(IN_FORCE, || cluster.client().post(&things, &object).unwrap().is_success()));
        if let Way::Policies(form) = way {
            let arguments = ["compile", "--to", form, "--from=-", "--ratcheting=warn"];
            for policy in documents(&kube_unions(&arguments, &whole.to_string()).accepted().stdout) {
                assert!(cluster.client().post(&collection(&policy), &policy).unwrap().is_success());
            }
        }
        let dry = format!("{}?dryRun=All", path(number));
        let switches = || merge(cluster, &dry, &json!({"spec": {"type": "B", "b": "0"}})).body["spec"]["a"].is_null();
        let refuses = || merge(cluster, &dry, &json!({"spec": {"b": "0"}})).status == 422;
        let in_force = || (!way.mutates() || switches()) && (!way.denies() || refuses());
        assert!(eventually(IN_FORCE, in_force), "{}", way.name());
    }
    let switch = |number: usize| match number % 2 {
        0 => json!({"type": "B", "b": "v", "a": null}),
        _ => json!({"type": "A", "a": "v", "b": null}),
    };
    let changes: [(&str, Change<'_>); 2] = [
        ("custom resource, the choice is switched", &switch),
        ("custom resource, another field changes", &|number| json!({"note": number.to_string()})),
    ];
    for (about, change) in changes {
        let rows = in_turns(cluster, about, &ways, |way, number| {
            let mut change = change(number);
            // Without mutation a client has to clear the member itself.
            if ways[way].mutates() {
                change.as_object_mut().expect("fields").retain(|_, value| !value.is_null());
            }
            merge(cluster, &path(way), &json!({"spec": change}))
        });
        table.push_str(&rows);
    }
}

/// Measures writes of a Deployment for each way, in a namespace of its own.
fn deployments(cluster: &Cluster, reached: &Reached, table: &mut String) {
    let ways = [&[Way::Nothing, Way::Policies("presets")][..], &WEBHOOKS].concat();
    let kubectl = cluster.kubectl("bench");
    apply_presets(cluster);
    kubectl.run(&["apply", "-f", POLICIES]).accepted();
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE", "UPDATE"]});
    let condition = condition(&["deployments.apps"], "");
    for (number, way) in ways.iter().copied().enumerate() {
        let namespace = format!("bench{number}");
        kubectl.run(&["create", "namespace", &namespace]).accepted();
        if !matches!(way, Way::Policies(_)) {
            kubectl.run(&["label", "namespace", &namespace, "kube-unions.dev/enforcement=disabled"]).accepted();
        }
        if let Way::Webhook { .. } = way {
            let only = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}});
            apply(cluster.client(), &reached.registration(way, &format!("{namespace}.apps"), &rule, &condition, &only));
        }
    }
    let env: Vec<_> = (0..35).map(|number| json!({"name": format!("E{number}"), "value": "v"})).collect();
    let pods = json!({"containers": [{"name": "c", "image": "i", "env": env}]});
    let path = |way: usize| format!("/apis/apps/v1/namespaces/bench{way}/deployments/x");
    let send = |path: &str, spec: &Value| {
        let body = json!({"spec": spec}).to_string();
        cluster.client().send("PATCH", path, "application/strategic-merge-patch+json", body.as_bytes()).unwrap()
    };
    for way in 0..ways.len() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": pods}}});
        let created = cluster.client().post(&path(way).replace("/x", ""), &deployment).unwrap();
        assert!(created.is_success(), "{}", created.body);
    }
    let recreate = json!({"strategy": {"type": "Recreate"}});
    for (number, way) in ways.iter().enumerate().filter(|(_, way)| way.mutates()) {
        let dry = format!("{}?dryRun=All", path(number));
        assert!(eventually(IN_FORCE, || send(&dry, &recreate).is_success()), "{}", way.name());
    }
    let switch = |number: usize| match number % 2 {
        0 => json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
        _ => json!({"strategy": {"type": "RollingUpdate"}}),
    };
    let image =
        |number: usize| json!({"template": {"spec": {"containers": [{"name": "c", "image": format!("i:{number}")}]}}});
    let changes: [(&str, Change<'_>); 2] =
        [("Deployment, the strategy is switched", &switch), ("Deployment, the image changes", &image)];
    for (about, change) in changes {
        let rows = in_turns(cluster, about, &ways, |way, number| {
            let mut change = change(number);
            if ways[way].mutates()
                && let Some(strategy) = change.pointer_mut("/strategy")
            {
                strategy.as_object_mut().expect("fields").remove("rollingUpdate");
            }
            send(&path(way), &change)
        });
        table.push_str(&rows);
    }
}
