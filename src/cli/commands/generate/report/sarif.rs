//! The findings as SARIF. Findings that are allowed or known are suppressed results.

use super::Report;
use crate::cli::commands::generate::finding::{ReportedFinding, Standing};
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifRule, SarifSubject};
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
    let (place, position) = (reported.place(), &finding.position);
    let crd = reported.subject.iter().filter(|subject| *subject.file != *position.file);
    SarifFinding {
        rule: finding.kind.name(),
        level: finding.severity,
        message: if place.is_empty() { finding.message.clone() } else { format!("{place}: {}", finding.message) },
        place: Some(FilePlace { file: &position.file, position: Some((position.line, position.column)) }),
        subjects: if place.is_empty() {
            Vec::new()
        } else {
            vec![SarifSubject { field: finding.path.clone(), full: place }]
        },
        related: crd
            .map(|subject| {
                let place = FilePlace { file: &subject.file, position: Some(subject.position) };
                (place, format!("The CRD {}", subject.definition))
            })
            .collect(),
        suppressed: match reported.standing {
            Standing::New => None,
            Standing::Allowed => Some("allowed by --allow"),
            Standing::Known => Some("in the baseline"),
        },
    }
}
