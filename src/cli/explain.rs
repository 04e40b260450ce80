//! `explain`: the unions of a kind as a tree.

use super::kinds::{self, BuiltinUnions};
use super::output::{self, Paint};
use super::tree::{self, Branch, Leaf};
use super::{ReportFormat, Verdict};
use clap::Args;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::declaration::Action;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Choice, Form, Union};
use serde::Serialize;
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
    choices: Vec<Leaf<'c>>,
}

pub(super) fn run(arguments: &ExplainArgs) -> anyhow::Result<Verdict> {
    let catalog = kinds::catalog(&arguments.from, arguments.builtin_unions)?;
    let asked = |entry: &&CatalogEntry| {
        let GroupVersionKind { group, kind, .. } = entry.gvk();
        arguments.kind.as_deref().is_none_or(|asked| kinds::is_meant(asked, group, kind))
    };
    let entries: Vec<&CatalogEntry> = catalog.entries().iter().filter(asked).collect();
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

pub(super) fn nothing_to_explain(catalog: &Catalog, asked: Option<&str>) -> String {
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

fn tree(entry: &CatalogEntry, paint: Paint) -> String {
    let gvk = entry.gvk();
    let slash = if gvk.group.is_empty() { "" } else { "/" };
    let version = format!("{}{slash}{}", gvk.group, gvk.version);
    let branch = |union: &Union| Branch { line: headline(union, paint), leaves: leaves(union) };
    let branches: Vec<Branch> = entry.plan().unions().iter().map(branch).collect();
    tree::draw(&format!("{} {}", paint.strong(&gvk.kind), paint.faint(&version)), &branches)
}

fn headline(union: &Union, paint: Paint) -> String {
    let form = format!("{} form", tree::form(union.form()));
    let source = match union.declaration() {
        Some(name) => format!("from {} {name}", union.source()),
        None => format!("from {}", union.source()),
    };
    let discriminator = tree::discriminator(union.discriminator());
    let mut details = vec![&*form, &*discriminator, &*source];
    match union.action() {
        Action::Deny => {}
        Action::Warn => details.push(validation_action(union)),
    }
    tree::headline(union.path(), &details, paint)
}

/// What stands below a union: its choices, or its members where nothing chooses.
fn leaves(union: &Union) -> Vec<String> {
    if union.discriminator().is_none() {
        return union.members().map(str::to_owned).collect();
    }
    let leaves = union.choices().iter().map(|choice| leaf(choice, union.form()));
    tree::choices(leaves)
}

fn leaf(choice: &Choice, form: Form) -> Leaf<'_> {
    // In the form of 2019 no member has to be there.
    Leaf { value: choice.value(), member: choice.member(), optional: choice.optional() && form == Form::Map }
}

fn validation_action(union: &Union) -> &'static str {
    match union.action() {
        Action::Deny => "Deny",
        Action::Warn => "Warn",
    }
}

impl<'c> KindReport<'c> {
    fn of(entry: &'c CatalogEntry) -> Self {
        let gvk = entry.gvk();
        let unions = entry.plan().unions().iter().map(UnionReport::of).collect();
        Self { group: &gvk.group, version: &gvk.version, kind: &gvk.kind, unions }
    }
}

impl<'c> UnionReport<'c> {
    fn of(union: &'c Union) -> Self {
        let choice =
            |choice: &'c Choice| Leaf { value: choice.value(), member: choice.member(), optional: choice.optional() };
        Self {
            path: union.path(),
            form: tree::form(union.form()),
            discriminator: union.discriminator(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            validation_action: validation_action(union),
            members: union.members().collect(),
            choices: union.choices().iter().map(choice).collect(),
        }
    }
}
