//! Prints comparisons as lines for people, as JSON and as SARIF.

mod sarif;

use super::compared_union::{ComparedUnion, LONGEST_RULE, ReportedRule};
use super::comparison::RuleVerdict;
use crate::cli::input::values::FindingsFormat;
use crate::cli::report::output::{self, Paint};
use kube_unions_core::field_path::Printable;
use std::fmt::Write;

impl ComparedUnion<'_> {
    fn lines(&self, paint: Paint) -> String {
        let head = |line: Option<usize>, column: Option<usize>| {
            let position = [line, column].into_iter().flatten().map(|number| number.to_string());
            let place: Vec<String> = [self.file.display().to_string()].into_iter().chain(position).collect();
            let path = if self.path.is_empty() { "(the object)" } else { self.path };
            let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
            let place = paint.strong(&format!("{}:", place.join(":")));
            output::line(&format!("{place} {}{group}/{} {path}:", self.kind, self.version)).into_owned()
        };
        let whole = head(self.line, self.column);
        let mut text = String::new();
        for verdict in &self.all {
            match verdict {
                RuleVerdict::Agrees if self.requires_member => {
                    let _ = writeln!(text, "{whole} agrees, and the rules require a member");
                }
                RuleVerdict::Agrees | RuleVerdict::NoRules => {
                    let _ = writeln!(text, "{whole} {}", verdict.words());
                }
                RuleVerdict::TooWeak | RuleVerdict::TooStrong => {}
                RuleVerdict::Undecided => {
                    for why in &self.undecided {
                        let _ = writeln!(text, "{whole} {} {why}", paint.warning("undecided:"));
                    }
                }
            }
        }
        for it in &self.disagreements {
            let rules: Vec<&ReportedRule> = it.rejected_by.iter().filter_map(|&at| self.rules.get(at)).collect();
            match rules.first() {
                None => {
                    let violation = output::line(it.violation.as_deref().unwrap_or_default());
                    let error = paint.error("too weak:");
                    let _ = writeln!(text, "{whole} {error} the rules allow what the union rejects: {violation}");
                }
                Some(rule) => {
                    let error = paint.error("too strong:");
                    let head = head(rule.line, rule.column);
                    let _ = writeln!(text, "{head} {error} {} rejects what the union allows", rule.title());
                }
            }
            let also: Vec<String> =
                it.also.iter().map(|value| format!("{:?}", Printable::new(value, LONGEST_RULE).to_string())).collect();
            let also = if also.is_empty() { String::new() } else { format!("  (also with {})", also.join(", ")) };
            let _ = writeln!(text, "    {}{also}", it.object);
        }
        if !self.disagreements.is_empty() {
            for why in &self.undecided {
                let _ = writeln!(text, "{whole} {} also {why}", paint.warning("undecided:"));
            }
        }
        text
    }
}

/// Prints the comparisons. `problems` kept something from being checked, and `code` is the exit code.
pub(super) fn print(
    compared: &[ComparedUnion<'_>],
    format: FindingsFormat,
    problems: &[String],
    code: u8,
) -> anyhow::Result<()> {
    let text = match format {
        FindingsFormat::Text => {
            let paint = Paint::of(&std::io::stdout());
            compared.iter().map(|union| union.lines(paint)).collect()
        }
        FindingsFormat::Json => serde_json::to_string_pretty(compared)? + "\n",
        FindingsFormat::Sarif => sarif::log(compared, problems, code)?,
    };
    output::tell(text)
}
