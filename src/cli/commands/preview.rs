//! `preview`: predicts which unions an apply of a new rendering leaves invalid, without a cluster.
//!
//! [`kind_rules`] has what the API server does to a kind, and what a client does, and [`prediction`] joins them.
//! [`renderings`] pairs the objects, and [`report`] prints.

mod kind_rules;
mod prediction;
mod renderings;
mod report;

use self::kind_rules::{ApiServerAnswer, ApplyWay, Kinds};
use self::prediction::PredictedUnion;
use self::renderings::Renderings;
use crate::cli::input::manifest::{self, Document, ManifestFiles};
use crate::cli::input::require::RequireArg;
use crate::cli::input::values::FindingsFormat;
use crate::cli::report::exit::FAILED;
use crate::cli::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::Args;
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::counts::count;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Arguments of `preview`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each finding is `file:line:column: object: path: severity: message`. Below it are the reason, and what helps. Everything that is said \
to help was tried.

Built-in kinds are known, with the unions of the presets. Custom resources take their CRD, by --from or in a rendering. An object \
is predicted from the old rendering and the API server's defaults, or read with --live.

Only unions are predicted: an apply may still fail for another reason, for example an immutable field.

Exit codes:
  0  every union is valid after the apply
  1  the apply is refused, or stores an invalid union; with --require also: there is nothing to compare
  2  wrong usage, or input that cannot be read; the rest was compared

Examples:
  helm template app ./chart --version 1.0 > old.yaml
  helm template app ./chart --version 2.0 > new.yaml
  kube-unions preview --old old.yaml --new new.yaml --as helm

  # Custom resources, by server-side apply to the object that a cluster has
  kubectl get widget demo -o yaml --show-managed-fields > live.yaml
  kube-unions preview --old old/ --new new/ --from crds/ \\
    --live live.yaml -o sarif > preview.sarif")]
pub(crate) struct PreviewArgs {
    /// The rendering that was applied last: files and folders, `-` is standard input
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    old: Vec<PathBuf>,
    /// The rendering that will be applied
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    new: Vec<PathBuf>,
    /// The way to apply it
    #[arg(long = "as", value_enum, default_value_t, value_name = "WAY")]
    way: ApplyWay,
    /// Objects as a cluster has them [default: the old rendering with the defaults of the API server]
    #[arg(long, num_args = 1.., value_name = "PATH")]
    live: Vec<PathBuf>,
    /// Files and folders with CRDs and `UnionDeclarations`
    #[arg(long, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
}

pub(super) fn run(arguments: &PreviewArgs) -> anyhow::Result<Verdict> {
    let read = [&arguments.from, &arguments.new, &arguments.old, &arguments.live].map(|paths| manifest::files(paths));
    let mut problems: Vec<String> = read.iter().flat_map(|it| &it.problems).map(ToString::to_string).collect();
    let [from, new, old, live] = read.map(|files| ManifestFiles::documents(&files).collect::<Vec<Document>>());
    let kinds = Kinds::read(describing([&from, &new, &old]), arguments.way)?;
    problems.extend(kinds.assembly.problems.iter().map(ToString::to_string));
    let faults = kinds.assembly.catalog.faults().iter().filter(|fault| fault.severity() == Severity::Error).count();
    if faults > 0 {
        let them = if faults == 1 { "it" } else { "them" };
        problems.push(format!("{} in declarations of unions: `kube-unions lint` names {them}", count(faults, "fault")));
    }
    for (documents, paths) in [(&new, &arguments.new), (&old, &arguments.old)] {
        if documents.is_empty() && problems.is_empty() {
            bail!("{}", manifest::empty(paths));
        }
    }

    let Renderings { pairs, mut counts, problems: unfit, warnings } = Renderings::pair(&kinds, &old, &new, &live);
    problems.extend(unfit);
    let mut predicted: Vec<PredictedUnion<'_>> = Vec::new();
    for (entry, documents) in pairs {
        match prediction::predict(&kinds, entry, arguments.way, documents) {
            Ok(unions) => predicted.extend(unions),
            Err(error) => {
                problems.push(manifest::line_about(documents.new, &format!("cannot be predicted: {error:#}")));
                counts.compared -= 1;
            }
        }
    }
    for union in &predicted {
        *match union.enforcement {
            ApiServerAnswer::Refused => &mut counts.refused,
            ApiServerAnswer::Stored => &mut counts.stored,
            ApiServerAnswer::Unknown(_) => &mut counts.undecided,
        } += 1;
    }
    let nothing = counts.compared == 0 && problems.is_empty();
    let verdict = if nothing { arguments.require.verdict() } else { Verdict::rejected_if(!predicted.is_empty()) };
    let code = if problems.is_empty() { verdict.code() } else { FAILED };
    report::print(arguments.way, &predicted, arguments.output, &counts, &problems, code)?;

    warnings.iter().for_each(output::warn);
    problems.iter().for_each(output::error);
    if nothing {
        return Ok(arguments.require.warn(format_args!(
            "nothing to preview: no object of a kind with unions in both renderings{}",
            counts.rest()
        )));
    }
    output::note(counts.sentence());
    if !problems.is_empty() {
        bail!("{} kept something from being compared", count(problems.len(), "problem"));
    }
    Ok(verdict)
}

/// Returns an object of a built-in kind with the defaults that a preview expects of the API server.
///
/// # Errors
/// The text is no object.
pub fn with_built_in_defaults(object: &str) -> anyhow::Result<serde_json::Value> {
    let kinds = Kinds::read(Vec::new(), ApplyWay::Replace)?;
    let mut documents = manifest::parse(Path::new("object"), object.as_bytes().to_vec())?;
    let document = documents.pop().context("no object")?;
    let mut object = serde_json::from_str(&document.text)?;
    kinds.complete(&document.group_version_kind(), &mut object)?;
    Ok(object)
}

/// Returns the documents that describe kinds. The first of several with one name counts.
fn describing(all: [&[Document]; 3]) -> Vec<Document> {
    let mut names = BTreeSet::new();
    let [from, renderings @ ..] = all;
    let mut found: Vec<Document> = from.iter().filter(|it| it.describes_kinds()).cloned().collect();
    names.extend(found.iter().map(|document| (document.kind.clone(), document.name.clone())));
    for document in renderings.into_iter().flatten().filter(|it| it.is_definition() || it.is_declaration()) {
        if names.insert((document.kind.clone(), document.name.clone())) {
            found.push(document.clone());
        }
    }
    found
}
