//! The strategic merge patch between the old and the new object.

use crate::inputs::PlaygroundInputs;
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::{KindSchemas, schemas, to_yaml};
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
    let patcher = patcher(&schemas(inputs.definitions.clone()), &new.group_version_kind())?;
    let patch = patcher.and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(StrategicPatch::Error, StrategicPatch::Patch))
}

/// Returns the patcher of a kind, `None` if no document describes the kind.
fn patcher(schemas: &KindSchemas, kind: &GroupVersionKind) -> Option<Result<Patcher, String>> {
    let is_of = |definition: &Definition| definition.group() == &*kind.group && definition.kind() == &*kind.kind;
    let mut definitions = schemas.definitions.iter().map(|(_, definition)| definition);
    let version = definitions
        .find(|definition| is_of(definition))
        .and_then(|definition| definition.versions().iter().find(|version| version.name == kind.version));
    if let Some(version) = version {
        return Some(Patcher::for_resource(&kind.kind, &version.schema).map_err(|error| with_causes(&error)));
    }
    let mut openapi = schemas.openapi.iter().map(|(_, openapi)| openapi);
    let openapi = openapi.find(|openapi| openapi.kinds().any(|it| it == kind))?;
    Some(Patcher::from_openapi(openapi, kind).map_err(|error| with_causes(&error)))
}
