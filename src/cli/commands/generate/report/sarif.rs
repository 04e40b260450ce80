//! The findings as SARIF. Findings that are allowed or known are suppressed results.

use super::Report;
use crate::cli::commands::generate::finding::{ReportedFinding, Standing};
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifLevel, SarifRule, SarifSubject};
use kube_unions_go::{FindingKind, FindingSeverity};

impl Report {
    pub(super) fn sarif(&self, problems: &[String], code: u8) -> serde_json::Result<String> {
        let rules = FindingKind::ALL.iter().map(|kind| SarifRule {
            id: kind.name(),
            description: kind.meaning(),
            level: level(kind.severity()),
        });
        sarif::log(rules, self.findings.iter().map(result), problems, code)
    }
}

fn result(reported: &ReportedFinding) -> SarifFinding<'_> {
    let finding = &reported.finding;
    let (place, position) = (reported.place(), &finding.position);
    let crd = reported.subject.as_ref().filter(|subject| *subject.file != *position.file);
    SarifFinding {
        rule: finding.kind.name(),
        level: level(finding.severity),
        message: if place.is_empty() { finding.message.clone() } else { format!("{place}: {}", finding.message) },
        place: Some(FilePlace { file: &position.file, position: Some((position.line, position.column)) }),
        subjects: (!place.is_empty())
            .then(|| SarifSubject { field: finding.path.clone(), full: place })
            .into_iter()
            .collect(),
        related: crd
            .map(|subject| {
                let place = FilePlace { file: &subject.file, position: Some(subject.position) };
                (place, format!("The CRD {}", subject.definition))
            })
            .into_iter()
            .collect(),
        suppressed: match reported.standing {
            Standing::New => None,
            Standing::Allowed => Some("allowed by --allow"),
            Standing::Known => Some("in the baseline"),
        },
    }
}

fn level(severity: FindingSeverity) -> SarifLevel {
    match severity {
        FindingSeverity::Error => SarifLevel::Error,
        FindingSeverity::Warning => SarifLevel::Warning,
        FindingSeverity::Note => SarifLevel::Note,
    }
}
