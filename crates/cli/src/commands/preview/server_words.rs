//! The sentences in which the API server refuses two members of a union of a built-in kind.

use super::invalid_union::InvalidUnion;
use kube_unions_core::union::UnionStep;

/// A sentence, with the end of the names of the presets and the last field of the union's path. An empty field is any.
const SENTENCES: [(&str, &str, &str); 12] = [
    ("deployment-strategy", "", "may not be specified when strategy `type` is 'Recreate'"),
    ("statefulset-strategy", "", "only allowed for updateStrategy 'RollingUpdate'"),
    ("persistentvolume-source", "", "may not specify more than 1 volume type"),
    ("-volumes", "volumes", "may not specify more than 1 volume type"),
    ("-handlers", "", "may not specify more than 1 handler type"),
    ("-env", "env", "may not be specified when `value` is not empty"),
    ("-env", "valueFrom", "may not have more than one field specified at a time"),
    ("-profiles", "seccompProfile", "can only be set when seccomp type is Localhost"),
    ("-profiles", "appArmorProfile", "can only be set when AppArmor type is Localhost"),
    ("ingress-backends", "defaultBackend", "cannot set both resource and service backends"),
    ("ingress-backends", "backend", "cannot set both resource and service backends"),
    ("ingress-backends", "port", "cannot set both port name & port number"),
];

/// Returns the sentence about a union that has a member too many, if it is known.
pub(super) fn server_words(invalid: &InvalidUnion<'_>) -> Option<&'static str> {
    let preset = invalid.union.declaration().filter(|_| invalid.has_too_many())?;
    let field = invalid.steps.iter().rev().find_map(|step| match step {
        UnionStep::Field(name) => Some(*name),
        UnionStep::Items { .. } | UnionStep::Values => None,
    });
    let is_about =
        |(end, last, _): &&(&str, &str, &str)| preset.ends_with(end) && (last.is_empty() || field == Some(*last));
    SENTENCES.iter().find(is_about).map(|(.., sentence)| *sentence)
}
