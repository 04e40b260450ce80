//! The strategic merge patch between the old and the new object.

use crate::inputs::PlaygroundInputs;
use kube_unions_core::causes::with_causes;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::{Assembly, to_yaml};
use serde::Serialize;
use strategic_merge_patch::Patcher;

/// The patch, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategicPatch {
    /// The patch as YAML.
    Patch(String),
    /// The reason why there is none.
    Error(String),
}

/// Returns the patch between both objects, `None` unless both are given and the definitions describe their kind.
pub(crate) fn between(inputs: &PlaygroundInputs) -> Option<StrategicPatch> {
    let (old, new) = (inputs.old.as_ref()?, inputs.new.as_ref()?);
    let patcher = patcher(&inputs.kinds, &new.group_version_kind())?;
    let patch = patcher.and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(StrategicPatch::Error, StrategicPatch::Patch))
}

/// Returns the patcher of a kind, `None` if no document describes the kind.
fn patcher(kinds: &Assembly, kind: &GroupVersionKind) -> Option<Result<Patcher, String>> {
    let definitions = kinds.declared_definitions();
    let version = definitions
        .iter()
        .find(|(_, definition)| *definition.group_kind() == kind.group_kind())
        .and_then(|(_, definition)| definition.versions().iter().find(|version| version.name == kind.version));
    if let Some(version) = version {
        return Some(Patcher::for_resource(&kind.kind, &version.schema).map_err(|error| with_causes(&error)));
    }
    let (_, openapi) = kinds.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind))?;
    Some(Patcher::from_openapi(openapi, kind).map_err(|error| with_causes(&error)))
}
