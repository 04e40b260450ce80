//! The ways of clients to apply a new manifest to a live object.

use crate::error::PatchError;
use crate::json_merge::{merge, three_way};
use crate::patcher::{Conflicts, Patcher, ThreeWay};
use crate::server_side_apply::{ApplyError, ManagedFieldsError, Managers, ServerSideApply};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use thiserror::Error;

/// The field manager of kubectl.
const DEFAULT_MANAGER: &str = "kubectl";

/// The objects of an apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplySides<'v> {
    /// The manifest that was applied last.
    pub old: &'v Value,
    /// The manifest that is applied.
    pub new: &'v Value,
    /// The object as the API server holds it.
    pub live: &'v Value,
    /// True if a cluster has the live object, with the managers of its fields.
    pub is_stored: bool,
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

    /// Returns the object after `kubectl apply --server-side --force-conflicts`. Without a stored object, the same manager has applied
    /// the old manifest before; the API server's defaults have no owner.
    ///
    /// # Errors
    /// Every [`ServerSideError`].
    pub fn server_side(&self, apply: ApplySides<'_>) -> Result<Value, ServerSideError> {
        let ApplySides { old, new, live, is_stored } = apply;
        let engine = self.server_side.as_ref().ok_or(ServerSideError::NoEngine)?;
        let list = live.pointer("/metadata/managedFields").unwrap_or(&Value::Null);
        let manager = if is_stored { applier(list) } else { DEFAULT_MANAGER };
        let managers = if is_stored {
            Managers::from_managed_fields(list)?
        } else {
            engine.apply(&Value::Null, &Managers::default(), manager, old, Conflicts::Overwrite)?.managers
        };
        Ok(engine.apply(live, &managers, manager, new, Conflicts::Overwrite)?.object)
    }
}

/// Returns a manifest as its manager owns it after a server-side apply: a null counts as a field.
pub fn server_side_manifest(new: &Value) -> Value {
    let mut manifest = new.clone();
    replace_nulls(&mut manifest);
    manifest
}

/// Puts an empty object in place of each null.
fn replace_nulls(value: &mut Value) {
    match value {
        Value::Null => *value = Value::Object(Map::new()),
        Value::Array(items) => items.iter_mut().for_each(replace_nulls),
        Value::Object(fields) => fields.values_mut().for_each(replace_nulls),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the only manager that has applied an object before, else that of kubectl.
fn applier(managed_fields: &Value) -> &str {
    let entries = managed_fields.as_array().into_iter().flatten();
    let applies = entries.filter(|entry| entry.get("operation").is_some_and(|operation| operation == "Apply"));
    let managers: BTreeSet<&str> = applies.filter_map(|entry| entry.get("manager")?.as_str()).collect();
    match managers.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => only,
        _ => DEFAULT_MANAGER,
    }
}
