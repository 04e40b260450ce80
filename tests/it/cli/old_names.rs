//! The names that commands had before they became part of others: the same flags, output and exit codes.

use super::{Folder, yaml};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

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
