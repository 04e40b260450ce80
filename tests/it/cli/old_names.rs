//! The names that commands had before they became part of others: the same flags, output and exit codes.

use super::{Folder, binary, run, yaml};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::Command;

const STACKS: &str = include_str!("../../e2e/kustomize/crd.yaml");
const GATEWAYS: &str = include_str!("../../../manifests/samples/gateway/crd.yaml");

#[test]
fn openapi_prints_the_document_of_compile_in_both_formats() {
    let folder = Folder::new(&[("crds/stacks.yaml", STACKS), ("crds/gateways.yaml", GATEWAYS)]);
    let today = folder.run(&["compile", "--to", "kustomize", "--from", "crds"]).code(0);
    let run = |more: &[&str]| folder.run(&[&["openapi", "--from", "crds"], more].concat()).code(0);
    let old = run(&[]);
    assert_eq!((&old.stdout, &old.stderr), (&today.stdout, &today.stderr));
    assert_eq!(old.stdout, run(&["-o", "json"]).stdout);
    assert_eq!(yaml(&old.stdout), yaml(&run(&["-o", "yaml"]).stdout));
    assert!(old.stdout.ends_with("}\n") && old.stdout.starts_with("{\n"));
}

#[test]
fn man_writes_the_pages_of_completion_man() {
    let folder = Folder::new(&[]);
    folder.run(&["man", "old"]).code(0).prints("");
    folder.run(&["completion", "man", "today"]).code(0).prints("");
    let pages = |name: &str| -> BTreeMap<OsString, String> {
        let entries = fs::read_dir(folder.path().join(name)).unwrap().map(Result::unwrap);
        entries.map(|page| (page.file_name(), fs::read_to_string(page.path()).unwrap())).collect()
    };
    assert!(pages("today").len() > 20);
    assert_eq!(pages("old"), pages("today"));
    folder.run(&["man"]).code(2).says(&["<DIR>"]);
}

#[test]
fn review_answers_as_normalize_does_and_reads_standard_input() {
    let review = |kind: &str| {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"strategy": {"type": kind, "rolling": {"surge": 1}}}});
        let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "1", "operation": "CREATE", "kind": kind, "object": object}})
    };
    let folder = Folder::with_crd(&[
        ("good.json", &review("Rolling").to_string()),
        ("bad.json", &review("Bogus").to_string()),
        ("object.yaml", "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"),
    ]);
    for (more, code) in [
        (&["-f", "good.json"][..], 0),
        (&["-f", "bad.json"], 1),
        (&["-f", "bad.json", "--phase", "mutate"], 0),
        (&["-f", "bad.json", "--phase", "validate", "--ratcheting", "disabled"], 1),
        (&["-f", "object.yaml"], 2),
    ] {
        let old = folder.run(&[&["review", "--from", "crd.yaml"], more].concat()).code(code);
        let today = folder.run(&[&["normalize", "--from", "crd.yaml", "-o", "review"], more].concat()).code(code);
        assert_eq!((&old.stdout, &old.stderr), (&today.stdout, &today.stderr), "{more:?}");
        assert_eq!(old.stdout.is_empty(), code == 2, "{more:?}");
    }
    let program = |arguments: &[&str]| run(Command::new(binary()).current_dir(folder.path()).args(arguments), b"{}");
    let said = ["standard input cannot be answered"];
    program(&["review", "--from", "crd.yaml"]).code(2).says(&said);
    program(&["normalize", "--from", "crd.yaml", "-o", "review", "-f", "-"]).code(2).says(&said);
}
