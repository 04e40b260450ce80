//! `audit -o report`, with the program of the image and the rights that the chart grants: what is invalid is in a report after one run, and
//! what is repaired is not.
//!
//! The kinds of reports are in our own words. `KUBE_UNIONS_REPORT_CRDS` names a folder with the published ones, in files like
//! `openreports.io_reports.yaml`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::broken_source;
use crate::chart::RELEASE;
use crate::chart::helm::Helm;
use crate::support::cluster::{AnyCluster, Cluster};
use crate::support::kind::{Kind, apply, parse};
use crate::support::kubectl::Output;
use crate::support::lending::Lent;
use crate::support::webhook::{kube_unions, run_program, server};
use fixtures::crds::{crd, version};
use fixtures::wait::{SETTLED, eventually};

const ACCOUNT: &str = "kube-unions-audit";
const OPEN: &str = "/apis/openreports.io/v1alpha1";

/// The groups of a kind in namespaces, of one without, and of one that may not be listed.
const PLAIN: &str = "plain.example.com";
const WIDE: &str = "wide.example.com";
const HIDDEN: &str = "hidden.example.com";

/// An API server with objects of kinds with unions, and nothing that enforces these.
struct Audited {
    control_plane: Lent,
    any: AnyCluster,
}

impl Audited {
    fn start() -> Option<Self> {
        let control_plane = Cluster::control_plane_alone()?;
        let any = AnyCluster::of_control_plane(&control_plane);
        let audited = Self { control_plane, any };
        for group in [PLAIN, HIDDEN] {
            Kind::in_group(&audited.any, "source", group.to_owned()).apply_definition();
        }
        let wide = Kind::in_group(&audited.any, "source", WIDE.to_owned());
        let mut definition = parse(&wide.annotated());
        definition["spec"]["scope"] = "Cluster".into();
        wide.kubectl().apply(&definition.to_string()).accepted();
        assert!(audited.is_served(&format!("/apis/{WIDE}/v1/sources")));
        Some(audited)
    }

    fn is_served(&self, path: &str) -> bool {
        eventually(SETTLED, || self.control_plane.client().get(path).is_ok_and(|answer| answer.is_success()))
    }

    /// Installs a kind of reports.
    fn serve_reports(&self, group: &str, of_version: &str, kind: &str) {
        let plural = format!("{}s", kind.to_lowercase());
        let definition = published(group, of_version, &plural).unwrap_or_else(|| in_own_words(group, of_version, kind));
        apply(self.control_plane.client(), &definition);
        assert!(self.is_served(&format!("/apis/{group}/{of_version}/{plural}")));
    }

    /// Gives the account of the chart its rights, with these groups in `audit.rules`, and returns its kubeconfig.
    fn grant(&self, groups: &[&str]) -> PathBuf {
        let rules = json!([{"apiGroups": groups, "resources": ["sources"]}]);
        let rendered = Helm::of_cluster(PathBuf::new()).render(&json!({"audit": {"enabled": true, "rules": rules}}));
        let of_account = |object: &&Value| object["metadata"]["name"] == ACCOUNT && object["kind"] != "CronJob";
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RELEASE}});
        let objects: Vec<&Value> = [&namespace].into_iter().chain(rendered.iter().filter(of_account)).collect();
        assert_eq!(objects.len(), 4);
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.control_plane.kubectl("grant").run_with(&args, &objects).accepted();
        self.control_plane.account_kubeconfig(RELEASE, ACCOUNT)
    }

    fn create_namespaces(&self, names: &[&str]) {
        for name in names {
            self.control_plane.kubectl("namespaces").run(&["create", "namespace", name]).accepted();
        }
    }

    /// Stores an object, in a namespace unless that is empty.
    fn store(&self, group: &str, namespace: &str, name: &str, spec: &Value) {
        let mut object = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Source", "metadata": {"name": name}, "spec": spec,
        });
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        self.apply(&object);
    }

    fn apply(&self, object: &Value) {
        self.control_plane.kubectl("store").apply(&object.to_string()).accepted();
    }

    fn report(&self, namespace: &str) -> Option<Value> {
        let answer = self.control_plane.client().get(&path_of_report(namespace)).unwrap();
        answer.is_success().then_some(answer.body)
    }

    fn kubectl(&self, args: &[&str]) -> Output {
        self.control_plane.kubectl("reports").run(args)
    }
}

