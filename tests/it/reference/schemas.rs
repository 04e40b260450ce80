//! `docs/reference/schemas`: JSON Schemas for editors, which every declaration of this repository satisfies.

use super::assert_page;
use fixtures::files::{files, parse, root};
use jsonschema::Validator;
use kube_unions::{annotated, suite_schema};
use kube_unions_core::declaration::{ANNOTATION, annotation_json_schema, union_declaration_json_schema};
use serde_json::{Value, json};

const SUITE: &str = include_str!("../../../manifests/samples/rollout/suite.yaml");

#[test]
fn the_schemas_are_up_to_date() {
    for (name, schema) in [
        ("annotation", annotation_json_schema()),
        ("union-declaration", union_declaration_json_schema()),
        ("suite", suite_schema()),
    ] {
        assert_page(&format!("schemas/{name}.json"), &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
    }
}

/// Returns a validator of a schema, which is itself valid.
fn validator(schema: &Value) -> Validator {
    jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{error}"));
    jsonschema::validator_for(schema).unwrap()
}

/// Returns the places of the errors, as JSON Pointers.
fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| error.instance_path().to_string()).collect()
}

/// Asserts that a document has no errors, and has errors at these places if a part of it is replaced by a value.
#[track_caller]
fn hold<const N: usize>(schema: &Value, good: &Value, rows: [(&str, Value, &[&str]); N]) {
    let validator = validator(schema);
    assert_eq!(errors(&validator, good), [""; 0]);
    for (pointer, value, places) in rows {
        let mut broken = good.clone();
        *broken.pointer_mut(pointer).unwrap() = value;
        assert_eq!(errors(&validator, &broken), places, "{broken}");
    }
}

fn documents(folder: &str) -> Vec<(String, Value)> {
    let parsed = |text: &str| serde_saphyr::from_multiple::<Value>(text).unwrap();
    let of_file = |(path, text): (String, String)| parsed(&text).into_iter().map(move |it| (path.clone(), it));
    files(folder, "yaml").into_iter().flat_map(of_file).collect()
}

#[test]
fn every_declaration_of_the_repository_satisfies_its_schema() {
    let validator = validator(&union_declaration_json_schema());
    let all = documents("manifests").into_iter().filter(|(_, document)| document["kind"] == "UnionDeclaration");
    let mut count = 0;
    for (path, document) in all {
        count += 1;
        assert_eq!(errors(&validator, &document), [""; 0], "{path}: {document}");
    }
    assert!(count >= 20, "only {count} declarations were found");
}

#[test]
fn every_annotation_that_annotate_writes_satisfies_its_schema() {
    let validator = validator(&annotation_json_schema());
    let mut count = 0;
    for folder in std::fs::read_dir(root().join("manifests/samples")).unwrap() {
        let Ok(crd) = std::fs::read_to_string(folder.unwrap().path().join("crd.yaml")) else { continue };
        let crd: Value = serde_saphyr::from_str(&annotated(&crd).unwrap()).unwrap();
        let Some(text) = crd["metadata"]["annotations"][ANNOTATION].as_str() else { continue };
        count += 1;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(errors(&validator, &value), [""; 0], "{text}");
    }
    assert!(count >= 7, "only {count} annotations were found");
}

#[test]
fn a_broken_declaration_has_its_error_at_its_place() {
    let good = json!({
        "apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "a"},
        "spec": {"target": {"group": "apps", "kind": "Deployment"}, "validationActions": ["Warn"], "unions": [
            {"path": "spec.strategy", "discriminator": "type", "fieldMembers": {"Recreate": {}}}]},
    });
    let recreate = "/spec/unions/0/fieldMembers/Recreate";
    let actions = "/spec/validationActions";
    hold(
        &union_declaration_json_schema(),
        &good,
        [
            ("/kind", json!("UnionDeclaratoin"), &["/kind"]),
            ("/apiVersion", json!("kube-unions.dev/v1"), &["/apiVersion"]),
            ("/metadata", json!({}), &["/metadata"]),
            ("/spec/target", json!({"group": "apps"}), &["/spec/target"]),
            ("/spec/unions", json!([]), &["/spec"]),
            ("/spec/unions/0", json!({"path": "spec", "discriminater": "type"}), &["/spec/unions/0"]),
            (recreate, json!({"name": "a", "optinal": true}), &[recreate]),
            ("/spec/unions/0", json!({"path": "spec", "emptyIsUnset": ["a", "a"]}), &["/spec/unions/0/emptyIsUnset"]),
            (actions, json!(["Deny", "Audit"]), &[]),
            (actions, json!([]), &[actions]),
            (actions, json!(["Deny", "Warn"]), &["/spec"]),
            (actions, json!(["Deny", "Deny"]), &[actions]),
            (actions, json!(["Refuse"]), &["/spec/validationActions/0"]),
        ],
    );
}

#[test]
fn a_broken_annotation_has_its_error_at_its_place() {
    let good = json!({"v1": {"": [{"fields-to-discriminateBy": {"a": "A"}}],
        "/properties/type": {"fieldMembers": {"A": null, "B": {"name": "b", "optional": true}}}}});
    hold(
        &annotation_json_schema(),
        &good,
        [
            ("", json!({"v1": {"spec.type": {"fieldMembers": {"A": null}}}}), &["/v1"]),
            ("", json!({"v1": {"/a": {"fieldMember": {"A": null}}}}), &["/v1/~1a"]),
            ("", json!({"v1": {"/a": {"fieldMembers": {"A": {"optional": true}}}}}), &["/v1/~1a"]),
            ("", json!({"v1": {"/a": []}}), &["/v1/~1a"]),
            ("", json!({"v1": {"/a": [{"fields-to-discriminateBy": {"a": 1}}]}}), &["/v1/~1a"]),
            ("", json!({"v1": []}), &["/v1"]),
        ],
    );
}

#[test]
fn a_broken_suite_has_its_error_at_its_place() {
    let want = "/tests/0/want";
    hold(
        &suite_schema(),
        &parse("suite.yaml", SUITE),
        [
            ("/kind", json!("Suites"), &["/kind"]),
            ("/apiVersion", json!("test.kube-unions.dev/v1"), &["/apiVersion"]),
            ("/from", json!([]), &["/from"]),
            ("/tests", json!([]), &["/tests"]),
            ("/tests/0", json!({"nam": "x", "new": "x.yaml", "want": {"accepted": {}}}), &["/tests/0", "/tests/0"]),
            ("/tests/0/name", json!(""), &["/tests/0/name"]),
            ("/tests/0/new", json!(1), &["/tests/0/new"]),
            (want, json!({}), &[want]),
            (want, json!({"accepted": null}), &["/tests/0/want/accepted"]),
            (want, json!({"accepted": {}, "rejected": {"causes": [{"field": "a"}]}}), &[want]),
            (want, json!({"rejected": {"causes": []}}), &["/tests/0/want/rejected/causes"]),
            (want, json!({"accept": {}}), &[want]),
        ],
    );
}
