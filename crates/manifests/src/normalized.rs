//! The changes of a review as edits of the text that has the object.

use crate::document::Document;
use crate::edit::Edit;
use kube_unions_core::admission::Review;
use kube_unions_core::field_path::{FieldPath, Segment, pointer_tokens};
use kube_unions_core::json_patch::PatchOperation;
use kube_unions_core::union::Change;

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
