//! The policies of a cluster are, byte for byte, those of the files from which it was set up.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::presets::DOCUMENTS;
use super::{SETTLED, compile};
use crate::builtin::PRESETS;
use crate::support::cluster::{Cluster, say};
use crate::support::kind::{SAMPLES, samples};
use crate::support::version::{Feature, lacks};
use crate::support::webhook::kube_unions;
use fixtures::dice::Dice;
use fixtures::kinds::definition_of_versions;
use fixtures::wait::eventually;

const GROUP: &str = "sources.example";

/// Generated CRDs of several versions.
const GENERATED: usize = 200;

/// Samples as their authors wrote them, whose extension survives in the annotation of kubectl; presets; and generated CRDs, whose versions
/// are in any order.
#[test]
fn policies_of_a_cluster_are_those_of_the_files_that_were_applied() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let seed = env::var("KUBE_UNIONS_NATIVE_SEED").map_or(1, |text| text.parse().expect("a number"));
    let mut random = Dice(seed);
    let kubectl = control_plane.kubectl("sources");
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for sample in SAMPLES {
        put(&format!("{sample}.yaml"), &fs::read_to_string(samples().join(sample).join("crd.yaml")).unwrap());
    }
    let presets = fs::read_dir(PRESETS).unwrap().map(|entry| entry.unwrap().path());
    for preset in presets.filter(|path| path.is_file() && path.extension().is_some_and(|it| it == "yaml")) {
        let name = preset.file_name().and_then(|name| name.to_str()).expect("a preset has a name");
        if name != "kustomization.yaml" {
            put(&format!("preset-{name}"), &fs::read_to_string(&preset).unwrap());
        }
    }
    let generated = (0..GENERATED).map(|number| definition_of_versions(GROUP, number, &mut random).to_string());
    put("generated.yaml", &generated.collect::<Vec<_>>().join("\n---\n"));
    let applied = ["apply", "--validate=ignore", "-f", folder.path().to_str().unwrap()];
    kubectl.run(&applied).accepted();

    let established = || {
        let crds = kubectl.run(&["get", "customresourcedefinitions", "-o", "json"]).accepted().json();
        let is_established = |crd: &Value| {
            let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        };
        crds["items"].as_array().expect("a list").iter().filter(|crd| is_established(crd)).count()
            > GENERATED + SAMPLES.len()
    };
    assert!(eventually(SETTLED, established), "the API server serves every kind");
    for document in DOCUMENTS {
        let text = kubectl.run(&["get", "--raw", &format!("/openapi/v3/{document}")]).accepted().stdout;
        put(&format!("{}.json", document.replace('/', "-")), &text);
    }

    let of_cluster = compile(&control_plane, &["--to=policies", "--allow-partial"]).accepted();
    let of_files = |path: &Path| {
        let version = control_plane.client().get("/version").unwrap().body;
        let number = format!("{}.{}", version["major"].as_str().unwrap(), version["minor"].as_str().unwrap());
        let from = path.to_str().unwrap();
        let arguments =
            ["compile", "--to=policies", "--allow-partial", "--kubernetes-version", &number, "--from", from];
        kube_unions(&arguments, "").accepted()
    };
    let from_files = of_files(folder.path());
    let (cluster, files) = (of_cluster.stdout.lines(), from_files.stdout.lines());
    let mut name = "";
    for (line, (of_cluster, of_file)) in cluster.zip(files).enumerate() {
        name = of_file.strip_prefix("  name: ").unwrap_or(name);
        assert_eq!(of_cluster, of_file, "seed {seed}: line {line}, behind {name}");
    }
    assert_eq!(of_cluster.stdout.len(), from_files.stdout.len(), "seed {seed}");
    let policies = super::names(&from_files.stdout);
    say(&format!("seed {seed}: {} policies and bindings, {} bytes", policies.len(), from_files.stdout.len()));
    assert!(policies.iter().filter(|name| name.contains(GROUP)).count() > 2 * GENERATED, "{policies:?}");
    for sample in SAMPLES {
        assert!(policies.iter().any(|name| name.contains(&format!("-{sample}s."))), "{sample}: {policies:?}");
    }
}
