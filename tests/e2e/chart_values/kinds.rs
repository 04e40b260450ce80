//! `chart --matrix` of a chart with each kind that has unions: an API server accepts each choice with the value that the matrix writes for it.

use serde_json::Value;
use std::collections::BTreeMap;

use super::{Helm, documents};
use crate::builtin::{Objects, collection};
use crate::support::version::{is_served, version};
use fixtures::files::root;
use kube_unions_policies::KubernetesVersion;

/// The choices of each kind that are not the default.
const CHOICES: [(&str, usize); 17] = [
    ("CustomResourceDefinition", 3),
    ("Deployment", 1),
    ("FlowSchema", 2),
    ("HorizontalPodAutoscaler", 4),
    ("Ingress", 2),
    ("MutatingWebhookConfiguration", 1),
    ("NetworkPolicy", 2),
    ("PersistentVolume", 21),
    ("Pod", 44),
    ("PodDisruptionBudget", 1),
    ("PriorityLevelConfiguration", 2),
    ("ResourceClaim", 1),
    ("ResourceClaimTemplate", 1),
    ("Service", 12),
    ("StatefulSet", 2),
    ("ValidatingWebhookConfiguration", 1),
    ("all", 100),
];

/// Returns why an API server refuses a choice for another reason than its value.
fn exception(kind: &str, choice: &str) -> Option<&'static str> {
    let before = |minor| version() < KubernetesVersion::new(1, minor);
    match (kind, choice) {
        ("PriorityLevelConfiguration", "type: Exempt") => Some("the API server has the only one that is exempt"),
        ("StatefulSet", "type: Recreate") if before(37) => Some("1.37 brings the value"),
        ("Pod", "fileKeyRef" | "image") if before(35) => Some("1.35 switches the field on"),
        _ => None,
    }
}

#[test]
fn the_api_server_accepts_each_choice_of_built_in_kinds_as_the_matrix_writes_it() {
    let Some(objects) = Objects::without_presets() else { return };
    let helm = Helm::new("helm");
    let chart = root().join("tests/e2e/chart_values/kinds");
    let report = helm.matrix(&chart, &["-o", "json"]).json();
    assert_eq!(report["summary"]["problems"], Value::Array(vec![]));
    let (mut choices, mut faults) = (BTreeMap::new(), Vec::new());
    for tried in report["overrides"].as_array().unwrap() {
        let [kind, name, field, choice] = ["kind", "name", "field", "choice"].map(|it| tried[it].as_str().unwrap());
        *choices.entry(kind).or_insert(0) += 1;
        let write = |name: &str, values: &Value| helm.workspace.write(name, &values.to_string());
        let files = [write("override.yaml", &tried["sets"]), write("nulls.yaml", &tried["nulls"])];
        let mut arguments = vec!["template", chart.to_str().unwrap()];
        arguments.extend(files.iter().flat_map(|file| ["--values", file.to_str().unwrap()]));
        let rendering = helm.run(&helm.program, &arguments).accepted().stdout;
        let is_same = |it: &Value| it["kind"] == kind && it["metadata"]["name"] == name;
        let object = documents(&rendering).find(is_same).unwrap();
        if !is_served(&object) {
            continue;
        }
        let path = format!("{}?dryRun=All&fieldValidation=Strict", collection(&object));
        let answer = objects.send("POST", &path, "application/json", &object);
        let exception = exception(kind, choice);
        if answer.is_success() == exception.is_some() {
            faults.push(format!("{kind}, {field}, {choice}: {exception:?}: {}", answer.body["message"]));
        }
    }
    let all = choices.values().sum();
    choices.insert("all", all);
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(choices, BTreeMap::from(CHOICES));
}
