//! `kube-unions patch` on a real API server: custom resources, for which the server refuses strategic merge patches, and
//! built-in types, for which the server's own answer is the reference.

mod edits;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{self, Objects};
use crate::support::cluster::Cluster;
use crate::support::kind::{Kind, parse};
use crate::support::kubectl::{Output, run};
use crate::support::process::{example, go_example};
use crate::support::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

/// Gateways in an API group of their own, without a webhook. Each test has objects of its own.
struct Gateways {
    cluster: &'static Cluster,
    kind: Kind<'static>,
}

impl Gateways {
    /// Returns the kind that the tests of this process share.
    fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Gateways> = OnceLock::new();
        let cluster = Cluster::shared()?;
        Some(SHARED.get_or_init(|| {
            let gateways = Self { cluster, kind: Kind::new(cluster, "gateway") };
            gateways.kind.apply_definition();
            let probe = || gateways.live(&["no-such-object", "--dry-run=client", "-p", "{}"]).stderr;
            let known = eventually(SETTLED, || probe().starts_with("Error from server (NotFound): "));
            assert!(known, "the new kind is never discovered: {}", probe());
            gateways
        }))
    }

    /// Runs `kube-unions patch live` on this resource.
    fn live(&self, arguments: &[&str]) -> Output {
        live(self.cluster, &[&[self.kind.resource().as_str()], arguments].concat())
    }

    /// Creates the sample under a name.
    fn create(&self, name: &str) -> Value {
        let mut object = parse(&self.kind.read("valid-dns.yaml"));
        object["metadata"] = json!({"name": name, "namespace": "default", "finalizers": ["example.com/one"]});
        self.kind.kubectl().run_with(&["create", "-f", "-"], &object.to_string()).accepted();
        self.kind.stored(name)
    }

    /// Creates an object, patches it by several processes at once, and then switches its union. A process gets the name of the CRD,
    /// the namespace, the name of the object and the patch.
    fn patch_beside_others(&self, name: &str, command: impl Fn() -> Command + Sync) {
        self.create(name);
        let patch = |patch: &Value| {
            let mut command = command();
            command.env("KUBECONFIG", self.cluster.control_plane.admin_kubeconfig());
            command.args([&self.kind.definition_name(), "default", name, &patch.to_string()]);
            let patched = run(command, "patch-custom-resource", "").accepted().json();
            assert_eq!(patched["metadata"]["name"], name);
        };
        let patch = &patch;
        let hosts: BTreeSet<String> = (0..6).map(|number| format!("host-{number}")).collect();
        thread::scope(|scope| {
            for host in &hosts {
                scope.spawn(move || patch(&json!({"spec": {"hosts": [host]}})));
            }
        });
        let stored: BTreeSet<String> = serde_json::from_value(self.kind.spec(name)["hosts"].clone()).unwrap();
        assert_eq!(stored, hosts);

        let exposure = json!({"$retainKeys": ["type", "nodePort"], "type": "NodePort", "nodePort": {"first": 30053}});
        patch(&json!({"spec": {"exposure": exposure}}));
        assert_eq!(self.kind.spec(name)["exposure"], json!({"type": "NodePort", "nodePort": {"first": 30053}}));
    }

    fn title(&self, name: &str) -> String {
        format!("gateway.{}/{name}", self.kind.group())
    }
}

fn live(cluster: &Cluster, arguments: &[&str]) -> Output {
    let kubeconfig = cluster.control_plane.admin_kubeconfig();
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    kube_unions(&[&["patch", "live", &kubeconfig], arguments].concat(), "")
}

#[test]
fn the_status_is_patched_through_its_subresource_alone() {
    let Some(cluster) = Cluster::shared() else { return };
    let kind = Kind::new(cluster, "rollout");
    kind.apply_definition();
    kind.apply("x", &json!({"strategy": {"type": "Recreate"}})).accepted();
    let patch = json!({"spec": {"strategy": {"type": "Canary"}}, "status": {"observedGeneration": 7}}).to_string();
    let resource = kind.resource();
    let patched = || live(cluster, &[&resource, "x", "--subresource=status", "-p", &patch]);
    let known = eventually(SETTLED, || patched().code == Some(0));
    assert!(known, "{:?}", patched());
    let stored = kind.stored("x");
    assert_eq!(
        (&stored["status"], &stored["spec"]["strategy"]["type"]),
        (&json!({"observedGeneration": 7}), &json!("Recreate"))
    );
}

