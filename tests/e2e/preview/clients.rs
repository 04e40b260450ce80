//! Objects that a client wrote in another way before: what the clients that apply server-side make of them, and the prediction.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Helm, items};
use crate::builtin::Objects;
use crate::support::cluster::{Cluster, say};
use crate::support::kubectl::{Kubectl, run};
use crate::support::process::{Workspace, go_gitops};
use crate::support::webhook::kube_unions;
use fixtures::crds;

const GROUP: &str = "clients.example.com";

/// The kubectl commands that write the old rendering. `helm` is Helm 3.
const WRITERS: [(&str, &[&str]); 6] = [
    ("applied", &["apply", "-f", "-"]),
    ("another", &["apply", "--field-manager=argocd-controller", "-f", "-"]),
    ("created", &["create", "-f", "-"]),
    ("serverside", &["apply", "--server-side", "-f", "-"]),
    ("other", &["apply", "--server-side", "--field-manager=other", "-f", "-"]),
    ("helm", &[]),
];

/// The command that applies the new rendering.
const APPLY: [&str; 5] = ["apply", "--server-side", "--force-conflicts", "-f", "-"];

/// Returns the CRD of a kind whose `spec` has the union of `git` and `bucket`.
fn crd(kind: &str, rules: &Value) -> Value {
    let part = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}});
    let spec = json!({"type": "object", "x-kubernetes-validations": rules,
        "properties": {"git": part("url"), "bucket": part("name")}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let mut crd = crds::crd(GROUP, kind, &[crds::version("v1", &schema)]);
    let unions = r#"{"v1":{"/properties/spec":[{"fields-to-discriminateBy":{"git":"Git","bucket":"Bucket"}}]}}"#;
    crd["metadata"]["annotations"] = json!({"kube-unions.dev/unions": unions});
    crd
}

/// Installs the kinds without and with a rule, and returns their CRDs. Two clients that create one CRD at the same time fail.
fn feeds(kubectl: &Kubectl) -> [Value; 2] {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let rule = json!([{"rule": "!(has(self.git) && has(self.bucket))", "message": "one of git and bucket"}]);
    let crds = [crd("Feed", &json!([])), crd("Ruled", &rule)];
    for crd in &crds {
        kubectl.apply(&crd.to_string()).accepted();
        let name = format!("crd/{}", crd["metadata"]["name"].as_str().unwrap());
        kubectl.run(&["wait", "--for=condition=Established", &name]).accepted();
    }
    crds
}

/// The old and the new rendering of an object of each sort.
fn renderings(sort: &str, name: &str) -> [Value; 2] {
    let deployment = |strategy: Value, volume: Value| {
        let container = json!({"name": "a", "image": "a", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "volumes": [volume]}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"strategy": strategy, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
    };
    let resource = |spec: Value| {
        let kind = if sort == "ruled" { "Ruled" } else { "Feed" };
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
    };
    let empty = || json!({"name": "data", "emptyDir": {}});
    match sort {
        "volume" => {
            let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "a"}});
            [deployment(json!({}), claim), deployment(json!({}), empty())]
        }
        "strategy" => [deployment(json!({}), empty()), deployment(json!({"type": "Recreate"}), empty())],
        _ => [resource(json!({"git": {"url": "a"}})), resource(json!({"bucket": {"name": "b"}}))],
    }
}

/// Returns true if the union of an object has one member.
fn is_valid(sort: &str, object: &Value) -> bool {
    let spec = &object["spec"];
    let members = match sort {
        "volume" => spec["template"]["spec"]["volumes"][0].as_object().unwrap().len() - 1,
        "strategy" => spec["strategy"].as_object().unwrap().len(),
        _ => spec.as_object().unwrap().len(),
    };
    members == 1
}

