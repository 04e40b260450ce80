//! `kube-unions audit` of a real cluster on which nobody enforced unions before. `it cli::audit::live` has an API server that fails in ways
//! a real one cannot be made to.

mod reports;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::kind::{Kind, parse};
use crate::support::kubectl::Output;
use crate::support::version::{Feature, lacks};
use crate::support::webhook::{binary, kube_unions};
use fixtures::wait::{SETTLED, eventually};

/// Several pages.
const ROLLOUTS: usize = 300;
/// Each as many Rollouts has one that is invalid, and one in the namespace [`FEW`].
const EVERY: usize = 30;
const FEW: &str = "audited-few";
const BACKUPS: usize = 40;
/// More findings than a pipe holds.
const SOURCES: usize = 500;

/// Connections that objects are created through.
const CONNECTIONS: usize = 8;

/// Objects without a webhook: Rollouts, a few of them invalid; Backups, a few to be changed; Sources, all of them invalid.
struct Stored {
    cluster: &'static Cluster,
    rollouts: Kind<'static>,
    backups: Kind<'static>,
    sources: Kind<'static>,
}

impl Stored {
    /// Returns the objects that the tests of this process share and only read.
    fn shared() -> Option<&'static Self> {
        static STORED: OnceLock<Option<Stored>> = OnceLock::new();
        STORED.get_or_init(Self::create).as_ref()
    }

    fn create() -> Option<Self> {
        let cluster = Cluster::shared()?;
        cluster.kubectl("audit").run(&["create", "namespace", FEW]).accepted();
        let [rollouts, backups, sources] = ["rollout", "backup", "source"].map(|sample| {
            let kind = Kind::new(cluster, sample);
            kind.apply_definition();
            kind
        });
        let stored = Self { cluster, rollouts, backups, sources };
        stored.post(&stored.rollouts, ROLLOUTS, &|number| {
            let member = if number.is_multiple_of(EVERY) { "Recreate" } else { "RollingUpdate" };
            (namespace_of(number), json!({"strategy": {"type": member, "rollingUpdate": {"maxSurge": 1}}}))
        });
        stored.post(&stored.backups, BACKUPS, &|number| {
            let s3 = json!({"bucket": "b"});
            let destination = match number {
                0..10 => json!({"s3": s3}),
                10..13 => json!({"type": "GCS", "s3": s3}),
                _ => json!({"type": "S3", "s3": s3}),
            };
            ("default", json!({"destination": destination}))
        });
        stored.post(&stored.sources, SOURCES, &|_| ("default", broken_source()));
        Some(stored)
    }

    /// Creates objects through many connections at once: for each number its namespace and spec.
    fn post(&self, kind: &Kind<'_>, objects: usize, spec: &(dyn Fn(usize) -> (&'static str, Value) + Sync)) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let client = self.cluster.control_plane.new_client();
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

    fn audit(&self, arguments: &[&str]) -> Output {
        audit(self.cluster.kubeconfig(), arguments)
    }
}

fn audit(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    kube_unions(&[&["audit", &kubeconfig], arguments].concat(), "")
}

fn name(number: usize) -> String {
    format!("o{number:05}")
}

/// Every second invalid Rollout is in the namespace of a few.
fn namespace_of(number: usize) -> &'static str {
    if number.is_multiple_of(2 * EVERY) || number % EVERY == 1 { FEW } else { "default" }
}

fn broken_source() -> Value {
    json!({"git": {"url": "https://example.com/a"}, "bucket": {"name": "a"}})
}

