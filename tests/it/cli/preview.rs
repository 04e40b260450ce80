//! `preview`: the incidents of `tests/e2e/preview`, and its rows of two field managers.

use super::{Folder, yaml};
use kube_unions_core::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use strategic_merge_patch::{Conflicts, Managers, ServerSideApply};

const INCIDENTS: &str = include_str!("../../e2e/preview/incidents.yaml");
const MANAGERS: &str = include_str!("../../e2e/preview/managers.yaml");

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

/// The objects that a row leads to.
struct Managed {
    /// The last manifest of the manager.
    old: Value,
    live: Value,
}

/// Returns an object of the kind of the rows.
fn shared(name: usize, fields: &Value) -> Value {
    let mut object = fields.clone();
    object["apiVersion"] = json!("managers.example.com/v1");
    object["kind"] = json!("Shared");
    object["metadata"] = json!({"name": format!("row{name}")});
    object
}

/// Applies the manifests of a row, as the API server does.
fn managed(schema: &Schema, number: usize, row: &Value) -> Managed {
    let engine = ServerSideApply::for_resource("Shared", schema).unwrap();
    let (mut live, mut managers, mut old) = (json!({}), Managers::default(), Value::Null);
    for apply in row["applies"].as_array().unwrap() {
        let (manager, fields) = apply.as_object().unwrap().iter().next().unwrap();
        let manifest = shared(number, fields);
        let applied = engine.apply(&live, &managers, manager, &manifest, Conflicts::Overwrite).unwrap();
        (live, managers) = (applied.object, applied.managers);
        schema.complete(&mut live).unwrap();
        if manager == "kubectl" {
            old = manifest;
        }
    }
    live["metadata"]["managedFields"] = managers.to_managed_fields();
    Managed { old, live }
}

#[test]
fn an_apply_of_one_of_two_managers_is_predicted() {
    let rows = yaml(MANAGERS);
    let (crd, rows) = rows.as_array().unwrap().split_first().unwrap();
    let crd = &crd["crd"];
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    for (number, row) in rows.iter().enumerate() {
        let title = row["title"].as_str().unwrap();
        let Managed { old, live } = managed(&schema, number, row);
        let new = shared(number, &row["new"]).to_string();
        let with_null = row.get("withNull").map(|fields| shared(number, fields).to_string()).unwrap_or_default();
        let (crd, old, live) = (crd.to_string(), old.to_string(), live.to_string());
        let files = [("crd.yaml", &*crd), ("old.yaml", &*old), ("live.yaml", &*live)];
        let folder = Folder::new(&[&files[..], &[("new.yaml", &*new), ("with-null.yaml", &*with_null)]].concat());
        let preview = |new: &str| {
            let files = ["preview", "--old", "old.yaml", "--new", new, "--live", "live.yaml", "--from", "crd.yaml"];
            let named = row.get("fieldManager").map(|name| ["--field-manager", name.as_str().unwrap()]);
            folder
                .run(&[&files[..], &["--as", "ssa", "-o", "json"], named.as_ref().map_or(&[], |named| named)].concat())
        };
        let run = preview("new.yaml");
        let report = run.json();
        assert_eq!(report["summary"]["problems"], json!([]), "{title}: {run:?}");
        let found: BTreeMap<&str, Value> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| {
                let helps = finding["helps"].as_array().unwrap().iter().map(|it| it["how"].as_str().unwrap());
                let helps = helps.filter(|how| *how != "patchOnce").collect::<Vec<_>>().join(" ");
                (finding["field"].as_str().unwrap(), json!([finding["rule"], finding["withKubeUnions"], helps]))
            })
            .collect();
        assert_eq!(json!(found), row["unions"], "{title}: {run:?}");
        assert_eq!(run.code, i32::from(!found.is_empty()), "{title}: {run:?}");
        if row.get("withNull").is_some() {
            let mended = preview("with-null.yaml");
            assert_eq!((mended.code, &mended.json()["findings"]), (0, &json!([])), "{title}: {mended:?}");
        }
    }
}
