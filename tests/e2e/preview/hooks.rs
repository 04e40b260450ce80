//! Hooks with the real Helm, and names that are to be generated with each client: the prediction is the answer.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::Helm;
use crate::builtin::Objects;
use crate::presets::list;
use crate::support::assets;
use crate::support::background::in_parallel;
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::kubectl::run;
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

const ROWS: &str = include_str!("hooks.yaml");

/// Nothing else completes Jobs here.
const NAMESPACE: &str = "hooks";
const IN_NAMESPACE: &str = "--namespace=hooks";

const TOO_MANY: &str = "may not specify more than 1 volume type";

/// A row for one version of Helm.
struct Case {
    title: String,
    tool: &'static str,
    fate: String,
    /// The object of the release before. `None`: there is no release.
    old: Option<Value>,
    new: Value,
    is_valid: bool,
}

impl Case {
    fn name(&self) -> &str {
        self.new["metadata"]["name"].as_str().unwrap()
    }
}

/// The program, the cluster and the real Helm.
struct Clients {
    objects: Objects,
    helm: Helm,
    workspace: Workspace,
}

impl Clients {
    fn of(cluster: &Cluster) -> Self {
        let clients = Self {
            objects: Objects::of(cluster),
            helm: Helm::new(cluster.kubeconfig()),
            workspace: Workspace::new("hooks"),
        };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let created = clients.objects.send("POST", "/api/v1/namespaces", "application/json", &namespace);
        assert!([201, 409].contains(&created.status), "{created:?}");
        clients
    }

    fn file(&self, name: &str, object: &Value) -> String {
        self.workspace.write(name, &object.to_string()).to_str().unwrap().to_owned()
    }

    /// Returns the findings of `preview`, with the number of objects that it did not look at.
    fn predict(&self, name: &str, way: &str, old: Option<&Value>, new: &Value) -> (Vec<Value>, u64) {
        let new = self.file(&format!("{name}-new.json"), new);
        let old = old.map(|old| self.file(&format!("{name}-old.json"), old));
        let earlier = old.as_ref().map(|old| ["--old", old]);
        let arguments = ["preview", "--new", &new, "--as", way, "-o", "json"];
        let output = kube_unions(&[&arguments[..], earlier.as_ref().map_or(&[], |it| it)].concat(), "");
        let report = output.json();
        assert_eq!(report["summary"]["problems"], json!([]), "{output:?}");
        (report["findings"].as_array().unwrap().clone(), report["summary"]["notLookedAt"].as_u64().unwrap())
    }