/// Returns the findings about each object.
fn predict(workspace: &Workspace, way: &str, files: [&[Value]; 4]) -> BTreeMap<String, Vec<Value>> {
    let paths = ["old", "new", "live", "from"].iter().zip(files);
    let paths: Vec<String> = paths
        .map(|(name, objects)| workspace.write(&format!("{name}.json"), &items(objects)).to_str().unwrap().to_owned())
        .collect();
    let named = ["--old", "--new", "--live", "--from"].iter().zip(&paths).flat_map(|(flag, path)| [*flag, path]);
    let manager = match way {
        "flux" => "kustomize-controller",
        "argocd-ssa" => "argocd-controller",
        "helm4" => "helm",
        _ => "kubectl",
    };
    let arguments = ["preview", "--as", way, "--field-manager", manager, "-o", "json"];
    let arguments: Vec<&str> = arguments.into_iter().chain(named).collect();
    let report = kube_unions(&arguments, "").json();
    assert_eq!(report["summary"]["compared"], files[1].len(), "{report}");
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        found.entry(finding["name"].as_str().unwrap().to_owned()).or_default().push(finding.clone());
    }
    found
}

#[test]
fn a_client_that_begins_to_apply_server_side_is_predicted() {
    let Some(cluster) = Cluster::shared() else { return };
    let (objects, helm, workspace) = (Objects::of(cluster), Helm::new(cluster.kubeconfig()), Workspace::new("clients"));
    let kubectl = &objects.kubectl;
    let crds = feeds(kubectl);
    let mut all = Vec::new();
    for (writer, command) in WRITERS {
        for sort in ["feed", "ruled", "volume", "strategy"] {
            let [old, new] = renderings(sort, &format!("{sort}-{writer}"));
            if command.is_empty() {
                assert_eq!(helm.upgrade("helm", &format!("{sort}-{writer}"), std::slice::from_ref(&old)), None);
            } else {
                kubectl.run_with(command, &old.to_string()).accepted();
            }
            all.push((sort, writer, old, new));
        }
    }
    let (old, new): (Vec<Value>, Vec<Value>) = all.iter().map(|it| (it.2.clone(), it.3.clone())).unzip();
    let get = |objects: &str| {
        let live =
            kubectl.run_with(&["get", "-f", "-", "-o", "json", "--show-managed-fields"], objects).accepted().json();
        live["items"].as_array().map_or_else(|| vec![live.clone()], Clone::clone)
    };
    let live = get(&items(&new));
    let by_kubectl = predict(&workspace, "ssa", [&old, &new, &live, &crds]);
    let by_helm = predict(&workspace, "helm4", [&old, &new, &live, &crds]);
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (sort, writer, old, new) in &all {
        let name = new["metadata"]["name"].as_str().unwrap();
        let is_release = *writer == "helm";
        let findings = if is_release { &by_helm } else { &by_kubectl }.get(name).cloned().unwrap_or_default();
        let apply = |object: &Value| {
            if is_release {
                helm.upgrade_with(
                    "helm4",
                    name,
                    std::slice::from_ref(object),
                    &["--server-side=true", "--force-conflicts"],
                )
            } else {
                let applied = kubectl.run_with(&APPLY, &object.to_string());
                (!applied.succeeded()).then_some(applied.stderr)
            }
        };
        let said = apply(new);
        let stored = &get(&new.to_string())[0];
        let answer = match (&said, is_valid(sort, stored)) {
            (Some(_), _) => "union-refused",
            (None, true) => "valid",
            (None, false) => "union-stored-invalid",
        };
        let predicted = findings.first().map_or("valid", |finding| finding["rule"].as_str().unwrap());
        assert_eq!(predicted, answer, "{name}: {said:?} {findings:?} {stored}");
        *seen.entry(("answer", answer)).or_default() += 1;
        for finding in &findings {
            let managers = &finding["leftBehind"][0]["managers"];
            let owner = match *writer {
                "applied" => Some("kubectl-client-side-apply Update"),
                "another" => Some("argocd-controller Update"),
                "created" => Some("kubectl-create Update"),
                "other" => Some("other Apply"),
                _ => None,
            };
            // The default of the strategy has no owner after a server-side apply.
            let owner = owner.filter(|owner| *sort != "strategy" || !owner.ends_with("Apply"));
            let told = managers.as_array().map(|all| {
                all.iter()
                    .map(|it| format!("{} {}", it["name"].as_str().unwrap(), it["operation"].as_str().unwrap()))
                    .collect::<Vec<_>>()
            });
            assert_eq!(told, owner.map(|owner| vec![owner.to_owned()]), "{name}: {finding}");
            if finding["helps"].as_array().unwrap().iter().any(|it| it["how"] == "oldOnce") {
                assert_eq!((apply(old), apply(new)), (None, None), "{name}: {finding}");
                assert!(is_valid(sort, &get(&new.to_string())[0]), "{name}");
                *seen.entry(("helps", "oldOnce")).or_default() += 1;
            }
        }
        let is_advised =
            findings.iter().any(|it| it["helps"].as_array().unwrap().iter().any(|it| it["how"] == "oldOnce"));
        if answer == "union-refused" && !is_advised {
            // The advice is given wherever it helps.
            assert_eq!(apply(old), None, "{name}");
            assert!(apply(new).is_some(), "{name}: the old rendering once helps");
        }
    }
    say(&format!("{} objects: {seen:?}", all.len()));
    for wanted in
        [("answer", "valid"), ("answer", "union-refused"), ("answer", "union-stored-invalid"), ("helps", "oldOnce")]
    {
        assert!(seen.get(&wanted).is_some_and(|number| *number > 1), "{wanted:?}: {seen:?}");
    }
}

