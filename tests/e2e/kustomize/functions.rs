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
fn normalize_deduces_a_discriminator_and_fails_the_build_for_two_members() {
    let Some((kustomization, fields)) = with_function("normalize") else { return };
    fs::copy(CRD, kustomization.workspace.path().join("crds.yaml")).unwrap();
    let stack = |strategy: &Value| {
        object("Stack", &json!({"name": "shop"}), &json!({"hosts": ["b", "a"], "strategy": strategy}))
    };
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": {"a": "1"}});
    let output = kustomization.run(&[config.clone(), stack(&json!({"canary": {"percent": 1}}))], &fields).accepted();
    let normalized = stack(&json!({"type": "Canary", "canary": {"percent": 1}}));
    assert_eq!(documents(&output.stdout), [config.clone(), normalized.clone()]);
    let said: Vec<&str> = output.stderr.lines().collect();
    let set = "Warning: spec.strategy.type: set to \"Canary\" because `canary` is set";
    assert_eq!(said, [set, "1 object: 1 changed, 0 rejected; 1 of kinds without unions"]);

    // A patch that leaves the old member where it is: kustomize merges it, and the function tells.
    let old = stack(&json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
    let build = |old_member: &Value| {
        let mut fields = fields.clone();
        let strategy = json!({"type": "Canary", "canary": {"percent": 1}});
        let mut patch = object("Stack", &json!({"name": "shop"}), &json!({"strategy": strategy}));
        patch["spec"]["strategy"].as_object_mut().unwrap().extend(old_member.as_object().unwrap().clone());
        fields["patches"] = super::patches(&[patch]);
        kustomization.run(&[config.clone(), old.clone()], &fields)
    };
    let refused = build(&json!({})).refused(
        "The Stack \"shop\" is invalid: spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \
         \"RollingUpdate\"",
    );
    assert_eq!(refused.stdout, "");
    assert_eq!(documents(&build(&json!({"rollingUpdate": null})).accepted().stdout), [config.clone(), normalized]);
}

#[test]
fn a_function_is_not_run_unless_the_user_allows_it() {
    let Some((kustomization, fields)) = with_function("annotate") else { return };
    kustomization.run(&documents(&fs::read_to_string(CRD).unwrap()), &fields).accepted();
    kustomization.build_with(&["build", "."]).refused("unable to load external plugin 'Annotate'");
}
