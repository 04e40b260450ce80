//! `chart`: what it says of charts and values, with both versions of Helm, and the API server's answer before and afterwards.

use serde::Deserialize;
use serde_json::{Value, json};
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
        let mut command = Command::new(program);
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
    assert_eq!(report["summary"]["judged"], 2, "{title}");

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
