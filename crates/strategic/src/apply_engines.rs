//! The ways of clients to apply a new manifest to a live object.

use crate::error::PatchError;
use crate::json_merge::{merge, three_way};
use crate::mixed_items::{MixedItem, mixed_items};
use crate::patcher::{Conflicts, Patcher, ThreeWay};
use crate::server_side_apply::{ApplyError, FieldManager, LAST_APPLIED, ManagedFieldsError, Managers, ServerSideApply};
use serde_json::Value;
use thiserror::Error;

/// The field manager of kubectl.
pub const KUBECTL: &str = "kubectl";

/// The field manager of `kubectl apply` without `--server-side`.
pub const KUBECTL_CLIENT_SIDE: &str = "kubectl-client-side-apply";

/// The objects of an apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplySides<'v> {
    /// The manifest that was applied last.
    pub old: &'v Value,
    /// The manifest that is applied.
    pub new: &'v Value,
    /// The object as the API server holds it, with the managers of its fields.
    pub live: &'v Value,
}

/// The engines that apply the objects of a kind.
#[derive(Debug)]
pub struct ApplyEngines {
    /// `None` for custom resources, which have no strategic merge patch.
    pub strategic: Option<Patcher>,
    /// `None` unless it is asked for.
    pub server_side: Option<ServerSideApply>,
}

/// The reason why a server-side apply fails.
#[derive(Debug, Error)]
pub enum ServerSideError {
    /// The engine was not asked for.
    #[error("its schema is not known")]
    NoEngine,
    /// The managers of the live object cannot be read.
    #[error(transparent)]
    Managers(#[from] ManagedFieldsError),
    /// The apply is refused.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Patcher {
    /// Returns where several items of the new manifest have the key by which an API server merges their list, and `kubectl apply` does not
    /// store all of them as they are written: the first item with each key.
    ///
    /// A patch of [`Self::create_three_way`] stores them.
    pub fn mixed_items(&self, apply: ApplySides<'_>) -> Vec<MixedItem> {
        mixed_items(&self.schema, apply.old, apply.new, apply.live)
    }
}

impl ApplyEngines {
    /// Returns the object after `kubectl apply`: a three-way strategic merge patch, for custom resources a three-way JSON merge patch.
    ///
    /// # Errors
    /// Those of the patches.
    pub fn client_side(&self, apply: ApplySides<'_>) -> Result<Value, PatchError> {
        let ApplySides { old, new, live, .. } = apply;
        if let Some(patcher) = &self.strategic {
            let sides = ThreeWay { original: old, modified: new, current: live, conflicts: Conflicts::Overwrite };
            return patcher.apply(live, &patcher.create_three_way(&sides)?);
        }
        let mut after = live.clone();
        merge(&mut after, &three_way(old, new, live));
        Ok(after)
    }

    /// Returns the object after `kubectl apply --server-side --force-conflicts` by a field manager, with `metadata.managedFields`.
    ///
    /// # Errors
    /// Every [`ServerSideError`].
    pub fn server_side(&self, apply: ApplySides<'_>, manager: &str) -> Result<Value, ServerSideError> {
        let ApplySides { new, live, .. } = apply;
        let managers = Managers::from_managed_fields(managed_fields(live))?;
        let applied = self.server_side_engine()?.apply(live, &managers, manager, new, Conflicts::Overwrite)?;
        Ok(managed(applied.object, &applied.managers))
    }

    /// Returns the field manager that applied the old manifest: the one whose fields are most like it. If there is none, it is `otherwise`.
    ///
    /// # Errors
    /// Every [`ServerSideError`].
    pub fn applier(&self, apply: ApplySides<'_>, otherwise: &str) -> Result<String, ServerSideError> {
        let managers = Managers::from_managed_fields(managed_fields(apply.live))?;
        Ok(self.server_side_engine()?.applier(&managers, apply.old, otherwise)?.to_owned())
    }

    /// Returns an object with the `metadata.managedFields` that it has after the first apply of a manifest by a field manager. The API
    /// server's defaults have no owner.
    ///
    /// # Errors
    /// Every [`ServerSideError`].
    pub fn first_applied(&self, manifest: &Value, object: Value, manager: &str) -> Result<Value, ServerSideError> {
        let (none, engine) = (Managers::default(), self.server_side_engine()?);
        let applied = engine.apply(&Value::Null, &none, manager, manifest, Conflicts::Overwrite)?;
        Ok(managed(object, &applied.managers))
    }

    /// Returns an object of which an applier has taken over the fields of other managers, as clients do that applied client-side before.
    ///
    /// Returns `None` if there are none.
    ///
    /// # Errors
    /// [`ServerSideError::Managers`].
    pub fn taken_over(
        object: &Value,
        applier: &str,
        is_taken: impl Fn(&FieldManager) -> bool,
    ) -> Result<Option<Value>, ServerSideError> {
        let mut managers = Managers::from_managed_fields(managed_fields(object))?;
        let annotation = LAST_APPLIED.iter().try_fold(object, |value, name| value.get(name));
        // A file may have a part of the managers.
        let is_unlisted = annotation.is_some() && !managers.own_last_applied();
        let is_taken = |manager: &FieldManager| {
            let has_unlisted = is_unlisted && !manager.applies && *manager.name == *KUBECTL_CLIENT_SIDE;
            is_taken(&FieldManager { has_last_applied: manager.has_last_applied || has_unlisted, ..manager.clone() })
        };
        Ok(managers.take_over(applier, is_taken).then(|| managed(object.clone(), &managers)))
    }

    /// Returns the field managers that own what an object has and another lacks, or the other way round.
    ///
    /// # Errors
    /// Every [`ServerSideError`].
    pub fn owners(&self, object: &Value, other: &Value) -> Result<Vec<FieldManager>, ServerSideError> {
        let managers = Managers::from_managed_fields(managed_fields(object))?;
        Ok(self.server_side_engine()?.owners(&managers, object, other)?)
    }

    fn server_side_engine(&self) -> Result<&ServerSideApply, ServerSideError> {
        self.server_side.as_ref().ok_or(ServerSideError::NoEngine)
    }
}

fn managed_fields(object: &Value) -> &Value {
    object.pointer("/metadata/managedFields").unwrap_or(&Value::Null)
}

fn managed(mut object: Value, managers: &Managers) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), managers.to_managed_fields());
    }
    object
}