    /// Does some work while every Job completes, as on a cluster with nodes.
    fn with_nodes(&self, work: impl FnOnce()) {
        struct Done<'d>(&'d AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _done = Done(&is_done);
            scope.spawn(|| {
                let is_over = || {
                    self.complete_jobs();
                    is_done.load(Ordering::Relaxed)
                };
                while !eventually(SETTLED, is_over) {}
            });
            work();
        });
    }

    fn complete_jobs(&self) {
        let jobs = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs");
        let all = self.objects.send("GET", &jobs, "application/json", &Value::Null).body;
        let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        let condition = |name: &str| json!({"type": name, "status": "True"});
        let conditions = [condition("SuccessCriteriaMet"), condition("Complete")];
        let status = json!({"startTime": start, "completionTime": end, "succeeded": 1, "conditions": conditions});
        for job in all["items"].as_array().into_iter().flatten().filter(|job| job["status"]["conditions"].is_null()) {
            let path = format!("{jobs}/{}/status", job["metadata"]["name"].as_str().unwrap());
            let completed = json!({"status": status});
            let answer = self.objects.send("PATCH", &path, "application/merge-patch+json", &completed);
            // Helm may have deleted it.
            assert!([200, 404].contains(&answer.status), "{answer:?}");
        }
    }

    /// Returns the image of a Job. `None`: there is none.
    fn image(&self, name: &str) -> Option<String> {
        let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}");
        let answer = self.objects.send("GET", &path, "application/json", &Value::Null);
        assert!([200, 404].contains(&answer.status), "{answer:?}");
        let image = &answer.body["spec"]["template"]["spec"]["containers"][0]["image"];
        answer.is_success().then(|| image.as_str().unwrap().to_owned())
    }

    /// Plays a row. Returns what differs from the prediction or from the row.
    fn play(&self, case: &Case) -> Option<String> {
        let (name, fate) = (case.name(), &*case.fate);
        let upgrade =
            |object: &Value| self.helm.upgrade_with(case.tool, name, std::slice::from_ref(object), &[IN_NAMESPACE]);
        let first = case.old.as_ref().and_then(upgrade);
        let (findings, not_looked_at) = self.predict(name, case.tool, case.old.as_ref(), &case.new);
        let before = self.image(name);
        let said = upgrade(&case.new);
        let after = self.image(name);
        let words = match (fate, case.is_valid) {
            ("created", true) | ("idle", _) => None,
            // The API server judges a create before it finds that the object exists.
            ("created" | "exists", false) => Some(TOO_MANY),
            ("immutable", _) => Some("field is immutable"),
            ("exists", true) => Some("already exists"),
            ("imported", _) => Some("exists and cannot be imported into the current release"),
            _ => panic!("{fate}"),
        };
        let is_as_told = match (&said, words) {
            (Some(said), Some(words)) => said.contains(words),
            (said, words) => said.is_none() && words.is_none(),
        };
        let is_predicted = match (&said, &findings[..]) {
            (None, []) => true,
            (Some(said), [finding]) => {
                finding["rule"] != "object-refused" || said.contains(finding["message"].as_str().unwrap())
            }
            _ => false,
        };
        // A hook that was created may be deleted, and what is no hook of this upgrade any more is.
        let is_stored = match (&after, fate, said.is_some()) {
            (None, "idle" | "created", false) => true,
            (Some(image), "created", false) => image.ends_with(":2"),
            (after, _, _) => *after == before || fate == "created",
        };
        let is_idle = (fate == "idle") == (not_looked_at == 1);
        let is_right = first.is_none() && is_as_told && is_predicted && is_stored && is_idle;
        (!is_right).then(|| {
            format!(
                "{}, {name}, {fate}: {first:?} {said:?} {findings:?} {not_looked_at} {before:?} {after:?}",
                case.title
            )
        })
    }
}

/// Returns the rows for both versions of Helm.
fn cases() -> Vec<Case> {
    let rows = list(ROWS);
    let (jobs, rows) = rows.split_first().unwrap();
    let mut cases = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for tool in ["helm", "helm4"] {
            let fates = [("upgrade", Some(&row["by"][tool])), ("install", row.get("install"))];
            for (action, fate) in fates.into_iter().filter_map(|(action, fate)| Some((action, fate?))) {
                for side in ["new", "invalid"] {
                    let name = format!("{action}-{number}-{tool}-{side}");
                    let job = |side: &str, annotations: &Value| {
                        let mut job = jobs[side].clone();
                        job["metadata"] = json!({"name": name, "annotations": annotations});
                        job
                    };
                    let another = || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
                    let old = || row.get("old").map_or_else(another, |annotations| job("old", annotations));
                    cases.push(Case {
                        title: row["title"].as_str().unwrap().to_owned(),
                        tool,
                        fate: fate.as_str().unwrap().to_owned(),
                        old: (action == "upgrade").then(old),
                        new: job(side, &row["new"]),
                        is_valid: side == "new",
                    });
                }
            }
        }
    }
    // One version of Helm stands for both in what the API server judges.
    cases.retain(|case| case.is_valid || some_or_all(case.tool == "helm", true));
    cases
}

