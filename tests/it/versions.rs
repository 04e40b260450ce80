//! The table in the guide of the versions of Kubernetes on which the end-to-end tests were run: it shows the files that the runs wrote,
//! and the chart promises no other versions.

use fixtures::files::{assert_generated_between, root};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

/// The page with the table.
const PAGE: &str = "docs/guide/choosing.md";

/// The lines of the page around the table.
const LINES: (&str, &str) = ("<!-- versions: made by make versions -->\n", "<!-- end of versions -->\n");

/// A run of the end-to-end tests, as `tests/versions.sh` writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct VersionRun {
    kubernetes: String,
    date: String,
    passed: u32,
    /// Tests of features that this version lacks.
    left_out: u32,
}

/// Returns the runs by minor version.
fn runs() -> BTreeMap<u32, VersionRun> {
    let folder = root().join("tests/controlplane/runs");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let run: VersionRun = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(run.kubernetes.starts_with(&format!("v{name}.")), "{}: {}", path.display(), run.kubernetes);
        (name.strip_prefix("1.").unwrap().parse().unwrap(), run)
    };
    files.map(read).collect()
}

fn table() -> String {
    let mut text = String::from("| Kubernetes | passed | left out | date |\n|---|---|---|---|\n");
    for VersionRun { kubernetes, passed, left_out, date } in runs().values().rev() {
        let version = kubernetes.trim_start_matches('v');
        writeln!(text, "| {version} | {passed} | {left_out} | {date} |").unwrap();
    }
    text
}

#[test]
fn the_table_in_the_guide_shows_the_runs_as_they_are() {
    assert_generated_between(PAGE, LINES, &format!("\n{}\n", table()), "make versions");
}

#[test]
fn the_chart_promises_the_oldest_version_that_was_run() {
    let chart = fs::read_to_string(root().join("charts/kube-unions/Chart.yaml")).unwrap();
    let promised = chart.lines().find_map(|line| line.strip_prefix("kubeVersion: ")).unwrap();
    let oldest = *runs().keys().next().expect("there is a run");
    assert_eq!(promised, format!("\">=1.{oldest}.0-0\""));
}

#[test]
fn the_schedule_runs_every_version_but_the_usual_one_which_each_change_runs() {
    let workflow = fs::read_to_string(root().join(".github/workflows/scheduled.yml")).unwrap();
    let usual = fs::read_to_string(root().join("tests/controlplane/go.mod")).unwrap();
    let usual = usual.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v1.")).unwrap();
    let usual: u32 = usual.split('.').next().unwrap().parse().unwrap();
    let others: Vec<String> =
        runs().into_keys().filter(|minor| *minor != usual).map(|minor| format!("\"1.{minor}\"")).collect();
    let matrix = format!("version: [{}]", others.join(", "));
    assert!(workflow.contains(&matrix), "scheduled.yml lacks `{matrix}`");
}
