//! Patches the objects of one kind. The webhook's code clears and judges their unions.

use super::input::{self, PatchInput, RejectedPatch};
use crate::cli::input::manifest::{self, Document, Problem};
use kube_unions_core::admission::{Phase, Ratcheting, Review};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_manifests::normalized::own_edits;
use kube_unions_manifests::request::ReviewedObject;
use std::borrow::Cow;
use std::path::Path;
use strategic_merge_patch::{DocumentRole, PatchError, Patcher};

/// Patches the objects of one kind at one version.
pub(super) struct KindPatcher {
    kind: GroupVersionKind,
    /// Applies patches, and creates them.
    pub(super) engine: Patcher,
    unions: Catalog,
    /// Completes objects that no API server has completed.
    schema: Option<Schema>,
}

/// A patched object.
pub(super) struct PatchedObject {
    /// The object as JSON text, without the members that its unions exclude.
    pub(super) text: String,
    /// The object before its unions were normalised.
    pub(super) document: Option<Document>,
    /// The answer of the webhook's code. `None`: the kind has no unions.
    pub(super) review: Option<Review>,
}

impl KindPatcher {
    /// Returns a patcher with the unions of a definition. With a schema, it judges objects as the API server completes them: without
    /// nulls, and with the defaults of the schema.
    pub(super) fn new(
        kind: GroupVersionKind,
        engine: Patcher,
        definition: Option<Definition>,
        schema: Option<Schema>,
    ) -> Self {
        let mut builder = Builder::new();
        if let Some(definition) = definition {
            builder.apply(definition);
        }
        Self { kind, engine, unions: builder.build(), schema }
    }

    /// Applies a patch, and clears the members that the unions exclude. [`Phase::Both`] also validates: the caller looks at the
    /// outcome of the review.
    ///
    /// # Errors
    /// [`RejectedPatch`] if the patch names another kind, version or object.
    pub(super) fn patched(
        &self,
        original: &PatchInput,
        patch: &PatchInput,
        phase: Phase,
        subresource: Option<&str>,
    ) -> anyhow::Result<PatchedObject> {
        if let (Some(object), Some(patch)) = (original.document(), patch.document()) {
            check_identity(object, patch)?;
        }
        let given = [(DocumentRole::Original, original), (DocumentRole::Patch, patch)];
        let fail = |error: PatchError| input::faulty(&error, &given);
        let text = self.engine.apply(original.text(), patch.text()).map_err(fail)?;
        if self.unions.union_count() == 0 {
            return Ok(PatchedObject { text, document: None, review: None });
        }
        let new = PatchInput::of(Path::new("the patched object"), text.clone().into_bytes())?;
        let Some(new) = new.into_document() else { return Ok(PatchedObject { text, document: None, review: None }) };
        let old = original.document().map(|old| self.completed(old)).transpose()?;
        let completed = self.completed(&new)?;
        // A patch that is applied again must change nothing.
        let manifest = Some(patch.text());
        let object = ReviewedObject { kind: &self.kind, new: &completed, old: old.as_deref(), subresource, manifest };
        let review = object.review(&self.unions, phase, Ratcheting::Enabled)?;
        let edits = own_edits(&new, &review);
        let text = if edits.is_empty() { text } else { manifest::edit(&new.section, &edits)?.text };
        Ok(PatchedObject { text, document: Some(new), review: Some(review) })
    }

    fn completed<'d>(&self, document: &'d Document) -> anyhow::Result<Cow<'d, Document>> {
        let Some(schema) = &self.schema else { return Ok(Cow::Borrowed(document)) };
        let mut object = serde_json::from_str(&document.text)?;
        schema.complete(&mut object)?;
        Ok(Cow::Owned(document.with_text(object.to_string())))
    }
}

/// Fails if the patch names another object.
fn check_identity(object: &Document, patch: &Document) -> Result<(), RejectedPatch> {
    for (field, patched) in object.identity().into_iter().zip(patch.identity()) {
        if let (Some(is), Some(wanted)) = (field.value, patched.value)
            && is != wanted
        {
            let (name, object) = (field.name, object.file.display());
            let message =
                format!("the patch has `{name}: {wanted}`, and {object} has `{is}`: give the patch of this object");
            return Err(RejectedPatch(Problem::of_document(patch, field.pointer, message).to_string()));
        }
    }
    Ok(())
}
