//! `kube-unions audit` of a real cluster that was used before anybody enforced unions there.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster::{AnyCluster, Cluster, say};
use crate::kind::Kind;
use crate::kubectl::Output;
use crate::lending::Lent;
use crate::version::{Feature, lacks};
use crate::webhook::{binary, kube_unions};
use fixtures::reviews::declaration;
use fixtures::wait::{SETTLED, eventually};

const ROLLOUTS: usize = 2000;
const INVALID: usize = 37;
/// The Rollouts in the namespace `few`.
const FEW: usize = 200;
const BACKUPS: usize = 40;
const SOURCES: usize = 1000;

/// Connections that objects are created through.
const CONNECTIONS: usize = 8;

/// A control plane without a webhook, and what was stored there: Rollouts, a few of them invalid; Backups, a few to be
/// changed; Sources, all of them invalid; a `DaemonSet` that an update has left behind.
struct Stored {
    control_plane: Lent,
    cluster: AnyCluster,
    /// The groups of the kinds.
    rollouts: String,
    backups: String,
    sources: String,
}

impl Stored {
    /// Returns the objects that the tests of this process share and only read.
    fn shared() -> Option<&'static Self> {
        static STORED: OnceLock<Option<Stored>> = OnceLock::new();
        STORED.get_or_init(Self::create).as_ref()
    }

    fn create() -> Option<Self> {
        let control_plane = Cluster::control_plane_alone()?;
        let cluster = AnyCluster::of_control_plane(&control_plane);
        control_plane.kubectl("setup").run(&["create", "namespace", "few"]).accepted();
        let install = |sample: &str| {
            let kind = Kind::new(&cluster, sample);
            kind.apply_definition();
            kind.group().to_owned()
        };
        let (rollouts, backups, sources) = (install("rollout"), install("backup"), install("source"));
        let stored = Self { control_plane, cluster, rollouts, backups, sources };
        let begun = Instant::now();
        let kind = |sample: &str, group: &str| Kind::in_group(&stored.cluster, sample, group.to_owned());
        stored.post(&kind("rollout", &stored.rollouts), ROLLOUTS, &|number| {
            (namespace_of(number), if is_invalid(number) { broken_rollout() } else { rollout() })
        });
        stored.post(&kind("backup", &stored.backups), BACKUPS, &|number| {
            let s3 = json!({"bucket": "b"});
            let destination = match number {
                0..10 => json!({"s3": s3}),
                10..13 => json!({"type": "GCS", "s3": s3}),
                _ => json!({"type": "S3", "s3": s3}),
            };
            ("default", json!({"destination": destination}))
        });
        stored.post(&kind("source", &stored.sources), SOURCES, &|_| ("default", broken_source()));
        let objects = ROLLOUTS + BACKUPS + SOURCES;
        say(&format!("{objects} objects created in {:.1} s", begun.elapsed().as_secs_f64()));
        stored.apply_daemon_set();
        Some(stored)
    }

    /// Creates objects through many connections at once: for each number its namespace and spec.
    fn post(&self, kind: &Kind<'_>, objects: usize, spec: &(dyn Fn(usize) -> (&'static str, Value) + Sync)) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let client = self.control_plane.new_client();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= objects {
                            break;
                        }
                        let (namespace, spec) = spec(number);
                        let mut object = kind.object(&name(number), &spec);
                        object["metadata"]["namespace"] = namespace.into();
                        let path = kind.path("").replace("/default/", &format!("/{namespace}/"));
                        let answer = client.post(&path, &object).expect("the API server answers");
                        assert!(answer.is_success(), "{answer:?}");
                    }
                });
            }
        });
    }

    /// A `DaemonSet` with what an update strategy has left over, which an API server lets stand; and what says that it is wrong.
    fn apply_daemon_set(&self) {
        let kubectl = self.control_plane.kubectl("setup");
        let labels = json!({"app": "a"});
        let daemon_set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "left-over", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
                "updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}},
            },
        });
        kubectl.apply(&daemon_set.to_string()).accepted();
        let members = json!({"RollingUpdate": {"name": "rollingUpdate", "optional": true}, "OnDelete": {}});
        let union = json!({"path": "spec.updateStrategy", "discriminator": "type", "fieldMembers": members});
        let spec = json!({"target": {"versions": ["v1"]}, "unions": [union]});
        let declaration = declaration("daemonset-strategy", "apps", "DaemonSet", &spec);
        kubectl.apply(&declaration.to_string()).accepted();
    }

    fn audit(&self, arguments: &[&str]) -> Output {
        audit(&self.control_plane.admin_kubeconfig(), arguments)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary().unwrap_or_else(|message| panic!("{message}")));
        command.arg("audit").arg(format!("--kubeconfig={}", self.control_plane.admin_kubeconfig().display()));
        command.args(arguments).env("NO_COLOR", "1").env_remove("KUBECONFIG").stdin(Stdio::null());
        command
    }

    /// Returns the full name of a kind, which no other test shares.
    fn of(short: &str, group: &str) -> String {
        format!("{short}.{group}")
    }

    fn rollouts(&self) -> String {
        Self::of("ro", &self.rollouts)
    }
}

