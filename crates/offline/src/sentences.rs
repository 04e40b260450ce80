//! The sentences in which the API server refuses a union of a built-in kind.

use crate::help::HelpPage;
use crate::invalid_union::InvalidUnion;
use kube_unions_core::union::{UnionStep, ViolationKind};

/// A sentence of the API server about a union of a preset that has a member too many, or lacks one.
#[derive(Debug, Clone, Copy)]
pub struct ServerSentence {
    /// A part of its message.
    pub words: &'static str,
    /// The page about it.
    pub help: HelpPage,
}

/// A sentence about built-in kinds, behind the end of the names of the presets and the last field of the union's path, and the page about it. An
/// empty field is any.
type SentenceRow = (&'static str, &'static str, &'static str, HelpPage);

const SENTENCES: [SentenceRow; 14] = [
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

/// Sentences about a union that lacks the member of its discriminator. The API server says nothing of the only other one.
const MISSING: [SentenceRow; 1] = [(
    "horizontalpodautoscaler-metrics",
    "",
    "must populate information for the given metric source",
    HelpPage::METRIC,
)];

impl ServerSentence {
    /// Returns the sentence about a union of a preset, if it is known.
    pub fn of(invalid: &InvalidUnion<'_>) -> Option<Self> {
        let preset = invalid.union.declaration()?;
        let field = invalid.steps.iter().rev().find_map(|step| match step {
            UnionStep::Field(name) => Some(*name),
            UnionStep::Items { .. } | UnionStep::Values => None,
        });
        let is_about =
            |(end, last, ..): &&SentenceRow| preset.ends_with(end) && (last.is_empty() || field == Some(*last));
        let has_too_many = invalid.has_too_many();
        let lacks_member = matches!(invalid.violation.kind, ViolationKind::MemberRequired { .. });
        let missing = MISSING.iter().filter(|_| lacks_member || has_too_many && invalid.members.len() == 1);
        let too_many = SENTENCES.iter().filter(|_| has_too_many);
        missing.chain(too_many).find(is_about).map(|&(_, _, words, help)| Self { words, help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_a_sentence_has_it() {
        for (_, _, words, help) in SENTENCES.into_iter().chain(MISSING) {
            let page = help.read();
            assert!(page.contains(words), "{help} lacks: {words}");
        }
    }
}