/// Returns the CRD of a kind of reports from the folder that the variable names, if it serves the version.
fn published(group: &str, of_version: &str, plural: &str) -> Option<Value> {
    let folder = PathBuf::from(env::var_os("KUBE_UNIONS_REPORT_CRDS")?);
    let definition = parse(&fs::read_to_string(folder.join(format!("{group}_{plural}.yaml"))).unwrap());
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let is_served = versions.iter().any(|version| version["name"] == of_version);
    is_served.then_some(definition)
}

fn in_own_words(group: &str, of_version: &str, kind: &str) -> Value {
    let text = json!({"type": "string"});
    let texts = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), text.clone())).collect::<Value>();
    let mut result = texts(&["source", "policy", "rule", "result", "severity", "message"]);
    result["resources"] = json!({"type": "array", "items": {
        "type": "object", "properties": texts(&["apiVersion", "kind", "namespace", "name"]),
    }});
    result["properties"] = json!({"type": "object", "additionalProperties": text});
    let number = json!({"type": "integer"});
    let summary = json!({"pass": number, "fail": number, "warn": number, "error": number, "skip": number});
    let schema = json!({"type": "object", "properties": {
        "summary": {"type": "object", "properties": summary},
        "results": {"type": "array", "items": {"type": "object", "required": ["policy"], "properties": result}},
        "configuration": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let mut definition = crd(group, kind, &[version(of_version, &schema)]);
    definition["spec"]["versions"][0]["storage"] = true.into();
    definition["spec"]["scope"] = if kind.starts_with("Cluster") { "Cluster" } else { "Namespaced" }.into();
    definition
}

fn path_of_report(namespace: &str) -> String {
    match namespace {
        "" => format!("{OPEN}/clusterreports/kube-unions"),
        namespace => format!("{OPEN}/namespaces/{namespace}/reports/kube-unions"),
    }
}

/// Runs the program of the image as the chart does.
fn audit(kubeconfig: &Path) -> Output {
    let program = server().unwrap_or_else(|message| panic!("{message}"));
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    run_program(&program, &["audit", "--all-namespaces", "--output=report", &kubeconfig], "")
}

/// Runs it once the rights are known, and returns what it said.
#[track_caller]
fn audited(kubeconfig: &Path, summary: &str) {
    let output = audit(kubeconfig).accepted();
    assert_eq!(output.stderr, format!("{summary}\n"));
}

/// The authoriser learns of rights within a moment.
fn audited_at_last(kubeconfig: &Path, summary: &str) {
    let mut last = None;
    let is_so = eventually(SETTLED, || {
        let output = audit(kubeconfig);
        let is_so = output.stderr == format!("{summary}\n");
        last = Some(output);
        is_so
    });
    assert!(is_so, "{last:#?}");
}

fn names(report: &Value) -> Vec<&str> {
    report["results"].as_array().unwrap().iter().map(|it| it["resources"][0]["name"].as_str().unwrap()).collect()
}

#[test]
fn what_is_invalid_is_in_a_report_after_one_run_and_what_is_repaired_is_not() {
    let Some(audited_cluster) = Audited::start() else { return };
    let cluster = &audited_cluster;
    for kind in ["Report", "ClusterReport"] {
        cluster.serve_reports("openreports.io", "v1alpha1", kind);
    }
    let kubeconfig = cluster.grant(&[PLAIN, WIDE, HIDDEN]);
    cluster.create_namespaces(&["shop", "bank", "foreign"]);
    let nothing = "nothing to audit: no object of a kind with unions; 0 reports written, 0 deleted, 0 unchanged";
    audited_at_last(&kubeconfig, nothing);

    let git = json!({"git": {"url": "https://example.com/a"}});
    for (group, namespace, name) in [(PLAIN, "shop", "a"), (PLAIN, "shop", "b"), (PLAIN, "bank", "c"), (WIDE, "", "w")]
    {
        cluster.store(group, namespace, name, &broken_source());
    }
    cluster.store(PLAIN, "shop", "valid", &git);
    let found = "audited 5 objects of 3 kinds: 4 invalid, none that normalisation would change";
    audited(&kubeconfig, &format!("{found}; 3 reports written, 0 deleted, 0 unchanged"));
    let shop = cluster.report("shop").unwrap();
    assert_eq!(shop["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "kube-unions"}));
    assert_eq!(shop["summary"], json!({"pass": 0, "fail": 2, "warn": 0, "error": 0, "skip": 0}));
    assert_eq!(names(&shop), ["a", "b"]);
    assert_eq!(
        shop["results"][0],
        json!({
            "source": "kube-unions", "policy": "unions", "rule": "too-many-members", "result": "fail",
            "severity": "medium",
            "message": "spec.git: Forbidden: at most one of `bucket`, `git` may be set",
            "resources": [{"apiVersion": format!("{PLAIN}/v1"), "kind": "Source", "namespace": "shop", "name": "a"}],
            "properties": {"path": "spec.git"},
        })
    );
    let wide = cluster.report("").unwrap();
    assert_eq!((names(&wide), &wide["results"][0]["resources"][0]["namespace"]), (vec!["w"], &Value::Null));

    // Only what changed is written: an edit is put right, a field of somebody else goes, and an annotation stays.
    audited(&kubeconfig, &format!("{found}; 0 reports written, 0 deleted, 3 unchanged"));
    assert_eq!(cluster.report("shop").unwrap()["metadata"]["resourceVersion"], shop["metadata"]["resourceVersion"]);
    let edit = r#"{"summary": {"fail": 0}, "results": [], "configuration": {"limits": {}}}"#;
    cluster.kubectl(&["-n", "shop", "patch", "report", "kube-unions", "--type=merge", "-p", edit]).accepted();
    cluster.kubectl(&["-n", "shop", "annotate", "report", "kube-unions", "of=somebody"]).accepted();
    audited(&kubeconfig, &format!("{found}; 1 report written, 0 deleted, 2 unchanged"));
    let again = cluster.report("shop").unwrap();
    assert_eq!((&again["summary"], &again["results"]), (&shop["summary"], &shop["results"]));
    assert_eq!((&again["configuration"], &again["metadata"]["annotations"]["of"]), (&Value::Null, &json!("somebody")));

    cluster.store(PLAIN, "shop", "a", &git);
    cluster.kubectl(&["-n", "bank", "delete", &format!("sources.{PLAIN}"), "c"]).accepted();
    let found = "audited 4 objects of 3 kinds: 2 invalid, none that normalisation would change";
    audited(&kubeconfig, &format!("{found}; 1 report written, 1 deleted, 1 unchanged"));
    assert_eq!(names(&cluster.report("shop").unwrap()), ["b"]);
    assert_eq!(cluster.report("bank"), None);

    // Reports of others are left alone: those with another name, and those without the label.
    let foreign = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {"name": name, "namespace": namespace}, "results": [{"policy": "theirs"}],
        })
    };
    for (name, namespace) in [("theirs", "shop"), ("kube-unions", "foreign"), ("kube-unions", "bank")] {
        cluster.apply(&foreign(name, namespace));
    }
    cluster.store(PLAIN, "foreign", "f", &broken_source());
    let output = audit(&kubeconfig);
    assert_eq!(output.code, Some(2));
    assert_eq!(
        output.stderr,
        "error: Report `foreign/kube-unions`: left alone, because its label app.kubernetes.io/managed-by is not \
         `kube-unions`: delete or rename it\n\
         audited 5 objects of 3 kinds: 3 invalid, none that normalisation would change; 0 reports written, 0 deleted, 2 \
         unchanged\n\
         error: 1 problem kept something from being audited or reported\n"
    );
    for namespace in ["foreign", "bank"] {
        assert_eq!(cluster.report(namespace).unwrap()["results"], json!([{"policy": "theirs"}]), "{namespace}");
    }
}

#[test]
fn what_cannot_be_listed_or_written_is_a_line_and_the_rest_is_done() {
    let Some(audited_cluster) = Audited::start() else { return };
    let cluster = &audited_cluster;
    for kind in ["Report", "ClusterReport"] {
        cluster.serve_reports("openreports.io", "v1alpha1", kind);
    }
    let kubeconfig = cluster.grant(&[PLAIN, WIDE, HIDDEN]);
    cluster.create_namespaces(&["fine", "denied", "ending"]);
    cluster.store(HIDDEN, "fine", "h", &broken_source());
    let found = "audited 1 object of 3 kinds: 1 invalid, none that normalisation would change";
    audited_at_last(&kubeconfig, &format!("{found}; 1 report written, 0 deleted, 0 unchanged"));

    // One kind may not be listed any more, a policy denies a report, and a namespace is being deleted.
    cluster.grant(&[PLAIN, WIDE]);
    for namespace in ["fine", "denied", "ending"] {
        cluster.store(PLAIN, namespace, "p", &broken_source());
    }
    deny_reports(cluster, "denied");
    cluster.kubectl(&["delete", "namespace", "ending", "--wait=false"]).accepted();
    let mut output = audit(&kubeconfig);
    assert!(eventually(SETTLED, || {
        output = audit(&kubeconfig);
        output.stderr.lines().count() == 5
    }));
    assert_eq!(output.code, Some(2));
    let lines: Vec<&str> = output.stderr.lines().collect();
    let says =
        |line: &str, begin: &str, end: &str| assert!(line.starts_with(begin) && line.ends_with(end), "{lines:#?}");
    let forbidden = "Error from server (Forbidden): ";
    let user = format!(
        "User \"system:serviceaccount:{RELEASE}:{ACCOUNT}\" cannot list resource \"sources\" in API group \
                        \"{HIDDEN}\" at the cluster scope"
    );
    says(lines[0], &format!("error: Source.{HIDDEN}/v1: cannot be listed: {forbidden}"), &user);
    says(lines[1], "error: Report `denied/kube-unions`: cannot be written: ", "no reports here");
    says(lines[2], "error: Report `ending/kube-unions`: cannot be written: ", "because it is being terminated");
    says(lines[3], "audited 3 objects of 2 kinds: 3 invalid", " unchanged");
    assert_eq!(lines[4], "error: 3 problems kept something from being audited or reported");

    // Older results about the kind that cannot be listed stay.
    let fine = cluster.report("fine").unwrap();
    assert_eq!((names(&fine), &fine["summary"]["fail"]), (vec!["p", "h"], &json!(2)));
    let of_cluster = cluster.report("").unwrap();
    assert_eq!(of_cluster["summary"], json!({"pass": 0, "fail": 0, "warn": 0, "error": 1, "skip": 0}));
    assert_eq!(of_cluster["results"][0]["message"], lines[0].trim_start_matches("error: "));
    assert_eq!((cluster.report("denied"), cluster.report("ending")), (None, None));
}

#[test]
fn a_report_lists_a_thousand_findings_and_counts_the_others() {
    let Some(audited_cluster) = Audited::start() else { return };
    let cluster = &audited_cluster;
    for kind in ["Report", "ClusterReport"] {
        cluster.serve_reports("openreports.io", "v1alpha1", kind);
    }
    let kubeconfig = cluster.grant(&[PLAIN, WIDE, HIDDEN]);
    cluster.create_namespaces(&["many"]);
    let client = cluster.control_plane.client();
    for number in 0..1_003 {
        let object = json!({
            "apiVersion": format!("{PLAIN}/v1"), "kind": "Source", "metadata": {"name": format!("s-{number}")},
            "spec": broken_source(),
        });
        let answer = client.post(&format!("/apis/{PLAIN}/v1/namespaces/many/sources"), &object).unwrap();
        assert!(answer.is_success(), "{}", answer.body);
    }
    let found = "audited 1,003 objects of 3 kinds: 1,003 invalid, none that normalisation would change";
    audited_at_last(&kubeconfig, &format!("{found}; 1 report written, 0 deleted, 0 unchanged"));
    let report = cluster.report("many").unwrap();
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 1_003, "warn": 0, "error": 0, "skip": 3}));
    let results = report["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[1_000]["rule"]), (1_001, &json!("more-findings")));
    audited(&kubeconfig, &format!("{found}; 0 reports written, 0 deleted, 1 unchanged"));
}

