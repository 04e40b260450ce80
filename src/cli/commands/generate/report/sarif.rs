//! The findings as SARIF. Findings that are allowed or known are suppressed results.

use super::Report;
use crate::cli::commands::generate::finding::{ReportedFinding, Standing};
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifRule};
use kube_unions_go::FindingKind;

impl Report {
    pub(super) fn sarif(&self, problems: &[String], code: u8) -> serde_json::Result<String> {
        let rules = FindingKind::ALL.iter().map(|kind| SarifRule {
            id: kind.name(),
            description: kind.meaning(),
            level: kind.severity(),
        });
        sarif::log(rules, self.findings.iter().map(result), problems, code)
    }
}

fn result(reported: &ReportedFinding) -> SarifFinding<'_> {
    let finding = &reported.finding;
    let (rule, message, position) = (finding.kind.name(), finding.message.clone(), &finding.position);
    let place = FilePlace { file: &position.file, position: Some((position.line, position.column)) };
    let crd = reported.subject.iter().filter(|subject| *subject.file != *position.file);
    let related = crd.map(|subject| {
        let place = FilePlace { file: &subject.file, position: Some(subject.position) };
        (place, format!("The CRD {}", subject.definition))
    });
    SarifFinding {
        related: related.collect(),
        suppressed: match reported.standing {
            Standing::New => None,
            Standing::Allowed => Some("allowed by --allow"),
            Standing::Known => Some("in the baseline"),
        },
        ..SarifFinding::new(rule, finding.severity, &finding.path, reported.place(), message, Some(place))
    }
}
