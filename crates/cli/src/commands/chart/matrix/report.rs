//! The report of `--matrix`: a table with the lines of templates below it, JSON, or SARIF.

use super::{MatrixRow, OverrideMatrix};
use crate::commands::chart::report::{place, title};
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::findings;
use crate::report::json_list::{JsonList, present};
use crate::report::output::{self, Paint};
use crate::report::sarif::{SarifFinding, SarifRule};
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_offline::HelpPage;
use serde_json::{Value, json};

/// The rule of findings.
const RULE: SarifRule = (
    "default-stays",
    Severity::Error,
    "A user's values cannot choose another member of a union than the chart's defaults.",
);

/// The most choices of a row of the table.
const MOST_CHOICES: usize = 5;

const TITLES: [&str; 6] = ["TEMPLATE", "OBJECT", "UNION", "VALUES", "DEFAULT", "CANNOT BE CHOSEN"];

/// Prints the report.
pub(in crate::commands::chart) fn print(
    matrix: &OverrideMatrix<'_>,
    format: FindingsFormat,
    conclusion: &Conclusion,
) -> anyhow::Result<()> {
    let rows = || matrix.rows.iter().filter(|row| row.refused().next().is_some());
    let json = || {
        let mut list = JsonList::begin("{\n  \"findings\": [".to_owned(), "  ");
        rows().try_for_each(|row| list.push(&json_of(row)))?;
        let overrides: Vec<Value> = matrix.rows.iter().flat_map(overrides_of).collect();
        let (working, others) = matrix.counts();
        let summary = json!({"unions": matrix.unions, "works": working, "defaultStays": others, "refused": matrix.refused,
            "unreached": matrix.unreached, "problems": conclusion.problems});
        list.end(&format!(",\n  \"overrides\": {},\n  \"summary\": {summary}\n}}\n", Value::Array(overrides)));
        Ok(list.text)
    };
    let text = |paint: Paint| table(rows(), paint) + &rows().map(|row| lines(row, paint)).collect::<String>();
    let results = rows().map(|row| {
        let full = format!("{}: {}", title(row.document), row.union.path);
        let (field, place) = (row.union.path.to_string(), Some(place(row.document, "", true)));
        SarifFinding::new(RULE.0, RULE.1, &field, full, message(row), place)
    });
    output::print_text(findings::report(
        format,
        Paint::of(&std::io::stdout()),
        conclusion,
        text,
        json,
        [(RULE, HelpPage::MATRIX)],
        results,
    )?)
}

/// Returns the last line.
pub(in crate::commands::chart) fn summary(matrix: &OverrideMatrix<'_>) -> String {
    let (working, others) = matrix.counts();
    let unions = count(matrix.unions, "union");
    let tried = count(working + others, "override");
    let result = if others == 0 {
        "all work".to_owned()
    } else {
        format!("{} {} the default", grouped(others), if others == 1 { "leaves" } else { "leave" })
    };
    format!(
        "{unions} with a default, {tried}: {result}; {} refused by the chart, {} without effect",
        grouped(matrix.refused),
        grouped(matrix.unreached)
    )
}

fn choices<'r>(row: &'r MatrixRow<'_>) -> Vec<&'r str> {
    row.refused().map(|cell| &*cell.choice).collect()
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

fn message(row: &MatrixRow<'_>) -> String {
    format!(
        "`{}` in the values cannot choose {}: {} of the chart stays",
        row.values.join("."),
        shortened(&choices(row)),
        default(row).join(", ")
    )
}

fn table<'r>(rows: impl Iterator<Item = &'r MatrixRow<'r>>, paint: Paint) -> String {
    let cells = |row: &MatrixRow<'_>| {
        let file = place(row.document, "", true).file.display().to_string();
        let cells = [
            file,
            title(row.document),
            row.union.path.to_string(),
            row.values.join("."),
            default(row).join(", "),
            shortened(&choices(row)),
        ];
        cells.map(|cell: String| output::line(&cell).into_owned())
    };
    let rows: Vec<[String; 6]> = rows.map(cells).collect();
    if rows.is_empty() {
        return String::new();
    }
    let titles = TITLES.map(str::to_owned);
    let mut widths = [0; 6];
    for row in rows.iter().chain([&titles]) {
        widths = std::array::from_fn(|column| {
            let length = |row: &[String; 6]| row.get(column).map_or(0, |cell| cell.chars().count());
            length(row).max(widths.get(column).copied().unwrap_or_default())
        });
    }
    let line = |row: &[String; 6]| {
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

fn json_of(row: &MatrixRow<'_>) -> Value {
    present(json!({
        "rule": RULE.0,
        "apiVersion": row.document.api_version,
        "kind": row.document.kind,
        "namespace": row.document.namespace,
        "name": row.document.name,
        "field": row.union.path.to_string(),
        "message": message(row),
        "helpUri": HelpPage::MATRIX.to_string(),
        "values": row.values.join("."),
        "default": default(row),
        "cannotChoose": choices(row),
        "template": row.template().join("\n"),
        "file": place(row.document, "", true).file.display().to_string(),
    }))
}

fn overrides_of(row: &MatrixRow<'_>) -> impl Iterator<Item = Value> {
    row.cells.iter().map(|cell| {
        present(json!({
            "apiVersion": row.document.api_version,
            "kind": row.document.kind,
            "namespace": row.document.namespace,
            "name": row.document.name,
            "field": row.union.path.to_string(),
            "values": row.values.join("."),
            "choice": cell.choice,
            "sets": cell.sets,
            "works": cell.works,
        }))
    })
}
