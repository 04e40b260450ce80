//! `preview`: the incidents of `tests/e2e/preview`.

use super::{Folder, yaml};
use serde_json::{Value, json};

const INCIDENTS: &str = include_str!("../../e2e/preview/incidents.yaml");

/// All incidents are in one rendering, in which their objects differ.
#[test]
fn every_incident_is_predicted_for_every_way() {
    let incidents = yaml(INCIDENTS);
    let incidents = incidents.as_array().unwrap();
    let all = |part: &str| {
        incidents.iter().filter_map(|it| it.get(part)).map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
    };
    let folder = Folder::new(&[("old.yaml", &*all("old")), ("new.yaml", &all("new")), ("crds.yaml", &all("crd"))]);
    for way in ["ssa", "csa", "helm", "merge", "replace"] {
        let files = ["preview", "--old", "old.yaml", "--new", "new.yaml", "--from", "crds.yaml"];
        let run = folder.run(&[&files[..], &["--as", way, "-o", "json"]].concat());
        let report = run.json();
        assert_eq!(report["summary"]["compared"], incidents.len(), "{way}");
        let mut predicted = 0;
        for incident in incidents {
            let title = format!("{}, {way}", incident["incident"]);
            let of_incident = |it: &&Value| {
                (&it["kind"], &it["name"]) == (&incident["old"]["kind"], &incident["old"]["metadata"]["name"])
            };
            let mut findings = report["findings"].as_array().unwrap().iter().filter(of_incident);
            let rule = match incident["by"][way].as_str().expect(&title) {
                "refused" => "union-refused",
                "stored" => "union-stored-invalid",
                _ => {
                    assert_eq!(findings.next(), None, "{title}");
                    continue;
                }
            };
            predicted += 1;
            let finding = findings.next().expect(&title);
            assert_eq!((&finding["rule"], &finding["field"]), (&json!(rule), &incident["field"]), "{title}");
            let is_refused =
                incident["refusedWithKubeUnions"].as_array().is_some_and(|ways| ways.iter().any(|it| it == way));
            assert_eq!(finding["withKubeUnions"], if is_refused { "refused" } else { "mended" }, "{title}");
            let helps: Vec<&str> =
                finding["helps"].as_array().unwrap().iter().map(|it| it["how"].as_str().unwrap()).collect();
            assert!(helps.contains(&"recreate"), "{title}: {helps:?}");
            assert_eq!(helps.contains(&"kubeUnions"), !is_refused, "{title}: {helps:?}");
            let null_helps = way != "ssa" || incident["nullHelpsServerSide"] == true;
            assert_eq!(helps.contains(&"null"), null_helps, "{title}: {helps:?}");
        }
        assert_eq!(run.code, i32::from(predicted > 0), "{way}");
    }
}
