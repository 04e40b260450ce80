//! `manifests/policies`: the presets as policies, compiled with the documents of the real API server, and what they do there.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{SETTLED, names};
use crate::builtin::{BuiltIn, POLICIES, PRESETS};
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::kind::documents;
use crate::version::{Feature, lacks};
use crate::webhook::{binary, run_program};
use fixtures::wait::eventually;

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
    let Some(Cluster { control_plane, .. }) = Cluster::shared() else { return };
    let update = env::var_os("KUBE_UNIONS_UPDATE").is_some_and(|set| set == "1");
    let program = binary().unwrap();
    for (file, presets) in FILES {
        let text = format!(
            "# Made from manifests/presets/{} by `make manifests`.\n{}",
            presets.join(", "),
            compiled(&program, control_plane, file, presets)
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
    // The other file has no kind that can be changed.
    let file = WITHOUT_POLICIES[0];
    assert_eq!(compiled(&program, control_plane, file, &[file]), "", "{file} cannot clear anything");
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
    let Some(cluster) = BuiltIn::with_policies() else { return };
    let kubectl = &cluster.kubectl;
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
