//! CRDs that Crossplane and kro make: every command reads them out of the documents that they are made of.
//!
//! `make definitions-differential` compares them with the CRDs of these projects.

use super::Folder;
use serde_json::{Value, json};

const COMPOSITE: &str = include_str!("../../definitions/sources/composite.yaml");
const GRAPH: &str = include_str!("../../definitions/sources/graph.yaml");

fn folder() -> Folder {
    Folder::new(&[("composite.yaml", COMPOSITE), ("graph.yaml", GRAPH)])
}

/// The kinds that `explain` shows, each with the paths of its unions.
fn kinds(explained: &Value) -> Vec<Value> {
    let paths = |kind: &Value| -> Vec<Value> {
        kind["unions"].as_array().unwrap().iter().map(|union| union["path"].clone()).collect()
    };
    let all = explained.as_array().unwrap().iter();
    all.map(|kind| json!([kind["kind"], kind["version"], paths(kind)])).collect()
}

#[test]
fn a_composite_resource_and_its_claim_are_kinds_with_unions() {
    let folder = folder();
    let explained = folder.run(&["explain", "--from", "composite.yaml", "-o", "json"]).code(0).json();
    assert_eq!(
        kinds(&explained),
        [
            json!(["Database", "v1", ["spec.engine", "spec.replicas[*]"]]),
            json!(["XDatabase", "v1", ["spec.engine", "spec.replicas[*]"]]),
            json!(["Database", "v1alpha1", ["spec"]]),
            json!(["XDatabase", "v1alpha1", ["spec"]]),
        ]
    );
}

#[test]
fn annotate_writes_where_the_annotation_reaches_the_crd() {
    let folder = folder();
    let annotated = folder.run(&["annotate", "composite.yaml", "graph.yaml"]).code(0).stdout;
    assert!(!annotated.contains("x-kubernetes-unions"), "{annotated}");
    // Comments stay.
    assert!(annotated.contains("engine: # one of both"), "{annotated}");
    let (composite, graph) = annotated.split_once("kind: ResourceGraphDefinition").unwrap();
    assert!(
        composite.contains("\n  metadata:\n    annotations:\n      kube-unions.dev/unions: '{\"v1\":"),
        "{composite}"
    );
    assert!(
        graph.contains("\n    metadata:\n      annotations:\n        kube-unions.dev/unions: '{\"v1alpha1\":"),
        "{graph}"
    );
    assert_eq!(graph.matches("kube-unions.dev/unions").count(), 1, "the annotation moves: {graph}");

    let again = Folder::new(&[("annotated.yaml", &annotated)]);
    assert_eq!(again.run(&["annotate", "annotated.yaml"]).code(0).stdout, annotated);
    let explained = again.run(&["explain", "--from", "annotated.yaml", "-o", "json"]).code(0).json();
    assert_eq!(
        kinds(&explained).iter().find(|kind| kind[0] == "Shop").unwrap(),
        &json!(["Shop", "v1alpha1", ["spec.mounts[*]", "spec.pools.*", "spec.source", "spec.strategy"]])
    );
    again.run(&["lint", "--strict", "annotated.yaml"]).code(0);
}

#[test]
fn rules_go_into_the_schema_of_a_composite_resource_and_not_into_a_graph() {
    let folder = folder();
    let ruled = folder.run(&["compile", "--to", "cel", "--from", "composite.yaml"]).code(0).stdout;
    assert!(ruled.contains("kind: CompositeResourceDefinition"), "{ruled}");
    assert_eq!(ruled.matches("// kube-unions").count(), 6, "{ruled}");
    let annotated = folder.run(&["annotate", "graph.yaml"]).code(0).stdout;
    let graph = Folder::new(&[("graph.yaml", &annotated)]);
    let refused = graph.run(&["compile", "--to", "cel", "--from", "graph.yaml"]).code(1);
    assert!(refused.stderr.contains("SimpleSchema, which has no place for the rules"), "{}", refused.stderr);
    let policies = graph.run(&["compile", "--to", "policies", "--from", "graph.yaml"]).code(0).stdout;
    assert!(policies.contains("resources: [shops]"), "{policies}");
}
