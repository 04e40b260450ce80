//! `manifests/policies`: the presets as policies, compiled with the documents of the real API server, and what they do there.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{SETTLED, names};
use crate::builtin::{POLICIES, PRESETS};
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::kind::documents;
use crate::kubectl::{Kubectl, Output};
use crate::version::{Feature, lacks};
use crate::webhook::{binary, run_program};
use fixtures::wait::{eventually, for_some};

/// The groups and versions of the kinds that presets are about, as paths.
const DOCUMENTS: [&str; 5] =
    ["api/v1", "apis/apps/v1", "apis/autoscaling/v2", "apis/batch/v1", "apis/networking.k8s.io/v1"];

/// Kinds whose unions cannot be switched, because the API server refuses such a change of a stored object. A policy would only cost.
const IMMUTABLE: [&str; 3] = ["Job", "PersistentVolume", "Pod"];

/// Files of presets that leave no policy: the kind cannot change, or is a list without keys, where nothing can be cleared.
const WITHOUT_POLICIES: [&str; 2] = ["autoscaling.yaml", "persistent-volumes.yaml"];

/// A file of policies, and the files of the presets that it has. One policy serves all unions of pod templates, because each policy costs
/// the API server a conversion of the object.
pub(crate) const FILES: [(&str, &[&str]); 3] = [
    ("ingress.yaml", &["ingress.yaml"]),
    ("pod-templates.yaml", &["env.yaml", "handlers.yaml", "profiles.yaml", "volumes.yaml"]),
    ("strategies.yaml", &["strategies.yaml"]),
];

/// Returns the policies of presets, which a program compiles with the documents of the API server. `file`: begins their names.
pub(crate) fn compiled(program: &Path, control_plane: &ControlPlane, file: &str, presets: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let kubectl = control_plane.kubectl("documents");
    for document in DOCUMENTS {
        let text = kubectl.run(&["get", "--raw", &format!("/openapi/v3/{document}")]).accepted().stdout;
        fs::write(folder.path().join(format!("{}.json", document.replace('/', "-"))), text).unwrap();
    }
    let texts = presets.iter().map(|preset| fs::read_to_string(Path::new(PRESETS).join(preset)).unwrap());
    let presets = texts.flat_map(|text| documents(&text));
    let mutable = presets.filter(|it| !IMMUTABLE.contains(&it["spec"]["target"]["kind"].as_str().unwrap()));
    for (number, preset) in mutable.enumerate() {
        fs::write(folder.path().join(format!("preset-{number}.json")), preset.to_string()).unwrap();
    }
    // The name of such a policy has the word.
    let word = file.trim_end_matches(".yaml").trim_end_matches("pod-templates");
    let prefix = format!("union-presets-{word}{}", if word.is_empty() { "" } else { "-" });
    let from = folder.path().to_str().unwrap();
    let arguments = ["compile", "--to=map", "--kubernetes-version=1.36", "--name-prefix", &prefix, "--from", from];
    run_program(program, &arguments, "").accepted().stdout
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml")
}

#[test]
fn the_policies_of_the_presets_are_up_to_date() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let update = env::var_os("KUBE_UNIONS_UPDATE").is_some_and(|set| set == "1");
    let program = binary().unwrap();
    for (file, presets) in FILES {
        let text = format!(
            "# Made from manifests/presets/{} by `make manifests`.\n{}",
            presets.join(", "),
            compiled(&program, &control_plane, file, presets)
        );
        let path = Path::new(POLICIES).join(file);
        if update {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is not up to date; run `make manifests`", path.display());
        assert!(!names(&text).is_empty(), "{file} has no policy");
    }
    let readme = fs::read_to_string(Path::new(POLICIES).join("README.md")).unwrap();
    for (file, _) in FILES {
        assert!(readme.contains(&format!("| `{file}` |")), "README.md does not list {file}");
    }
    let manifests = |folder: &str| {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| is_manifest(path));
        let mut names: Vec<String> = paths.map(|it| it.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(manifests(POLICIES), FILES.map(|(file, _)| file), "a manifest is of no preset");
    let mut known: Vec<&str> = FILES.iter().flat_map(|(_, presets)| presets.iter().copied()).collect();
    known.extend(WITHOUT_POLICIES);
    known.push("kustomization.yaml");
    known.sort_unstable();
    assert_eq!(manifests(PRESETS), known, "a preset has no policies, and WITHOUT_POLICIES does not list it");
}

#[test]
fn presets_that_cannot_clear_anything_have_no_policies() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let file = WITHOUT_POLICIES[0];
    assert_eq!(compiled(&binary().unwrap(), &control_plane, file, &[file]), "");
}

