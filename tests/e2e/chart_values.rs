//! `chart`: what it says of charts and values, with both versions of Helm, and the API server's answer before and afterwards.

mod kinds;
mod matrix;
mod public;

use serde::Deserialize;
use serde_json::{Value, json};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::cluster::Cluster;
use crate::support::kubectl::{self, Kubectl, Output};
use crate::support::process::Workspace;
use crate::support::{assets, webhook};
use fixtures::files::{parse, root};

const ROWS: &str = include_str!("chart_values/rows.yaml");

/// Values, and what `chart` says of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValuesRow {
    row: String,
    values: Option<Value>,
    #[serde(default)]
    flags: Vec<String>,
    /// The paths of the violations.
    faults: Vec<String>,
    /// The values that help.
    nulls: Option<Value>,
}

/// A version of Helm, and a folder of its own.
struct Helm {
    program: PathBuf,
    workspace: Workspace,
}

impl Helm {
    fn new(tool: &str) -> Self {
        let program = assets::tool(tool).unwrap_or_else(|message| panic!("{message}"));
        Self { program, workspace: Workspace::new(tool) }
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let ours = webhook::binary().unwrap_or_else(|message| panic!("{message}"));
        let mut paths = vec![ours.parent().expect("a folder").to_owned()];
        paths.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
        let mut command = Command::new(program);
        command.env("PATH", env::join_paths(paths).unwrap());
        command.env("HELM_BIN", &self.program).env("HOME", self.workspace.path()).env("NO_COLOR", "1");
        command.args(arguments).current_dir(self.workspace.path());
        kubectl::run(command, &arguments.join(" "), "")
    }

    fn template(&self, given: &[&str]) -> String {
        self.run(&self.program, &[&["template", &chart()], given].concat()).accepted().stdout
    }

    fn chart(&self, given: &[&str], more: &[&str]) -> Output {
        let program = webhook::binary().unwrap_or_else(|message| panic!("{message}"));
        self.run(&program, &[&["chart", &chart()], given, more].concat())
    }
}

fn chart() -> String {
    root().join("tests/e2e/chart_values/chart").to_str().unwrap().to_owned()
}

/// Returns the objects of a rendering.
fn documents(rendering: &str) -> impl Iterator<Item = Value> {
    rendering.split("\n---").map(|document| parse("a document", document.trim_start_matches("---")))
}

fn is_accepted(kubectl: &Kubectl, rendering: &str) -> bool {
    kubectl.run_with(&["create", "--dry-run=server", "--validate=strict", "-f", "-"], rendering).succeeded()
}

fn play(helm: &Helm, kubectl: &Kubectl, row: &ValuesRow) {
    let title = format!("{}, {}", row.row, helm.program.display());
    let values = row.values.clone().unwrap_or_else(|| json!({}));
    let values = helm.workspace.write("values.yaml", &values.to_string());
    let mut given = vec!["--values", values.to_str().unwrap()];
    given.extend(row.flags.iter().map(String::as_str));

    let told = helm.chart(&given, &["-o", "json"]);
    let report = told.json();
    let findings = report["findings"].as_array().unwrap();
    let fields: Vec<&str> = findings.iter().map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, row.faults, "{title}: {told:?}");
    assert_eq!(told.code, Some(i32::from(!fields.is_empty())), "{title}: {told:?}");
    assert_eq!(report["summary"]["judged"], 3, "{title}");

    let rendering = helm.template(&given);
    assert_eq!(is_accepted(kubectl, &rendering), row.faults.is_empty(), "{title}");
    let mended = helm.chart(&given, &["--fix", "manifests"]);
    assert_eq!(mended.code, Some(0), "{title}: {mended:?}");
    assert!(is_accepted(kubectl, &mended.stdout), "{title}: {mended:?}");
    let (mut lines, removed) = (mended.stdout.lines(), rendering.lines());
    let mut left = lines.next();
    for line in removed {
        if left == Some(line) {
            left = lines.next();
        }
    }
    assert_eq!(left, None, "{title}: lines are only removed, and all others stay");
    if row.faults.is_empty() {
        assert_eq!(mended.stdout, rendering, "{title}");
    }

    let nulls = helm.chart(&given, &["--fix", "values"]);
    let is_all = row.faults.is_empty() || row.nulls.is_some();
    assert_eq!(nulls.code, Some(i32::from(!is_all)), "{title}: {nulls:?}");
    let written: Value = parse("the nulls", &nulls.stdout);
    assert_eq!(written, row.nulls.clone().unwrap_or_else(|| json!({})), "{title}: {nulls:?}");
    let nulls = helm.workspace.write("nulls.yaml", &nulls.stdout);
    let rendering = helm.template(&[&given[..], &["--values", nulls.to_str().unwrap()]].concat());
    assert_eq!(is_accepted(kubectl, &rendering), is_all, "{title}");
}

#[test]
fn the_api_server_accepts_what_each_fix_makes_of_every_row() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let rows: Vec<ValuesRow> = parse("rows.yaml", ROWS);
    let kubectl = control_plane.kubectl("chart-values");
    for tool in ["helm", "helm4"] {
        let helm = Helm::new(tool);
        for row in &rows {
            play(&helm, &kubectl, row);
        }
    }
}

/// The values contradict the chart: its strategy has `rollingUpdate`.
const CONTRADICTION: [&str; 2] = ["--set", "strategy.type=Recreate"];
const REFUSED: &str =
    "spec.strategy.rollingUpdate: error: refused: Forbidden: may only be specified when `type` is \"RollingUpdate\"";

#[test]
fn the_plugins_of_helm_say_what_the_command_says() {
    for (tool, post_renderer) in [
        (
            "helm",
            &[
                "kube-unions",
                "--post-renderer-args=chart",
                "--post-renderer-args=--new=-",
                "--post-renderer-args=--fix=manifests",
            ][..],
        ),
        ("helm4", &["kube-unions-chart"]),
    ] {
        let (helm, chart) = (Helm::new(tool), chart());
        let install = |name: &str| {
            let folder = root().join("manifests/helm").join(name);
            helm.run(&helm.program, &["plugin", "install", folder.to_str().unwrap()]).accepted();
        };
        install("unions");
        let told = helm.run(&helm.program, &[&["unions", "chart", &chart], &CONTRADICTION[..]].concat());
        assert!(!told.succeeded() && told.stdout.contains(REFUSED), "{tool}: {told:?}");
        helm.run(&helm.program, &["unions", "chart", &chart]).accepted();

        if tool == "helm4" {
            install("kube-unions-chart");
        }
        let rendered = |values: &[&str]| {
            let template = ["template", &chart, "--post-renderer"];
            helm.run(&helm.program, &[&template[..], post_renderer, values].concat())
        };
        let refused = rendered(&CONTRADICTION);
        assert!(!refused.succeeded() && refused.stdout.is_empty(), "{tool}: {refused:?}");
        // Helm 4 drops what a post-renderer says.
        assert!(tool == "helm4" || refused.stderr.contains(REFUSED), "{tool}: {refused:?}");
        let documents = |rendering: &str| rendering.lines().filter(|line| line.starts_with("kind:")).count();
        let (plain, kept) = (helm.template(&[]), rendered(&[]).accepted().stdout);
        assert_eq!(documents(&kept), documents(&plain), "{tool}: {kept}");
    }
}
