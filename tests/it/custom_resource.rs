//! The CRD of `UnionDeclaration`: what is checked in is what the code says.

use fixtures::files::assert_generated;
use kube::CustomResourceExt;
use kube_unions_core::declaration::UnionDeclaration;
use serde_json::{Value, json};

const HEADER: &str = "# Made from the code by `make manifests`.\n";

/// The checked-in file. The chart has a link to it.
const FILE: &str = "manifests/webhook/crd.yaml";

#[test]
fn the_checked_in_crd_is_the_one_of_the_code() {
    let crd = serde_json::to_value(UnionDeclaration::crd()).unwrap();
    let text = format!("{HEADER}{}", serde_saphyr::to_string(&crd).unwrap());
    assert_generated(FILE, &text, "make manifests");
    // The text reads back as the same value, so no string became another type.
    assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), crd);
}

#[test]
fn the_schema_is_structural_and_says_how_lists_merge() {
    let crd = serde_json::to_value(UnionDeclaration::crd()).unwrap();
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"], json!({"status": {}}));
    assert_eq!(crd["spec"]["scope"], "Cluster");
    let mut lists = Vec::new();
    walk(&version["schema"]["openAPIV3Schema"], "", &mut lists);
    assert_eq!(
        lists,
        [
            ".spec.podTemplates: set",
            ".spec.target.versions: set",
            ".spec.unions: atomic",
            ".spec.unions[*].emptyIsUnset: set",
            ".spec.unions[*].members: set",
            ".spec.validationActions: set",
            ".status.conditions: map",
        ]
    );
    let actions = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["validationActions"];
    assert_eq!(actions["items"]["enum"], json!(["Deny", "Warn", "Audit"]));
    assert_eq!(actions["default"], json!(["Deny"]));
    // A default would add the field to stored declarations, and an older replica refuses a field that it does not know.
    let normalization = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["normalization"];
    assert_eq!(normalization["enum"], json!(["Enabled", "Disabled"]));
    assert_eq!(normalization.get("default"), None);
}

/// Collects each list with its type, and stops at an object that is closed and has properties.
fn walk(schema: &Value, path: &str, lists: &mut Vec<String>) {
    assert!(schema.get("properties").is_none() || schema.get("additionalProperties").is_none(), "{path}");
    if schema["type"] == "array" {
        lists.push(format!("{path}: {}", schema["x-kubernetes-list-type"].as_str().unwrap_or("none")));
        walk(&schema["items"], &format!("{path}[*]"), lists);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), lists);
    }
    lists.sort();
}
