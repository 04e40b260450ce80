//! The rows of `tests/cases/refused-schemas`: what `lint` refuses in the schema of a CRD, the API server refuses, and nothing else.

use super::Native;
use crate::support::webhook::kube_unions;
use fixtures::crds::{crd, version};
use fixtures::files::{parse, root};
use serde_json::{Value, json};
use std::fs::read_to_string;

const ROWS: &str = "tests/cases/refused-schemas/rows.yaml";

#[test]
fn lint_refuses_the_schemas_that_the_api_server_refuses() {
    let Some(native) = Native::shared() else { return };
    let rows: Vec<Value> = parse(ROWS, &read_to_string(root().join(ROWS)).unwrap());
    let (mut refused, mut differences) = (0, Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let mut version = version("v1", &row["schema"]);
        if row["status"] == true {
            version["subresources"] = json!({"status": {}});
        }
        let definition = crd("refused.example", &format!("Refused{number}"), &[version]);
        let created = native.client().send(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
            "application/json",
            definition.to_string().as_bytes(),
        );
        let created = created.unwrap_or_else(|error| panic!("{error}"));
        let run = kube_unions(&["lint", "-", "-o", "json"], &definition.to_string());
        let found: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
        let found: Vec<&Value> = found.as_array().unwrap().iter().filter(|it| it["severity"] == "error").collect();
        let is_refused = !found.is_empty();
        let says: Vec<&str> = row["says"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let says_so = says.iter().all(|words| run.stdout.contains(words));
        refused += usize::from(is_refused);
        if is_refused == created.is_success() || says.is_empty() == is_refused || !says_so {
            differences.push(format!(
                "{}: {found:?}, {says:?}: {} {}",
                row["description"], created.body["message"], run.stdout
            ));
        }
    }
    println!("{} schemas, {refused} of them refused", rows.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(refused > 40 && rows.len() - refused > 10, "{refused} of {}", rows.len());
}