/// `namespace/name` of all invalid Rollouts.
fn invalid_rollouts() -> BTreeSet<String> {
    (0..ROLLOUTS).step_by(EVERY).map(|number| format!("{}/{}", namespace_of(number), name(number))).collect()
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
fn of_stored_objects_exactly_the_invalid_ones_are_found_and_those_that_normalisation_would_change() {
    let Some(stored) = Stored::shared() else { return };
    let rollouts = stored.rollouts.resource();
    let all = stored.audit(&[&rollouts, "-A", "-o", "json"]);
    assert_eq!(all.code, Some(1), "{}", all.stderr);
    assert_eq!(all.stderr, "audited 300 objects of 1 kind: 10 invalid, none that normalisation would change\n");
    let report = all.json();
    assert_eq!(found(&report, "invalid"), invalid_rollouts());
    assert_eq!(report["findings"].as_array().unwrap().len(), invalid_rollouts().len());
    assert_eq!(
        report["findings"][0],
        json!({
            "group": stored.rollouts.group(), "version": "v1", "kind": "Rollout", "namespace": FEW, "name": name(0),
            "finding": "invalid", "rule": "member-not-selected", "field": "spec.strategy.rollingUpdate",
            "message": "Forbidden: may only be specified when `type` is \"RollingUpdate\"",
            "helpUri": "https://kube-unions.dev/reference/messages.html#denials", "mendedByNextWrite": false,
        })
    );
    let few = stored.audit(&["-n", FEW, &rollouts, &stored.backups.resource(), "-o", "json"]);
    let summary = &few.json()["summary"];
    assert_eq!((&summary["kinds"], &summary["objects"]), (&json!(2), &json!(15)), "{few:?}");

    let backups = stored.audit(&[&format!("bk.{}", stored.backups.group()), "-o", "json"]);
    assert!(backups.stderr.contains("3 invalid (3 mended by the next write), 13 that normalisation would change"));
    let report = backups.json();
    let named = |numbers: std::ops::Range<usize>| {
        numbers.map(|number| format!("default/{}", name(number))).collect::<BTreeSet<_>>()
    };
    assert_eq!((found(&report, "invalid"), found(&report, "wouldChange")), (named(10..13), named(0..13)));
    let first = report["findings"].as_array().unwrap().iter().find(|it| it["name"] == name(0)).unwrap();
    // As the webhook says it.
    let said = (&first["field"], &first["message"]);
    assert_eq!(said, (&json!("spec.destination.type"), &json!("set to \"S3\" because `s3` is set")));
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
    // More is found than a pipe holds: as long as nobody reads, it is in the middle.
    let mut command = Command::new(binary().unwrap_or_else(|message| panic!("{message}")));
    command.arg("audit").arg(format!("--kubeconfig={}", stored.cluster.kubeconfig().display()));
    command.args([&stored.sources.resource(), &stored.rollouts.resource()]).args(["-A", "-o", "json"]);
    command.env("NO_COLOR", "1").env_remove("KUBECONFIG").stdin(Stdio::null());
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
    let at = format!("interrupted at Source.{}/v1, after ", stored.sources.group());
    let (before, after) = stderr.split_once(&at).expect(&stderr);
    assert!(before.starts_with("audited "), "{stderr}");
    let far = after.split_once(" of 500 objects; not looked at: ").expect("it says how far it came");
    assert_eq!(far.0, objects.to_string());
    assert_eq!(far.1.trim(), format!("Rollout.{}/v1", stored.rollouts.group()));
}

#[test]
fn what_built_in_types_publish_counts_where_that_is_asked_for() {
    if lacks(Feature::WorkloadsWithUnions) {
        return;
    }
    let Some(cluster) = Cluster::shared() else { return };
    audit(cluster.kubeconfig(), &["deploy"]).refused("`deployments.v1.apps` has no unions");
    let output = audit(cluster.kubeconfig(), &["deploy", "--builtin-unions=openapi", "-o", "json"]).accepted();
    assert_eq!(output.json()["kinds"], json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]));
}

#[test]
fn a_kind_without_namespaces_is_audited_whichever_is_asked_for() {
    let Some(cluster) = Cluster::shared() else { return };
    let kind = Kind::new(cluster, "source");
    let mut definition = parse(&kind.annotated());
    definition["spec"]["scope"] = "Cluster".into();
    kind.kubectl().apply(&definition.to_string()).accepted();
    let path = format!("/apis/{}/v1/sources", kind.group());
    let mut object = kind.object("wide", &broken_source());
    object["metadata"] = json!({"name": "wide"});
    let created = || kind.client().post(&path, &object).is_ok_and(|answer| answer.is_success());
    assert!(eventually(SETTLED, created), "the object can never be created");
    for arguments in [&["-n", "elsewhere"][..], &["-A"], &[]] {
        let output = audit(cluster.kubeconfig(), &[&[kind.resource().as_str()], arguments, &["-o", "json"]].concat());
        assert_eq!((output.code, found(&output.json(), "invalid")), (Some(1), BTreeSet::from(["/wide".to_owned()])));
    }
}
