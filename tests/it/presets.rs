//! The presets by themselves. Whether they fit the schemas of an API server is a matter of the end-to-end tests.

use fixtures::files::{files, parse, root};
use kube_unions_core::declaration::Declaration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const FOLDER: &str = "manifests/presets";

/// The path of the pod's spec in each kind that has one.
const POD_SPECS: [(&str, &str); 9] = [
    ("CronJob", "spec.jobTemplate.spec.template.spec"),
    ("DaemonSet", "spec.template.spec"),
    ("Deployment", "spec.template.spec"),
    ("Job", "spec.template.spec"),
    ("Pod", "spec"),
    ("PodTemplate", "template.spec"),
    ("ReplicaSet", "spec.template.spec"),
    ("ReplicationController", "spec.template.spec"),
    ("StatefulSet", "spec.template.spec"),
];

#[test]
fn each_preset_is_a_sound_declaration_that_only_warns() {
    let mut names = BTreeSet::new();
    for (path, preset) in presets() {
        let (declaration, faults) = Declaration::from_json(&preset.to_string()).unwrap();
        assert_eq!(faults, [], "{path}");
        assert!(names.insert(declaration.name().to_owned()), "two presets are called {}", declaration.name());
        assert_eq!(preset["spec"]["validationActions"], serde_json::json!(["Warn"]), "{}", declaration.name());
        let family = format!("{}.yaml", preset["metadata"]["labels"]["kube-unions.dev/preset"].as_str().unwrap());
        assert_eq!(family, path, "{} is labelled with its file", declaration.name());
    }
}

#[test]
fn a_family_says_the_same_of_every_pod_template() {
    let mut families: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for (path, preset) in presets() {
        let kind = preset["spec"]["target"]["kind"].as_str().unwrap();
        let Some((_, at)) = POD_SPECS.iter().find(|(known, _)| *known == kind) else { continue };
        if path == "strategies.yaml" {
            continue;
        }
        let mut unions = preset["spec"]["unions"].clone();
        for union in unions.as_array_mut().unwrap() {
            let within = union["path"].as_str().unwrap().strip_prefix(at).and_then(|path| path.strip_prefix('.'));
            let within = within.unwrap_or_else(|| panic!("{path}, {kind}: {} is not in {at}", union["path"]));
            union["path"] = within.into();
        }
        families.entry(path).or_default().insert(kind.to_owned(), unions);
    }
    assert_eq!(families.keys().collect::<Vec<_>>(), ["env.yaml", "handlers.yaml", "profiles.yaml", "volumes.yaml"]);
    for (path, kinds) in families {
        assert!(
            kinds.keys().eq(POD_SPECS.iter().map(|(kind, _)| kind)),
            "{path} is about every kind with a pod's spec"
        );
        for (kind, unions) in &kinds {
            assert_eq!(*unions, kinds["Pod"], "{path}: {kind} differs from Pod");
        }
    }
}

#[test]
fn the_readme_and_the_kustomization_list_every_file() {
    let read = |name: &str| fs::read_to_string(root().join(FOLDER).join(name)).unwrap();
    let (readme, kustomization) = (read("README.md"), read("kustomization.yaml"));
    for path in presets().into_iter().map(|(path, _)| path).collect::<BTreeSet<_>>() {
        assert!(readme.contains(&format!("| `{path}` |")), "README.md does not list {path}");
        assert!(kustomization.contains(&format!("- {path}\n")), "kustomization.yaml does not list {path}");
    }
}

/// Every preset with the file it stands in.
fn presets() -> Vec<(String, Value)> {
    let documents = |(path, text): (String, String)| {
        let documents: Vec<_> = text.split("\n---\n").skip(1).map(|text| (path.clone(), parse(&path, text))).collect();
        assert!(path == "kustomization.yaml" || !documents.is_empty(), "{path} has no declaration");
        documents
    };
    files(FOLDER, "yaml").into_iter().flat_map(documents).collect()
}
