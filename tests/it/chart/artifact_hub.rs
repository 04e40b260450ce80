//! The metadata of the chart for Artifact Hub agrees with the repository.

use super::{FOLDER, read};
use fixtures::files::{assert_generated, parse, root};
use serde_json::{Value, json};
use std::fs;

/// The last annotation of Chart.yaml, and its entries.
const CHANGES: &str = "  artifacthub.io/changes: |\n";

/// Returns an annotation, which is YAML itself.
fn annotation(name: &str) -> Value {
    let chart: Value = parse("Chart.yaml", &read("Chart.yaml"));
    let text = chart["annotations"][format!("artifacthub.io/{name}")].as_str();
    parse(name, text.unwrap_or_else(|| panic!("Chart.yaml has no annotation artifacthub.io/{name}")))
}

/// YAML with each entry in a group `Chart` of the changelog's newest section. A section that was just begun has no entries.
fn changes() -> String {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let has_entries = |section: &&str| section.contains("\n- ");
    let newest = changelog.split("\n## ").skip(1).find(has_entries).expect("the changelog has entries");
    let mut changes: Vec<(String, String)> = Vec::new();
    let (mut kind, mut is_of_the_chart) = (String::new(), false);
    for line in newest.lines().skip(1) {
        if let Some(title) = line.strip_prefix("### ") {
            (kind, is_of_the_chart) = (title.trim().to_lowercase(), false);
        } else if let Some(entry) = line.strip_prefix("- ") {
            if is_of_the_chart {
                changes.push((kind.clone(), entry.to_owned()));
            }
        } else if let Some(more) = line.strip_prefix("  ") {
            if let Some((_, entry)) = changes.last_mut().filter(|_| is_of_the_chart) {
                entry.push(' ');
                entry.push_str(more.trim());
            }
        } else if !line.is_empty() {
            is_of_the_chart = line == "Chart";
        }
    }
    if changes.is_empty() {
        return "    []\n".to_owned();
    }
    let kinds = ["added", "changed", "deprecated", "removed", "fixed", "security"];
    let entry = |(kind, text): &(String, String)| {
        assert!(kinds.contains(&kind.as_str()), "Artifact Hub knows no kind {kind} of changes");
        format!("    - kind: {kind}\n      description: {}\n", json!(text))
    };
    changes.iter().map(entry).collect()
}

#[test]
fn the_changes_are_those_of_the_changelog() {
    let chart = read("Chart.yaml");
    let (before, _) = chart.split_once(CHANGES).expect("Chart.yaml ends with the changes");
    let text = format!("{before}{CHANGES}{}", changes());
    assert_generated(format!("{FOLDER}/Chart.yaml"), &text, "make manifests");
    let listed = annotation("changes");
    assert_eq!(listed.as_array().unwrap().len(), changes().matches("- kind: ").count());
}

#[test]
fn the_metadata_is_that_of_the_package() {
    let chart: Value = parse("Chart.yaml", &read("Chart.yaml"));
    let repository = env!("CARGO_PKG_REPOSITORY");
    assert_eq!(chart["home"], env!("CARGO_PKG_HOMEPAGE"));
    assert_eq!(chart["sources"], json!([repository]));
    assert_eq!(annotation("license"), env!("CARGO_PKG_LICENSE"));
    assert_eq!(annotation("prerelease"), env!("CARGO_PKG_VERSION").contains('-'));
    let raw = repository.replace("//github.com/", "//raw.githubusercontent.com/");
    let icon =
        chart["icon"].as_str().unwrap().strip_prefix(&format!("{raw}/main/")).expect("the icon is in the repository");
    assert!(fs::read_to_string(root().join(icon)).unwrap().starts_with("<svg "));
    let files = format!("{repository}/blob/main/");
    for link in annotation("links").as_array().unwrap() {
        let url = link["url"].as_str().unwrap();
        assert!(url.starts_with(repository), "{url}");
        if let Some(file) = url.strip_prefix(&files) {
            assert!(root().join(file).is_file(), "{url}");
        }
    }
}

#[test]
fn the_crd_and_its_example_are_those_of_the_chart() {
    let crd: Value = parse("crd", &read("crds/uniondeclarations.yaml"));
    let listed = annotation("crds");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    for (field, pointer) in
        [("kind", "/spec/names/kind"), ("version", "/spec/versions/0/name"), ("name", "/metadata/name")]
    {
        assert_eq!(listed[0][field], crd.pointer(pointer).unwrap().clone());
    }
    let presets = read("presets/strategies.yaml");
    let preset: Value = parse("preset", presets.split("\n---\n").nth(1).unwrap());
    assert_eq!(annotation("crdsExamples"), json!([preset]));
}