/// The ways of `preview` in which GitOps tools apply server-side, and those of `tests/gitops`.
const GITOPS: [(&str, &str); 2] = [("flux", "flux"), ("argocd-ssa", "argo-server-side")];

#[test]
fn a_gitops_tool_that_takes_over_an_object_is_predicted() {
    let Some(program) = go_gitops() else { return };
    let Some(cluster) = Cluster::shared() else { return };
    let (objects, helm, workspace) = (Objects::of(cluster), Helm::new(cluster.kubeconfig()), Workspace::new("gitops"));
    let kubectl = &objects.kubectl;
    let crds = feeds(kubectl);
    let mut answers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (way, over) in GITOPS {
        let mut all = Vec::new();
        for (writer, command) in WRITERS {
            for sort in ["feed", "ruled", "volume", "strategy"] {
                let [old, new] = renderings(sort, &format!("{way}-{sort}-{writer}")).map(|mut object| {
                    object["metadata"]["namespace"] = json!("default");
                    object
                });
                if command.is_empty() {
                    let release = old["metadata"]["name"].as_str().unwrap();
                    assert_eq!(helm.upgrade("helm", release, std::slice::from_ref(&old)), None);
                } else {
                    kubectl.run_with(command, &old.to_string()).accepted();
                }
                all.push((sort, old, new));
            }
        }
        let (old, new): (Vec<Value>, Vec<Value>) = all.iter().map(|it| (it.1.clone(), it.2.clone())).unzip();
        let live = kubectl.run_with(&["get", "-f", "-", "-o", "json", "--show-managed-fields"], &items(&new));
        let live = live.accepted().json()["items"].as_array().unwrap().clone();
        let predicted = predict(&workspace, way, [&old, &new, &live, &crds]);
        let cases = all.iter().map(|(_, _, new)| {
            json!({"case": new["metadata"]["name"], "over": over, "manifest": new}).to_string() + "\n"
        });
        let mut command = Command::new(&program);
        command.arg(cluster.kubeconfig()).env("HOME", workspace.path()).env("TMPDIR", workspace.path());
        let output = run(command, "gitops", &cases.collect::<String>()).accepted().stdout;
        let steps: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(steps.len(), all.len());
        for (step, (sort, _, new)) in steps.iter().zip(&all) {
            let name = new["metadata"]["name"].as_str().unwrap();
            assert_eq!((&step["case"], &step["way"]), (&json!(name), &json!(over)));
            let answer = match (step["refusals"][0].is_null(), is_valid(sort, &step["object"])) {
                (false, _) => "union-refused",
                (true, true) => "valid",
                (true, false) => "union-stored-invalid",
            };
            let findings = predicted.get(name);
            let rule = findings.map_or("valid", |findings| findings[0]["rule"].as_str().unwrap());
            assert_eq!(rule, answer, "{name}: {step} {findings:?}");
            *answers.entry((way, answer)).or_default() += 1;
        }
    }
    say(&format!("answers to GitOps tools: {answers:?}"));
    for (way, _) in GITOPS {
        let of = |answer| answers.get(&(way, answer)).is_some_and(|number| *number > 1);
        assert!(of("valid") && of("union-refused"), "{way}: {answers:?}");
    }
}

