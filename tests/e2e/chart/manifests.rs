//! `manifests/webhook`: the chart's default rendering for those who use no Helm, written by `make manifests`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::helm::Helm;
use crate::support::kind::parse;
use fixtures::files::assert_generated;

const KUSTOMIZATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/webhook/kustomization.yaml");
const HEADER: &str = "# Made from charts/kube-unions by `make manifests`.\n";

/// Labels and annotations that only Helm uses.
const HELM_ONLY: [&str; 2] = ["app.kubernetes.io/managed-by: Helm", "helm.sh/chart: "];

#[test]
fn the_plain_manifests_are_the_default_rendering() {
    let Some(helm) = Helm::offline() else { return };
    let rendered = helm.template(&Value::Null, &["--no-hooks"]).accepted().stdout;
    let files = files(&rendered);
    assert_eq!(
        files.keys().map(String::as_str).collect::<Vec<_>>(),
        ["deployment.yaml", "poddisruptionbudget.yaml", "rbac.yaml", "service.yaml"]
    );
    let kustomization = fs::read_to_string(KUSTOMIZATION).unwrap();
    for (name, text) in files {
        assert_generated(format!("manifests/webhook/{name}"), &text, "make manifests");
        assert!(!text.to_lowercase().contains("helm"), "{name} mentions helm");
        assert!(kustomization.contains(&format!("- {name}\n")), "kustomization.yaml does not list {name}");
    }
    let images = &parse(&kustomization)["images"][0];
    assert_eq!(images["name"], "kube-unions");
    assert_eq!(images["newTag"], env!("CARGO_PKG_VERSION"));
}

/// The documents of a rendering, by the template that each is from, in their order.
fn files(rendered: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let rendered = rendered.strip_prefix("---\n").expect("a rendering begins with a document");
    for document in rendered.split("\n---\n") {
        let (source, text) = document.split_once('\n').expect("a document has lines");
        let name = source.rsplit('/').next().unwrap();
        assert!(source.starts_with("# Source: "), "{source}");
        let lines = text.lines().filter(|line| !HELM_ONLY.iter().any(|label| line.trim_start().starts_with(label)));
        let text = lines.flat_map(|line| [line, "\n"]).collect::<String>();
        let file = files.entry(name.to_owned()).or_insert_with(String::new);
        *file += if file.is_empty() { HEADER } else { "---\n" };
        *file += &text;
    }
    files
}
