//! `patch`: creates and applies strategic merge patches, from files or on a cluster.
//!
//! This module has `patch create` and `patch apply`, which need no cluster, and `live` has `patch live`. The engine is the crate
//! `strategic-merge-patch`; `kind_patcher` joins it with the unions of a kind.

mod kind_patcher;
mod live;
mod schema;

use self::kind_patcher::{ChangeArgs, GivenInput, PatchInput, RejectedPatch};
use self::schema::SchemaArgs;
use super::normalize;
use crate::input::manifest::{self, Document, Format};
use crate::input::values::ObjectFormat;
use crate::report::{Verdict, output};
use clap::{ArgAction, Args, Subcommand};
use kube_unions_core::admission::{Phase, ReviewOutcome};
use kube_unions_core::field_path::{FieldPath, Segment};
use serde_json::Value;
use std::path::PathBuf;
use strategic_merge_patch::{Conflicts, DocumentRole, PatchError, ThreeWay};

#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    #[command(subcommand)]
    command: PatchCommand,
}

#[derive(Debug, Subcommand)]
enum PatchCommand {
    /// Create the patch that turns one object into another
    Create(CreateArgs),
    /// Apply a patch to an object in a file, and print the result
    Apply(ApplyArgs),
    /// Patch an object in a cluster, including custom resources
    Live(live::LiveArgs),
}

pub(super) fn run(arguments: &PatchArgs) -> anyhow::Result<Verdict> {
    match &arguments.command {
        PatchCommand::Create(arguments) => create(arguments),
        PatchCommand::Apply(arguments) => apply(arguments),
        PatchCommand::Live(arguments) => live::run(arguments),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
With --current the patch is three-way: it makes the changes from the original to the modified object, and keeps the changes that \
others made to the current one.

Examples:
  # Create the patch that turns old.yaml into new.yaml
  kube-unions patch create --from crd.yaml \\
    --original old.yaml -f new.yaml

  # Keep what others changed in the cluster, and fail on conflicts
  kubectl get widget demo -o yaml | \\
    kube-unions patch create --from crd.yaml \\
    --original applied.yaml -f new.yaml --current - --overwrite=false

Exit codes:
  0  the patch is on standard output
  1  a conflict, or the patch would change the apiVersion, the kind or the name
  2  usage, or an input could not be read")]
struct CreateArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// The object as it was, or with --current as you applied it last; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    original: PathBuf,
    /// The object as you want it
    #[arg(short, long, alias = "modified", value_name = "FILE")]
    filename: PathBuf,
    /// The object as it is in the cluster; makes the patch three-way
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,
    /// Overwrite fields that others changed differently; `false` makes them a conflict with exit code 1
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
        default_missing_value = "true", action = ArgAction::Set, requires = "current"
    )]
    overwrite: bool,
    /// Output format [default: the format of the modified object]
    #[arg(short, long, value_enum)]
    output: Option<ObjectFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A union clears the members that the patch excludes, and the result is validated
as `normalize` validates it. The patch must be for the object: another
apiVersion, kind or name in it is refused.

Examples:
  # Apply patch.yaml to widget.yaml
  kube-unions patch apply --from crd.yaml \\
    -f widget.yaml --patch-file patch.yaml

  # Switch a union; the other members are cleared
  kube-unions patch apply --from crd.yaml -f widget.yaml \\
    -p '{\"spec\": {\"exposure\": {\"type\": \"Internal\"}}}'

  # Patch a Deployment with the schema of the cluster
  kubectl get --raw /openapi/v3/apis/apps/v1 > apps-v1.json
  kube-unions patch apply --from apps-v1.json \\
    -f deployment.yaml --patch-file patch.yaml

Exit codes:
  0  the patched object is on standard output
  1  the result is invalid, or the patch is for another object
  2  usage, or an input could not be read")]
struct ApplyArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// The object; `-` reads standard input
    #[arg(short, long, alias = "original", value_name = "FILE")]
    filename: PathBuf,
    #[command(flatten)]
    change: ChangeArgs,
    /// Do not validate the result; the members that a union excludes are still cleared
    #[arg(long)]
    no_validate: bool,
    /// Output format [default: the format of the object]
    #[arg(short, long, value_enum)]
    output: Option<ObjectFormat>,
}

