//! Values that the chart refuses, and what it says.

use serde::Deserialize;
use serde_json::{Value, json};

use super::helm::Helm;
use super::{CHART, RELEASE};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    values: Value,
    /// A text of standard error. That of a fault which the schema finds begins with its place.
    says: String,
}

#[test]
fn wrong_values_are_refused_and_the_message_names_them() {
    let Some(helm) = Helm::offline() else { return };
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("refusals.yaml")).unwrap();
    // Helm tells of every fault that the schema finds, but only of the first one that a template finds.
    let mut runs: Vec<(Value, Vec<String>)> = Vec::new();
    for Row { values, says } in rows {
        let is_of_schema = |says: &str| says.starts_with("at '");
        let fits = |(others, said): &&mut (Value, Vec<String>)| {
            is_of_schema(&says) && is_of_schema(&said[0]) && are_apart(others, &values)
        };
        if let Some((others, said)) = runs.iter_mut().find(fits) {
            json_patch::merge(others, &values);
            said.push(says);
        } else {
            runs.push((values, vec![says]));
        }
    }
    for (values, said) in &runs {
        let output = helm.template(values, &[]);
        let missing: Vec<_> = said.iter().filter(|says| !output.stderr.contains(*says)).collect();
        assert!(!output.succeeded() && missing.is_empty(), "{missing:?} in {output:#?}");
    }
}

/// Returns true if no value has a place in both.
fn are_apart(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    other.iter().all(|(name, value)| one.get(name).is_none_or(|known| are_apart(known, value)))
}

#[test]
fn an_older_cluster_gets_no_policies_but_a_reason() {
    let Some(helm) = Helm::offline() else { return };
    let values = json!({"policies": {"presets": true}});
    helm.run(&["template", RELEASE, CHART, "--kube-version=1.35.9"], &values)
        .refused("policies.presets needs Kubernetes 1.36 or newer");
    // As providers name their versions.
    helm.run(&["template", RELEASE, CHART, "--kube-version=v1.36.0-gke.100"], &values).accepted();
}
