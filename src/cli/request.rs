//! Builds the `AdmissionReview` that the API server would send. The texts of the objects go into it unchanged.

use super::manifest::Document;
use serde_json::json;

/// Returns an `AdmissionReview` for an update, or for a create if there is no old object.
pub(super) fn admission_review(new: &Document, old: Option<&Document>) -> String {
    let (group, version) = new.group_version();
    let kind = new.kind.as_deref().unwrap_or_default();
    let mut request = json!({
        "uid": "kube-unions",
        "kind": {"group": group, "version": version, "kind": kind},
        // The plural is a guess. Nothing looks it up.
        "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
        "name": new.name.as_deref().unwrap_or_default(),
        "namespace": new.namespace.as_deref().unwrap_or_default(),
        "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "dryRun": true,
    })
    .to_string();
    request.truncate(request.len() - 1);
    let (new, old) = (&new.text, old.map_or("null", |old| &old.text));
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request},"object":{new},"oldObject":{old}}}}}"#
    )
}
