//! The sentences in which the API server refuses a union of a built-in kind.

use crate::help::HelpPage;
use crate::invalid_union::InvalidUnion;
use kube_unions_core::union::{UnionStep, ViolationKind};

/// A sentence of the API server about a union of a preset that has a member too many, or lacks a choice.
#[derive(Debug, Clone, Copy)]
pub struct ServerSentence {
    /// Its message, behind the path. `…` stands for a value of the object, and the end may be missing.
    pub line: &'static str,
    /// The page about it.
    pub help: HelpPage,
}

/// The sorts of errors, with which messages begin behind the path.
const SORTS: [&str; 5] = ["Forbidden: ", "Required value: ", "Invalid value: \"\": ", "Invalid value: …: ", "json: "];

/// Returns a message without the sort of its error.
pub(crate) fn words_of(line: &str) -> &str {
    SORTS.iter().find_map(|sort| line.strip_prefix(sort)).unwrap_or(line)
}

/// A sentence about built-in kinds, behind the end of the names of the presets and a field, and the page about it. The field is the last one of
/// the union's path, or the one that is at fault. An empty field is any.
type SentenceRow = (&'static str, &'static str, &'static str, HelpPage);

/// Sentences about a union that has a member too many.
const TOO_MANY: [SentenceRow; 28] = [
    (
        "deployment-strategy",
        "",
        "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        HelpPage::RECREATE,
    ),
    (
        "statefulset-strategy",
        "",
        "Invalid value: …: only allowed for updateStrategy 'RollingUpdate'",
        HelpPage::ON_DELETE,
    ),
    ("persistentvolume-source", "", "Forbidden: may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-volumes", "volumes", "Forbidden: may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-handlers", "", "Forbidden: may not specify more than 1 handler type", HelpPage::HANDLER),
    ("-env", "env", "Invalid value: \"\": may not be specified when `value` is not empty", HelpPage::VALUE_FROM),
    (
        "-env",
        "valueFrom",
        "Invalid value: \"\": may not have more than one field specified at a time",
        HelpPage::VALUE_FROM,
    ),
    (
        "-sources",
        "envFrom",
        "Invalid value: \"\": may not have more than one field specified at a time",
        HelpPage::VALUE_FROM,
    ),
    ("-sources", "sources", "Forbidden: may not specify more than 1 volume type per source", HelpPage::VOLUME),
    (
        "-sources",
        "items",
        "Invalid value: …: fieldRef and resourceFieldRef can not be specified simultaneously",
        HelpPage::VOLUME,
    ),
    (
        "-profiles",
        "seccompProfile",
        "Invalid value: …: can only be set when seccomp type is Localhost",
        HelpPage::PROFILE,
    ),
    (
        "-profiles",
        "appArmorProfile",
        "Invalid value: …: can only be set when AppArmor type is Localhost",
        HelpPage::PROFILE,
    ),
    ("horizontalpodautoscaler-metrics", "", "Forbidden: must populate the given metric source only", HelpPage::METRIC),
    (
        "horizontalpodautoscaler-targets",
        "",
        "Forbidden: may not set both a target raw value and a target utilization",
        HelpPage::METRIC,
    ),
    (
        "horizontalpodautoscaler-external",
        "",
        "Forbidden: may not set both a target value for metric and a per-pod target",
        HelpPage::METRIC,
    ),
    (
        "poddisruptionbudget-threshold",
        "",
        "Invalid value: …: minAvailable and maxUnavailable cannot be both set",
        HelpPage::BUDGET,
    ),
    (
        "ingress-backends",
        "defaultBackend",
        "Invalid value: \"\": cannot set both resource and service backends",
        HelpPage::BACKEND,
    ),
    (
        "ingress-backends",
        "backend",
        "Invalid value: \"\": cannot set both resource and service backends",
        HelpPage::BACKEND,
    ),
    ("ingress-backends", "port", "Invalid value: \"\": cannot set both port name & port number", HelpPage::PORT),
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

const OF_BALANCERS: &str = "Forbidden: may only be used when `type` is 'LoadBalancer'";
const HEALTH_CHECK: &str =
    "Invalid value: …: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
const ACCESSIBLE: &str = "Invalid value: …: may only be set for externally-accessible services";
const NO_ALIAS: &str = "Forbidden: may not be set for ExternalName services";

/// Sentences about a union that lacks the member of its discriminator. The API server says nothing of the only other one.
const MISSING: [SentenceRow; 4] = [
    (
        "horizontalpodautoscaler-metrics",
        "",
        "Required value: must populate information for the given metric source",
        HelpPage::METRIC,
    ),
    ("-profiles", "seccompProfile", "Required value: must be set when seccomp type is Localhost", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "Required value: must be set when AppArmor type is Localhost", HelpPage::PROFILE),
    ("service-type", "externalName", "spec.externalName: Required value", HelpPage::SERVICE),
];

/// Sentences about a union that lacks every member, or its discriminator.
const NO_CHOICE: [SentenceRow; 13] = [
    ("persistentvolume-source", "", "Required value: must specify a volume type", HelpPage::VOLUME),
    ("-handlers", "", "Required value: must specify a handler type", HelpPage::HANDLER),
    (
        "-env",
        "valueFrom",
        "Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`",
        HelpPage::VALUE_FROM,
    ),
    (
        "-sources",
        "envFrom",
        "Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
        HelpPage::VALUE_FROM,
    ),
    ("-sources", "items", "Required value: one of fieldRef and resourceFieldRef is required", HelpPage::VOLUME),
    ("-profiles", "seccompProfile", "Required value: type is required when seccompProfile is set", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "Required value: type is required when appArmorProfile is set", HelpPage::PROFILE),
    ("horizontalpodautoscaler-metrics", "", "Required value: must specify a metric source type", HelpPage::METRIC),
    (
        "horizontalpodautoscaler-targets",
        "",
        "Required value: must set either a target raw value or a target utilization",
        HelpPage::METRIC,
    ),
    (
        "horizontalpodautoscaler-external",
        "",
        "Required value: must set either a target value for metric or a per-pod target",
        HelpPage::METRIC,
    ),
    (
        "ingress-backends",
        "defaultBackend",
        "Invalid value: \"\": resource or service backend is required",
        HelpPage::BACKEND,
    ),
    ("ingress-backends", "backend", "Invalid value: \"\": resource or service backend is required", HelpPage::BACKEND),
    ("ingress-backends", "port", "Required value: port name or number is required", HelpPage::PORT),
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
        missing.chain(too_many).chain(no_choice).find(is_about).map(|&(_, _, line, help)| Self { line, help })
    }

    /// Returns the message without the sort of the error.
    pub fn words(self) -> &'static str {
        words_of(self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_a_sentence_has_it() {
        for (_, _, line, help) in TOO_MANY.into_iter().chain(MISSING).chain(NO_CHOICE) {
            let (page, words) = (help.read(), words_of(line));
            assert!(page.contains(words), "{help} lacks: {words}");
        }
    }
}