fn audit(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    kube_unions(&[&["audit", &kubeconfig], arguments].concat(), "")
}

fn name(number: usize) -> String {
    format!("o{number:05}")
}

/// Every tenth is in the namespace `few`, some invalid ones among them.
fn namespace_of(number: usize) -> &'static str {
    if number % (ROLLOUTS / FEW) == 7 { "few" } else { "default" }
}

/// 37 of 2,000, evenly.
fn is_invalid(number: usize) -> bool {
    const EVERY: usize = ROLLOUTS / INVALID;
    number % EVERY == EVERY / 2 && number / EVERY < INVALID
}

fn rollout() -> Value {
    json!({"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}})
}

fn broken_rollout() -> Value {
    json!({"replicas": 1, "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}})
}

fn broken_source() -> Value {
    json!({"git": {"url": "https://example.com/a"}, "bucket": {"name": "a"}})
}

/// `namespace/name` of all invalid Rollouts.
fn invalid_rollouts() -> BTreeSet<String> {
    let invalid: BTreeSet<_> = (0..ROLLOUTS)
        .filter(|number| is_invalid(*number))
        .map(|number| format!("{}/{}", namespace_of(number), name(number)))
        .collect();
    assert_eq!(invalid.len(), INVALID);
    invalid
}

/// `namespace/name` of the findings of a sort in a JSON report.
fn found(report: &Value, sort: &str) -> BTreeSet<String> {
    let findings = report["findings"].as_array().expect("a report has findings");
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    findings
        .iter()
        .filter(|finding| finding["finding"] == sort)
        .map(|finding| format!("{}/{}", text(finding, "namespace"), text(finding, "name")))
        .collect()
}

#[test]
fn of_2000_stored_objects_exactly_the_37_invalid_ones_are_found_in_every_format() {
    let Some(stored) = Stored::shared() else { return };
    let json = stored.audit(&[&stored.rollouts(), "-A", "-o", "json"]);
    assert_eq!(json.code, Some(1), "{}", json.stderr);
    assert_eq!(json.stderr, "audited 2,000 objects of 1 kind: 37 invalid, none that normalisation would change\n");
    let report = json.json();
    assert_eq!(found(&report, "invalid"), invalid_rollouts());
    assert_eq!(report["findings"].as_array().unwrap().len(), INVALID);
    assert_eq!(
        report["findings"][0],
        json!({
            "group": stored.rollouts, "version": "v1", "kind": "Rollout", "namespace": "default", "name": name(81),
            "finding": "invalid", "rule": "member-not-selected", "field": "spec.strategy.rollingUpdate",
            "message": "Forbidden: may only be specified when `type` is \"RollingUpdate\"", "mendedByNextWrite": false,
        })
    );

    let table = stored.audit(&[&stored.rollouts(), "-A"]);
    assert_eq!(table.code, Some(1));
    let rows: BTreeSet<String> = table
        .stdout
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>())
        .map(|cells| format!("{}/{}", cells[1], cells[2]))
        .collect();
    assert_eq!((rows, table.stdout.lines().count()), (invalid_rollouts(), INVALID + 1));

    let sarif = stored.audit(&[&stored.rollouts(), "-A", "-o", "sarif"]);
    assert_eq!(sarif.code, Some(1));
    let results = sarif.json()["runs"][0]["results"].as_array().unwrap().clone();
    let title = format!("Rollout.{}/v1 ", stored.rollouts);
    let results: BTreeSet<String> = results
        .iter()
        .map(|result| result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].as_str().unwrap().to_owned())
        .map(|of| of.strip_prefix(&title).unwrap().split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(results, invalid_rollouts());
}

/// Reads on until what was read is enough.
fn read_until(stdout: &mut ChildStdout, printed: &mut String, enough: impl Fn(&str) -> bool) {
    let mut bytes = [0; 4096];
    while !enough(printed) {
        let count = stdout.read(&mut bytes).expect("stdout can be read");
        assert_ne!(count, 0, "it ended: {printed}");
        printed.push_str(std::str::from_utf8(&bytes[..count]).expect("the report is ASCII"));
    }
}

#[test]
fn an_interrupt_in_the_middle_leaves_a_whole_report_and_says_how_far_it_came() {
    let Some(stored) = Stored::shared() else { return };
    let (sources, rollouts) = (Stored::of("src", &stored.sources), stored.rollouts());
    // More is found than a pipe holds: as long as nobody reads, it is in the middle.
    let mut command = stored.command(&[&sources, &rollouts, "-A", "-o", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary can be started");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut printed = String::new();
    read_until(&mut stdout, &mut printed, |printed| printed.contains(&name(0)));
    kill_process(Pid::from_child(&child), Signal::INT).expect("a child can be sent a signal");
    stdout.read_to_string(&mut printed).expect("the report is text");
    let output = child.wait_with_output().expect("a child can be waited for");
    let stderr = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let report: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let summary = &report["summary"];
    let objects = summary["objects"].as_u64().unwrap();
    assert!((1..SOURCES as u64).contains(&objects), "{summary}");
    assert_eq!((&summary["complete"], summary["invalid"].as_u64()), (&json!(false), Some(objects)));
    let (before, after) = stderr.split_once(&format!("interrupted at Source.{}/v1, after ", stored.sources)).unwrap();
    assert!(before.starts_with("audited "), "{stderr}");
    let far = after.split_once(" of 1,000 objects; not looked at: ").expect("it says how far it came");
    assert_eq!(far.0.replace(',', ""), objects.to_string());
    assert_eq!(far.1.trim(), format!("Rollout.{}/v1", stored.rollouts));
}

#[test]
fn kinds_and_namespaces_are_chosen_as_with_kubectl() {
    let Some(stored) = Stored::shared() else { return };
    let summary = |arguments: &[&str]| {
        let output = stored.audit(&[arguments, &["-o", "json"]].concat());
        assert!(matches!(output.code, Some(0 | 1)), "{output:?}");
        let summary = output.json()["summary"].clone();
        (summary["kinds"].as_u64().unwrap(), summary["objects"].as_u64().unwrap(), output)
    };
    let (backups, rollouts) = (Stored::of("bk", &stored.backups), stored.rollouts());
    // The context has no namespace.
    let (kinds, objects, output) = summary(&[]);
    assert_eq!((kinds, objects), (4, (ROLLOUTS - FEW + BACKUPS + SOURCES + 1) as u64), "{output:?}");
    let (kinds, objects, output) = summary(&["-A"]);
    assert_eq!((kinds, objects), (4, (ROLLOUTS + BACKUPS + SOURCES + 1) as u64), "{output:?}");
    let (kinds, objects, _) = summary(&["-n", "few", &rollouts, &backups]);
    assert_eq!((kinds, objects), (2, FEW as u64));
    for kind in ["backups", "Backup", "backup", "bk"].map(|name| Stored::of(name, &stored.backups)) {
        let (kinds, objects, output) = summary(&[&kind, "-A"]);
        assert_eq!((kinds, objects), (1, BACKUPS as u64), "{kind}");
        let report = output.json();
        let named = |numbers: std::ops::Range<usize>| {
            numbers.map(|number| format!("default/{}", name(number))).collect::<BTreeSet<_>>()
        };
        assert_eq!((found(&report, "invalid"), found(&report, "wouldChange")), (named(10..13), named(0..13)));
        assert_eq!(report["summary"]["mendedByNextWrite"], 3);
        assert!(output.stderr.contains("3 invalid (3 mended by the next write), 13 that normalisation would change"));
    }
    stored.audit(&["pods"]).refused("`pods.v1.` has no unions; those that have: ");
    let none = stored.audit(&["nothings"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(2), ""));
    none.refused("the server doesn't have a resource type `nothings`");
}

#[test]
fn what_normalisation_is_said_to_change_is_what_the_webhook_changes() {
    let Some(stored) = Stored::shared() else { return };
    let Some(enforced) = Cluster::shared() else { return };
    let kind = enforced.install("backup");
    let before = kind.object("told", &json!({"destination": {"s3": {"bucket": "b"}}}));
    let warned = kind.kubectl().run_with(&["create", "--dry-run=server", "-f", "-"], &before.to_string()).accepted();
    let report = stored.audit(&[&Stored::of("bk", &stored.backups), "-o", "json"]).json();
    let finding = report["findings"].as_array().unwrap().iter().find(|it| it["name"] == name(0)).unwrap();
    let (field, message) = (finding["field"].as_str().unwrap(), finding["message"].as_str().unwrap());
    warned.warned(&[&format!("{field}: {message}")]);
}

#[test]
fn a_built_in_type_is_audited_by_what_is_declared_of_it() {
    let Some(stored) = Stored::shared() else { return };
    let output = stored.audit(&["ds", "-o", "json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let report = output.json();
    assert_eq!(report["kinds"], json!([{"group": "apps", "version": "v1", "kind": "DaemonSet"}]));
    assert_eq!(found(&report, "invalid"), BTreeSet::from(["default/left-over".to_owned()]));
    assert_eq!(report["findings"][0]["field"], "spec.updateStrategy.rollingUpdate");
}

#[test]
fn what_built_in_types_publish_counts_where_that_is_asked_for() {
    if lacks(Feature::WorkloadsWithUnions) {
        return;
    }
    let Some(stored) = Stored::shared() else { return };
    stored.audit(&["deploy"]).refused("`deployments.v1.apps` has no unions");
    let output = stored.audit(&["deploy", "ds", "--builtin-unions=openapi", "-o", "json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let report = output.json();
    let kinds = ["Deployment", "DaemonSet"].map(|kind| json!({"group": "apps", "version": "v1", "kind": kind}));
    assert_eq!(report["kinds"], json!(kinds));
    assert_eq!(found(&report, "invalid"), BTreeSet::from(["default/left-over".to_owned()]));
}

#[test]
fn a_kind_that_the_user_may_not_list_is_named_and_the_others_are_audited() {
    let Some(stored) = Stored::shared() else { return };
    let kubectl = stored.control_plane.kubectl("rights");
    kubectl.run(&["-n", "default", "create", "serviceaccount", "auditor"]).accepted();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "auditor"},
        "rules": [
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list"]},
            {"apiGroups": ["kube-unions.dev"], "resources": ["uniondeclarations"], "verbs": ["list"]},
            {"apiGroups": [stored.rollouts], "resources": ["rollouts"], "verbs": ["list"]},
        ],
    });
    kubectl.apply(&role.to_string()).accepted();
    kubectl
        .run(&["create", "clusterrolebinding", "auditor", "--clusterrole=auditor", "--serviceaccount=default:auditor"])
        .accepted();
    let kubeconfig = stored.control_plane.account_kubeconfig("default", "auditor");
    // The authoriser learns of a new binding within a moment.
    let may = || audit(&kubeconfig, &[&stored.rollouts(), "-n", "few"]).code == Some(1);
    assert!(eventually(SETTLED, may), "the right to list is never granted");
    let output = audit(&kubeconfig, &["-A", "-o", "json"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    let report = output.json();
    assert_eq!((found(&report, "invalid"), &report["summary"]["complete"]), (invalid_rollouts(), &json!(false)));
    for (plural, kind, group) in [("backups", "Backup", &stored.backups), ("sources", "Source", &stored.sources)] {
        let words = format!(
            "error: {kind}.{group}/v1: cannot be listed: Error from server (Forbidden): {plural}.{group} is forbidden: User \
             \"system:serviceaccount:default:auditor\" cannot list resource \"{plural}\""
        );
        assert!(output.stderr.contains(&words), "{}", output.stderr);
    }
    output.refused("3 problems kept something from being audited");
}

#[test]
fn a_kind_without_namespaces_is_audited_whichever_is_asked_for() {
    // Not the shared one, whose kinds the others count.
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let cluster = AnyCluster::of_control_plane(&control_plane);
    let kind = Kind::new(&cluster, "source");
    let mut definition = crate::kind::parse(&kind.annotated());
    definition["spec"]["scope"] = "Cluster".into();
    kind.kubectl().apply(&definition.to_string()).accepted();
    let path = format!("/apis/{}/v1/sources", kind.group());
    let mut object = kind.object("wide", &broken_source());
    object["metadata"] = json!({"name": "wide"});
    let created = || kind.client().post(&path, &object).is_ok_and(|answer| answer.is_success());
    assert!(eventually(SETTLED, created), "the object can never be created");
    for arguments in [&["-n", "elsewhere"][..], &["-A"], &[]] {
        let kubeconfig = control_plane.admin_kubeconfig();
        let output = audit(&kubeconfig, &[arguments, &["-o", "json"]].concat());
        assert_eq!((output.code, found(&output.json(), "invalid")), (Some(1), BTreeSet::from(["/wide".to_owned()])));
    }
}
