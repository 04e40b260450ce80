//! `openapi`: the document for kustomize, and the messages beside it. The end-to-end tests have kustomize read it.

use super::{Folder, Run, yaml};
use serde_json::{Value, json};

const STACKS: &str = include_str!("../../e2e/kustomize/crd.yaml");
const PIPELINES: &str = include_str!("../../../manifests/samples/pipeline/crd.yaml");
const GATEWAYS: &str = include_str!("../../../manifests/samples/gateway/crd.yaml");

/// Returns the names of the definitions of custom resources.
fn custom(run: &Run) -> Vec<String> {
    let document = run.json();
    let definitions = document["definitions"].as_object().unwrap();
    definitions.keys().filter(|name| !name.starts_with("io.k8s.")).cloned().collect()
}

#[test]
fn each_served_version_has_a_definition_with_its_kind() {
    let run = Folder::new(&[("crd.yaml", STACKS)]).run(&["openapi", "--from", "crd.yaml"]).code(0);
    let names =
        ["com.example.kustomize.v1.Stack", "com.example.kustomize.v1.Zone", "com.example.kustomize.v1beta1.Stack"];
    assert_eq!(custom(&run), names);
    let document = run.json();
    assert_eq!(document["swagger"], "2.0");
    let definition = &document["definitions"]["com.example.kustomize.v1beta1.Stack"];
    let kind = json!([{"group": "kustomize.example.com", "version": "v1beta1", "kind": "Stack"}]);
    assert_eq!(definition["x-kubernetes-group-version-kind"], kind);
    let containers = &definition["properties"]["spec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "image");
    assert_eq!(containers["x-kubernetes-list-map-keys"], Value::Null);
    let ports = &containers["items"]["properties"]["ports"];
    let want = json!({
        "type": "array",
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "port",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    });
    assert_eq!(*ports, want);
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["/apis/kustomize.example.com/v1/zones/{name}"]);
}

#[test]
fn standard_error_names_what_kustomize_merges_otherwise() {
    let run = Folder::new(&[("crd.yaml", STACKS)]).run(&["openapi", "--from", "crd.yaml"]).code(0);
    let notes: Vec<String> = run.stderr.lines().map(|line| line.split_inclusive(": ").take(3).collect()).collect();
    let stack = "Note: Stack.kustomize.example.com v1: ";
    assert_eq!(
        notes,
        [
            "crd.yaml:9:3: stacks.kustomize.example.com: note: ".to_owned(),
            format!("{stack}spec.listeners: "),
            format!("{stack}spec.selector: "),
            format!("{stack}spec.sources: "),
            format!("{stack}spec.strategy: "),
            "3 versions: 13 merging lists, 2 unions".to_owned(),
        ]
    );
    run.says(&["lacks a key which another item has: write `protocol` in each item"]);
}

#[test]
fn a_union_at_the_root_is_told_as_any_other() {
    let mut crd = yaml(PIPELINES);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
    });
    let run = Folder::new(&[]).pipe(&["openapi", "--from", "-"], crd.to_string()).code(0);
    run.says(&["Note: Pipeline.samples.kube-unions.dev v1: the root: kustomize does not clear", ", 1 union\n"]);
}

#[test]
fn one_line_is_about_several_versions() {
    let mut crd = yaml(GATEWAYS);
    let mut version = crd["spec"]["versions"][0].clone();
    version["name"] = json!("v2");
    version["storage"] = json!(false);
    crd["spec"]["versions"].as_array_mut().unwrap().push(version);
    let run = Folder::new(&[]).pipe(&["openapi", "--from", "-"], crd.to_string()).code(0);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("Note: Gateway.samples.kube-unions.dev v1, v2: spec.exposure: "), "{lines:#?}");
    assert_eq!(lines[2], "2 versions: 4 merging lists, 2 unions");
}

#[test]
fn yaml_and_json_are_the_same_document_and_the_same_input_gives_the_same_text() {
    let folder = Folder::new(&[("crds/stacks.yaml", STACKS), ("crds/gateways.yaml", GATEWAYS)]);
    let run = |more: &[&str]| folder.run(&[&["openapi", "--from", "crds"], more].concat()).code(0).stdout;
    let document = run(&[]);
    assert_eq!(document, run(&["-o", "json"]));
    assert_eq!(yaml(&document), yaml(&run(&["-o", "yaml"])));
    assert!(document.ends_with("}\n") && document.starts_with("{\n"));
}

#[test]
fn kinds_without_a_list_that_merges_are_a_warning() {
    let folder = Folder::new(&[("crd.yaml", PIPELINES)]);
    let warning = ["Warning: nothing merges by a key", "`crd.yaml`", "1 version: 0 merging lists, 1 union"];
    let run = folder.run(&["openapi", "--from", "crd.yaml"]).code(0).says(&warning);
    assert_eq!(custom(&run), ["dev.kube-unions.samples.v1.Pipeline"]);
    folder.run(&["openapi", "--from", "crd.yaml", "--require"]).code(1).says(&warning);
}

#[test]
fn an_error_in_a_declaration_is_told_and_the_document_is_complete() {
    let broken = GATEWAYS.replace("{name: nodePort,", "{name: nodPort,");
    assert_ne!(broken, GATEWAYS);
    let run = Folder::new(&[("crd.yaml", &broken)]).run(&["openapi", "--from", "crd.yaml"]).code(1);
    assert_eq!(custom(&run), ["dev.kube-unions.samples.v1.Gateway"]);
    run.says(&["crd.yaml:", "error: "]);
}
