//! Unions that a policy cannot express.

use crate::version::KubernetesVersion;
use kube_unions_core::names::GroupVersionKind;
use std::fmt;

/// A union, or a part of the treatment of a kind, that is left out.
///
/// Displays as the kind, the place, the reason, and the alternative.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// The place of the object with the union, for example `spec.filters[*]`. `None` if the whole kind is concerned.
    pub place: Option<String>,
    /// The reason.
    pub reason: RefusalReason,
}

/// The reasons for which a policy cannot express a union.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The API server has no mutating policies.
    #[error(
        "Kubernetes {0} has no usable MutatingAdmissionPolicy, so nothing is cleared or deduced; use 1.36 or newer, or the webhook"
    )]
    NoMutation(KubernetesVersion),
    /// The API server has no validating policies.
    #[error("Kubernetes {0} has no ValidatingAdmissionPolicy; use 1.30 or newer, or the webhook")]
    NoValidation(KubernetesVersion),
    /// The place is in a list or map.
    #[error("policies of Kubernetes {0} cannot look into lists and maps; use 1.35 or newer, or the webhook")]
    NoListFunctions(KubernetesVersion),
    /// The kind is one by which a cluster is repaired.
    #[error("objects of this kind are never checked, so that a wrong declaration cannot block the repair of a cluster")]
    ExemptKind,
    /// The plural name is unknown.
    #[error("the name of its resource is not known; give its CRD, or an OpenAPI document with its paths")]
    UnknownResource,
    /// A name has no characters, or control characters.
    #[error(
        "the field name {0:?} is empty or has control characters, which no JSON Patch of a policy can carry; use the webhook"
    )]
    UnprintableName(String),
    /// The expressions are too long.
    #[error("its expressions are longer than an API server accepts; use the webhook")]
    TooLong,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gvk, place, reason } = self;
        match place.as_deref() {
            None => write!(f, "{gvk}: {reason}"),
            Some("") => write!(f, "{gvk}: the union at the root: {reason}"),
            Some(place) => write!(f, "{gvk}: the union at {place}: {reason}"),
        }
    }
}
