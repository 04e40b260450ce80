//! The write that admission sees: the new object, or what an apply of it makes of the old one.

use crate::described::DescribedKind;
use crate::inputs::{InputName, ObjectInputs, WriteWay};
use crate::kinds::PlaygroundKinds;
use crate::place::{ApplySource, InputPlace, ObjectOrigin};
use kube_unions_core::admission::ApplyMethod;
use kube_unions_core::causes::with_causes;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::union::UnionPlace;
use kube_unions_manifests::request::AppliedManifest;
use kube_unions_manifests::{Document, ManifestFile, to_yaml};
use serde_json::Value;
use strategic_merge_patch::{ApplyEngines, ApplySides, KUBECTL, ServerSideError, json_merge};

pub(crate) struct Write {
    /// The object whose text the page shows and the webhook changes.
    pub(crate) shown: Document,
    /// The same object as admission sees it, with the defaults of its schema.
    pub(crate) new: Document,
    /// The stored object. `None` for a create.
    pub(crate) old: Option<Document>,
    /// The fields that the author sets, if the API server tells them admission.
    evidence: Option<ApplyEvidence>,
    /// The origin of an object that an apply made, so that its lines are not those of an input.
    pub(crate) applied: Option<ObjectOrigin>,
}

/// The fields that the author of an apply sets.
enum ApplyEvidence {
    /// The manifest of a client-side apply, as JSON text.
    Manifest(String),
    /// The field manager of a server-side apply, whose fields `metadata.managedFields` lists.
    Manager(String),
}

impl Write {
    /// Returns the manifest of an apply, as admission reads it.
    pub(crate) fn manifest(&self) -> Option<AppliedManifest<'_>> {
        Some(match self.evidence.as_ref()? {
            ApplyEvidence::Manifest(text) => AppliedManifest::Given(text, ApplyMethod::ClientSide),
            ApplyEvidence::Manager(manager) => AppliedManifest::ManagedBy(manager),
        })
    }

    /// Returns the write of an object.
    ///
    /// # Errors
    /// The reason why an object cannot be completed, or the apply fails.
    pub(crate) fn of(
        kinds: &PlaygroundKinds,
        way: WriteWay,
        object: &ObjectInputs,
        described: Option<&DescribedKind>,
    ) -> Result<Self, String> {
        let ObjectInputs { old, new, .. } = object;
        match (old, described.filter(|_| way != WriteWay::Replace)) {
            (Some(old), Some(described)) => Self::applied(kinds, way, described, old, new),
            (old, _) => Self::whole(kinds, old.as_ref(), new),
        }
    }

    /// Returns the place of a value of the object in the inputs, or of its nearest parent there.
    pub(crate) fn place(&self, places: &[UnionPlace<'_>], path: &FieldPath) -> Option<InputPlace> {
        match &self.applied {
            Some(origin) => origin.place(places, path),
            None => InputPlace::of(InputName::New, &self.shown, &path.to_pointer()),
        }
    }

    fn whole(kinds: &PlaygroundKinds, old: Option<&Document>, new: &Document) -> Result<Self, String> {
        let completed = |document: &Document| kinds.all.completed_document(document).map_err(|error| error.to_string());
        let old = old.map(completed).transpose()?;
        Ok(Self { shown: new.clone(), new: completed(new)?, old, evidence: None, applied: None })
    }

    fn applied(
        kinds: &PlaygroundKinds,
        way: WriteWay,
        described: &DescribedKind,
        old: &Document,
        new: &Document,
    ) -> Result<Self, String> {
        let kind = &new.group_version_kind();
        let complete = |object: &Value| {
            let completed = kinds.all.completed_document(&new.with_text(object.to_string()));
            let completed = completed.map_err(|error| error.to_string())?;
            serde_json::from_str::<Value>(&completed.text).map_err(|error| error.to_string())
        };
        let read = |document: &Document| serde_json::from_str(&document.text).map_err(|error| error.to_string());
        let (old_value, new_value): (Value, Value) = (read(old)?, read(new)?);
        let mut live = complete(&old_value)?;
        let mut engines = ApplyEngines { strategic: None, server_side: None };
        let mut manager = None;
        let mut after = match way {
            WriteWay::Replace => new_value.clone(),
            WriteWay::Merge => {
                let mut after = live.clone();
                json_merge::merge(&mut after, &new_value);
                after
            }
            WriteWay::Csa => {
                if matches!(described, DescribedKind::BuiltIn { .. }) {
                    engines.strategic = Some(described.patcher(kind)?);
                }
                let sides = ApplySides { old: &old_value, new: &new_value, live: &live };
                engines.client_side(sides).map_err(|error| with_causes(&error))?
            }
            WriteWay::Ssa => {
                engines.server_side = Some(described.server_side(kind)?);
                let mut apply = || {
                    if live.pointer("/metadata/managedFields").is_none() {
                        live = engines.first_applied(&old_value, std::mem::take(&mut live), KUBECTL)?;
                    }
                    // The old object is no manifest.
                    let sides = ApplySides { old: &new_value, new: &new_value, live: &live };
                    engines.server_side(sides, manager.insert(engines.applier(sides, KUBECTL)?))
                };
                apply().map_err(|error: ServerSideError| with_causes(&error))?
            }
        };
        after = complete(&after)?;
        let written = after.to_string();
        if let Some(metadata) = after.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let evidence = match way {
            WriteWay::Ssa => manager.map(ApplyEvidence::Manager),
            WriteWay::Csa => Some(ApplyEvidence::Manifest(new_value.to_string())),
            WriteWay::Merge | WriteWay::Replace => None,
        };
        let text = to_yaml(&after.to_string()).map_err(|error| error.to_string())?;
        let file = ManifestFile::read("object after the write".into(), text.into_bytes());
        let shown = file.map_err(|error| error.to_string())?.documents().pop().ok_or("no object is left")?;
        let source = |input, document: &Document, value| ApplySource { input, document: document.clone(), value };
        let sources = [source(InputName::New, new, new_value), source(InputName::Old, old, old_value)];
        let (old, applied) = (old.with_text(live.to_string()), ObjectOrigin { after, sources });
        Ok(Self { new: shown.with_text(written), shown, old: Some(old), evidence, applied: Some(applied) })
    }
}
