//! The truth tables of `kube-unions-evidence` compared with the API server: every combination of the rows of
//! `tests/cases/check-cel` is created there. Where a table decides, both agree.

use super::{IN_FORCE, Native};
use fixtures::crds::{crd, version};
use fixtures::files::root;
use fixtures::wait::eventually;
use kube_unions_core::schema::Place;
use kube_unions_evidence::{Decision, TruthTable, UnionFields};
use serde_json::{Map, Value, json};
use std::fs::read_to_string;

const GROUP: &str = "check-cel.example";

/// Returns the schema of a row, without unions.
fn schema(row: &Value) -> Value {
    let mut spec = row["spec"].clone();
    strip(&mut spec);
    let above = row.get("above").cloned().unwrap_or(json!([]));
    json!({"type": "object", "required": ["spec"], "x-kubernetes-validations": above, "properties": {"spec": spec}})
}

fn strip(node: &mut Value) {
    if let Some(fields) = node.as_object_mut() {
        fields.remove("x-kubernetes-unions");
        fields.values_mut().for_each(strip);
    }
}

/// Returns the fields of the union of a row.
fn union(row: &Value) -> UnionFields {
    let spec = &row["spec"];
    let names = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
    if let Some(list) = spec.get("x-kubernetes-unions") {
        let members = names(list[0]["fields-to-discriminateBy"].as_object().unwrap());
        return UnionFields { members, ..UnionFields::default() };
    }
    let choices = spec["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"].as_object().unwrap();
    let members = choices.values().filter_map(|choice| choice["name"].as_str()).map(str::to_owned).collect();
    UnionFields { discriminator: Some("type".to_owned()), values: names(choices), members, ..UnionFields::default() }
}

#[test]
fn the_truth_tables_are_those_of_the_api_server() {
    let Some(native) = Native::shared() else { return };
    let text = read_to_string(root().join("tests/cases/check-cel/rows.yaml")).unwrap();
    let rows: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    let (mut decided, mut undecided, mut differences) = (0, 0, Vec::new());
    let is_refused = |row: &Value| row["refused"].as_bool().unwrap_or(false);
    for (number, row) in rows.iter().enumerate() {
        let created = native.try_apply(&crd(GROUP, &format!("Row{number}"), &[version("v1", &schema(row))]));
        assert_eq!(created.is_success(), !is_refused(row), "{}: {}", row["description"], created.body);
    }
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| !is_refused(row)) {
        let (kind, schema, description) = (format!("Row{number}"), schema(row), &row["description"]);
        let collection = format!("/apis/{GROUP}/v1/namespaces/default/row{number}s");
        native.wait_until_served(&collection);
        let union = union(row);
        let table = TruthTable::at(&schema, &Place::root().property("spec"), &union).unwrap();
        assert!(table.is_complete());
        for row in table.rows() {
            let sample =
                TruthTable::sample(&schema, &Place::root().property("spec"), &union, &row.combination).unwrap();
            let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": {"name": "o"},
                "spec": sample.object});
            let path = format!("{collection}?dryRun=All");
            let mut status = 0;
            let answered = eventually(IN_FORCE, || {
                status = native.send("POST", &path, &object).status;
                status == 201 || status == 422
            });
            assert!(answered, "{description}: {object}: {status}");
            let agrees = match (&row.decision, status) {
                (Decision::Rejected { .. }, 422) | (Decision::Allowed, 201) => true,
                // A rule about contents may reject an object that was not found acceptable.
                (Decision::Allowed, 422) => !sample.accepted,
                (Decision::Undecided { .. }, _) => {
                    undecided += 1;
                    !sample.accepted || status == 201
                }
                _ => false,
            };
            decided += usize::from(!matches!(row.decision, Decision::Undecided { .. }));
            if !agrees {
                differences.push(format!("{description}: {}: {:?}, but {status}", sample.object, row.decision));
            }
        }
    }
    println!("{decided} decided combinations, {undecided} undecided, {} differences", differences.len());
    assert!(decided > 100, "only {decided} combinations are decided");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_disagreements_of_check_cel_are_real() {
    let Some(native) = Native::shared() else { return };
    let text = read_to_string(root().join("tests/cases/check-cel/rows.yaml")).unwrap();
    let rows: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    let row = rows.iter().find(|row| row["verdicts"] == json!(["tooWeak", "tooStrong"])).unwrap();
    native.apply(&crd(GROUP, "Both", &[version("v1", &schema(row))]));
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/boths");
    native.wait_until_served(&collection);
    let mut with_unions = schema(row);
    with_unions["properties"]["spec"] = row["spec"].clone();
    let input = crd(GROUP, "Both", &[version("v1", &with_unions)]).to_string();
    let run = crate::webhook::kube_unions(&["check-cel", "-", "-o", "json"], &input);
    assert_eq!(run.code, Some(1), "{run:?}");
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let disagreements = found[0]["disagreements"].as_array().unwrap();
    assert!(disagreements.len() > 1, "{found:#}");
    for it in disagreements {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Both", "metadata": {"name": "o"}, "spec": it["object"]});
        let want = if it["verdict"] == "tooWeak" { 201 } else { 422 };
        let answered =
            eventually(IN_FORCE, || native.send("POST", &format!("{collection}?dryRun=All"), &object).status == want);
        assert!(answered, "{it:#}");
    }
}

