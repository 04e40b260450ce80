//! The sentences in which the API server refuses a union of a built-in kind.

use crate::help::HelpPage;
use crate::invalid_union::InvalidUnion;
use kube_unions_core::union::{UnionStep, ViolationKind};

/// A sentence of the API server about a union of a preset that has a member too many, or lacks a choice.
#[derive(Debug, Clone, Copy)]
pub struct ServerSentence {
    /// A part of its message.
    pub words: &'static str,
    /// The page about it.
    pub help: HelpPage,
}

/// A sentence about built-in kinds, behind the end of the names of the presets and a field, and the page about it. The field is the last one of
/// the union's path, or the one that is at fault. An empty field is any.
type SentenceRow = (&'static str, &'static str, &'static str, HelpPage);

/// Sentences about a union that has a member too many.
const TOO_MANY: [SentenceRow; 28] = [
    ("deployment-strategy", "", "may not be specified when strategy `type` is 'Recreate'", HelpPage::RECREATE),
    ("statefulset-strategy", "", "only allowed for updateStrategy 'RollingUpdate'", HelpPage::ON_DELETE),
    ("persistentvolume-source", "", "may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-volumes", "volumes", "may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-handlers", "", "may not specify more than 1 handler type", HelpPage::HANDLER),
    ("-env", "env", "may not be specified when `value` is not empty", HelpPage::VALUE_FROM),
    ("-env", "valueFrom", "may not have more than one field specified at a time", HelpPage::VALUE_FROM),
    ("-sources", "envFrom", "may not have more than one field specified at a time", HelpPage::VALUE_FROM),
    ("-sources", "sources", "may not specify more than 1 volume type per source", HelpPage::VOLUME),
    ("-sources", "items", "fieldRef and resourceFieldRef can not be specified simultaneously", HelpPage::VOLUME),
    ("-profiles", "seccompProfile", "can only be set when seccomp type is Localhost", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "can only be set when AppArmor type is Localhost", HelpPage::PROFILE),
    ("horizontalpodautoscaler-metrics", "", "must populate the given metric source only", HelpPage::METRIC),
    (
        "horizontalpodautoscaler-targets",
        "",
        "may not set both a target raw value and a target utilization",
        HelpPage::METRIC,
    ),
    (
        "horizontalpodautoscaler-external",
        "",
        "may not set both a target value for metric and a per-pod target",
        HelpPage::METRIC,
    ),
    ("poddisruptionbudget-threshold", "", "minAvailable and maxUnavailable cannot be both set", HelpPage::BUDGET),
    ("ingress-backends", "defaultBackend", "cannot set both resource and service backends", HelpPage::BACKEND),
    ("ingress-backends", "backend", "cannot set both resource and service backends", HelpPage::BACKEND),
    ("ingress-backends", "port", "cannot set both port name & port number", HelpPage::PORT),
    ("service-type", "allocateLoadBalancerNodePorts", OF_BALANCERS, HelpPage::SERVICE),
    ("service-type", "loadBalancerClass", OF_BALANCERS, HelpPage::SERVICE),
    ("service-type", "loadBalancerSourceRanges", OF_BALANCERS, HelpPage::SERVICE),
    ("service-type", "healthCheckNodePort", HEALTH_CHECK, HelpPage::SERVICE),
    ("service-type", "externalTrafficPolicy", ACCESSIBLE, HelpPage::SERVICE),
    ("service-type", "clusterIP", NO_ALIAS, HelpPage::SERVICE),
    ("service-type", "clusterIPs", NO_ALIAS, HelpPage::SERVICE),
    ("service-type", "ipFamilies", NO_ALIAS, HelpPage::SERVICE),
    ("service-type", "ipFamilyPolicy", NO_ALIAS, HelpPage::SERVICE),
];

const OF_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const HEALTH_CHECK: &str = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
const ACCESSIBLE: &str = "may only be set for externally-accessible services";
const NO_ALIAS: &str = "may not be set for ExternalName services";

/// Sentences about a union that lacks the member of its discriminator. The API server says nothing of the only other one.
const MISSING: [SentenceRow; 4] = [
    ("horizontalpodautoscaler-metrics", "", "must populate information for the given metric source", HelpPage::METRIC),
    ("-profiles", "seccompProfile", "must be set when seccomp type is Localhost", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "must be set when AppArmor type is Localhost", HelpPage::PROFILE),
    ("service-type", "externalName", "spec.externalName: Required value", HelpPage::SERVICE),
];

/// Sentences about a union that lacks every member, or its discriminator.
const NO_CHOICE: [SentenceRow; 13] = [
    ("persistentvolume-source", "", "must specify a volume type", HelpPage::VOLUME),
    ("-handlers", "", "must specify a handler type", HelpPage::HANDLER),
    ("-env", "valueFrom", "must specify one of: `fieldRef`, `resourceFieldRef`", HelpPage::VALUE_FROM),
    ("-sources", "envFrom", "must specify one of: `configMapRef` or `secretRef`", HelpPage::VALUE_FROM),
    ("-sources", "items", "one of fieldRef and resourceFieldRef is required", HelpPage::VOLUME),
    ("-profiles", "seccompProfile", "type is required when seccompProfile is set", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "type is required when appArmorProfile is set", HelpPage::PROFILE),
    ("horizontalpodautoscaler-metrics", "", "must specify a metric source type", HelpPage::METRIC),
    (
        "horizontalpodautoscaler-targets",
        "",
        "must set either a target raw value or a target utilization",
        HelpPage::METRIC,
    ),
    (
        "horizontalpodautoscaler-external",
        "",
        "must set either a target value for metric or a per-pod target",
        HelpPage::METRIC,
    ),
    ("ingress-backends", "defaultBackend", "resource or service backend is required", HelpPage::BACKEND),
    ("ingress-backends", "backend", "resource or service backend is required", HelpPage::BACKEND),
    ("ingress-backends", "port", "port name or number is required", HelpPage::PORT),
];

impl ServerSentence {
    /// Returns the sentence about a union of a preset, if it is known.
    pub fn of(invalid: &InvalidUnion<'_>) -> Option<Self> {
        let preset = invalid.union.declaration()?;
        let last = invalid.steps.iter().rev().find_map(|step| match step {
            UnionStep::Field(name) => Some(*name),
            UnionStep::Items { .. } | UnionStep::Values => None,
        });
        let is_about = |(end, field, ..): &&SentenceRow| {
            preset.ends_with(end)
                && (field.is_empty() || last == Some(*field) || invalid.blamed().as_deref() == Some(*field))
        };
        let has_too_many = invalid.has_too_many();
        let lacks_member = matches!(invalid.violation.kind, ViolationKind::MemberRequired { .. });
        let is_other = has_too_many && invalid.members.len() == 1 && invalid.lacks_selected();
        let missing = MISSING.iter().filter(|_| lacks_member || is_other);
        let too_many = TOO_MANY.iter().filter(|_| has_too_many);
        let no_choice = NO_CHOICE.iter().filter(|_| invalid.lacks_choice());
        missing.chain(too_many).chain(no_choice).find(is_about).map(|&(_, _, words, help)| Self { words, help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_a_sentence_has_it() {
        for (_, _, words, help) in TOO_MANY.into_iter().chain(MISSING).chain(NO_CHOICE) {
            let page = help.read();
            assert!(page.contains(words), "{help} lacks: {words}");
        }
    }
}
