//! The words of the API server about an invalid union, and the page about them.

use super::kind_rules::{ApiServerAnswer, PreviewedKind};
use kube_unions_evidence::EvidenceKind;
use kube_unions_offline::{HelpPage, InvalidUnion, ServerSentence};

/// The keywords that say which fields exclude each other.
const EXCLUDING: [&str; 4] = ["oneOf", "anyOf", "allOf", "not"];

impl PreviewedKind<'_> {
    /// Returns the sentence about an invalid union, if it is known.
    pub(in crate::commands) fn server_words(self, invalid: &InvalidUnion<'_>) -> Option<&'static str> {
        self.sentence(invalid).map(ServerSentence::words)
    }

    /// Returns the page about the sentence of the API server, or else about that of kube-unions.
    pub(in crate::commands) fn help(self, invalid: &InvalidUnion<'_>) -> HelpPage {
        if let Some(sentence) = self.sentence(invalid) {
            return sentence.help;
        }
        match self.refusing_validation(invalid) {
            Some(EvidenceKind::Rule(_)) => HelpPage::EXACTLY_ONE,
            Some(EvidenceKind::Keyword(name)) if EXCLUDING.contains(&&*name) => HelpPage::ONE_OF,
            Some(EvidenceKind::Keyword(_) | EvidenceKind::Description | EvidenceKind::Shape) | None => {
                HelpPage::DENIALS
            }
        }
    }

    fn sentence(self, invalid: &InvalidUnion<'_>) -> Option<ServerSentence> {
        // A declaration of another kind or union may have the name of a preset.
        let is_preset = self.is_built_in() && self.enforcement(invalid) == ApiServerAnswer::Refused;
        ServerSentence::of(invalid).filter(|_| is_preset)
    }
}
