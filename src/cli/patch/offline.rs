//! `patch create` and `patch apply`: patches made and applied without a cluster.

use super::object::{self, Given, Object};
use super::schema::SchemaArgs;
use crate::cli::Verdict;
use crate::cli::manifest::{self, Document, Format};
use crate::cli::normalize::ObjectFormat;
use crate::cli::output::{self, Paint};
use clap::{ArgAction, Args};
use std::path::PathBuf;
use strategic_merge_patch::{Conflicts, DocumentRole, PatchError, ThreeWay};

/// Arguments of `patch create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// The object as it was, `-` is standard input; with --current as it was applied last
    #[arg(long, value_name = "FILE")]
    original: PathBuf,
    /// The object as it is wanted
    #[arg(long, value_name = "FILE")]
    modified: PathBuf,
    /// The object as it is in the cluster: makes the patch three-way, so that changes of others stay
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,
    /// Whether a field that others changed differently is overwritten; `false` makes that a conflict and exit code 1
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
        default_missing_value = "true", action = ArgAction::Set, requires = "current"
    )]
    overwrite: bool,
    /// Output format [default: that of the modified object]
    #[arg(short, long, value_enum)]
    output: Option<ObjectFormat>,
}

/// Arguments of `patch apply`.
#[derive(Debug, Args)]
pub(super) struct ApplyArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// The object, `-` is standard input
    #[arg(long, value_name = "FILE")]
    original: PathBuf,
    /// The patch
    #[arg(long, value_name = "FILE")]
    patch: PathBuf,
    /// Output format [default: that of the object]
    #[arg(short, long, value_enum)]
    output: Option<ObjectFormat>,
}

/// Makes a patch. Conflicts, and another `apiVersion`, `kind` or name, are rejected.
pub(super) fn create(arguments: &CreateArgs) -> anyhow::Result<Verdict> {
    let CreateArgs { schema, original, modified, current, overwrite, output } = arguments;
    object::only_one_is_piped(schema.files().iter().chain([original, modified]).chain(current))?;
    let (original, modified) = (Object::read(original)?, Object::read(modified)?);
    let current = current.as_deref().map(Object::read).transpose()?;
    let mut given: Vec<Given<'_>> = vec![(DocumentRole::Original, &original)];
    given.extend(current.iter().map(|current| (DocumentRole::Current, current)));
    given.push((DocumentRole::Modified, &modified));
    let patcher = schema.patcher(given.iter().rev().filter_map(|(_, object)| object.document()))?;
    let made = match &current {
        None => patcher.create_two_way(original.text(), modified.text()),
        Some(current) => patcher.create_three_way(&ThreeWay {
            original: original.text(),
            modified: modified.text(),
            current: current.text(),
            conflicts: if *overwrite { Conflicts::Overwrite } else { Conflicts::Refuse },
        }),
    };
    match made {
        Ok(patch) => print(&patch, *output, [&modified, &original].into_iter().find_map(Object::document)),
        Err(error @ (PatchError::Conflict { .. } | PatchError::Precondition { .. })) => {
            output::note(format_args!("{} {error}", Paint::of(&std::io::stderr()).error("error:")));
            Ok(Verdict::Rejected)
        }
        Err(error) => Err(object::faulty(&error, &given)),
    }
}

/// Applies a patch.
pub(super) fn apply(arguments: &ApplyArgs) -> anyhow::Result<Verdict> {
    let ApplyArgs { schema, original, patch, output } = arguments;
    object::only_one_is_piped(schema.files().iter().chain([original, patch]))?;
    let (original, patch) = (Object::read(original)?, Object::read(patch)?);
    patch.present("patch")?;
    let given = [(DocumentRole::Original, &original), (DocumentRole::Patch, &patch)];
    let documents = || given.iter().filter_map(|(_, object)| object.document());
    let patcher = schema.patcher(documents())?;
    let result = patcher.apply(original.text(), patch.text()).map_err(|error| object::faulty(&error, &given))?;
    print(&result, *output, documents().next())
}

/// Prints JSON text in a format, which is that of a document if none is asked for.
fn print(json: &str, wanted: Option<ObjectFormat>, like: Option<&Document>) -> anyhow::Result<Verdict> {
    let format = wanted.map(Format::from).or(like.map(|document| document.section.format));
    let text = match format.unwrap_or(Format::Json) {
        Format::Json => manifest::pretty(json) + "\n",
        Format::Yaml => manifest::to_yaml(json)?,
    };
    output::print(text)?;
    Ok(Verdict::Accepted)
}