/// Creates a patch. Rejects conflicts, and a change of `apiVersion`, `kind` or `metadata.name`.
fn create(arguments: &CreateArgs) -> anyhow::Result<Verdict> {
    let CreateArgs { schema, original, filename, current, overwrite, output } = arguments;
    let (original, modified) = (PatchInput::read(original)?, PatchInput::read(filename)?);
    // A patch between them would delete the whole object.
    modified.present("modified object")?;
    let current = current.as_deref().map(PatchInput::read).transpose()?;
    if let Some(current) = &current {
        current.present("current object")?;
    }
    let mut given: Vec<GivenInput<'_>> = vec![(DocumentRole::Original, &original)];
    given.extend(current.iter().map(|current| (DocumentRole::Current, current)));
    given.push((DocumentRole::Modified, &modified));
    let patcher = schema.patcher(given.iter().rev().filter_map(|(_, object)| object.document()))?;
    let made = match &current {
        None => patcher.engine.create_two_way(original.text(), modified.text()).and_then(|patch| {
            let changed = changed_identity(&original, &modified);
            changed.map_or(Ok(patch), |field| Err(PatchError::Precondition { field }))
        }),
        Some(current) => patcher.engine.create_three_way(&ThreeWay {
            original: original.text(),
            modified: modified.text(),
            current: current.text(),
            conflicts: if *overwrite { Conflicts::Overwrite } else { Conflicts::Refuse },
        }),
    };
    match made {
        Ok(patch) => {
            let verdict = print(&patch, *output, [&modified, &original].into_iter().find_map(PatchInput::document))?;
            let mut lists = Vec::new();
            find_replaced_lists(&serde_json::from_str(&patch)?, &mut Vec::new(), &mut lists);
            for list in &lists {
                let apply = if patcher.is_built_in() { "; `kubectl apply` mixes such items up" } else { "" };
                output::hint(format_args!(
                    "{list} of the patch: several items have the same merge key, so the patch replaces the list, with what others add \
                     to it meanwhile{apply}"
                ));
            }
            Ok(verdict)
        }
        Err(error @ (PatchError::Conflict { .. } | PatchError::Precondition { .. })) => Ok(kind_patcher::reject(error)),
        Err(error) => Err(kind_patcher::faulty(&error, &given)),
    }
}

/// Returns the first field that identifies an object and that differs in the modified one. The engine checks three-way patches itself, and both
/// leave the namespace to the API server.
fn changed_identity(original: &PatchInput, modified: &PatchInput) -> Option<&'static str> {
    let (original, modified) = (original.document()?.identity(), modified.document()?.identity());
    let mut fields = original.into_iter().zip(modified).filter(|(field, _)| field.name != "metadata.namespace");
    fields.find(|(old, new)| old.value.is_some() && old != new).map(|(field, _)| field.name)
}

/// Adds the lists that a patch replaces, because several of their items have the same merge key.
fn find_replaced_lists(patch: &Value, steps: &mut Vec<Segment>, found: &mut Vec<FieldPath>) {
    let mut below = |step: Segment, value: &Value| {
        steps.push(step);
        find_replaced_lists(value, steps, found);
        steps.pop();
    };
    match patch {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| below(Segment::Field(name.as_str().into()), value));
        }
        Value::Array(items) if items.first().is_some_and(|item| item.get("$patch") == Some(&"replace".into())) => {
            found.push(steps.iter().cloned().collect());
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(position, item)| below(Segment::Index(position), item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn apply(arguments: &ApplyArgs) -> anyhow::Result<Verdict> {
    let ApplyArgs { schema, filename, change, no_validate, output } = arguments;
    let (original, patch) = (PatchInput::read(filename)?, change.read()?);
    original.present("object")?;
    let documents = || [&original, &patch].into_iter().filter_map(PatchInput::document);
    let rules = schema.patcher(documents())?;
    let phase = if *no_validate { Phase::Mutate } else { Phase::Both };
    let result = match rules.patched(&original, &patch, phase, None) {
        Ok(result) => result,
        Err(error) if error.is::<RejectedPatch>() => return Ok(kind_patcher::reject(error)),
        Err(error) => return Err(error),
    };
    for warning in &result.warnings {
        output::warn(warning);
    }
    match (&result.document, &result.review) {
        (_, Some(review)) if *no_validate => normalize::print_warnings(review, None),
        (Some(document), Some(review)) => {
            normalize::print_answer(document, review, &result.words, None);
            if review.outcome() == ReviewOutcome::Denied {
                return Ok(Verdict::Rejected);
            }
        }
        _ => {}
    }
    print(&result.text, *output, documents().next())
}

/// Prints JSON text in the wanted format, or else in the format of the document `like`.
fn print(json: &str, wanted: Option<ObjectFormat>, like: Option<&Document>) -> anyhow::Result<Verdict> {
    let format = wanted.map(Format::from).or(like.map(|document| document.section.format));
    let text = match format.unwrap_or(Format::Json) {
        Format::Json => manifest::pretty(json) + "\n",
        Format::Yaml => manifest::to_yaml(json)?,
    };
    output::print(text)?;
    Ok(Verdict::Accepted)
}