/// A kind with a strategy: its kind, its strategy's field, and the type without parameters.
pub(crate) const WORKLOADS: [(&str, &str, &str); 2] =
    [("Deployment", "strategy", "Recreate"), ("StatefulSet", "updateStrategy", "OnDelete")];

/// An everyday command: the object that it was run for, its output, and what the command is to leave at a place.
#[derive(Debug)]
pub(crate) struct Attempt {
    object: String,
    output: Output,
    at: String,
    wanted: Value,
}

impl Attempt {
    /// Returns true if the command succeeded and left what it is to leave.
    pub(crate) fn worked(&self, kubectl: &Kubectl) -> bool {
        let stored = kubectl.run(&["get", &self.object, "-o", "json"]).accepted().json();
        self.output.succeeded() && stored.pointer(&self.at) == Some(&self.wanted)
    }
}

/// Creates an object whose strategy the API server chooses.
pub(crate) fn fresh(kubectl: &Kubectl, kind: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "containers": [{"name": "main", "image": "example.com/app:1"}],
                    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "w"}}],
                },
            },
        },
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = "x".into();
    }
    kubectl.run_with(&["create", "-f", "-"], &object.to_string()).accepted();
    object
}

/// Runs five everyday commands, each for an object of its own: four ways to change a strategy, and another source for a volume.
pub(crate) fn five_commands(kubectl: &Kubectl, (kind, field, other): (&str, &str, &str), round: &str) -> Vec<Attempt> {
    let strategy = json!({"type": other});
    let patch = json!({"spec": {field: strategy}}).to_string();
    let volume = json!({"name": "v", "hostPath": {"path": "/x"}});
    let volumes = json!({"spec": {"template": {"spec": {"volumes": [volume]}}}}).to_string();
    let attempt = |way: &str, command: &dyn Fn(&str, &Value) -> Output| {
        let name = format!("{way}-{round}");
        let object = fresh(kubectl, kind, &name);
        let of = format!("{}/{name}", kind.to_lowercase());
        let output = command(&of, &object);
        Attempt { object: of, output, at: format!("/spec/{field}"), wanted: strategy.clone() }
    };
    let apply = |_: &str, object: &Value| {
        let mut manifest = object.clone();
        manifest["spec"][field] = strategy.clone();
        let args = ["apply", "--server-side", "--field-manager=x", "--force-conflicts", "-f", "-"];
        kubectl.run_with(&args, &manifest.to_string())
    };
    let replace = |of: &str, _: &Value| {
        // Where controllers run, they may write in between.
        let replaced = || {
            let mut read = kubectl.run(&["get", of, "-o", "json"]).accepted().json();
            read["spec"][field]["type"] = other.into();
            let output = kubectl.run_with(&["replace", "-f", "-"], &read.to_string());
            (!output.stderr.contains("the object has been modified")).then_some(output)
        };
        for_some(SETTLED, replaced).expect("no other write all the time")
    };
    vec![
        attempt("merge", &|of, _| kubectl.run(&["patch", of, "--type=merge", "-p", &patch])),
        attempt("strategic", &|of, _| kubectl.run(&["patch", of, "-p", &patch])),
        attempt("apply", &apply),
        attempt("replace", &replace),
        Attempt {
            at: "/spec/template/spec/volumes".to_owned(),
            wanted: json!([
                {"name": "v", "hostPath": {"path": "/x", "type": ""}},
                {"name": "w", "configMap": {"name": "w", "defaultMode": 420}},
            ]),
            ..attempt("volume", &|of, _| kubectl.run(&["patch", of, "-p", &volumes]))
        },
    ]
}

