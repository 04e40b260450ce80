//! The requests of `kubectl apply` for a custom resource or a CRD, without a process for each object. [`preview`](crate::preview)
//! compares the patch with that of the real kubectl.

use serde_json::{Value, json};
use strategic_merge_patch::json_merge::three_way;

use crate::support::http::{Answer, Client};

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
    let patch = three_way(&original, &modified, &current);
    let is_needed = patch.as_object().is_some_and(|patch| !patch.is_empty());
    is_needed.then(|| send("PATCH", &format!("{url}?{query}"), "application/merge-patch+json", &patch.to_string()))
}

/// Returns a manifest with the annotation that `kubectl apply` adds.
pub(crate) fn annotated(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    json_patch::merge(&mut object, &json!({"metadata": {"annotations": {}}}));
    object["metadata"]["annotations"][ANNOTATION] = format!("{object}\n").into();
    object
}