#[test]
fn the_example_for_controllers_switches_a_union_and_loses_no_write_of_others() {
    let Some(gateways) = Gateways::shared() else { return };
    let program = example("kube-unions", "patch-custom-resource", "examples/patch-custom-resource.rs");
    gateways.patch_beside_others("example", || Command::new(&program));
}

#[test]
fn the_example_for_controllers_in_go_does_so_by_webassembly() {
    let Some(gateways) = Gateways::shared() else { return };
    let Some((program, module)) = go_example() else { return };
    gateways.patch_beside_others("go-example", || {
        let mut command = Command::new(&program);
        command.arg("-module").arg(&module);
        command
    });
}

#[test]
fn many_writers_at_once_lose_nothing() {
    const WRITERS: u16 = 12;
    let Some(gateways) = Gateways::shared() else { return };
    gateways.create("busy");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let port = json!({"$patchMergeKey": ["port", "protocol"], "port": 1000 + writer, "protocol": "UDP"});
                let patch = json!({"spec": {"hosts": [format!("h{writer}")], "ports": [port]}}).to_string();
                gateways.live(&["busy", "-p", &patch]).accepted();
            });
        }
    });
    let spec = gateways.kind.spec("busy");
    let hosts: BTreeSet<&str> = spec["hosts"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let ports = spec["ports"].as_array().unwrap();
    assert_eq!((hosts.len(), ports.len()), (usize::from(WRITERS), usize::from(WRITERS) + 2), "{spec}");
}

