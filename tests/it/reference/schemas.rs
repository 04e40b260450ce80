//! `docs/reference/schemas`: JSON Schemas for editors, which every declaration of this repository satisfies.

use super::assert_page;
use fixtures::files::{files, root};
use jsonschema::Validator;
use kube_unions::cli::annotated;
use kube_unions_core::declaration::{ANNOTATION, annotation_json_schema, union_declaration_json_schema};
use serde_json::{Value, json};

fn page(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

#[test]
fn the_schemas_are_up_to_date() {
    assert_page("schemas/annotation.json", &page(&annotation_json_schema()));
    assert_page("schemas/union-declaration.json", &page(&union_declaration_json_schema()));
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
        assert_eq!(errors(&validator, &document), Vec::<String>::new(), "{path}: {document}");
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
        assert_eq!(errors(&validator, &value), Vec::<String>::new(), "{text}");
    }
    assert!(count >= 7, "only {count} annotations were found");
}

#[test]
fn a_broken_declaration_has_its_error_at_its_place() {
    let validator = validator(&union_declaration_json_schema());
    let good = json!({
        "apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "a"},
        "spec": {"target": {"group": "apps", "kind": "Deployment"}, "unions": [
            {"path": "spec.strategy", "discriminator": "type", "fieldMembers": {"Recreate": {}}}]},
    });
    assert_eq!(errors(&validator, &good), Vec::<String>::new());
    for (pointer, value, wanted) in [
        ("/kind", json!("UnionDeclaratoin"), "/kind"),
        ("/apiVersion", json!("kube-unions.dev/v1"), "/apiVersion"),
        ("/metadata", json!({}), "/metadata"),
        ("/spec/target", json!({"group": "apps"}), "/spec/target"),
        ("/spec/unions", json!([]), "/spec"),
        ("/spec/unions/0", json!({"path": "spec", "discriminater": "type"}), "/spec/unions/0"),
        (
            "/spec/unions/0/fieldMembers/Recreate",
            json!({"name": "a", "optinal": true}),
            "/spec/unions/0/fieldMembers/Recreate",
        ),
        ("/spec/unions/0", json!({"path": "spec", "emptyIsUnset": ["a", "a"]}), "/spec/unions/0/emptyIsUnset"),
    ] {
        let mut broken = good.clone();
        *broken.pointer_mut(pointer).unwrap() = value;
        assert_eq!(errors(&validator, &broken), [wanted], "{broken}");
    }
    for (actions, is_valid) in [
        (json!(["Deny", "Audit"]), true),
        (json!(["Warn"]), true),
        (json!([]), false),
        (json!(["Deny", "Warn"]), false),
        (json!(["Deny", "Deny"]), false),
        (json!(["Refuse"]), false),
    ] {
        let mut declaration = good.clone();
        declaration["spec"]["validationActions"] = actions;
        assert_eq!(validator.is_valid(&declaration), is_valid, "{declaration}");
    }
}

#[test]
fn a_broken_annotation_has_its_error_at_its_place() {
    let validator = validator(&annotation_json_schema());
    for (value, wanted) in [
        (json!({"v1": {"": [{"fields-to-discriminateBy": {"a": "A"}}]}}), None),
        (
            json!({"v1": {"/properties/type": {"fieldMembers": {"A": null, "B": {"name": "b", "optional": true}}}}}),
            None,
        ),
        (json!({"v1": {"spec.type": {"fieldMembers": {"A": null}}}}), Some("/v1")),
        (json!({"v1": {"/a": {"fieldMember": {"A": null}}}}), Some("/v1/~1a")),
        (json!({"v1": {"/a": {"fieldMembers": {"A": {"optional": true}}}}}), Some("/v1/~1a")),
        (json!({"v1": {"/a": []}}), Some("/v1/~1a")),
        (json!({"v1": {"/a": [{"fields-to-discriminateBy": {"a": 1}}]}}), Some("/v1/~1a")),
        (json!({"v1": []}), Some("/v1")),
    ] {
        assert_eq!(errors(&validator, &value), wanted.into_iter().collect::<Vec<_>>(), "{value}");
    }
}
