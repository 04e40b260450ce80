//! The requests of `kubectl apply` for a custom resource or a CRD, without a process for each object.

use serde_json::{Map, Value, json};

use crate::http::{Answer, Client};

pub(crate) const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field manager of `kubectl apply`.
pub(crate) const MANAGER: &str = "fieldManager=kubectl-client-side-apply";

/// Applies a manifest. `None`: the stored object needs no patch, so nothing is sent.
pub(crate) fn apply(client: &Client, collection: &str, manifest: &Value) -> Option<Answer> {
    let url = format!("{collection}/{}", manifest["metadata"]["name"].as_str().expect("a manifest has a name"));
    let modified = annotated(manifest);
    let send = |method: &str, url: &str, content_type: &str, body: &str| {
        let answer = client.send(method, url, content_type, body.as_bytes());
        answer.unwrap_or_else(|error| panic!("{error}"))
    };
    let stored = send("GET", &url, "application/json", "");
    let query = format!("{MANAGER}&fieldValidation=Strict");
    if stored.status == 404 {
        return Some(send("POST", &format!("{collection}?{query}"), "application/json", &modified.to_string()));
    }
    assert!(stored.is_success(), "{url}: {stored:?}");
    let current = stored.body;
    let original = current["metadata"]["annotations"][ANNOTATION].as_str();
    let original = original.map_or(json!({}), |text| serde_json::from_str(text).expect("an annotation of ours"));
    let patch = three_way_patch(&original, &modified, &current);
    let is_needed = patch.as_object().is_some_and(|patch| !patch.is_empty());
    is_needed.then(|| send("PATCH", &format!("{url}?{query}"), "application/merge-patch+json", &patch.to_string()))
}

/// Returns a manifest with the annotation that `kubectl apply` adds.
pub(crate) fn annotated(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    if object["metadata"]["annotations"].is_null() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][ANNOTATION] = format!("{object}\n").into();
    object
}

/// Returns the patch that brings the changes of a manifest to the stored object, as apimachinery's `jsonmergepatch` does.
fn three_way_patch(original: &Value, modified: &Value, current: &Value) -> Value {
    let set = filtered(&difference(current, modified), false);
    let mut patch = filtered(&difference(original, modified), true);
    merge_patches(&mut patch, set);
    Value::Object(patch)
}

/// Returns the JSON merge patch that turns one object into another.
fn difference(from: &Value, to: &Value) -> Map<String, Value> {
    let (Some(from), Some(to)) = (from.as_object(), to.as_object()) else { return Map::new() };
    let mut patch: Map<String, Value> =
        from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        match from.get(name) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                patch.insert(name.clone(), Value::Object(difference(before, value)));
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    patch
}

/// Returns only the removals of a patch, or all but these.
fn filtered(patch: &Map<String, Value>, removals: bool) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in patch {
        if let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) {
            let inner = filtered(fields, removals);
            if !inner.is_empty() {
                kept.insert(name.clone(), Value::Object(inner));
            }
        } else if value.is_null() == removals {
            kept.insert(name.clone(), value.clone());
        }
    }
    kept
}

fn merge_patches(patch: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (patch.get_mut(&name).and_then(Value::as_object_mut), value) {
            (Some(inner), Value::Object(value)) => merge_patches(inner, value),
            (_, value) => drop(patch.insert(name, value)),
        }
    }
}