#[test]
fn unions_are_proposed_from_the_crds_of_a_cluster() {
    let Some(native) = Native::shared() else { return };
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}}, "not": {"required": ["a", "b"]}}}});
    native.apply(&crd(GROUP, "Proposed", &[version("v1", &schema)]));
    native.wait_until_served(&format!("/apis/{GROUP}/v1/namespaces/default/proposeds"));
    let kubeconfig = format!("--kubeconfig={}", native.control_plane().admin_kubeconfig().display());
    let run = crate::webhook::kube_unions(&["generate", "--from-crd", "--kind", "proposeds", &kubeconfig], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let want = "  # proposeds.check-cel.example spec: not\n  - path: spec\n    fieldsToDiscriminateBy:\n      a: A\n      b: B\n";
    assert!(
        run.stdout.ends_with(want) && run.stdout.contains("# Proposed from the validations in the cluster."),
        "{run:?}"
    );
}

/// Returns every choice of these fields, with each value of the discriminator.
fn combinations(properties: &Map<String, Value>) -> Vec<Value> {
    let mut found = vec![Map::new()];
    for (name, field) in properties {
        let values = match (&field["enum"], field["type"].as_str()) {
            (Value::Array(values), _) => values.clone(),
            (_, Some("boolean")) => vec![json!(false), json!(true)],
            _ => vec![json!("x")],
        };
        let with = |object: &Map<String, Value>| {
            let object = object.clone();
            values.clone().into_iter().map(move |value| {
                let mut object = object.clone();
                object.insert(name.clone(), value);
                object
            })
        };
        let more: Vec<Map<String, Value>> = found.iter().flat_map(with).collect();
        found.extend(more);
    }
    found.into_iter().map(Value::Object).collect()
}

#[test]
fn proposed_groups_judge_as_the_rules_on_the_api_server() {
    let Some(native) = Native::shared() else { return };
    let text = read_to_string(root().join("tests/e2e/native/proposals.yaml")).unwrap();
    let rows: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    let kind = |number: usize| format!("Proposal{number}");
    let definitions = rows.iter().enumerate().map(|(number, row)| {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
        crd(GROUP, &kind(number), &[version("v1", &schema)])
    });
    let definitions: Vec<Value> = definitions.collect();
    for definition in &definitions {
        native.apply(definition);
    }
    let documents = |all: &[Value]| all.iter().map(|it| format!("---\n{it}\n")).collect::<Vec<_>>().concat();
    let proposed = crate::webhook::kube_unions(&["generate", "--from-crd", "-"], &documents(&definitions)).accepted();
    let declarations: Vec<Value> = crate::kind::documents(&proposed.stdout);
    let mut judged = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let declared = declarations.iter().find(|it| it["spec"]["target"]["kind"] == kind(number));
        let unions = declared.map(|it| it["spec"]["unions"].clone());
        let mut union = row["union"].clone();
        union["path"] = json!("spec");
        assert_eq!(unions, Some(json!([union])), "{}", row["description"]);

        let collection = format!("/apis/{GROUP}/v1/namespaces/default/{}s", kind(number).to_lowercase());
        native.wait_until_served(&collection);
        for (position, spec) in combinations(row["spec"]["properties"].as_object().unwrap()).into_iter().enumerate() {
            let metadata = json!({"name": format!("o{position}"), "namespace": "default"});
            let object =
                json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind(number), "metadata": metadata, "spec": spec});
            let mut status = 0;
            let answered = eventually(IN_FORCE, || {
                status = native.send("POST", &format!("{collection}?dryRun=All"), &object).status;
                status == 201 || status == 422
            });
            assert!(answered, "{object}: {status}");
            judged.push((number, object, status));
        }
    }
    let objects: Vec<Value> = judged.iter().map(|(_, object, _)| object.clone()).collect();
    let audited = [&definitions[..], &declarations[..], &objects[..]].concat();
    // A proposal only warns.
    let run = crate::webhook::kube_unions(&["audit", "--from", "-", "-o", "json"], &documents(&audited)).accepted();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let (mut rejected, mut differences) = (0, Vec::new());
    for (number, object, status) in &judged {
        let is_found =
            findings.iter().any(|it| it["name"] == object["metadata"]["name"] && it["kind"] == object["kind"]);
        let is_stricter = rows[*number]["stricter"] == true;
        rejected += usize::from(is_found);
        // An object without the required discriminator is rejected by the schema.
        let has_value =
            rows[*number]["union"]["discriminator"].as_str().is_none_or(|it| object["spec"][it] != Value::Null);
        if is_found && *status == 201 || (!is_found && *status == 422 && has_value && !is_stricter) {
            differences.push(format!("{}: {status}, but {is_found}: {}", rows[*number]["description"], object["spec"]));
        }
    }
    println!("{} objects, {rejected} of them rejected by the proposed unions", judged.len());
    assert_eq!(judged.len(), 32 + 32 + 24 + 8 + 16);
    assert!(rejected > 40 && differences.is_empty(), "{rejected} rejected\n{}", differences.join("\n"));
}