/// Has the API server refuse every report in a namespace, and waits until it does.
fn deny_reports(cluster: &Audited, namespace: &str) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-reports"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["openreports.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["reports"],
            }]},
            "validations": [{"expression": format!("object.metadata.namespace != '{namespace}'"), "message": "no reports here"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-reports"}, "spec": {"policyName": "no-reports", "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        apply(cluster.control_plane.client(), &object);
    }
    let report = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report", "metadata": {"name": "trial", "namespace": namespace}});
    let path = format!("{OPEN}/namespaces/{namespace}/reports?dryRun=All");
    let denies = || cluster.control_plane.client().post(&path, &report).is_ok_and(|answer| !answer.is_success());
    assert!(eventually(SETTLED, denies), "the policy is never in force");
}

#[test]
fn policy_reports_are_written_where_there_are_no_openreports_and_other_versions_are_an_error() {
    let Some(audited_cluster) = Audited::start() else { return };
    let cluster = &audited_cluster;
    let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
    // The command line does the same as the program of the image.
    let audit = || kube_unions(&["audit", "-A", "-o", "report", &kubeconfig], "");
    cluster.store(PLAIN, "default", "p", &broken_source());
    cluster.store(WIDE, "", "w", &broken_source());
    audit().rejected(
        "error: the cluster serves no reports: install the CRDs of OpenReports (openreports.io/v1alpha1) or of PolicyReport \
         (wgpolicyk8s.io/v1alpha2)",
    );
    cluster.serve_reports("openreports.io", "v1", "Report");
    audit().rejected(
        "error: the cluster serves reports as `reports.v1.openreports.io`, of which only openreports.io/v1alpha1, \
         wgpolicyk8s.io/v1beta1, wgpolicyk8s.io/v1alpha2 can be written: serve one of these versions",
    );
    cluster.serve_reports("wgpolicyk8s.io", "v1alpha2", "PolicyReport");
    let mut output = audit();
    assert!(eventually(SETTLED, || {
        output = audit();
        output.stderr.contains("1 problem")
    }));
    // Half of the CRDs: what is about objects without a namespace has no place.
    output.refused(
        "error: 1 report cannot be written, because the cluster does not serve ClusterPolicyReport of wgpolicyk8s.io/",
    );
    cluster.serve_reports("wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport");
    assert!(eventually(SETTLED, || audit().succeeded()));
    for path in [
        "/apis/wgpolicyk8s.io/v1alpha2/namespaces/default/policyreports",
        "/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports",
    ] {
        let list = cluster.control_plane.client().get(path).unwrap().body;
        let reports = list["items"].as_array().unwrap();
        assert_eq!((reports.len(), &reports[0]["summary"]["fail"]), (1, &json!(1)), "{path}");
    }
}
