//! An admission review as the API server would send it, made around the text of an object, which is not read to be written
//! again.

use serde_json::json;

/// What is asked about an object. It is created where there is no old one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'o> {
    pub(super) group: &'o str,
    pub(super) version: &'o str,
    pub(super) kind: &'o str,
    pub(super) namespace: &'o str,
    pub(super) name: &'o str,
    pub(super) subresource: Option<&'o str>,
    /// JSON text.
    pub(super) new: &'o str,
    /// JSON text.
    pub(super) old: Option<&'o str>,
}

impl Request<'_> {
    pub(super) fn to_json(self) -> String {
        let Self { group, version, kind, namespace, name, subresource, new, old } = self;
        let mut request = json!({
            "uid": "kube-unions",
            "kind": {"group": group, "version": version, "kind": kind},
            // A guess, for the form: nothing is looked up by it.
            "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
            "subResource": subresource,
            "name": name,
            "namespace": namespace,
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "dryRun": true,
        })
        .to_string();
        request.truncate(request.len() - 1);
        let old = old.unwrap_or("null");
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request},"object":{new},"oldObject":{old}}}}}"#
        )
    }
}
