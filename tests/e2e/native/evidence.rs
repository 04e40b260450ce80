//! The truth tables of `kube-unions-evidence` compared with the API server: every combination of the rows of
//! `tests/cases/check-cel` is created there. Where a table decides, both agree.

use super::{IN_FORCE, Native};
use crate::support::kind::documents;
use crate::support::resource::Resource;
use crate::support::webhook::kube_unions;
use fixtures::crds::{crd, version};
use fixtures::files::{parse, root};
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

/// Returns the status of the answer to the creation of an object with this `spec`: 201 or 422.
fn status_of(native: &Native, resource: &Resource, spec: &Value) -> u16 {
    let (path, object) = (format!("{}?dryRun=All", resource.path("")), resource.object("o", &json!({"spec": spec})));
    let mut status = 0;
    let answered = eventually(IN_FORCE, || {
        status = native.send("POST", &path, &object).status;
        status == 201 || status == 422
    });
    assert!(answered, "{object}: {status}");
    status
}

/// Returns the rows of a file of YAML.
fn rows(path: &str) -> Vec<Value> {
    parse(path, &read_to_string(root().join(path)).unwrap())
}

#[test]
fn the_truth_tables_are_those_of_the_api_server() {
    let Some(native) = Native::shared() else { return };
    let rows = rows("tests/cases/check-cel/rows.yaml");
    let (mut decided, mut undecided, mut differences) = (0, 0, Vec::new());
    let is_refused = |row: &Value| row["refused"].as_bool().unwrap_or(false);
    let definition = |number: usize| crd(GROUP, &format!("Row{number}"), &[version("v1", &schema(&rows[number]))]);
    for (number, row) in rows.iter().enumerate() {
        let created = native.try_apply(&definition(number));
        assert_eq!(created.is_success(), !is_refused(row), "{}: {}", row["description"], created.body);
    }
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| !is_refused(row)) {
        let (resource, schema, description) =
            (Resource::of_definition(&definition(number)), schema(row), &row["description"]);
        native.wait_until_served(&resource.path(""));
        let union = union(row);
        let table = TruthTable::at(&schema, &Place::root().property("spec"), &union).unwrap();
        assert!(table.is_complete());
        for row in table.rows() {
            let sample =
                TruthTable::sample(&schema, &Place::root().property("spec"), &union, &row.combination).unwrap();
            let status = status_of(native, &resource, &json!(sample.object));
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
    let rows = rows("tests/cases/check-cel/rows.yaml");
    let row = rows.iter().find(|row| row["verdicts"] == json!(["tooWeak", "tooStrong"])).unwrap();
    let definition = crd(GROUP, "Both", &[version("v1", &schema(row))]);
    let resource = Resource::of_definition(&definition);
    native.apply(&definition);
    native.wait_until_served(&resource.path(""));
    let mut with_unions = schema(row);
    with_unions["properties"]["spec"] = row["spec"].clone();
    let input = crd(GROUP, "Both", &[version("v1", &with_unions)]).to_string();
    let run = kube_unions(&["check-cel", "-", "-o", "json"], &input);
    assert_eq!(run.code, Some(1), "{run:?}");
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let disagreements = found[0]["disagreements"].as_array().unwrap();
    assert!(disagreements.len() > 1, "{found:#}");
    for it in disagreements {
        let want = if it["verdict"] == "tooWeak" { 201 } else { 422 };
        assert_eq!(status_of(native, &resource, &it["object"]), want, "{it:#}");
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
    let run = kube_unions(&["propose", "--kind", "proposeds", &kubeconfig], "");
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
    let rows = rows("tests/e2e/native/proposals.yaml");
    let kind = |number: usize| format!("Proposal{number}");
    let definitions = rows.iter().enumerate().map(|(number, row)| {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
        crd(GROUP, &kind(number), &[version("v1", &schema)])
    });
    let definitions: Vec<Value> = definitions.collect();
    for definition in &definitions {
        native.apply(definition);
    }
    let text = |all: &[Value]| all.iter().map(|it| format!("---\n{it}\n")).collect::<Vec<_>>().concat();
    let proposed = kube_unions(&["propose", "-"], &text(&definitions)).accepted();
    let declarations: Vec<Value> = documents(&proposed.stdout);
    let mut judged = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let declared = declarations.iter().find(|it| it["spec"]["target"]["kind"] == kind(number));
        let unions = declared.map(|it| it["spec"]["unions"].clone());
        let mut union = row["union"].clone();
        union["path"] = json!("spec");
        assert_eq!(unions, Some(json!([union])), "{}", row["description"]);

        let resource = Resource::of_definition(&definitions[number]);
        native.wait_until_served(&resource.path(""));
        for (position, spec) in combinations(row["spec"]["properties"].as_object().unwrap()).into_iter().enumerate() {
            let status = status_of(native, &resource, &spec);
            judged.push((number, resource.object(&format!("o{position}"), &json!({"spec": spec})), status));
        }
    }
    let objects: Vec<Value> = judged.iter().map(|(_, object, _)| object.clone()).collect();
    let audited = [&definitions[..], &declarations[..], &objects[..]].concat();
    // A proposal only warns.
    let run = kube_unions(&["audit", "--from", "-", "-o", "json"], &text(&audited)).accepted();
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
