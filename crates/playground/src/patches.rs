//! The strategic merge patch between the old and the new object.

use crate::inputs::PlaygroundInputs;
use kube_unions_core::causes::with_causes;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::{Assembly, to_yaml};
use serde_json::{Value, json};
use strategic_merge_patch::Patcher;

/// Returns the patch between both objects as YAML, or the reason why there is none. Returns `None` unless both are given and the
/// definitions describe their kind.
pub(crate) fn between(inputs: &PlaygroundInputs) -> Option<Value> {
    let (old, new) = (inputs.old.as_ref()?, inputs.new.as_ref()?);
    let patcher = patcher(&inputs.kinds, &new.group_version_kind())?;
    let patch = patcher.and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(|error| json!({"error": error}), |patch| json!({"patch": patch})))
}

/// Returns the patcher of a kind, `None` if no document describes the kind.
fn patcher(kinds: &Assembly, kind: &GroupVersionKind) -> Option<Result<Patcher, String>> {
    let definitions = kinds.declared_definitions();
    let version = definitions
        .iter()
        .find(|(_, definition)| *definition.group_kind() == kind.group_kind())
        .and_then(|(_, definition)| definition.versions().iter().find(|version| version.name == kind.version));
    let patcher = if let Some(version) = version {
        Patcher::for_resource(&kind.kind, &version.schema).map_err(Into::into)
    } else {
        let (_, openapi) = kinds.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind))?;
        Patcher::from_openapi(openapi, kind)
    };
    Some(patcher.map_err(|error| with_causes(&error)))
}
