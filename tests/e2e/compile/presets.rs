//! `manifests/policies`: the presets as policies, compiled with the documents of the real API server. `crate::presets` shows what they do there.

use std::env;
use std::fs;
use std::path::Path;

use super::names;
use crate::builtin::{POLICIES, PRESETS};
use crate::support::cluster::Cluster;
use crate::support::control_plane::ControlPlane;
use crate::support::kind::documents;
use crate::support::version::{Feature, lacks};
use crate::support::webhook::{binary, run_program};

/// The groups and versions of the kinds that presets are about, as paths.
pub(super) const DOCUMENTS: [&str; 6] =
    ["api/v1", "apis/apps/v1", "apis/autoscaling/v2", "apis/batch/v1", "apis/networking.k8s.io/v1", "apis/policy/v1"];

/// Kinds whose unions cannot be switched, because the API server refuses such a change of a stored object. A policy would only cost.
const IMMUTABLE: [&str; 3] = ["Job", "PersistentVolume", "Pod"];

/// Files of presets that leave no policy: the kind cannot change, or is a list without keys, where nothing can be cleared.
const WITHOUT_POLICIES: [&str; 3] = ["autoscaling.yaml", "network-policies.yaml", "persistent-volumes.yaml"];

/// A file of policies, and the files of the presets that it has. One policy serves all unions of pod templates, because each policy costs
/// the API server a conversion of the object.
const FILES: [(&str, &[&str]); 5] = [
    ("budgets.yaml", &["budgets.yaml"]),
    ("ingress.yaml", &["ingress.yaml"]),
    ("pod-templates.yaml", &["env.yaml", "handlers.yaml", "profiles.yaml", "volumes.yaml"]),
    ("services.yaml", &["services.yaml"]),
    ("strategies.yaml", &["strategies.yaml"]),
];

/// Returns the policies of presets, which a program compiles with the documents of the API server. `file`: begins their names.
fn compiled(program: &Path, control_plane: &ControlPlane, file: &str, presets: &[&str]) -> String {
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
    // The last file has no kind that can be changed.
    for file in &WITHOUT_POLICIES[..2] {
        assert_eq!(compiled(&program, control_plane, "none.yaml", &[file]), "", "{file} cannot clear anything");
    }
}
