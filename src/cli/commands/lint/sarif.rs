//! Faults as SARIF. A file that cannot be read is a notification of the run, not a result.

use crate::cli::report::diagnostic::{Diagnostic, LintRule};
use crate::cli::report::sarif::{self, FilePlace, SarifFinding, SarifRule, SarifSubject};

/// Returns the log of all diagnostics. `problems` kept something from being checked, and `code` is the exit code.
pub(super) fn log(diagnostics: &[Diagnostic], problems: &[String], code: u8) -> serde_json::Result<String> {
    let is_result = |rule: &LintRule| *rule != LintRule::UnreadableInput;
    let rules = LintRule::all().filter(is_result).map(|rule| SarifRule {
        id: rule.name(),
        description: rule.meaning(),
        level: rule.severity(),
    });
    sarif::log(rules, diagnostics.iter().filter(|it| is_result(&it.rule)).map(result), problems, code)
}

fn result(diagnostic: &Diagnostic) -> SarifFinding<'_> {
    let (rule, path) = (diagnostic.rule, &*diagnostic.path);
    let subject = diagnostic.subject().unwrap_or_default();
    let full = [subject, path].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    SarifFinding {
        rule: rule.name(),
        level: rule.severity(),
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
