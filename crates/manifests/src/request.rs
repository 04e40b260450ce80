//! Builds the `AdmissionReview` that the API server would send, and makes edits of its answer. The texts of the objects go into the
//! review unchanged.

use crate::document::Document;
use crate::edit::Edit;
use kube_unions_core::admission::{self, ApplyMethod, Phase, Ratcheting, Review, ReviewError};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::field_path::{FieldPath, Segment, pointer_tokens};
use kube_unions_core::json_patch::PatchOperation;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Change;
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
    /// The manifest that the write applies. `None`: the write is no apply.
    pub manifest: Option<AppliedManifest<'d>>,
}

/// A manifest that a write applies: the fields that its author sets.
#[derive(Debug, Clone, Copy)]
pub enum AppliedManifest<'d> {
    /// The manifest as JSON text.
    Given(&'d str, ApplyMethod),
    /// The fields of this field manager in `metadata.managedFields` of both objects.
    ManagedBy(&'d str),
}

impl ReviewedObject<'_> {
    /// Returns the answer of the webhook's code in a phase of admission.
    pub fn review(&self, catalog: &Catalog, phase: Phase, ratcheting: Ratcheting) -> Result<Review, ReviewError> {
        let body = self.to_json();
        match self.manifest {
            Some(AppliedManifest::Given(manifest, method)) => {
                admission::review_applied(catalog, phase, ratcheting, body.as_bytes(), manifest, method)
            }
            Some(AppliedManifest::ManagedBy(_)) | None => {
                admission::review(catalog, phase, ratcheting, body.as_bytes())
            }
        }
    }

    /// Returns the `AdmissionReview` as JSON text.
    fn to_json(&self) -> String {
        let GroupVersionKind { group, version, kind } = self.kind;
        let manager = match self.manifest {
            Some(AppliedManifest::ManagedBy(manager)) => Some(manager),
            Some(AppliedManifest::Given(..)) | None => None,
        };
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
            "options": {"fieldManager": manager},
        })
        .to_string();
        request.truncate(request.len() - 1);
        let (new, old) = (&self.new.text, self.old.map_or("null", |old| &old.text));
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request},"object":{new},"oldObject":{old}}}}}"#
        )
    }
}

/// Returns the changes of an answer as edits, without those in objects that only defaults make.
pub fn own_edits(document: &Document, review: &Review) -> Vec<Edit> {
    let mut edits = edits_below(&pointer_tokens(&document.pointer).unwrap_or_default(), review);
    edits.retain(|edit| match edit {
        Edit::Set(path, _) => document.has_parent_of(path),
        Edit::Remove(_) | Edit::Items { .. } => true,
    });
    edits
}

/// Returns the changes of an answer as edits of a value that has the object at the path `base`.
pub fn edits_below(base: &[String], review: &Review) -> Vec<Edit> {
    let place = |path: &FieldPath| base.iter().cloned().chain(path.segments().iter().map(Segment::to_token)).collect();
    let edit = |change: Change| match change.operation() {
        PatchOperation::Set(path, value) => Edit::Set(place(&path), value),
        PatchOperation::Remove(path) => Edit::Remove(place(&path)),
    };
    review.changes().map(edit).collect()
}
