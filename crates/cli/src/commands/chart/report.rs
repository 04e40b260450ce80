//! The report of `chart`: lines for people, JSON, or SARIF.

use super::judge::{JudgedRendering, RenderedFault};
use super::values::{ValuesAdvice, ValuesPath, null_values};
use crate::commands::preview::ApiServerAnswer;
use crate::input::builtin::said;
use crate::input::manifest::Document;
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::diagnostic::painted;
use crate::report::findings;
use crate::report::json_list::JsonList;
use crate::report::output::{self, Paint};
use crate::report::sarif::{ExplainedRule, FilePlace, SarifFinding, SarifRule};
use kube_unions_command::json::present;
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::source;
use kube_unions_offline::HelpPage;
use serde_json::{Value, json};
use std::path::Path;

/// The rules of findings.
const RULES: [ExplainedRule; 2] = [
    (
        ("union-refused", Severity::Error, "The API server refuses the object, because a union is invalid."),
        HelpPage::ERRORS,
    ),
    (
        (
            "union-invalid",
            Severity::Warning,
            "A union is invalid, and it is not known whether the API server refuses it.",
        ),
        HelpPage::DENIALS,
    ),
];

/// A fault with what helps in the values.
type Advised<'a, 'd> = (&'a RenderedFault<'d>, Option<ValuesAdvice>);

/// Prints the report.
pub(super) fn print(
    advised: &[Advised<'_, '_>],
    is_chart: bool,
    format: FindingsFormat,
    judged: &JudgedRendering<'_>,
    conclusion: &Conclusion,
) -> anyhow::Result<()> {
    let json = || {
        let mut list = JsonList::begin("{\n  \"findings\": [".to_owned(), "  ");
        advised.iter().try_for_each(|fault| list.push(&json_of(fault, is_chart)))?;
        let summary = json!({"judged": judged.judged, "invalid": judged.faults.len(), "undecided": judged.undecided, "otherKinds": judged.others,
            "problems": conclusion.problems});
        list.end(&format!(",\n  \"summary\": {summary}\n}}\n"));
        Ok(list.text)
    };
    let text = |paint| advised.iter().map(|fault| text(fault, is_chart, paint) + "\n").collect();
    let results = advised.iter().map(|fault| result(fault, is_chart));
    output::print_text(findings::report(format, Paint::of(&std::io::stdout()), conclusion, text, json, RULES, results)?)
}

/// Writes the findings to standard error.
pub(super) fn note(advised: &[Advised<'_, '_>], is_chart: bool) {
    let paint = Paint::of(&std::io::stderr());
    for fault in advised {
        output::note(text(fault, is_chart, paint));
    }
}

fn rule_of(answer: &ApiServerAnswer) -> SarifRule {
    let [(refused, _), (invalid, _)] = RULES;
    if matches!(answer, ApiServerAnswer::Refused) { refused } else { invalid }
}

/// Returns the place of a field: in a rendering of a chart, its template.
pub(super) fn place<'d>(document: &'d Document, pointer: &str, is_chart: bool) -> FilePlace<'d> {
    match source(&document.section.text) {
        Some(template) if is_chart => FilePlace { file: Path::new(template), position: None },
        _ => FilePlace { file: &document.file, position: document.position(pointer) },
    }
}

pub(super) fn title(document: &Document) -> String {
    let namespace = document.namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
    let [kind, name] = [&document.kind, &document.name].map(|it| it.as_deref().unwrap_or("?"));
    format!("{kind} {namespace}{name}")
}

fn text(advised: &Advised<'_, '_>, is_chart: bool, paint: Paint) -> String {
    let (fault, _) = advised;
    let (_, level, _) = rule_of(&fault.answer);
    let head = paint.strong(&format!("{}:", place(fault.document, &fault.field_pointer, is_chart)));
    let mut lines = vec![format!(
        "{head} {}: {}: {} {}",
        title(fault.document),
        fault.field,
        painted(level, paint),
        message(fault)
    )];
    lines.extend(reason(fault, is_chart));
    lines.extend(server_words(fault));
    lines.extend(advice(advised, is_chart));
    output::line(&lines.join("\n  ")).into_owned()
}

fn message(fault: &RenderedFault<'_>) -> String {
    match &fault.answer {
        ApiServerAnswer::Refused
        | ApiServerAnswer::RefusedNull
        | ApiServerAnswer::RefusedObject
        | ApiServerAnswer::Immutable => {
            format!("refused: {}", fault.violation)
        }
        ApiServerAnswer::Stored => format!("stored, and nothing refuses it: {}", fault.violation),
        ApiServerAnswer::Unknown(why) => format!("perhaps refused: {}; {why}", fault.violation),
    }
}