#[test]
fn helm_runs_hooks_as_predicted() {
    let Some(cluster) = Cluster::shared() else { return };
    let clients = Clients::of(cluster);
    let cases = cases();
    let failures: Mutex<Vec<String>> = Mutex::default();
    clients.with_nodes(|| {
        in_parallel(&cases, |case| {
            let failure = clients.play(case);
            failures.lock().unwrap().extend(failure);
        });
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
    let mut fates: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in &cases {
        *fates.entry((case.tool, &*case.fate)).or_default() += 1;
    }
    say(&format!("{} hooks by Helm: {fates:?}", cases.len()));
    for fate in ["created", "immutable", "imported", "idle"] {
        assert!(["helm", "helm4"].iter().all(|tool| fates.contains_key(&(*tool, fate))), "{fate}: {fates:?}");
    }
    assert!(fates.contains_key(&("helm", "exists")), "{fates:?}");
}

/// The clients that are given an object whose name is to be generated: the way of `preview`, and the annotations of the object.
const GENERATED: [(&str, &[(&str, &str)]); 11] = [
    ("csa", &[]),
    ("ssa", &[]),
    ("replace", &[]),
    ("merge", &[]),
    ("flux", &[]),
    ("helm", &[]),
    ("helm", &[("helm.sh/hook", "pre-install")]),
    ("helm", &[("helm.sh/hook", "pre-install"), ("helm.sh/hook-delete-policy", "hook-succeeded")]),
    ("helm", &[("helm.sh/hook", "pre-install"), ("helm.sh/hook-delete-policy", "hook-failed")]),
    ("helm4", &[("helm.sh/hook", "pre-install"), ("helm.sh/hook-delete-policy", "hook-failed")]),
    ("helm4", &[]),
];

#[test]
fn names_that_are_to_be_generated_are_predicted() {
    let Some(cluster) = Cluster::shared() else { return };
    let clients = Clients::of(cluster);
    let both = json!({"type": "Recreate", "rollingUpdate": {}});
    let (mut created, mut refused) = (0, 0);
    for (number, (way, annotations)) in GENERATED.into_iter().enumerate() {
        for (side, strategy) in [("valid", json!({})), ("invalid", both.clone())] {
            let release = format!("generated-{number}-{side}");
            let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
            let template =
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
            let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"generateName": format!("{release}-"), "annotations": annotations},
                "spec": {"strategy": strategy, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
            let (findings, _) = clients.predict(&release, way, None, &deployment);
            let file = clients.file("generated.json", &deployment);
            let kubectl = |arguments: &[&str]| {
                let output = clients.objects.kubectl.run(&[&[IN_NAMESPACE], arguments].concat());
                (!output.succeeded()).then_some(output.stderr)
            };
            let said = match way {
                "csa" => kubectl(&["apply", "-f", &file]),
                "ssa" => kubectl(&["apply", "--server-side", "-f", &file]),
                "replace" => kubectl(&["replace", "-f", &file]),
                "merge" => kubectl(&["patch", "--type=merge", "-f", &file, "-p", &deployment.to_string()]),
                "flux" => kustomize(&clients.workspace, &deployment),
                tool => clients.helm.upgrade_with(tool, &release, std::slice::from_ref(&deployment), &[IN_NAMESPACE]),
            };
            let refusal = findings.first().map(|finding| (finding["rule"].as_str().unwrap(), &finding["message"]));
            assert_eq!(said.is_some(), refusal.is_some(), "{release}, {way}: {said:?} {findings:?}");
            if let (Some(said), Some(("object-refused", words))) = (&said, refusal) {
                assert!(said.contains(words.as_str().unwrap()), "{release}, {way}: {said} {findings:?}");
                // The advice of the finding.
                let is_created = kubectl(&["create", "-f", &file]).is_none();
                assert_eq!(is_created, side == "valid", "{release}");
            }
            created += usize::from(said.is_none());
            refused += usize::from(said.is_some());
        }
    }
    say(&format!("names to be generated: {created} created, {refused} refused"));
    assert_eq!((created, refused), (1, 2 * GENERATED.len() - 1));
}

/// Returns what kustomize says about an object, as Flux calls it. `None`: it builds it.
fn kustomize(workspace: &Workspace, object: &Value) -> Option<String> {
    workspace.write("object.json", &object.to_string());
    workspace.write("kustomization.yaml", "resources: [object.json]\n");
    let mut command = Command::new(assets::tool("kustomize").unwrap_or_else(|message| panic!("{message}")));
    command.arg("build").arg(workspace.path());
    let output = run(command, "kustomize build", "");
    (!output.succeeded()).then_some(output.stderr)
}
