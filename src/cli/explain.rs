//! `explain`: shows the unions of a kind as a tree.

use super::kinds::{self, BuiltinUnionsArg};
use super::output::{self, Paint};
use super::tree::{self, ChoiceItem};
use super::{ReportFormat, Verdict, manifest};
use clap::Args;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::declaration::Actions;
use kube_unions_core::union::{Choice, Form, Union};
use serde::Serialize;
use std::path::PathBuf;
use termtree::Tree;

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kube-unions explain --from crds/
  kube-unions explain --from crds/ rollout
  kubectl get crd -o yaml | kube-unions explain --from - -o json")]
pub(super) struct ExplainArgs {
    /// A file or folder with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input; may be given
    /// several times
    // One value for each flag: the kind may follow.
    #[arg(long, required = true, num_args = 1, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// The kind as in kubectl: plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP [default: all]
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnionsArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

/// The message for a catalog without unions.
pub(super) const NO_UNIONS: &str = "no kind has unions; `kube-unions lint` reports faults in declarations";

/// A kind with its unions in JSON.
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
    /// The name of the `UnionDeclaration`, if one is the source.
    declaration: Option<&'c str>,
    validation_actions: &'static [&'static str],
    normalization: &'static str,
    /// True if an object must have a choice.
    required: bool,
    /// The members whose empty values count as not set.
    empty_is_unset: Vec<&'c str>,
    members: Vec<&'c str>,
    choices: Vec<ChoiceItem<'c>>,
}

pub(super) fn run(arguments: &ExplainArgs) -> anyhow::Result<Verdict> {
    let catalog = kinds::catalog(&arguments.from, arguments.builtin_unions)?;
    if catalog.entries().is_empty() {
        output::note(NO_UNIONS);
        return Ok(Verdict::Rejected);
    }
    let place = format!("with unions in {}", manifest::list(&arguments.from));
    let entries = kinds::asked::entries(catalog.entries(), arguments.kind.as_slice(), &place)?;
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

fn tree(entry: &CatalogEntry, paint: Paint) -> String {
    let gvk = entry.gvk();
    let slash = if gvk.group.is_empty() { "" } else { "/" };
    let version = format!("{}{slash}{}", gvk.group, gvk.version);
    let branch = |union: &Union| Tree::new(headline(union, paint)).with_leaves(leaves(union));
    let branches = entry.plan().unions().iter().map(branch);
    Tree::new(format!("{} {}", paint.strong(&gvk.kind), paint.faint(&version))).with_leaves(branches).to_string()
}

fn headline(union: &Union, paint: Paint) -> String {
    let form = format!("{} form", tree::form(union.form()));
    let source = match union.declaration() {
        Some(name) => format!("from {} {name}", union.source()),
        None => format!("from {}", union.source()),
    };
    let discriminator = tree::discriminator(union.discriminator());
    let actions = union.actions().names().join(", ");
    let mut details = vec![&*form, &*discriminator, &*source];
    if union.actions() != Actions::DENY {
        details.push(&actions);
    }
    if !union.is_normalized() {
        details.push("not normalised");
    }
    if union.is_required() {
        details.push("required");
    }
    let unset: Vec<&str> = union.empty_is_unset().collect();
    let shown = format!("empty is unset: {}", unset.join(", "));
    if !unset.is_empty() {
        details.push(&shown);
    }
    tree::headline(union.path(), &details, paint)
}

/// Returns the lines below a union: its choices, or its members if it has no discriminator.
fn leaves(union: &Union) -> Vec<String> {
    if union.discriminator().is_none() {
        return union.members().map(str::to_owned).collect();
    }
    let items = union.choices().iter().map(|choice| item(choice, union.form()));
    tree::choices(items)
}

fn item(choice: &Choice, form: Form) -> ChoiceItem<'_> {
    // In the 2019 form every member is optional.
    ChoiceItem {
        value: choice.value(),
        member: choice.member(),
        optional: choice.optional() && form == Form::Map,
        evidence: None,
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
        let choice = |choice: &'c Choice| ChoiceItem {
            value: choice.value(),
            member: choice.member(),
            optional: choice.optional(),
            evidence: None,
        };
        Self {
            path: union.path(),
            form: tree::form(union.form()),
            discriminator: union.discriminator(),
            source: union.source().to_string(),
            declaration: union.declaration(),
            validation_actions: union.actions().names(),
            normalization: union.normalization().name(),
            required: union.is_required(),
            empty_is_unset: union.empty_is_unset().collect(),
            members: union.members().collect(),
            choices: union.choices().iter().map(choice).collect(),
        }
    }
}
