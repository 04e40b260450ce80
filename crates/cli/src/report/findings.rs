//! Makes a report of findings in the format that the user asks for.

use super::conclusion::Conclusion;
use super::output::Paint;
use super::sarif::{ExplainedRule, SarifFinding, SarifLog};
use crate::input::values::FindingsFormat;

/// Returns a report: text for people, JSON for programs, or a SARIF log with the rules that findings may have.
pub(crate) fn report<'f>(
    format: FindingsFormat,
    paint: Paint,
    conclusion: &Conclusion,
    text: impl FnOnce(Paint) -> String,
    json: impl FnOnce() -> serde_json::Result<String>,
    rules: impl IntoIterator<Item = ExplainedRule>,
    findings: impl IntoIterator<Item = SarifFinding<'f>>,
) -> serde_json::Result<String> {
    match format {
        FindingsFormat::Text => Ok(text(paint)),
        FindingsFormat::Json => json(),
        FindingsFormat::Sarif => {
            let mut log = SarifLog::begin(rules);
            findings.into_iter().try_for_each(|finding| log.push(&finding))?;
            log.end(conclusion);
            Ok(log.list.text)
        }
    }
}
