//! Builds the `AdmissionReview` that the API server would send. The texts of the objects go into it unchanged.

use crate::document::Document;
use kube_unions_core::admission::{self, Phase, Ratcheting, Review, ReviewError};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use serde_json::json;

/// An object that is to be reviewed.
pub struct ReviewedObject<'d> {
    /// Its kind.
    pub kind: &'d GroupVersionKind,
    /// The object that is written.
    pub new: &'d Document,
    /// The stored object of an update. `None`: a create.
    pub old: Option<&'d Document>,
    /// The subresource that is written, for example `status`.
    pub subresource: Option<&'d str>,
    /// The manifest that the write applies, as JSON text: the fields that its author sets. `None`: the write is no apply.
    pub manifest: Option<&'d str>,
}

impl ReviewedObject<'_> {
    /// Returns the answer of the webhook's code in a phase of admission.
    pub fn review(&self, catalog: &Catalog, phase: Phase, ratcheting: Ratcheting) -> Result<Review, ReviewError> {
        let body = self.to_json();
        match self.manifest {
            Some(manifest) => admission::review_applied(catalog, phase, ratcheting, body.as_bytes(), manifest),
            None => admission::review(catalog, phase, ratcheting, body.as_bytes()),
        }
    }

    /// Returns the `AdmissionReview` as JSON text.
    fn to_json(&self) -> String {
        let GroupVersionKind { group, version, kind } = self.kind;
        let mut request = json!({
            "uid": "kube-unions",
            "kind": {"group": group, "version": version, "kind": kind},
            // The plural is a guess. Nothing looks it up.
            "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
            "subResource": self.subresource.unwrap_or_default(),
            "name": self.new.name.as_deref().unwrap_or_default(),
            "namespace": self.new.namespace.as_deref().unwrap_or_default(),
            "operation": if self.old.is_some() { "UPDATE" } else { "CREATE" },
            "dryRun": true,
        })
        .to_string();
        request.truncate(request.len() - 1);
        let (new, old) = (&self.new.text, self.old.map_or("null", |old| &old.text));
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request},"object":{new},"oldObject":{old}}}}}"#
        )
    }
}
