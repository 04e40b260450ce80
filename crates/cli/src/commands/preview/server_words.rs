//! The sentences in which the API server refuses two members of a union, and the pages about refusals.

use super::invalid_union::InvalidUnion;
use super::kind_rules::{ApiServerAnswer, PreviewedKind};
use crate::report::help::HelpPage;
use kube_unions_core::union::UnionStep;
use kube_unions_evidence::EvidenceKind;

/// A sentence about built-in kinds, behind the end of the names of the presets and the last field of the union's path, and the page about it. An
/// empty field is any.
type ServerSentence = (&'static str, &'static str, &'static str, HelpPage);

const SENTENCES: [ServerSentence; 14] = [
    ("deployment-strategy", "", "may not be specified when strategy `type` is 'Recreate'", HelpPage::RECREATE),
    ("statefulset-strategy", "", "only allowed for updateStrategy 'RollingUpdate'", HelpPage::ON_DELETE),
    ("persistentvolume-source", "", "may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-volumes", "volumes", "may not specify more than 1 volume type", HelpPage::VOLUME),
    ("-handlers", "", "may not specify more than 1 handler type", HelpPage::HANDLER),
    ("-env", "env", "may not be specified when `value` is not empty", HelpPage::VALUE_FROM),
    ("-env", "valueFrom", "may not have more than one field specified at a time", HelpPage::VALUE_FROM),
    ("-profiles", "seccompProfile", "can only be set when seccomp type is Localhost", HelpPage::PROFILE),
    ("-profiles", "appArmorProfile", "can only be set when AppArmor type is Localhost", HelpPage::PROFILE),
    ("horizontalpodautoscaler-metrics", "", "must populate the given metric source only", HelpPage::METRIC),
    ("poddisruptionbudget-threshold", "", "minAvailable and maxUnavailable cannot be both set", HelpPage::BUDGET),
    ("ingress-backends", "defaultBackend", "cannot set both resource and service backends", HelpPage::BACKEND),
    ("ingress-backends", "backend", "cannot set both resource and service backends", HelpPage::BACKEND),
    ("ingress-backends", "port", "cannot set both port name & port number", HelpPage::PORT),
];

/// The keywords that say which fields exclude each other.
const EXCLUDING: [&str; 4] = ["oneOf", "anyOf", "allOf", "not"];

impl PreviewedKind<'_> {
    /// Returns the sentence about a union that has a member too many, if it is known.
    pub(super) fn server_words(self, invalid: &InvalidUnion<'_>) -> Option<&'static str> {
        self.sentence(invalid).map(|(_, _, words, _)| *words)
    }

    /// Returns the page about the sentence of the API server, or else about that of kube-unions.
    pub(in crate::commands) fn help(self, invalid: &InvalidUnion<'_>) -> HelpPage {
        if let Some((.., help)) = self.sentence(invalid) {
            return *help;
        }
        match self.refusing_validation(invalid) {
            Some(EvidenceKind::Rule(_)) => HelpPage::EXACTLY_ONE,
            Some(EvidenceKind::Keyword(name)) if EXCLUDING.contains(&&*name) => HelpPage::ONE_OF,
            Some(EvidenceKind::Keyword(_) | EvidenceKind::Description | EvidenceKind::Shape) | None => {
                HelpPage::DENIALS
            }
        }
    }

    fn sentence(self, invalid: &InvalidUnion<'_>) -> Option<&'static ServerSentence> {
        // A declaration of another kind or union may have the name of a preset.
        let is_preset = self.is_built_in() && self.enforcement(invalid) == ApiServerAnswer::Refused;
        let preset = invalid.union.declaration().filter(|_| is_preset && invalid.has_too_many())?;
        let field = invalid.steps.iter().rev().find_map(|step| match step {
            UnionStep::Field(name) => Some(*name),
            UnionStep::Items { .. } | UnionStep::Values => None,
        });
        let is_about =
            |(end, last, ..): &&ServerSentence| preset.ends_with(end) && (last.is_empty() || field == Some(*last));
        SENTENCES.iter().find(is_about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_a_sentence_has_it() {
        for (_, _, words, help) in SENTENCES {
            let page = help.read();
            assert!(page.contains(words), "{help} lacks: {words}");
        }
    }
}
