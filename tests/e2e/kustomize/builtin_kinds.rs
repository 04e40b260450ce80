//! Built-in kinds: our document takes the place of the one that is compiled into kustomize, and keeps its rules.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{DOCUMENT, Kustomization, patches};
use crate::support::cluster::{is_left_out, say};
use crate::support::kind::documents;
use crate::support::kubectl;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/compile/kustomize/builtin.json");
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/controlplane");

#[test]
fn the_rules_of_built_in_kinds_are_those_in_kustomize() {
    if is_left_out() {
        return;
    }
    if Command::new("go").arg("version").output().is_err() {
        return say("left out, since there is no Go to read the rules out of kustomize");
    }
    let mut command = Command::new("go");
    command.current_dir(MODULES).args(["run", "-mod=readonly", "./kustomize-kinds"]);
    let rules = kubectl::run(command, "go run ./kustomize-kinds", "").accepted().stdout;
    if std::env::var_os("KUBE_UNIONS_UPDATE").is_some() {
        return fs::write(RULES, rules).unwrap();
    }
    assert!(fs::read_to_string(RULES).unwrap() == rules, "{RULES} is out of date: repeat with KUBE_UNIONS_UPDATE=1");
}

#[test]
fn objects_of_built_in_kinds_are_built_as_without_the_document() {
    let Some(kustomization) = Kustomization::new() else { return };
    let objects = corpus();
    assert!(objects.len() >= 60, "{} objects are not many", objects.len());
    let last_items: Vec<Value> = objects.iter().map(last_items).collect();
    let build = |fields: &Value| {
        let mut fields = fields.clone();
        fields["patches"] = patches(&last_items);
        documents(&kustomization.run(&objects, &fields).accepted().stdout)
    };
    let without = build(&json!({}));
    assert_eq!(without.len(), objects.len());

    let mut document = kustomization.write_document();
    let with = build(&json!({"openapi": {"path": DOCUMENT}}));
    assert_eq!(without.len(), with.len());
    for (without, with) in without.iter().zip(&with) {
        assert_eq!(without, with);
    }

    // Without the rules of built-in kinds, the lists would be replaced.
    document["definitions"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("io.k8s."));
    kustomization.workspace.write(DOCUMENT, &document.to_string());
    let replaced = build(&json!({"openapi": {"path": DOCUMENT}}));
    let differing = without.iter().zip(&replaced).filter(|(one, other)| one != other).count();
    assert!(differing >= 10, "only {differing} objects have a list of several items that merges");
}

/// Returns the objects of the corpus under names of their own.
fn corpus() -> Vec<Value> {
    let mut objects = crate::corpus::corpus().concat();
    for (position, object) in objects.iter_mut().enumerate() {
        object["metadata"]["name"] = json!(format!("object-{position}"));
    }
    objects
}

/// Returns an object whose lists have only their last items.
fn last_items(object: &Value) -> Value {
    match object {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), last_items(value))).collect(),
        Value::Array(items) => items.last().map(last_items).into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => object.clone(),
    }
}
