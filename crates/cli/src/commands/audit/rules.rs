//! The rules of an audit in SARIF, and findings with their places in files.

use crate::report::sarif::{ExplainedRule, FilePlace, SarifFinding};
use kube_unions_offline::HelpPage;
use kube_unions_webhook::audit::finding::{AuditRule, Impact, ObjectFinding, title};

/// A finding, and the place of its field in a file.
#[derive(Debug)]
pub(super) struct PlacedFinding<'f> {
    pub(super) finding: ObjectFinding<'f>,
    /// The path of the field, empty for the whole object.
    pub(super) field: String,
    pub(super) location: Option<FilePlace<'f>>,
    /// A sentence with the words of the API server, and the page about them.
    pub(super) said: Option<(String, HelpPage)>,
}

/// Returns a rule as SARIF has it.
pub(super) fn explained(rule: AuditRule) -> ExplainedRule {
    ((rule.id, rule.impact.row().1, rule.description), help(rule))
}

/// Returns the page with the message of the webhook.
fn help(rule: AuditRule) -> HelpPage {
    match rule.impact {
        Impact::WouldChange => HelpPage::CLEARED,
        Impact::Invalid | Impact::WouldWarn | Impact::WouldAudit => HelpPage::DENIALS,
    }
}

impl<'f> PlacedFinding<'f> {
    /// Returns the message, with the words of the API server.
    pub(super) fn sentence(&self) -> String {
        let said = self.said.as_ref().map(|(said, _)| format!("; {said}")).unwrap_or_default();
        format!("{}{said}", self.finding.sentence())
    }

    /// Returns the page about the words of the API server, or else about those of kube-unions.
    pub(super) fn help(&self) -> HelpPage {
        self.said.as_ref().map_or_else(|| help(self.finding.rule), |(_, help)| *help)
    }

    pub(super) fn sarif(&self) -> SarifFinding<'f> {
        let Self { finding, field, location, said } = self;
        let ObjectFinding { rule, kind, namespace, name, .. } = finding;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let object = format!("{} {namespace}{slash}{name}", title(kind));
        let full = if field.is_empty() { object } else { format!("{object}: {field}") };
        let help = said.as_ref().map(|(_, help)| *help);
        SarifFinding {
            help,
            ..SarifFinding::new(rule.id, rule.impact.row().1, field, full, self.sentence(), *location)
        }
    }
}
