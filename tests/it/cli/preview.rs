//! `preview`: the incidents of `tests/e2e/preview`, and many objects.

use super::{Folder, yaml};
use serde_json::{Value, json};

const INCIDENTS: &str = include_str!("../../e2e/preview/incidents.yaml");

/// Returns a Deployment. `spec` is added to it, in flow style.
fn deployment(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
         template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}\n{spec}---\n"
    )
}

const RECREATE: &str = "  strategy: {type: Recreate}\n";

fn folder(old: &str, new: &str) -> Folder {
    Folder::new(&[("old.yaml", old), ("new.yaml", new)])
}

/// The command with the files of [`folder`], and more arguments.
fn preview<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["preview", "--old", "old.yaml", "--new", "new.yaml"], more].concat()
}

#[test]
fn every_incident_is_predicted_for_every_way() {
    let incidents = yaml(INCIDENTS);
    let mut predicted = 0;
    for incident in incidents.as_array().unwrap() {
        let folder = folder(&incident["old"].to_string(), &incident["new"].to_string());
        folder.write("crd.yaml", incident["crd"].to_string());
        for (way, answer) in incident["by"].as_object().unwrap() {
            let title = format!("{}, {way}", incident["incident"]);
            let run = folder.run(&preview(&["--from", "crd.yaml", "--as", way, "-o", "json"]));
            let findings = run.json()["findings"].clone();
            let rule = match answer.as_str().unwrap() {
                "refused" => "union-refused",
                "stored" => "union-stored-invalid",
                _ => {
                    assert_eq!(
                        (run.code, &findings, run.json()["summary"]["compared"].as_u64()),
                        (0, &json!([]), Some(1)),
                        "{title}"
                    );
                    continue;
                }
            };
            predicted += 1;
            assert_eq!((run.code, &findings[0]["rule"]), (1, &json!(rule)), "{title}: {findings:#}");
            assert_eq!(findings[0]["field"], incident["field"], "{title}");
            let is_refused =
                incident["refusedWithKubeUnions"].as_array().is_some_and(|ways| ways.iter().any(|it| it == way));
            assert_eq!(findings[0]["withKubeUnions"], if is_refused { "refused" } else { "mended" }, "{title}");
            let helps: Vec<&str> =
                findings[0]["helps"].as_array().unwrap().iter().map(|it| it["how"].as_str().unwrap()).collect();
            assert!(helps.contains(&"recreate"), "{title}: {helps:?}");
            assert_eq!(helps.contains(&"kubeUnions"), !is_refused, "{title}: {helps:?}");
            let null_helps = way != "ssa" || incident["nullHelpsServerSide"] == true;
            assert_eq!(helps.contains(&"null"), null_helps, "{title}: {helps:?}");
        }
    }
    assert_eq!(predicted, PREDICTED);
}

/// The number of predictions that are not `valid`.
const PREDICTED: usize = 14;

#[test]
fn many_objects_are_compared() {
    let old: String = (0..1_000).map(|number| deployment(&format!("d{number}"), "")).collect();
    let new: String = (0..1_000).map(|number| deployment(&format!("d{number}"), RECREATE)).collect();
    let folder = folder(&old, &new);
    let run = folder.run(&preview(&["--as", "merge", "-o", "json"])).code(1);
    assert_eq!(run.json()["summary"]["refused"], Value::from(1_000));
    assert_eq!(run.stderr, "1,000 objects in both renderings: 1,000 unions refused\n");
}
