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
}

/// Returns a rule as SARIF has it.
pub(super) fn explained(rule: AuditRule) -> ExplainedRule {
    ((rule.id, rule.impact.row().1, rule.description), help(rule))
}

/// Returns the page with the message of the webhook.
pub(super) fn help(rule: AuditRule) -> HelpPage {
    match rule.impact {
        Impact::WouldChange => HelpPage::CLEARED,
        Impact::Invalid | Impact::WouldWarn | Impact::WouldAudit => HelpPage::DENIALS,
    }
}

impl<'f> PlacedFinding<'f> {
    pub(super) fn sarif(&self) -> SarifFinding<'f> {
        let Self { finding, field, location } = self;
        let ObjectFinding { rule, kind, namespace, name, .. } = finding;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let object = format!("{} {namespace}{slash}{name}", title(kind));
        let full = if field.is_empty() { object } else { format!("{object}: {field}") };
        SarifFinding::new(rule.id, rule.impact.row().1, field, full, finding.sentence(), *location)
    }
}
