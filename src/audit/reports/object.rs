//! A report as an object of the API server: made of findings, and compared with the stored one. Sends nothing.

use super::findings::{MOST_RESULTS, NamespaceFindings, POLICY, SOURCE};
use kube_unions_api::DiscoveredResource;
use kube_unions_command::json::present;
use kube_unions_manifests::counts::count;
use serde_json::{Map, Value, json};

/// The name of every report.
pub const NAME: &str = "kube-unions";

/// The label of every report, and its value. An object without it is somebody else's.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kube-unions");

/// Returns the report of a namespace. The namespace of a report of the cluster is empty.
pub(super) fn report(kind: &DiscoveredResource, namespace: &str, findings: &NamespaceFindings) -> Value {
    let (label, own) = MANAGED_BY;
    let namespace = (!namespace.is_empty()).then_some(namespace);
    let metadata = present(json!({"name": NAME, "namespace": namespace, "labels": {label: own}}));
    let NamespaceFindings { fail, warn, error, left_out, .. } = *findings;
    let mut results = findings.results();
    debug_assert!(results.len() <= MOST_RESULTS, "{} results", results.len());
    if left_out > 0 {
        let message = format!("and {} that the summary counts and nothing lists", count(left_out, "more finding"));
        results.push(json!({
            "source": SOURCE, "policy": POLICY, "rule": "more-findings", "result": "skip", "message": message,
        }));
    }
    json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": metadata,
        // `skip` is the number of findings that are not listed, which the other numbers count.
        "summary": {"pass": 0, "fail": fail, "warn": warn, "error": error, "skip": left_out},
        "results": results,
    })
}

/// Returns true if a stored report is ours.
pub(super) fn is_ours(stored: &Value) -> bool {
    let (label, own) = MANAGED_BY;
    stored.pointer("/metadata/labels").and_then(|labels| labels.get(label)).is_some_and(|value| value == own)
}

/// Returns the report to replace our stored one by; `None` if it is as wanted. Labels and annotations of others stay.
pub(super) fn replacement(stored: &Value, wanted: Value) -> Option<Value> {
    let content = |object: &Value| -> Map<String, Value> {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| !["apiVersion", "kind", "metadata"].contains(&field.as_str()));
        fields
    };
    if content(stored) == content(&wanted) {
        return None;
    }
    let Value::Object(mut replacement) = wanted else { return None };
    replacement.insert("metadata".to_owned(), stored.get("metadata").cloned().unwrap_or_default());
    Some(Value::Object(replacement))
}

#[cfg(test)]
mod tests;