/// The kubectl commands that write the old rendering before a client-side apply of the new one, and what happens to the object afterwards. `helm`
/// is Helm 3.
const HISTORIES: [(&str, &[&str], &str); 8] = [
    ("applied", &["apply", "-f", "-"], ""),
    ("another", &["apply", "--field-manager=argocd-controller", "-f", "-"], ""),
    ("created", &["create", "-f", "-"], ""),
    ("annotated", &["create", "--save-config", "-f", "-"], ""),
    ("serverside", &["apply", "--server-side", "-f", "-"], ""),
    ("both", &["apply", "-f", "-"], "apply"),
    ("forgotten", &["apply", "-f", "-"], "forget"),
    ("helm", &[], ""),
];

#[test]
fn a_client_side_apply_to_a_live_object_removes_what_the_annotation_tells() {
    let Some(cluster) = Cluster::shared() else { return };
    let (objects, helm, workspace) = (Objects::of(cluster), Helm::new(cluster.kubeconfig()), Workspace::new("csa"));
    let kubectl = &objects.kubectl;
    let crds = feeds(kubectl);
    let mut all = Vec::new();
    for (history, command, then) in HISTORIES {
        for sort in ["feed", "ruled", "volume", "strategy"] {
            let [old, new] = renderings(sort, &format!("csa-{sort}-{history}"));
            let name = new["metadata"]["name"].as_str().unwrap().to_owned();
            if command.is_empty() {
                assert_eq!(helm.upgrade("helm", &name, std::slice::from_ref(&old)), None);
            } else {
                kubectl.run_with(command, &old.to_string()).accepted();
            }
            if then == "apply" {
                // kubectl keeps the annotation up to date.
                kubectl.run_with(&APPLY, &old.to_string()).accepted();
            } else if then == "forget" {
                let annotation = "kubectl.kubernetes.io/last-applied-configuration-";
                kubectl.run(&["annotate", new["kind"].as_str().unwrap(), &name, annotation]).accepted();
            }
            all.push((sort, history, old, new));
        }
    }
    let (old, new): (Vec<Value>, Vec<Value>) = all.iter().map(|it| (it.2.clone(), it.3.clone())).unzip();
    let live = kubectl.run_with(&["get", "-f", "-", "-o", "json", "--show-managed-fields"], &items(&new)).accepted();
    let live = live.json()["items"].as_array().unwrap().clone();
    // The rendering that is said to be the old one counts for nothing.
    let predicted = predict_client_side(&workspace, [&old, &new, &live, &crds]);
    assert_eq!(predicted, predict_client_side(&workspace, [&new, &new, &live, &crds]));
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (sort, history, _, new) in &all {
        let name = new["metadata"]["name"].as_str().unwrap();
        let applied = kubectl.run_with(&["apply", "-f", "-"], &new.to_string());
        let stored =
            kubectl.run_with(&["get", "-f", "-", "-o", "json"], &items([new])).accepted().json()["items"][0].clone();
        let answer = match (applied.succeeded(), is_valid(sort, &stored)) {
            (false, _) => "union-refused",
            (true, true) => "valid",
            (true, false) => "union-stored-invalid",
        };
        let finding = predicted.get(name);
        let rule = finding.map_or("valid", |finding| finding["rule"].as_str().unwrap());
        assert_eq!(rule, answer, "{name}: {applied:?} {finding:?} {stored}");
        *seen.entry((history, answer)).or_default() += 1;
        let owner = match *history {
            "created" => Some("kubectl-create"),
            "serverside" => Some("kubectl"),
            "forgotten" => Some("kubectl-client-side-apply"),
            "helm" => Some("helm"),
            _ => None,
        };
        // The default of a strategy belongs to the manager that created the object by an update.
        if let (Some(finding), Some(owner), "feed" | "ruled" | "volume") = (finding, owner, *sort) {
            let managers = finding["leftBehind"][0]["managers"].as_array();
            let names = managers.map(|all| all.iter().map(|it| it["name"].as_str().unwrap()).collect::<Vec<_>>());
            assert_eq!(names, Some(vec![owner]), "{finding}");
        }
    }
    say(&format!("{} client-side applies: {seen:?}", all.len()));
    for wanted in [
        ("applied", "valid"),
        ("both", "valid"),
        ("created", "union-refused"),
        ("created", "union-stored-invalid"),
        ("forgotten", "union-refused"),
        ("helm", "union-refused"),
    ] {
        assert!(seen.contains_key(&wanted), "{wanted:?}: {seen:?}");
    }
}

