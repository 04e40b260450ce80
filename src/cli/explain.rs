//! `explain`: the unions of a kind as a tree.

use super::kinds::{self, BuiltinUnions};
use super::output::{self, Paint};
use super::{ReportFormat, Verdict};
use crate::catalog::{Catalog, Entry, GroupVersionKind};
use crate::declaration::Action;
use crate::union::{Choice, Form, Union};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A file or folder with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input; may be given
    /// several times
    // One value each: what follows may be the kind.
    #[arg(long, required = true, num_args = 1, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// The kind, such as `Deployment` or `deployment.apps`, in any case [default: all]
    kind: Option<String>,
    /// Whether unions count that OpenAPI documents themselves declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnions,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

/// A kind with its unions, for programs.
#[derive(Debug, Serialize)]
struct KindReport<'c> {
    group: &'c str,
    version: &'c str,
    kind: &'c str,
    unions: Vec<UnionReport<'c>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UnionReport<'c> {
    path: &'c str,
    form: &'static str,
    discriminator: Option<&'c str>,
    source: String,
    /// The name of the `UnionDeclaration`, where the source is one.
    declaration: Option<&'c str>,
    validation_action: &'static str,
    members: Vec<&'c str>,
    choices: Vec<ChoiceReport<'c>>,
}

#[derive(Debug, Serialize)]
struct ChoiceReport<'c> {
    value: &'c str,
    member: Option<&'c str>,
    optional: bool,
}

pub(super) fn run(arguments: &ExplainArgs) -> anyhow::Result<Verdict> {
    let catalog = kinds::catalog(&arguments.from, arguments.builtin_unions)?;
    let asked = |entry: &&Entry| arguments.kind.as_deref().is_none_or(|kind| names(entry, kind));
    let entries: Vec<&Entry> = catalog.entries().iter().filter(asked).collect();
    if entries.is_empty() {
        output::note(nothing_to_explain(&catalog, arguments.kind.as_deref()));
        return Ok(Verdict::Rejected);
    }
    output::print(match arguments.output {
        ReportFormat::Text => {
            let paint = Paint::of(&std::io::stdout());
            let trees: Vec<String> = entries.iter().map(|entry| tree(entry, paint)).collect();
            trees.join("\n")
        }
        ReportFormat::Json => {
            let reports: Vec<KindReport<'_>> = entries.iter().map(|entry| KindReport::of(entry)).collect();
            serde_json::to_string_pretty(&reports)? + "\n"
        }
    })?;
    Ok(Verdict::Accepted)
}

/// Whether a kind is meant by `Kind`, or `Kind.group`.
fn names(entry: &Entry, asked: &str) -> bool {
    let gvk = entry.gvk();
    match asked.split_once('.') {
        None => gvk.kind.eq_ignore_ascii_case(asked),
        Some((kind, group)) => gvk.kind.eq_ignore_ascii_case(kind) && gvk.group.eq_ignore_ascii_case(group),
    }
}

fn nothing_to_explain(catalog: &Catalog, asked: Option<&str>) -> String {
    let mut known: Vec<String> = catalog.entries().iter().map(|entry| qualified(entry.gvk())).collect();
    known.dedup();
    match asked {
        Some(asked) if !known.is_empty() => {
            format!("no kind `{asked}` with unions; there are:\n  {}", known.join("\n  "))
        }
        _ => "no kind here has unions; `kube-unions lint` says what is wrong with declarations".to_owned(),
    }
}

/// Kind and group, as they can be asked for.
fn qualified(GroupVersionKind { group, kind, .. }: &GroupVersionKind) -> String {
    if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") }
}

fn tree(entry: &Entry, paint: Paint) -> String {
    let gvk = entry.gvk();
    let slash = if gvk.group.is_empty() { "" } else { "/" };
    let version = format!("{}{slash}{}", gvk.group, gvk.version);
    let mut text = format!("{} {}\n", paint.strong(&gvk.kind), paint.faint(&version));
    let unions = entry.plan().unions();
    for (position, union) in unions.iter().enumerate() {
        let last = position + 1 == unions.len();
        let (branch, below) = if last { ("└── ", "    ") } else { ("├── ", "│   ") };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{branch}{}", headline(union, paint));
        let lines = leaves(union);
        for (position, line) in lines.iter().enumerate() {
            let leaf = if position + 1 == lines.len() { "└── " } else { "├── " };
            let _ = writeln!(text, "{below}{leaf}{line}");
        }
    }
    text
}

fn headline(union: &Union, paint: Paint) -> String {
    let path = if union.path().is_empty() { "(the object)" } else { union.path() };
    let discriminator = match union.discriminator() {
        Some(name) => format!("discriminator `{name}`"),
        None => "no discriminator".to_owned(),
    };
    let source = match union.declaration() {
        Some(name) => format!("{} {name}", union.source()),
        None => union.source().to_string(),
    };
    let action = match union.action() {
        Action::Deny => String::new(),
        Action::Warn => format!(", {}", validation_action(union)),
    };
    let details = format!("{} form, {discriminator}, from {source}{action}", form(union));
    format!("{} {}", paint.strong(path), paint.faint(&format!("({details})")))
}

/// What stands below a union: its choices, or its members where nothing chooses.
fn leaves(union: &Union) -> Vec<String> {
    if union.discriminator().is_none() {
        return union.members().map(str::to_owned).collect();
    }
    let width = union.choices().iter().map(|choice| shown(choice).chars().count()).max().unwrap_or(0);
    let line = |choice: &Choice| {
        let member = match choice.member() {
            None => "no member".to_owned(),
            // In the form of 2019 no member has to be there.
            Some(member) if choice.optional() && union.form() == Form::Map => format!("{member} (optional)"),
            Some(member) => member.to_owned(),
        };
        format!("{:width$} → {member}", shown(choice))
    };
    union.choices().iter().map(line).collect()
}

fn shown(choice: &Choice) -> String {
    if choice.value().is_empty() { "\"\"".to_owned() } else { choice.value().to_owned() }
}

fn form(union: &Union) -> &'static str {
    match union.form() {
        Form::List => "2019",
        Form::Map => "2022",
    }
}

fn validation_action(union: &Union) -> &'static str {
    match union.action() {
        Action::Deny => "Deny",
        Action::Warn => "Warn",
    }
}

impl<'c> KindReport<'c> {
    fn of(entry: &'c Entry) -> Self {
        let gvk = entry.gvk();
        let unions = entry.plan().unions().iter().map(UnionReport::of).collect();
        Self { group: &gvk.group, version: &gvk.version, kind: &gvk.kind, unions }
    }
}

impl<'c> UnionReport<'c> {
    fn of(union: &'c Union) -> Self {
        let choice = |choice: &'c Choice| ChoiceReport {
            value: choice.value(),
            member: choice.member(),
            optional: choice.optional(),
        };
        Self {
            path: union.path(),
            form: form(union),
            discriminator: union.discriminator(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            validation_action: validation_action(union),
            members: union.members().collect(),
            choices: union.choices().iter().map(choice).collect(),
        }
    }
}