#[test]
fn five_commands_fail_on_a_bare_api_server_and_work_with_the_policies_of_the_presets() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let kubectl = control_plane.kubectl("five");
    for workload in WORKLOADS {
        let attempts = five_commands(&kubectl, workload, "before");
        let failed = attempts.iter().filter(|attempt| !attempt.worked(&kubectl)).count();
        assert_eq!(failed, 5, "{}", workload.0);
    }
    let applied = kubectl.run(&["apply", "-f", POLICIES]).accepted();
    assert_eq!(applied.stdout.lines().count(), applied.stdout.matches(" created\n").count());

    // A new policy is in force after about a second.
    for (kind, field, other) in WORKLOADS {
        let name = fresh(&kubectl, kind, "probe")["metadata"]["name"].as_str().unwrap().to_owned();
        let works = |patch: &Value| {
            let patch = patch.to_string();
            let of = kind.to_lowercase();
            kubectl.run(&["patch", &of, &name, "--dry-run=server", "-p", &patch]).succeeded()
        };
        let volume = json!({"name": "v", "hostPath": {"path": "/x"}});
        let strategy = json!({"spec": {field: {"type": other}}});
        let volumes = json!({"spec": {"template": {"spec": {"volumes": [volume]}}}});
        assert!(eventually(SETTLED, || works(&strategy) && works(&volumes)), "the policies of {kind} are in force");
    }
    for workload in WORKLOADS {
        for attempt in five_commands(&kubectl, workload, "after") {
            assert!(attempt.worked(&kubectl), "{}: {:#?}", attempt.object, attempt.output);
        }
    }
}

#[test]
fn the_policies_change_nothing_that_the_api_server_accepts_as_it_is() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let kubectl = control_plane.kubectl("unchanged");
    let object = fresh(&kubectl, "Deployment", "a");
    let before = kubectl.run(&["get", "deployment", "a", "-o", "json"]).accepted().json();
    kubectl.run(&["apply", "-f", POLICIES]).accepted();
    fresh(&kubectl, "Deployment", "probe");
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}}).to_string();
    let works = || kubectl.run(&["patch", "deployment", "probe", "--dry-run=server", "-p", &recreate]).succeeded();
    assert!(eventually(SETTLED, works), "the policies are in force");
    kubectl
        .run_with(&["apply", "--server-side", "--field-manager=kubectl-create", "-f", "-"], &object.to_string())
        .accepted();
    kubectl.run(&["label", "deployment", "a", "x=y"]).accepted().warned(&[]);
    let after = kubectl.run(&["get", "deployment", "a", "-o", "json"]).accepted().json();
    assert_eq!(after["spec"], before["spec"]);
}

/// A kind with a pod template: its API version, its kind, and the fields that lead to the specification of its pods.
const POD_TEMPLATES: [(&str, &str, &str); 7] = [
    ("v1", "PodTemplate", "/template/spec"),
    ("v1", "ReplicationController", "/spec/template/spec"),
    ("apps/v1", "DaemonSet", "/spec/template/spec"),
    ("apps/v1", "Deployment", "/spec/template/spec"),
    ("apps/v1", "ReplicaSet", "/spec/template/spec"),
    ("apps/v1", "StatefulSet", "/spec/template/spec"),
    ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template/spec"),
];

/// Returns an object whose pods have this specification.
fn with_pods(api_version: &str, kind: &str, name: &str, pods: &Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": pods});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    match kind {
        "PodTemplate" => object["template"] = template,
        "CronJob" => object["spec"] = json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}}),
        "ReplicationController" => {
            object["spec"] = json!({"selector": {"app": name}, "replicas": 0, "template": template});
        }
        _ => object["spec"] = json!({"selector": {"matchLabels": {"app": name}}, "template": template}),
    }
    object
}

