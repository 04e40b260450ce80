//! `check-cel`: unions beside hand-written rules, one row each.

use super::{Folder, yaml};
use serde_json::{Value, json};

const ROWS: &str = include_str!("../../cases/check-cel/rows.yaml");

/// Returns the CRD of a row.
fn crd_of_row(number: usize, row: &Value) -> Value {
    let mut schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
    schema["x-kubernetes-validations"] = row.get("above").cloned().unwrap_or(json!([]));
    fixtures::crds::crd("check-cel.example", &format!("Row{number}"), &[fixtures::crds::version("v1", &schema)])
}

#[test]
fn each_row_has_its_verdict() {
    let rows = yaml(ROWS);
    let folder = Folder::new(&[]);
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        folder.write(&format!("{number}.json"), crd_of_row(number, row).to_string());
    }
    let found = folder.run(&["check-cel", ".", "-o", "json"]).code(1).json();
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        let found = found.as_array().unwrap().iter().find(|it| it["kind"] == format!("Row{number}"));
        assert_eq!(found.map(|it| &it["verdicts"]), Some(&row["verdicts"]), "{}: {found:#?}", row["description"]);
    }
}