/// Returns the finding about each object.
fn predict_client_side(workspace: &Workspace, files: [&[Value]; 4]) -> BTreeMap<String, Value> {
    let found = predict(workspace, "csa", files);
    let one = |(name, findings): (String, Vec<Value>)| {
        let [finding] = &findings[..] else { panic!("{name}: {findings:?}") };
        (name, finding.clone())
    };
    found.into_iter().map(one).collect()
}

#[test]
fn items_with_the_same_keys_are_merged_as_predicted() {
    let Some(cluster) = Cluster::shared() else { return };
    let (objects, workspace) = (Objects::of(cluster), Workspace::new("duplicates"));
    let from = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let value = |text: &str| json!({"name": "A", "value": text});
    let other = json!({"name": "B", "value": "b"});
    let rows = [
        (json!([from, value("a")]), json!([from, value("b")])),
        (json!([from]), json!([from, value("a")])),
        (json!([other, from]), json!([other, from, value("a")])),
        (json!([from, value("a")]), json!([from, value("a")])),
        (json!([from, value("a")]), json!([from])),
        (json!([value("a"), value("b")]), json!([value("a"), value("c")])),
        (json!([other]), json!([other, from, value("a")])),
        (json!([from, value("a")]), json!([value("a"), from])),
    ];
    let deployment = |number: usize, env: &Value| {
        let container = json!({"name": "mail", "image": "a", "env": env});
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("duplicates-{number}")},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    };
    let mut refused = 0;
    for (number, (old, new)) in rows.iter().enumerate() {
        let [old, new] = [old, new].map(|env| deployment(number, env));
        objects.kubectl.apply(&old.to_string()).accepted();
        let (old_file, new_file) =
            (workspace.write("old.json", &old.to_string()), workspace.write("new.json", &new.to_string()));
        let files =
            ["preview", "--old", old_file.to_str().unwrap(), "--new", new_file.to_str().unwrap(), "--as", "csa"];
        let predicted = kube_unions(&files, "");
        let answer = objects.kubectl.apply(&new.to_string());
        assert_eq!(predicted.code, Some(i32::from(!answer.succeeded())), "{new}: {predicted:?} {answer:?}");
        refused += usize::from(!answer.succeeded());
        let predicted = kube_unions(&["preview", "--new", new_file.to_str().unwrap(), "--as", "ssa"], "");
        let answer = objects.kubectl.run_with(
            &["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-"],
            &new.to_string().replace("duplicates-", "created-"),
        );
        assert_eq!(predicted.code, Some(i32::from(!answer.succeeded())), "{new}: {predicted:?} {answer:?}");
    }
    say(&format!("{} pairs of renderings with duplicates, refused: {refused}", rows.len()));
    assert!((1..rows.len()).contains(&refused), "{refused}");
}
