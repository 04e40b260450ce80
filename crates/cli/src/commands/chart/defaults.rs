//! Reads the default values of a chart and of its subcharts, below the names that the parents' values have for them.

use super::helm::HelmChart;
use crate::input::manifest;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The most charts inside each other whose values are read.
const DEEPEST: usize = 8;

/// Returns the default values of a chart. Those of a chart win over those that its subcharts have. The subcharts of a chart that is no folder
/// are not known.
pub(super) fn default_values(chart: &HelmChart<'_>) -> anyhow::Result<Value> {
    let mut values = of_subcharts(chart, Path::new(chart.chart), DEEPEST)?;
    overlay(&mut values, first(Path::new("the values of the chart"), chart.shown("values")?)?);
    Ok(values)
}

/// Returns the default values with those of the user's files.
pub(super) fn values_of_files(chart: &HelmChart<'_>) -> anyhow::Result<Value> {
    let mut values = default_values(chart)?;
    for file in chart.values_files() {
        overlay(&mut values, first(file, manifest::bytes(file)?)?);
    }
    Ok(values)
}

fn of_subcharts(helm: &HelmChart<'_>, folder: &Path, depth: usize) -> anyhow::Result<Value> {
    let mut values = json!({});
    let Ok(charts) = fs::read_dir(folder.join("charts")) else { return Ok(values) };
    let mut charts: Vec<PathBuf> = charts.flatten().map(|chart| chart.path()).filter(|_| depth > 0).collect();
    charts.sort();
    let parent = metadata_of_folder(folder)?;
    for chart in charts {
        let (metadata, of_chart) = if chart.is_dir() {
            let mut of_chart = of_subcharts(helm, &chart, depth.saturating_sub(1))?;
            let file = chart.join("values.yaml");
            if file.is_file() {
                overlay(&mut of_chart, first(&file, manifest::bytes(&file)?)?);
            }
            (metadata_of_folder(&chart)?, of_chart)
        } else if chart.extension().is_some_and(|extension| extension == "tgz") {
            let shown = |what| first(&chart, helm.shown_of(what, chart.as_os_str(), &[])?);
            (shown("chart")?, shown("values")?)
        } else {
            continue;
        };
        let Some(name) = metadata.get("name").and_then(Value::as_str) else { continue };
        for name in names_in_values(&parent, name) {
            overlay(&mut values, json!({ name: of_chart.clone() }));
        }
    }
    Ok(values)
}

fn metadata_of_folder(folder: &Path) -> anyhow::Result<Value> {
    let file = folder.join("Chart.yaml");
    if file.is_file() { first(&file, manifest::bytes(&file)?) } else { Ok(Value::Null) }
}

/// Returns the names that the values of a chart have for a subchart: its aliases, or its own name.
fn names_in_values<'v>(parent: &'v Value, name: &'v str) -> Vec<&'v str> {
    let dependencies = parent.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let of_name = dependencies.filter(|dependency| dependency.get("name").and_then(Value::as_str) == Some(name));
    let names: Vec<&str> = of_name.map(|it| it.get("alias").and_then(Value::as_str).unwrap_or(name)).collect();
    if names.is_empty() { vec![name] } else { names }
}

/// Returns the first document of a file. A file without one has no values.
fn first(file: &Path, bytes: Vec<u8>) -> anyhow::Result<Value> {
    let documents = manifest::parse(file, bytes)?;
    Ok(documents.first().map(|document| serde_json::from_str(&document.text)).transpose()?.unwrap_or(Value::Null))
}

/// Merges values over others as Helm does: a null removes what is there.
fn overlay(values: &mut Value, over: Value) {
    match (values, over) {
        (Value::Object(values), Value::Object(over)) => {
            for (name, value) in over {
                if value.is_null() {
                    values.remove(&name);
                } else if value.is_object() {
                    overlay(values.entry(name).or_insert_with(|| Value::Object(Map::new())), value);
                } else {
                    values.insert(name, value);
                }
            }
        }
        (values, over @ Value::Object(_)) => *values = over,
        // Helm takes no other values.
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {}
    }
}
