//! The functions in `manifests/kustomize`, run by kustomize.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{CRD, Kustomization, object};
use crate::kind::documents;

const FUNCTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/kustomize");

const UNIONS: &str = "kube-unions.dev/unions";

/// Returns a kustomization with a function beside it.
fn with_function(name: &str) -> Option<(Kustomization, Value)> {
    let kustomization = Kustomization::new()?;
    let file = format!("{name}.yaml");
    fs::copy(Path::new(FUNCTIONS).join(&file), kustomization.workspace.path().join(&file)).unwrap();
    Some((kustomization, json!({"transformers": [file]})))
}

#[test]
fn annotate_moves_unions_into_the_annotation_and_leaves_other_objects_alone() {
    let Some((kustomization, fields)) = with_function("annotate") else { return };
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
    moved.iter_mut().for_each(crate::kind::forget_unions);
    assert_eq!(with, moved);
}

#[test]
fn a_function_is_not_run_unless_the_user_allows_it() {
    let Some((kustomization, fields)) = with_function("annotate") else { return };
    kustomization.run(&documents(&fs::read_to_string(CRD).unwrap()), &fields).accepted();
    kustomization.build_with(&["build", "."]).refused("unable to load external plugin 'Annotate'");
}
