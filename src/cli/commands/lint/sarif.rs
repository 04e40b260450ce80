//! Faults as SARIF. A file that cannot be read is a notification of the run, not a result.

use crate::cli::report::diagnostic::{Diagnostic, LintRule};
use crate::cli::report::sarif::{self, FilePlace, SarifEnd, SarifFinding, SarifLevel, SarifRule, SarifSubject};

/// Returns the log of all diagnostics. `problems` kept something from being checked, and `code` is the exit code.
pub(super) fn log(diagnostics: &[Diagnostic], problems: &[String], code: u8) -> serde_json::Result<String> {
    let rules: Vec<LintRule> = LintRule::all().filter(|rule| *rule != LintRule::UnreadableInput).collect();
    let mut text = sarif::head(rules.iter().map(|rule| SarifRule {
        id: rule.name(),
        description: rule.meaning(),
        level: SarifLevel::of(rule.severity()),
    }))?;
    let mut begun = false;
    for diagnostic in diagnostics {
        let Some(rule_index) = rules.iter().position(|rule| *rule == diagnostic.rule) else { continue };
        text.push_str(if begun { ",\n" } else { "\n" });
        text.push_str(&result(diagnostic, rule_index).text()?);
        begun = true;
    }
    text.push_str(&sarif::tail(&SarifEnd { problems, code }, begun)?);
    Ok(text)
}

fn result(diagnostic: &Diagnostic, rule_index: usize) -> SarifFinding<'_> {
    let (rule, path) = (diagnostic.rule, &*diagnostic.path);
    let subject = diagnostic.subject().unwrap_or_default();
    let full = [subject, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    SarifFinding {
        rule: rule.name(),
        rule_index,
        level: SarifLevel::of(rule.severity()),
        message: if full.is_empty() {
            diagnostic.message_of_versions()
        } else {
            format!("{full}: {}", diagnostic.message_of_versions())
        },
        place: Some(FilePlace { file: &diagnostic.file, position: diagnostic.position() }),
        subjects: if full.is_empty() { Vec::new() } else { vec![SarifSubject { field: path.to_owned(), full }] },
        related: Vec::new(),
        suppressed: None,
    }
}
