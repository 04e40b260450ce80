//! The strategic merge patch between the old and the new object.

use crate::described::DescribedKind;
use crate::inputs::PlaygroundInputs;
use kube_unions_core::causes::with_causes;
use kube_unions_manifests::to_yaml;
use serde_json::{Value, json};

/// Returns the patch between both objects as YAML, or the reason why there is none. Returns `None` unless both are given and the
/// definitions describe their kind.
pub(crate) fn between(inputs: &PlaygroundInputs) -> Option<Value> {
    let (old, new) = (inputs.old.as_ref()?, inputs.new.as_ref()?);
    let kind = new.group_version_kind();
    let patch = DescribedKind::of(&inputs.kinds, &kind)?.patcher(&kind).and_then(|patcher| {
        let patch =
            patcher.create_two_way(old.text.as_str(), new.text.as_str()).map_err(|error| with_causes(&error))?;
        to_yaml(&patch).map_err(|error| error.to_string())
    });
    Some(patch.map_or_else(|error| json!({"error": error}), |patch| json!({"patch": patch})))
}