/// Returns the words of the API server.
fn server_words(fault: &RenderedFault<'_>) -> Option<String> {
    fault.words.as_deref().map(said)
}

/// Returns where the members come from.
fn reason(fault: &RenderedFault<'_>, is_chart: bool) -> Option<String> {
    let (defaults, values) = if is_chart { ("the chart", "the values") } else { ("the old rendering", "the new one") };
    let added = match &*fault.of_values {
        [] if fault.sets_value => format!("{values} set another value of the discriminator"),
        [] => return None,
        members => format!("{} from {values}", listed(members)),
    };
    (!fault.of_chart.is_empty()).then(|| format!("{} from {defaults}, {added}", listed(&fault.of_chart)))
}

fn listed(members: &[String]) -> String {
    let quoted = members.iter().map(|member| format!("`{member}`"));
    let verb = if members.len() == 1 { "comes" } else { "come" };
    format!("{} {verb}", quoted.collect::<Vec<_>>().join(" and "))
}

/// Returns what helps, a line each.
fn advice((fault, advice): &Advised<'_, '_>, is_chart: bool) -> Vec<String> {
    let mut lines = Vec::new();
    match advice {
        Some(ValuesAdvice::Nulls(nulls)) => {
            lines.push(format!("helps: `{}` in the values", yaml_line(nulls)));
        }
        Some(ValuesAdvice::Futile(tried)) => {
            let first = tried.first().map(std::slice::from_ref).unwrap_or_default();
            lines.push(format!("does not help: `{}` in the values", yaml_line(first)));
        }
        Some(ValuesAdvice::NotFound) => {
            lines.push("no default value has this name, so the values cannot remove it".to_owned());
        }
        None => {}
    }
    if fault.removed.is_empty() {
        let is_choice = fault.of_chart.len() + fault.of_values.len() > 1;
        lines.extend(is_choice.then(|| "helps: keep one of the members".to_owned()));
    } else if fault.by_hand {
        let members: Vec<String> = fault.removed.iter().map(|member| format!("`{member}`")).collect();
        let why = "an anchor or a merge key shares its text with another place, so the document is kept";
        lines.push(format!("helps: remove {} by hand: {why}", members.join(" and ")));
    } else if !is_chart || !matches!(advice, Some(ValuesAdvice::Nulls(_))) {
        lines.push("helps: --fix manifests".to_owned());
    }
    lines
}

pub(super) fn yaml_line(nulls: &[ValuesPath]) -> String {
    fields(&null_values(nulls))
}

fn flow(value: &Value) -> String {
    if value.is_object() { format!("{{{}}}", fields(value)) } else { value.to_string() }
}

fn fields(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect::<Vec<_>>().join(", ")
}

/// Returns a name as a key of YAML, in quotes if YAML 1.1 reads something else.
fn key(name: &str) -> String {
    let is_word = name.starts_with(|it: char| it.is_alphabetic() || it == '_')
        && name.chars().all(|it| it.is_alphanumeric() || "_-./".contains(it));
    let is_other = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = is_word && !is_other.contains(&&*name.to_lowercase());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}

fn json_of(advised: &Advised<'_, '_>, is_chart: bool) -> Value {
    let (fault, values) = advised;
    let place = place(fault.document, &fault.field_pointer, is_chart);
    let (line, column) = place.position.unzip();
    let nulls = match values {
        Some(ValuesAdvice::Nulls(nulls)) => null_values(nulls),
        _ => Value::Null,
    };
    present(json!({
        "rule": rule_of(&fault.answer).0,
        "apiVersion": fault.document.api_version,
        "kind": fault.document.kind,
        "namespace": fault.document.namespace,
        "name": fault.document.name,
        "field": fault.field,
        "message": fault.violation,
        "note": server_words(fault),
        "helpUri": fault.help.to_string(),
        "fromChart": fault.of_chart,
        "fromValues": fault.of_values,
        "removed": fault.removed,
        "byHand": fault.by_hand.then_some(true),
        "values": nulls,
        "helps": advice(advised, is_chart),
        "file": place.file.display().to_string(),
        "line": line,
        "column": column,
    }))
}

fn result<'d>(advised: &Advised<'_, 'd>, is_chart: bool) -> SarifFinding<'d> {
    let (fault, _) = advised;
    let (rule, level, _) = rule_of(&fault.answer);
    let more = reason(fault, is_chart).into_iter().chain(server_words(fault)).chain(advice(advised, is_chart));
    let more = more.map(|line| format!(". {line}"));
    let message = [message(fault)].into_iter().chain(more).collect();
    let full = format!("{}: {}", title(fault.document), fault.field);
    let place = place(fault.document, &fault.field_pointer, is_chart);
    SarifFinding { help: Some(fault.help), ..SarifFinding::new(rule, level, &fault.field, full, message, Some(place)) }
}
