//! `openapi`: both formats.

use super::{Folder, yaml};

const STACKS: &str = include_str!("../../e2e/kustomize/crd.yaml");
const GATEWAYS: &str = include_str!("../../../manifests/samples/gateway/crd.yaml");

#[test]
fn yaml_and_json_are_the_same_document_and_the_same_input_gives_the_same_text() {
    let folder = Folder::new(&[("crds/stacks.yaml", STACKS), ("crds/gateways.yaml", GATEWAYS)]);
    let run = |more: &[&str]| folder.run(&[&["openapi", "--from", "crds"], more].concat()).code(0).stdout;
    let document = run(&[]);
    assert_eq!(document, run(&["-o", "json"]));
    assert_eq!(yaml(&document), yaml(&run(&["-o", "yaml"])));
    assert!(document.ends_with("}\n") && document.starts_with("{\n"));
}
