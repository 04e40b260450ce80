//! The report of `--matrix`: a table with the lines of templates below it, JSON, or SARIF.

use super::reached::ChoiceOutcome;
use super::{MatrixRow, OutcomeCounts, OverrideMatrix};
use crate::commands::chart::report::{place, title, yaml_line};
use crate::commands::chart::values::{ValuesPath, null_values};
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::findings;
use crate::report::json_list::JsonList;
use crate::report::output::{self, Paint};
use crate::report::sarif::{SarifFinding, SarifRule};
use kube_unions_command::json::present;
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_offline::HelpPage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The rule of members that a user cannot choose.
const DEFAULT_STAYS: SarifRule = (
    "default-stays",
    Severity::Error,
    "A user's values cannot choose another member of a union than the chart's defaults.",
);

/// The rule of members that a user can choose.
const NEEDS_NULL: SarifRule = (
    "needs-null",
    Severity::Warning,
    "A user's values choose another member of a union than the chart's defaults only with a null for the default.",
);

/// Choices of a row that need the same beside the override.
struct MatrixFinding<'r, 'd> {
    row: &'r MatrixRow<'d>,
    /// The nulls that a user needs. `None`: no null helps.
    nulls: Option<&'r [ValuesPath]>,
    choices: Vec<&'r str>,
}

/// The most choices of a line of the table.
const MOST_CHOICES: usize = 5;

const TITLES: [&str; 7] = ["TEMPLATE", "OBJECT", "UNION", "VALUES", "DEFAULT", "CHOICE", "NEEDS"];

impl<'d> MatrixRow<'d> {
    fn findings(&self) -> Vec<MatrixFinding<'_, 'd>> {
        let mut choices: BTreeMap<&ChoiceOutcome, Vec<&str>> = BTreeMap::new();
        for cell in &self.cells {
            choices.entry(&cell.outcome).or_default().push(&cell.choice);
        }
        let mut findings = Vec::new();
        for (outcome, choices) in choices {
            let nulls = match outcome {
                ChoiceOutcome::Works => continue,
                ChoiceOutcome::NeedsNulls(nulls) => Some(nulls.as_slice()),
                ChoiceOutcome::DefaultStays => None,
            };
            findings.push(MatrixFinding { row: self, nulls, choices });
        }
        findings
    }
}

/// Prints the report.
pub(in crate::commands::chart) fn print(
    matrix: &OverrideMatrix<'_>,
    format: FindingsFormat,
    conclusion: &Conclusion,
) -> anyhow::Result<()> {
    let found: Vec<MatrixFinding<'_, '_>> = matrix.rows.iter().flat_map(MatrixRow::findings).collect();
    let json = || {
        let mut list = JsonList::begin("{\n  \"findings\": [".to_owned(), "  ");
        found.iter().try_for_each(|finding| list.push(&json_of(finding)))?;
        let overrides: Vec<Value> = matrix.rows.iter().flat_map(overrides_of).collect();
        let OutcomeCounts { works, needs_nulls, default_stays } = matrix.counts();
        let summary = json!({"unions": matrix.unions, "works": works, "needsNull": needs_nulls,
            "defaultStays": default_stays, "refused": matrix.refused, "unreached": matrix.unreached,
            "problems": conclusion.problems});
        list.end(&format!(",\n  \"overrides\": {},\n  \"summary\": {summary}\n}}\n", Value::Array(overrides)));
        Ok(list.text)
    };
    let text = |paint: Paint| {
        let stay = found.iter().filter(|finding| finding.nulls.is_none());
        table(&found, paint) + &stay.map(|finding| lines(finding.row, paint)).collect::<String>()
    };
    let results = found.iter().map(|finding| {
        let row = finding.row;
        let full = format!("{}: {}", title(row.document), row.union.path);
        let (field, place) = (row.union.path.to_string(), Some(place(row.document, "", true)));
        let (rule, level, _) = rule_of(finding);
        SarifFinding::new(rule, level, &field, full, message(finding), place)
    });
    output::print_text(findings::report(
        format,
        Paint::of(&std::io::stdout()),
        conclusion,
        text,
        json,
        [DEFAULT_STAYS, NEEDS_NULL].map(|rule| (rule, HelpPage::MATRIX)),
        results,
    )?)
}

/// Returns the last line.
pub(in crate::commands::chart) fn summary(matrix: &OverrideMatrix<'_>) -> String {
    let OutcomeCounts { works, needs_nulls, default_stays } = matrix.counts();
    let unions = count(matrix.unions, "union");
    let tried = count(works + needs_nulls + default_stays, "override");
    let result = |number: usize, one: &str, many: &str| {
        (number > 0).then(|| format!("{} {}", grouped(number), if number == 1 { one } else { many }))
    };
    let results = [
        result(needs_nulls, "needs a null", "need a null"),
        result(default_stays, "leaves the default", "leave the default"),
    ];
    let mut results = results.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if results.is_empty() {
        "all work".clone_into(&mut results);
    }
    format!(
        "{unions} with a default, {tried}: {results}; {} refused by the chart, {} without effect",
        grouped(matrix.refused),
        grouped(matrix.unreached)
    )
}

