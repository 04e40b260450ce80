//! The sources of a schema: CRDs with their unions, OpenAPI documents and JSON schemas.

use super::{answers, fault, json_schema};
use fixtures::files::{parse, root};
use serde_json::{Value, json};
use std::fs;

fn gateway_crd() -> Value {
    let path = "manifests/samples/gateway/crd.yaml";
    parse(path, &fs::read_to_string(root().join(path)).unwrap())
}

fn definition(parts: &Value) -> (&'static str, Value) {
    ("define", json!({"schema": "s", "source": {"definition": parts}}))
}

fn apply(original: &Value, patch: &Value) -> (&'static str, Value) {
    ("apply", json!({"schema": "s", "original": original, "patch": patch}))
}

#[test]
fn a_crd_merges_its_lists_and_clears_what_its_unions_exclude() {
    let original = json!({"kind": "Gateway", "spec": {"exposure": {"type": "NodePort", "nodePort": {"first": 1}}}});
    let modified = json!({"kind": "Gateway", "spec": {"exposure": {"type": "Internal"}}});
    let create = ("createTwoWay", json!({"schema": "s", "original": original, "modified": modified}));
    let port = |protocol: &str, target: u16| json!({"port": 53, "protocol": protocol, "targetPort": target});
    let patch = json!({"$patchMergeKey": ["port", "protocol"], "port": 53, "protocol": "UDP", "targetPort": 3});
    let object = json!({"spec": {"ports": [port("TCP", 1), port("UDP", 2)]}});
    let merge = apply(&object, &json!({"spec": {"ports": [patch]}}));
    for version in [json!({"document": gateway_crd()}), json!({"document": gateway_crd(), "version": "v1"})] {
        let answers = answers(&[definition(&version), create.clone(), merge.clone()]);
        assert_eq!(answers[0]["result"], json!({"warnings": []}));
        assert_eq!(
            answers[1]["result"],
            json!({"spec": {"exposure": {"$retainKeys": ["type"], "type": "Internal", "nodePort": null}}})
        );
        assert_eq!(answers[2]["result"]["spec"]["ports"], json!([port("TCP", 1), port("UDP", 3)]));
    }
}

#[test]
fn a_union_declaration_adds_a_union_or_a_warning() {
    let declaration = |kind: &str, path: &str| {
        json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "d"},
            "spec": {"target": {"group": "samples.kube-unions.dev", "kind": kind},
            "unions": [{"path": path, "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]}})
    };
    let mut crd = gateway_crd();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["source"] =
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let create = (
        "createTwoWay",
        json!({"schema": "s", "original": {"spec": {"source": {"a": "x"}}},
        "modified": {"spec": {"source": {"b": "x"}}}}),
    );
    let defined = |declaration: Value| {
        let mut answers =
            answers(&[definition(&json!({"document": crd, "unionDeclarations": [declaration]})), create.clone()]);
        let patch = answers.pop().unwrap()["result"]["spec"]["source"].clone();
        (answers.pop().unwrap()["result"]["warnings"].clone(), patch)
    };

    let without = json!({"a": null, "b": "x"});
    let (warnings, patch) = defined(declaration("Gateway", "spec.source"));
    assert_eq!((warnings, patch), (json!([]), json!({"$retainKeys": ["b"], "a": null, "b": "x"})));
    let (warnings, patch) = defined(declaration("Other", "spec.source"));
    assert_eq!(warnings, json!(["the UnionDeclaration `d` is not about the kind `Gateway`"]));
    assert_eq!(patch, without);
    let (warnings, patch) = defined(declaration("Gateway", "spec.source["));
    assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
    assert!(warnings[0].as_str().unwrap().starts_with("spec.source[: "), "{warnings}");
    assert_eq!(patch, without);
}

#[test]
fn an_openapi_document_has_the_rules_of_its_kinds() {
    let document = json!({"components": {"schemas": {"io.k8s.api.apps.v1.Deployment": {"type": "object",
        "properties": {"containers": {"type": "array", "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name", "items": {"type": "object",
        "properties": {"name": {"type": "string"}, "image": {"type": "string"}}}}},
        "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}]}}}});
    let source = |kind: &str| {
        (
            "define",
            json!({"schema": "s", "source": {"openapi":
            {"document": document, "group": "apps", "version": "v1", "kind": kind}}}),
        )
    };
    let patch = apply(&json!({"containers": [{"name": "a"}]}), &json!({"containers": [{"name": "a", "image": "i"}]}));
    let answered = answers(&[source("Deployment"), patch, source("Pod")]);
    assert_eq!(answered[1]["result"], json!({"containers": [{"name": "a", "image": "i"}]}));
    let (reason, code, message, _) = fault(&answered[2]);
    assert_eq!((reason, code, message), ("InvalidSchema", 2, "the document does not describe the kind `Pod`"));
}

#[test]
fn a_bad_schema_is_told_and_leaves_the_old_one_in_place() {
    let mut two_versions = gateway_crd();
    let mut second = two_versions["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    two_versions["spec"]["versions"].as_array_mut().unwrap().push(second);
    let rows = [
        (
            definition(&json!({"document": gateway_crd(), "version": "v3"})).1,
            "no version `v3`: `gateways.samples.kube-unions.dev` has `v1`",
        ),
        (
            definition(&json!({"document": two_versions})).1,
            "select a version: `gateways.samples.kube-unions.dev` has `v1`, `v2`",
        ),
        (definition(&json!({"document": [gateway_crd()]})).1, "the document of the schema is not an object"),
        (definition(&json!({"document": {"kind": "Pod"}})).1, "not a readable CustomResourceDefinition"),
        (
            definition(&json!({"document": gateway_crd(), "unionDeclarations": [{"kind": "Pod"}]})).1,
            "not a readable UnionDeclaration",
        ),
        (json_schema("s", &json!([])), "the document of the schema is not an object"),
        (
            json_schema("s", &json!({"properties": {"a": {"x-kubernetes-patch-strategy": "upsert"}}})),
            "a: unexpected patch strategy `upsert`",
        ),
        (
            json!({"schema": "s", "source": {"openapi": {"document": {}, "version": "v1", "kind": "Pod"}}}),
            "not an OpenAPI document of version 2 or 3",
        ),
    ];
    let set =
        json!({"properties": {"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    for (bad, message) in rows {
        let merge = apply(&json!({"l": ["a"]}), &json!({"l": ["b"]}));
        let answers = answers(&[("define", json_schema("s", &set)), ("define", bad), merge]);
        let (reason, code, found, _) = fault(&answers[1]);
        assert_eq!((reason, code), ("InvalidSchema", 2), "{found}");
        assert!(found.starts_with(message), "{found}");
        assert_eq!(answers[2]["result"]["l"].as_array().map(Vec::len), Some(2), "{found}");
    }
}

#[test]
fn strict_refuses_to_guess_which_item_loses_its_key() {
    let document = json!({"properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"], "items": {"type": "object"}}}});
    let object = json!({"l": [{"a": 1, "b": 1}, {"a": 1, "b": 2}]});
    let merge = apply(&object, &json!({"l": [{"$patchMergeKey": ["a", "b"], "a": 1, "b": null}]}));
    let mut strict = json_schema("s", &document);
    strict["strict"] = json!(true);
    let answers = answers(&[("define", json_schema("s", &document)), merge.clone(), ("define", strict), merge]);
    assert_eq!(answers[1]["result"]["l"], json!([{"a": 1}, {"a": 1, "b": 2}]), "the first item loses it");
    assert_eq!(fault(&answers[3]).0, "Refused");
}
