//! Public charts: each union of their rendering × each other member, by a naive override, before and after `chart --fix`.
//! `tests/charts.sh` has the list of the charts.

use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Helm;
use crate::support::cluster::{Cluster, say};
use crate::support::kubectl::{Kubectl, Output};
use crate::support::webhook;
use fixtures::files::parse;

/// The overrides of a chart, and those that the API server accepts.
#[derive(Debug, Default)]
struct PublicChart {
    overrides: usize,
    bare: usize,
    with_values: usize,
    /// Those that no value mends, as `--fix values` says.
    told: usize,
    with_manifests: usize,
    /// Those that the API server accepts, and of which the matrix says that the default is in the way.
    false_alarms: usize,
    /// Renderings that `--fix manifests` should not change, and those that it changed.
    valid: usize,
    changed: usize,
    /// Longest time of the program without helm.
    own: Duration,
}

/// A chart, with the flags without which it does not render.
struct ChartRun<'r> {
    helm: &'r Helm,
    kubectl: &'r Kubectl,
    chart: &'r str,
    flags: &'r [&'r str],
}

impl ChartRun<'_> {
    fn ours(&self, arguments: &[&str]) -> Output {
        let program = webhook::binary().unwrap_or_else(|message| panic!("{message}"));
        self.helm.run(&program, &[&["chart"], arguments].concat())
    }

    fn chart(&self, more: &[&str]) -> Output {
        self.ours(&[&[self.chart], self.flags, more].concat())
    }

    fn rendered(&self, more: &[&str]) -> Output {
        self.helm.run(&self.helm.program, &[&["template", self.chart], self.flags, more].concat())
    }

    /// Returns what the API server says of the object of an override in a rendering. `None`: it accepts the object.
    fn refusal(&self, rendering: &str, tried: &Value) -> Option<String> {
        let Some(object) = object_of(rendering, tried) else { return Some("the object is gone".to_owned()) };
        let create = ["create", "--dry-run=server", "--validate=strict", "-n", "default", "-f", "-"];
        let answer = self.kubectl.run_with(&create, &object.to_string());
        (!answer.succeeded()).then(|| answer.stderr.lines().next().unwrap_or_default().to_owned())
    }

    fn tries(&self) -> PublicChart {
        let mut found = PublicChart::default();
        let told = self.chart(&["--matrix", "-o", "json"]);
        if !matches!(told.code, Some(0 | 1)) {
            say(&format!("{}: {:?}", self.chart, told.stderr.lines().last()));
            return found;
        }
        let report = told.json();
        let mut plain = BTreeMap::new();
        for tried in report["overrides"].as_array().unwrap() {
            let id = [&tried["kind"], &tried["name"]].map(Value::to_string);
            let is_accepted =
                plain.entry(id).or_insert_with(|| self.refusal(&self.rendered(&[]).stdout, tried).is_none());
            if *is_accepted {
                self.try_override(tried, &mut found);
            }
        }
        found
    }

    fn try_override(&self, tried: &Value, found: &mut PublicChart) {
        let workspace = &self.helm.workspace;
        let sets = workspace.write("sets.yaml", &tried["sets"].to_string());
        let sets = ["--values", sets.to_str().unwrap()];
        let bare = self.rendered(&sets).stdout;
        let of_fix = self.chart(&[&sets[..], &["--fix", "values"]].concat());
        let nulls = workspace.write("nulls.yaml", &of_fix.stdout);
        let nulls = [&sets[..], &["--values", nulls.to_str().unwrap()]].concat();
        let (with_values, manifests) =
            (self.rendered(&nulls), self.chart(&[&sets[..], &["--fix", "manifests"]].concat()));
        let is_bare = self.refusal(&bare, tried).is_none();
        found.overrides += 1;
        found.bare += usize::from(is_bare);
        let told = |what: &str, refusal: Option<String>| {
            if let Some(refusal) = &refusal {
                say(&format!("  {what}: {} {} {}: {refusal}", tried["kind"], tried["field"], tried["choice"]));
            }
            usize::from(refusal.is_none())
        };
        let refusal = self.refusal(&with_values.stdout, tried);
        if refusal.is_some() && of_fix.code == Some(1) {
            found.told += 1;
        } else {
            found.with_values += told("--fix values", refusal);
        }
        found.with_manifests += told("--fix manifests", self.refusal(&manifests.stdout, tried));
        if tried["works"] != is_bare {
            let what = if is_bare { "a false alarm" } else { "works, but is refused" };
            found.false_alarms += usize::from(is_bare);
            say(&format!("  {what}: {} {} {}", tried["kind"], tried["field"], tried["choice"]));
        }

        let rendering = workspace.write("rendering.yaml", &bare);
        let rendering = rendering.to_str().unwrap();
        let started = Instant::now();
        let judged = self.ours(&["--old", rendering, "--new", rendering, "--fix", "manifests"]);
        found.own = found.own.max(started.elapsed());
        if of_fix.stdout.trim() == "{}" && judged.code == Some(0) {
            found.valid += 1;
            found.changed += usize::from(judged.stdout != bare);
        }
    }
}