fn rule_of(finding: &MatrixFinding<'_, '_>) -> SarifRule {
    if finding.nulls.is_some() { NEEDS_NULL } else { DEFAULT_STAYS }
}

/// Returns the members, or the value of the discriminator, that the chart has.
fn default(row: &MatrixRow<'_>) -> Vec<String> {
    let value = row.union.union.discriminator().zip(row.union.value.as_ref());
    value
        .map(|(name, value)| format!("{name}: {value}"))
        .into_iter()
        .chain(row.union.members.iter().map(|name| (*name).to_owned()))
        .collect()
}

fn message(finding: &MatrixFinding<'_, '_>) -> String {
    let (place, choices) = (finding.row.values.join("."), shortened(&finding.choices));
    if let Some(nulls) = finding.nulls {
        return format!("`{place}` in the values needs `{}` to choose {choices}", yaml_line(nulls));
    }
    let default = default(finding.row).join(", ");
    format!("`{place}` in the values cannot choose {choices}: {default} of the chart stays")
}

fn table(found: &[MatrixFinding<'_, '_>], paint: Paint) -> String {
    let cells = |finding: &MatrixFinding<'_, '_>| {
        let row = finding.row;
        let cells = [
            place(row.document, "", true).file.display().to_string(),
            title(row.document),
            row.union.path.to_string(),
            row.values.join("."),
            default(row).join(", "),
            shortened(&finding.choices),
            finding.nulls.map_or_else(|| "a change of the template".to_owned(), yaml_line),
        ];
        cells.map(|cell: String| output::line(&cell).into_owned())
    };
    let rows: Vec<[String; 7]> = found.iter().map(cells).collect();
    if rows.is_empty() {
        return String::new();
    }
    let titles = TITLES.map(str::to_owned);
    let mut widths = [0; 7];
    for row in rows.iter().chain([&titles]) {
        widths = std::array::from_fn(|column| {
            let length = |row: &[String; 7]| row.get(column).map_or(0, |cell| cell.chars().count());
            length(row).max(widths.get(column).copied().unwrap_or_default())
        });
    }
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    let head = paint.strong(&line(&titles));
    rows.iter().fold(head + "\n", |text, row| text + &line(row) + "\n")
}

/// Returns the first of many names.
fn shortened(names: &[&str]) -> String {
    let first = names.get(..MOST_CHOICES).filter(|_| names.len() > MOST_CHOICES + 1);
    let more = |first: &[&str]| format!("{} and {} others", first.join(", "), names.len() - MOST_CHOICES);
    first.map_or_else(|| names.join(", "), more)
}

/// Returns the lines of the template for a row, below its place.
fn lines(row: &MatrixRow<'_>, paint: Paint) -> String {
    let place = place(row.document, "", true);
    let head = paint.strong(&format!("{}: {}:", place.file.display(), row.values.join(".")));
    row.template().iter().fold(format!("\n{}\n", output::line(&head)), |text, line| text + &output::line(line) + "\n")
}

fn json_of(finding: &MatrixFinding<'_, '_>) -> Value {
    let MatrixFinding { row, nulls, choices } = finding;
    present(json!({
        "rule": rule_of(finding).0,
        "apiVersion": row.document.api_version,
        "kind": row.document.kind,
        "namespace": row.document.namespace,
        "name": row.document.name,
        "field": row.union.path.to_string(),
        "message": message(finding),
        "helpUri": HelpPage::MATRIX.to_string(),
        "values": row.values.join("."),
        "default": default(row),
        "choices": choices,
        "nulls": nulls.map(null_values),
        "template": nulls.is_none().then(|| row.template().join("\n")),
        "file": place(row.document, "", true).file.display().to_string(),
    }))
}

fn overrides_of(row: &MatrixRow<'_>) -> impl Iterator<Item = Value> {
    row.cells.iter().map(|cell| {
        let nulls = match &cell.outcome {
            ChoiceOutcome::NeedsNulls(nulls) => Some(null_values(nulls)),
            ChoiceOutcome::Works | ChoiceOutcome::DefaultStays => None,
        };
        present(json!({
            "apiVersion": row.document.api_version,
            "kind": row.document.kind,
            "namespace": row.document.namespace,
            "name": row.document.name,
            "field": row.union.path.to_string(),
            "values": row.values.join("."),
            "choice": cell.choice,
            "sets": cell.sets,
            "works": cell.outcome == ChoiceOutcome::Works,
            "nulls": nulls,
        }))
    })
}
