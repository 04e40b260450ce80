//! `chart --matrix`: what it says of a chart, that its lines repair the templates, and charts that it cannot judge.

use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Helm, chart, is_accepted};
use crate::support::cluster::Cluster;
use crate::support::kubectl::Output;
use crate::support::webhook;
use fixtures::files::parse;

const ROWS: &str = include_str!("matrix.yaml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixRows {
    findings: Vec<MatrixFinding>,
    charts: Vec<UnusualChart>,
}

/// A union, the members that a user does not choose by naming them, and the nulls with which they are chosen.
#[derive(Debug, PartialEq, Deserialize)]
struct MatrixFinding {
    name: String,
    field: String,
    values: String,
    default: Vec<String>,
    choices: Vec<String>,
    nulls: Option<Value>,
}

/// A chart, and what `chart --matrix` says of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnusualChart {
    row: String,
    #[serde(default)]
    metadata: String,
    #[serde(default)]
    defaults: String,
    template: String,
    /// The template of a subchart, whose values are those of the chart.
    subchart: Option<String>,
    /// A file of values.
    values: Option<String>,
    code: i32,
    says: String,
}

impl Helm {
    pub(super) fn matrix(&self, chart: &Path, more: &[&str]) -> Output {
        let program = webhook::binary().unwrap_or_else(|message| panic!("{message}"));
        self.run(&program, &[&["chart", chart.to_str().unwrap(), "--matrix"], more].concat())
    }

    /// Copies the chart of the rows.
    fn copy(&self) -> PathBuf {
        let copy = self.workspace.path().join("copy");
        let _ = fs::remove_dir_all(&copy);
        copy_folder(Path::new(&chart()), &copy);
        copy
    }
}

