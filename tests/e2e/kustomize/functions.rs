//! A function in `manifests/kustomize`, run by kustomize. The guide runs the other one.

use std::fs;

use serde_json::{Value, json};

use super::{CRD, Kustomization, object};
use crate::support::kind::documents;

const FUNCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/kustomize/annotate.yaml");

const UNIONS: &str = "kube-unions.dev/unions";

#[test]
fn annotate_moves_unions_into_the_annotation_and_leaves_other_objects_alone() {
    let Some(kustomization) = Kustomization::new() else { return };
    fs::copy(FUNCTION, kustomization.workspace.path().join("annotate.yaml")).unwrap();
    let fields = json!({"transformers": ["annotate.yaml"]});
    let mut objects = documents(&fs::read_to_string(CRD).unwrap());
    objects.push(object("Stack", &json!({"name": "shop"}), &json!({"hosts": ["b", "a"]})));
    let without = documents(&kustomization.run(&objects, &json!({})).accepted().stdout);
    let mut with = documents(&kustomization.run(&objects, &fields).accepted().stdout);
    assert_eq!((without.len(), with.len()), (4, 4));

    let is_stacks = |object: &&mut Value| object["metadata"]["name"] == "stacks.kustomize.example.com";
    let stacks = with.iter_mut().find(is_stacks).unwrap();
    let annotations = stacks["metadata"].as_object_mut().unwrap().remove("annotations").unwrap();
    assert_eq!(annotations.as_object().unwrap().keys().collect::<Vec<_>>(), [UNIONS]);
    let declared: Value = serde_json::from_str(annotations[UNIONS].as_str().unwrap()).unwrap();
    let strategy = &declared["v1"]["/properties/spec/properties/strategy"][0];
    assert_eq!(strategy["discriminator"], "type");
    let mut moved = without;
    moved.iter_mut().for_each(crate::support::kind::forget_unions);
    assert_eq!(with, moved);
}