#[test]
fn a_dry_run_stores_nothing_and_output_is_as_kubectl_has_it() {
    let Some(gateways) = Gateways::shared() else { return };
    let before = gateways.create("dry");
    let title = gateways.title("dry");
    let patch = json!({"spec": {"hosts": ["a"], "exposure": {"type": "Internal"}}}).to_string();
    let run = |arguments: &[&str]| gateways.live(&[&["dry", "-p", &patch], arguments].concat()).accepted();
    let told = "spec.exposure.loadBalancer: cleared because `type` changed to \"Internal\"";
    assert_eq!(run(&["--dry-run=client"]).warned(&[told]).stdout, format!("{title} patched (dry run)\n"));
    assert_eq!(run(&["--dry-run=server"]).stdout, format!("{title} patched (server dry run)\n"));
    for format in ["client", "server"] {
        let dry = format!("--dry-run={format}");
        let object = run(&[&dry, "-o", "json"]).json();
        assert_eq!(object["spec"]["exposure"], json!({"type": "Internal"}));
        assert_eq!(object["spec"]["hosts"], json!(["a"]));
        assert_eq!(object["metadata"]["managedFields"], Value::Null);
        assert_eq!(parse(&run(&[&dry, "-o", "yaml"]).stdout)["spec"], object["spec"]);
        assert_eq!(run(&[&dry, "-o", "name"]).stdout, format!("{title}\n"));
    }
    assert_eq!(gateways.kind.stored("dry"), before);

    assert_eq!(run(&["--field-manager=somebody"]).stdout, format!("{title} patched\n"));
    let stored = gateways.kind.stored("dry");
    let managers = stored["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|it| it["manager"] == "somebody"), "{managers:?}");
    assert_eq!(run(&[]).stdout, format!("{title} patched (no change)\n"));
    assert_eq!(run(&["--dry-run=server"]).stdout, format!("{title} patched (no change) (server dry run)\n"));
    assert_eq!(gateways.kind.stored("dry"), stored);
}

#[test]
fn a_resource_is_named_as_kubectl_takes_it() {
    let Some(gateways) = Gateways::shared() else { return };
    gateways.create("named");
    let group = gateways.kind.group();
    for prefix in ["gateways", "gtw.v1", "Gateway"] {
        let resource = format!("{prefix}.{group}");
        for target in [vec![resource.clone(), "named".to_owned()], vec![format!("{resource}/named")]] {
            let target: Vec<&str> = target.iter().map(String::as_str).collect();
            let output = live(gateways.cluster, &[&target[..], &["-n", "default", "-p", "{}"]].concat()).accepted();
            assert_eq!(output.stdout, format!("{} patched (no change)\n", gateways.title("named")), "{target:?}");
        }
    }
    live(gateways.cluster, &["nothings", "a", "-p", "{}"])
        .refused("the server doesn't have a resource type `nothings`");
    gateways
        .live(&["named", "-n", "other", "-p", "{}"])
        .rejected(&format!("Error from server (NotFound): gateways.{group} \"named\" not found"));
}

#[test]
fn what_the_api_server_says_is_said_in_the_words_of_kubectl() {
    let Some(gateways) = Gateways::shared() else { return };
    gateways.create("wrong");
    for patch in [
        json!({"spec": {"exposure": {"type": "Nowhere"}}}),
        json!({"spec": {"exposure": {"loadBalancer": {"class": ""}, "type": "Nowhere"}, "hosts": [3]}}),
    ] {
        // The API server iterates over a map, so the order of its causes varies.
        let sorted = |output: &Output| {
            assert!(!output.succeeded(), "{output:?}");
            let mut lines: Vec<String> = output.stderr.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let theirs = gateways.kind.merge("wrong", &patch);
        assert_eq!(sorted(&gateways.live(&["wrong", "-p", &patch.to_string()])), sorted(&theirs));
    }
    let patch = json!({"spec": {"unknown": 1, "hosts": ["a"]}});
    let theirs = gateways.kind.merge("wrong", &patch).accepted().stderr;
    gateways.create("warned");
    let ours = gateways.live(&["warned", "-p", &patch.to_string()]).accepted().stderr;
    assert_eq!((ours.as_str(), ours.is_empty()), (theirs.as_str(), false));
}

/// Patches of one object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    object: Value,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    patch: Value,
    /// Returns true if the API server accepts the patch.
    #[serde(default)]
    refused: bool,
}

impl Suite {
    fn read(file: &str) -> Self {
        let path = fixtures::files::root().join("tests/e2e/patch").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_value(parse(&text)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Has the API server and `patch live` apply every patch in a dry run: both answers must be the same.
    fn faults(&self, cluster: &Cluster) -> Vec<String> {
        let objects = Objects::of(cluster);
        let created = objects.create(&self.object);
        assert!(created.is_success(), "{created:?}");
        let url = format!("{}?dryRun=All", builtin::path(&self.object));
        let target = format!("{}/patched", self.object["kind"].as_str().expect("an object has a kind"));
        let mut faults = Vec::new();
        for row in &self.rows {
            let theirs = objects.send("PATCH", &url, "application/strategic-merge-patch+json", &row.patch);
            let ours = live(cluster, &[&target, "-p", &row.patch.to_string(), "--dry-run=server", "-o", "json"]);
            let fault = if theirs.is_success() == row.refused {
                Some(format!("the API server says {}", theirs.body))
            } else if ours.succeeded() == row.refused {
                Some(format!("the API server says {}, and ours {ours:?}", theirs.body))
            } else if !row.refused && content(&ours.json()) != content(&theirs.body) {
                Some(format!("\nours   {}\ntheirs {}", content(&ours.json()), content(&theirs.body)))
            } else {
                None
            };
            faults.extend(fault.map(|fault| format!("{}: {fault}", row.name)));
        }
        faults
    }
}

/// Returns the object without the fields that the API server sets on each write.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("an object has metadata");
    metadata.retain(|name, _| !matches!(name.as_str(), "managedFields" | "resourceVersion" | "generation"));
    object
}

#[test]
fn patches_of_built_in_types_come_to_what_the_api_server_makes_of_them() {
    let Some(cluster) = Cluster::shared() else { return };
    let (mut rows, mut faults) = (0, Vec::new());
    for file in ["deployments.yaml", "services.yaml"] {
        let suite = Suite::read(file);
        rows += suite.rows.iter().filter(|row| !row.refused).count();
        faults.extend(suite.faults(cluster).into_iter().map(|fault| format!("{file}: {fault}")));
    }
    assert!(faults.is_empty(), "{} rows differ:\n{}", faults.len(), faults.join("\n"));
    assert!(rows >= 34, "only {rows} patches are taken by the API server");
}