/// Makes the templates of a chart bring back each default that a null removes.
fn bring_defaults_back(chart: &Path) {
    for folder in [chart.to_owned(), chart.join("charts/worker")] {
        fs::copy(folder.join("values.yaml"), folder.join("defaults.yaml")).unwrap();
        let template = folder.join("templates/deployment.yaml");
        let text = fs::read_to_string(&template).unwrap();
        let line = r#"{{- $_ := .Files.Get "defaults.yaml" | fromYaml | merge .Values }}"#;
        fs::write(&template, format!("{line}\n{text}")).unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn the_matrix_lists_what_a_user_cannot_choose() {
    let rows: MatrixRows = parse("matrix.yaml", ROWS);
    for tool in ["helm", "helm4"] {
        let helm = Helm::new(tool);
        let told = helm.matrix(Path::new(&chart()), &["-o", "json"]);
        let report = told.json();
        let findings: Vec<MatrixFinding> = serde_json::from_value(report["findings"].clone()).unwrap();
        assert_eq!((told.code, &findings), (Some(1), &rows.findings), "{tool}: {told:?}");
        let summary = &report["summary"];
        let count = |found: &mut dyn Iterator<Item = &MatrixFinding>| found.map(|it| it.choices.len()).sum::<usize>();
        let stays = findings.iter().filter(|finding| finding.nulls.is_none());
        let stay = count(&mut stays.clone());
        let need = count(&mut findings.iter()) - stay;
        let counted = ["works", "needsNull", "defaultStays"].map(|name| summary[name].as_u64().unwrap());
        assert_eq!((counted, &summary["problems"]), ([1, need as u64, stay as u64], &Value::Array(vec![])));
        assert!(told.stderr.contains(&format!(": {need} need a null, {stay} leave the default; ")), "{told:?}");
        if tool == "helm4" {
            // The table has no more to do with Helm.
            continue;
        }
        let told = helm.matrix(Path::new(&chart()), &[]);
        let line = told.stdout.lines().find(|line| line.contains("spec.strategy")).unwrap_or_default();
        let cells: Vec<&str> = line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let wanted = [
            "choices/templates/deployment.yaml",
            "Deployment choices",
            "spec.strategy",
            "strategy",
            "type: RollingUpdate, rollingUpdate",
            "type: Recreate",
            "strategy: {rollingUpdate: null}",
        ];
        assert_eq!(cells, wanted, "{told:?}");
        // The lines of a template are printed where nothing else helps.
        let heads: Vec<&str> = told.stdout.split("\n\n").skip(1).map(|it| it.lines().next().unwrap()).collect();
        let wanted = stays.clone().zip(["templates", "charts/queue/templates", "charts/worker/templates"]);
        let wanted = wanted.map(|(finding, folder)| format!("choices/{folder}/deployment.yaml: {}:", finding.values));
        assert_eq!(heads, wanted.collect::<Vec<_>>(), "{told:?}");
    }
}

/// A default of the template that no value removes, and what an author writes in its place.
const MERGED: &str = r#"{{- merge .Values.preStop (dict "sleep" (dict "seconds" 1)) | toYaml | nindent 12 }}"#;
const CHOSEN: &str = r#"{{- if pick .Values.preStop "exec" "httpGet" "tcpSocket" }}
            {{- omit .Values.preStop "sleep" | toYaml | nindent 12 }}
          {{- else }}
            {{- toYaml .Values.preStop | nindent 12 }}
          {{- end }}"#;

/// Puts the lines of the findings into the templates of a chart. Those that a null helps have none.
fn repair(chart: &Path, findings: &[Value]) {
    for finding in findings.iter().filter(|finding| finding.get("template").is_some()) {
        let text = |name: &str| finding[name].as_str().unwrap();
        let (lines, source) = (text("template"), format!("$.Values.{}", text("values")));
        // `charts/ALIAS` is the folder of the chart with its own name.
        let file = text("file").strip_prefix("choices/").unwrap().replace("charts/queue/", "charts/worker/");
        let template = chart.join(file);
        let before = fs::read_to_string(&template).unwrap();
        let name = text("field").rsplit('.').next().unwrap();
        let after = if before.contains(lines) {
            continue;
        } else if name == "preStop" {
            before.replace(MERGED, CHOSEN)
        } else if let Some(item) = name.strip_suffix(']') {
            // The template has the items of a range.
            let loop_of = format!("range $name, $source := .Values.{}", &item[..item.find('[').unwrap()]);
            let at = before.find(&loop_of).unwrap();
            let line = "{{- toYaml $source | nindent ";
            let start = at + before[at..].find(line).unwrap();
            let indent: usize = before[start + line.len()..].split(' ').next().unwrap().parse().unwrap();
            let end = start + before[start..].find('\n').unwrap();
            let lines = lines.replace(&source, "$source");
            let lines: Vec<String> = lines.lines().map(|line| " ".repeat(indent) + line.trim_start()).collect();
            format!("{}{}{}", &before[..start], lines.join("\n").trim_start(), &before[end..])
        } else if lines.contains(&format!("{name}: ")) {
            // The lines take the place of the field, which ends where the next field of the same level begins.
            let start = before.find(&format!("{name}:")).unwrap();
            let indent = start - before[..start].rfind('\n').unwrap() - 1;
            let is_next =
                |line: &&str| line.find(|it| it != ' ') == Some(indent) && !line.trim_start().starts_with("{{");
            let next = before[start..].lines().skip(1).find(is_next).unwrap_or_default();
            let end = before[start..].find(&format!("\n{next}")).map_or(before.len(), |at| start + at);
            let start = start - indent;
            format!("{}{lines}{}", &before[..start], &before[end..])
        } else {
            // The lines stand around the member.
            let of_union = before.find(&format!("{name}:")).unwrap();
            let default = finding["default"][0].as_str().unwrap();
            let start = of_union + before[of_union..].find(&format!("          {default}:")).unwrap();
            let end = start + before[start..].find('\n').unwrap();
            let line = &before[start..end];
            let lines: Vec<&str> = lines.lines().map(|it| if it.contains("/*") { line } else { it }).collect();
            format!("{}{}{}", &before[..start], lines.join("\n"), &before[end..])
        };
        fs::write(&template, after).unwrap();
    }
}

/// Repairs the templates of a chart, and returns its findings afterwards. The default rendering stays.
fn repaired(helm: &Helm, chart: &Path, findings: &[Value]) -> Output {
    let rendered = || -> Vec<Value> {
        let rendering = helm.run(&helm.program, &["template", chart.to_str().unwrap()]).accepted().stdout;
        rendering.split("\n---\n").map(|document| parse("a document", document)).collect()
    };
    let before = rendered();
    repair(chart, findings);
    assert_eq!(before, rendered(), "{}", helm.program.display());
    helm.matrix(chart, &["-o", "json"])
}

fn findings(told: &Output) -> Vec<Value> {
    told.json()["findings"].as_array().unwrap().clone()
}

#[test]
fn templates_with_the_lines_of_the_matrix_let_a_user_choose_each_member() {
    let helm = Helm::new("helm");
    let chart = helm.copy();
    let mut before = findings(&helm.matrix(&chart, &["-o", "json"]));
    let after = repaired(&helm, &chart, &before);
    before.retain(|finding| finding.get("nulls").is_some());
    assert_eq!((after.code, findings(&after)), (Some(0), before), "{after:?}");
}

#[test]
fn where_no_null_helps_each_union_has_lines() {
    let helm = Helm::new("helm4");
    let chart = helm.copy();
    bring_defaults_back(&chart);
    let told = helm.matrix(&chart, &["-o", "json"]);
    let rows: MatrixRows = parse("matrix.yaml", ROWS);
    let stays = |finding: MatrixFinding| MatrixFinding { nulls: None, ..finding };
    let wanted: Vec<MatrixFinding> = rows.findings.into_iter().map(stays).collect();
    let found: Vec<MatrixFinding> = serde_json::from_value(told.json()["findings"].clone()).unwrap();
    assert_eq!((told.code, found), (Some(1), wanted), "{told:?}");
    let after = repaired(&helm, &chart, &findings(&told));
    assert_eq!((after.code, findings(&after)), (Some(0), vec![]), "{after:?}");
    assert!(after.stderr.contains(": all work; "), "{after:?}");
}

#[test]
fn the_api_server_accepts_an_override_where_the_matrix_says_that_it_works() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let (kubectl, helm) = (control_plane.kubectl("chart-matrix"), Helm::new("helm"));
    let report = helm.matrix(Path::new(&chart()), &["-o", "json"]).json();
    let is_probe =
        |tried: &&Value| tried["field"].as_str().unwrap().ends_with("Probe") || tried["kind"] != "Deployment";
    let mut seen = [0; 3];
    for tried in report["overrides"].as_array().unwrap().iter().filter(is_probe) {
        let write = |name: &str, values: &Value| helm.workspace.write(name, &values.to_string());
        let files = [write("override.yaml", &tried["sets"]), write("nulls.yaml", &tried["nulls"])];
        let flags: Vec<&str> = files.iter().flat_map(|file| ["--values", file.to_str().unwrap()]).collect();
        let is_accepted = |flags: &[&str]| is_accepted(&kubectl, &helm.template(flags));
        let works = tried["works"].as_bool().unwrap();
        assert_eq!(is_accepted(&flags[..2]), works, "{tried}");
        let needs_null = !tried["nulls"].is_null();
        assert_eq!(is_accepted(&flags), works || needs_null, "{tried}");
        seen[if works { 0 } else { 2 - usize::from(needs_null) }] += 1;
    }
    assert_eq!(seen, [1, 14, 6]);
}

#[test]
fn an_unusual_chart_gets_one_clear_line_and_no_value() {
    let rows: MatrixRows = parse("matrix.yaml", ROWS);
    let helm = Helm::new("helm");
    for row in &rows.charts {
        let chart = helm.workspace.path().join("unusual");
        let _ = fs::remove_dir_all(&chart);
        fs::create_dir_all(chart.join("templates")).unwrap();
        fs::write(chart.join("Chart.yaml"), format!("apiVersion: v2\nname: unusual\nversion: 1.0.0\n{}", row.metadata))
            .unwrap();
        fs::write(chart.join("values.yaml"), &row.defaults).unwrap();
        fs::write(chart.join("templates/all.yaml"), &row.template).unwrap();
        if let Some(template) = &row.subchart {
            let subchart = chart.join("charts/shared");
            fs::create_dir_all(subchart.join("templates")).unwrap();
            fs::write(subchart.join("Chart.yaml"), "apiVersion: v2\nname: shared\nversion: 1.0.0\n").unwrap();
            fs::write(subchart.join("values.yaml"), &row.defaults).unwrap();
            fs::write(subchart.join("templates/all.yaml"), template).unwrap();
        }
        let file = row.values.as_ref().map(|values| helm.workspace.write("given.yaml", values));
        let given = file.iter().flat_map(|file| ["--values", file.to_str().unwrap()]).collect::<Vec<_>>();
        let told = helm.matrix(&chart, &given);
        let ours: Vec<&str> = told.stderr.lines().filter(|line| line.contains(&row.says)).collect();
        assert_eq!((told.code, ours.len()), (Some(row.code), 1), "{}: {told:?}", row.row);
        assert!(!format!("{}{}", told.stdout, told.stderr).contains("SECRET"), "{}: {told:?}", row.row);
    }
}

#[test]
fn a_subchart_that_is_an_archive_has_values_as_well() {
    for tool in ["helm", "helm4"] {
        let helm = Helm::new(tool);
        let copy = helm.copy();
        let charts = copy.join("charts");
        let (folder, charts) = (charts.join("worker"), charts.to_str().unwrap());
        helm.run(&helm.program, &["package", folder.to_str().unwrap(), "--destination", charts]).accepted();
        fs::remove_dir_all(&folder).unwrap();
        let program = webhook::binary().unwrap_or_else(|message| panic!("{message}"));
        let set = ["--set", "worker.probe.grpc.port=1", "--fix", "values"];
        let nulls = helm.run(&program, &[&["chart", copy.to_str().unwrap()], &set[..]].concat());
        let nulls: Value = parse("the nulls", &nulls.accepted().stdout);
        assert_eq!(nulls, serde_json::json!({"worker": {"probe": {"tcpSocket": null}}}), "{tool}");
    }
}