#[test]
fn one_policy_serves_every_kind_that_has_a_pod_template() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let kubectl = control_plane.kubectl("templates");
    kubectl.run(&["apply", "-f", POLICIES]).accepted();
    let http = |path: &str| json!({"httpGet": {"path": path, "port": 80}});
    let exec = json!({"exec": {"command": ["x"]}});
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let secret = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let both = |one: &Value, other: &Value| {
        let fields = [one, other].into_iter().flat_map(|it| it.as_object().unwrap().clone());
        Value::Object(fields.collect())
    };
    let container = |env: Value, probe: Value, hook: Value, profile: Value| {
        json!({"name": "c", "image": "i", "env": env, "livenessProbe": probe, "lifecycle": {"preStop": hook},
            "securityContext": {"seccompProfile": profile}})
    };
    let pods = |restart: &str, container: Value, volume: Value| json!({"restartPolicy": restart, "containers": [container], "volumes": [volume]});
    let old = |restart: &str| {
        let env = json!([{"name": "A", "value": "1"}, {"name": "B", "valueFrom": field}, {"name": "C", "valueFrom": field},
            {"name": "TWICE", "value": "1"}, {"name": "TWICE", "value": "2"}]);
        let profile = json!({"type": "Localhost", "localhostProfile": "p"});
        pods(restart, container(env, exec.clone(), exec.clone(), profile), json!({"name": "v", "emptyDir": {}}))
    };
    // Each union has two members, and what is in `C` changes with what is around it.
    let new = |restart: &str| {
        let env = json!([{"name": "A", "value": "1", "valueFrom": field}, {"name": "B", "valueFrom": both(&field, &secret)},
            {"name": "C", "value": "3", "valueFrom": both(&field, &secret)},
            {"name": "TWICE", "value": "1"}, {"name": "TWICE", "value": "2"}]);
        let profile = json!({"type": "RuntimeDefault", "localhostProfile": "p"});
        let container = container(env, both(&exec, &http("/live")), both(&exec, &http("/stop")), profile);
        pods(restart, container, json!({"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}))
    };
    for (api_version, kind, path) in POD_TEMPLATES {
        let restart = if kind == "CronJob" { "OnFailure" } else { "Always" };
        let name = kind.to_lowercase();
        kubectl
            .run_with(&["create", "-f", "-"], &with_pods(api_version, kind, &name, &old(restart)).to_string())
            .accepted();
        let changed = with_pods(api_version, kind, &name, &new(restart)).to_string();
        let works = || kubectl.run_with(&["replace", "--dry-run=server", "-f", "-"], &changed).succeeded();
        assert!(eventually(SETTLED, works), "{kind}: {:?}", kubectl.run_with(&["replace", "-f", "-"], &changed));
        kubectl.run_with(&["replace", "-f", "-"], &changed).accepted();
        let stored = kubectl.run(&["get", &format!("{kind}/{name}"), "-o", "json"]).accepted().json();
        let found = stored.pointer(path).unwrap();
        let container = &found["containers"][0];
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let env = container["env"].as_array().unwrap();
        let sources = env.iter().map(|it| names(it).into_iter().filter(|name| name != "name").collect::<Vec<_>>());
        let expected = [["valueFrom"], ["valueFrom"], ["value"], ["value"], ["value"]];
        assert_eq!(sources.collect::<Vec<_>>(), expected, "{kind}: {container}");
        assert_eq!(names(&env[1]["valueFrom"]), ["secretKeyRef"], "{kind}");
        for handler in [&container["livenessProbe"], &container["lifecycle"]["preStop"]] {
            assert!(handler.get("httpGet").is_some() && handler.get("exec").is_none(), "{kind}: {handler}");
        }
        assert_eq!(container["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}), "{kind}");
        assert_eq!(names(&found["volumes"][0]), ["hostPath", "name"], "{kind}");
        // Which one of two variables with the same name was there before, nobody knows: nothing is cleared.
        let mut twice = new(restart);
        twice["containers"][0]["env"][4]["valueFrom"] = field.clone();
        let refused = with_pods(api_version, kind, &name, &twice).to_string();
        let refused = kubectl.run_with(&["replace", "-f", "-"], &refused);
        assert!(refused.stderr.contains("may not be specified when `value` is not empty"), "{kind}: {refused:?}");
    }
}