/// Returns the object of an override, in the namespace `default`.
fn object_of(rendering: &str, tried: &Value) -> Option<Value> {
    let name = tried["name"].as_str()?;
    let documents = rendering.split("\n---").filter(|document| document.contains(name));
    let mut objects = documents.map(|document| parse::<Value>("a document", document.trim_start_matches("---")));
    let mut object = objects.find(|object| object["kind"] == tried["kind"] && object["metadata"]["name"] == name)?;
    object["metadata"].as_object_mut()?.remove("namespace");
    Some(object)
}

#[test]
#[ignore = "takes public charts: `make charts` runs it"]
fn the_api_server_accepts_overrides_of_public_charts_after_a_fix() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let folder = env::var("KUBE_UNIONS_CHARTS").expect("tests/charts.sh sets it");
    let list = env::var("KUBE_UNIONS_CHART_LIST").expect("tests/charts.sh sets it");
    let (helm, kubectl) = (Helm::new("helm"), control_plane.kubectl("chart-public"));
    say(&format!(
        "{:36} {:>9} {:>6} {:>13} {:>15} {:>16} {:>12} {:>17} {:>9}",
        "chart",
        "overrides",
        "bare",
        "--fix values",
        "no value helps",
        "--fix manifests",
        "false alarms",
        "valid, unchanged",
        "own time"
    ));
    let mut all = PublicChart::default();
    let line = |name: &str, it: &PublicChart| {
        let unchanged = format!("{} of {}", it.valid - it.changed, it.valid);
        say(&format!(
            "{name:36} {:>9} {:>6} {:>13} {:>15} {:>16} {:>12} {unchanged:>17} {:>7.2} s",
            it.overrides,
            it.bare,
            it.with_values,
            it.told,
            it.with_manifests,
            it.false_alarms,
            it.own.as_secs_f64()
        ));
    };
    for chart in list.lines() {
        let words: Vec<&str> = chart.split_whitespace().collect();
        let Some((name, flags)) = words.split_first() else { continue };
        let path = Path::new(&folder).join(name);
        let run = ChartRun { helm: &helm, kubectl: &kubectl, chart: path.to_str().unwrap(), flags };
        let found = run.tries();
        line(name, &found);
        all.overrides += found.overrides;
        all.bare += found.bare;
        all.with_values += found.with_values;
        all.told += found.told;
        all.with_manifests += found.with_manifests;
        all.false_alarms += found.false_alarms;
        all.valid += found.valid;
        all.changed += found.changed;
        all.own = all.own.max(found.own);
    }
    line("all", &all);
    assert_eq!(all.false_alarms, 0, "what the API server accepts is not told");
    assert_eq!(all.changed, 0, "a rendering without a violation stays byte for byte");
}
