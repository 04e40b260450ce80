//! Unions that a policy cannot express.

use crate::options::KubernetesVersion;
use kube_unions_core::names::GroupVersionKind;
use std::collections::BTreeMap;
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
    /// Too many versions differ.
    #[error(
        "its unions differ between at least {groups} served versions, and at most {most} get policies of their own; serve fewer versions, or use the webhook"
    )]
    TooManyVersions {
        /// The versions and groups of versions whose unions differ.
        groups: usize,
        /// The groups that policies are written for.
        most: usize,
    },
    /// A name has no characters, or control characters.
    #[error(
        "the field name {0:?} is empty or has control characters, which no JSON Patch of a policy can carry; use the webhook"
    )]
    UnprintableName(String),
    /// The expressions are too long.
    #[error("its expressions are longer than an API server accepts; use the webhook")]
    TooLong,
    /// The resource and its group give no name.
    #[error(
        "its resource and group give no name for a policy, which is a DNS subdomain of at most 253 characters; use a shorter prefix of names, or the webhook"
    )]
    NoName,
    /// The API server has no rules with field paths and reasons.
    #[error("Kubernetes {0} has no rules with a field path in CRDs; use 1.29 or newer, or the webhook")]
    NoRules(KubernetesVersion),
    /// The API server evaluates rules for unchanged parts of an object.
    #[error(
        "Kubernetes {0} applies rules to unchanged parts of an object as well, so an old violation blocks every update; use 1.33 or newer, policies, or --ratcheting=disabled"
    )]
    RulesDoNotRatchet(KubernetesVersion),
    /// The API server lets violations in unchanged parts through, but every write must be valid.
    #[error(
        "Kubernetes {0} never applies rules to unchanged parts of an object, so --ratcheting=disabled has no effect on them; use policies"
    )]
    RulesRatchet(KubernetesVersion),
    /// No CRD defines the kind.
    #[error("no CRD among the inputs defines it, and rules stand in the schema of a CRD; use policies")]
    NotACustomResource,
    /// kro makes the CRD.
    #[error("kro makes its CRD of SimpleSchema, which has no place for the rules of an object; use policies")]
    NoPlaceForRules,
    /// The declaration only warns or audits.
    #[error("its declaration does not deny, and rules in a CRD can only reject; use policies, or --action deny")]
    RulesOnlyReject,
    /// The declaration denies and audits.
    #[error("rules in a CRD reject what violates it, but write no audit annotation; use policies, or --action deny")]
    RulesDoNotAudit,
    /// A schema on the way to the union has no type.
    #[error(
        "a schema that holds it has no `type`, and the API server evaluates no rules there; give it its type, or use policies"
    )]
    UntypedPlace,
    /// No schema describes the object with the union.
    #[error(
        "no schema describes the object that holds it, so no keyword can be about it; describe it, or use policies"
    )]
    UndescribedPlace,
    /// No schema describes a field of the union.
    #[error(
        "no schema describes the field {0:?}, and a keyword inside `allOf` needs that; describe it, or use policies"
    )]
    UndescribedField(String),
    /// A field of the union has no type.
    #[error(
        "the schema of the field {0:?} has no `type` that rules can read; give it and its items a type, or use policies"
    )]
    UntypedField(String),
    /// Rules cannot tell if a member is empty.
    #[error(
        "rules cannot tell if the member {0:?} of `emptyIsUnset` is empty: they can for booleans, numbers, lists, maps, and strings without a format; use policies"
    )]
    UnknownEmptiness(String),
    /// A field of the union has a name that expressions cannot select.
    #[error(
        "rules cannot read the field {0:?}: such a name has ASCII letters, digits, `_`, `-`, `.` and `/` only, and does not begin with a digit; use policies"
    )]
    UnreadableName(String),
    /// The discriminator is not a string in CEL.
    #[error(
        "rules do not read the discriminator {name:?} as a string because of its format `{format}`; remove it, or use policies"
    )]
    DiscriminatorFormat {
        /// The name of the discriminator.
        name: String,
        /// Its format.
        format: String,
    },
    /// The API server would refuse the rules because of their estimated cost.
    #[error(
        "the API server estimates the cost of its rules at {factor} times the limit{}; {} `{keyword}` of `{container}`, or use policies",
        if *bounded { "" } else { ", because a list or map has no limit" },
        if *bounded { "lower" } else { "set" }
    )]
    TooExpensive {
        /// The estimate divided by the limit, rounded up.
        factor: u64,
        /// The list or map whose limit decides.
        container: String,
        /// The keyword of the limit.
        keyword: &'static str,
        /// True if the list or map has a limit.
        bounded: bool,
    },
    /// All rules of a version together would exceed the limit of the estimated cost.
    #[error(
        "together with the other unions, its rules exceed the limit of the API server's cost estimate; set `maxItems` and `maxProperties` on lists and maps around it, or use policies"
    )]
    TooExpensiveTogether,
}

impl Refusal {
    /// Describes refusals: one line for those of a kind with the same reason.
    pub fn lines(refusals: &[Self]) -> Vec<String> {
        let mut grouped: BTreeMap<(&GroupVersionKind, &RefusalReason), Vec<&Self>> = BTreeMap::new();
        for refusal in refusals {
            grouped.entry((&refusal.gvk, &refusal.reason)).or_default().push(refusal);
        }
        let lines = grouped.into_iter().map(|((gvk, reason), alike)| match &*alike {
            [alone] => alone.to_string(),
            several => {
                let named = |it: &&Self| match it.place.as_deref() {
                    None => "all places".to_owned(),
                    Some("") => "the root".to_owned(),
                    Some(place) => place.to_owned(),
                };
                let places: Vec<String> = several.iter().map(named).collect();
                format!("{gvk}: the unions at {}: {reason}", places.join(", "))
            }
        });
        lines.collect()
    }
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
