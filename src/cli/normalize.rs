//! `normalize`: prints objects as the webhook normalises them.
//!
//! The webhook's code answers an admission review for each object. The changes of the answer are made in the text of the object:
//! it keeps its comments and the order of its fields, and an object that needs no change is printed byte for byte.

use super::kinds::KindArgs;
use super::manifest::{self, Document, Edit, Format, Stream};
use super::output::{self, Paint};
use super::request::admission_review;
use super::{RatchetingArg, Verdict};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kube_unions_core::admission::{self, Phase, Review, ReviewOutcome};
use kube_unions_core::field_path::{FieldPath, Segment, pointer_tokens};
use kube_unions_core::json_patch::PatchOperation;
use kube_unions_core::union::Change;
use serde_json::Value;
use std::path::PathBuf;

/// Arguments of `normalize`.
#[derive(Debug, Args)]
#[command(after_help = "\
Warnings and violations go to standard error.

Examples:
  kube-unions normalize --from crds/ -f rollout.yaml
  kube-unions normalize --from crds/ --old stored.yaml -f changed.yaml -o json
  cat rollout.yaml | kube-unions normalize --from crds/ -f -")]
pub(super) struct NormalizeArgs {
    #[command(flatten)]
    kinds: KindArgs,
    /// The stored objects, for an update [default: none, for a create]
    ///
    /// They are matched by apiVersion, kind, namespace and name.
    #[arg(long, value_name = "OLD")]
    old: Option<PathBuf>,
    /// The objects to normalise; `-` is standard input
    #[arg(short, long, required = true, value_name = "NEW")]
    filename: PathBuf,
    /// Allow or deny a write that leaves an invalid union unchanged
    #[arg(long, value_enum, default_value_t)]
    ratcheting: RatchetingArg,
    /// Output format [default: the format of the input]
    #[arg(short, long, value_enum)]
    output: Option<ObjectFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ObjectFormat {
    Yaml,
    Json,
}

impl From<ObjectFormat> for Format {
    fn from(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Yaml => Self::Yaml,
            ObjectFormat::Json => Self::Json,
        }
    }
}

pub(super) fn run(arguments: &NormalizeArgs) -> anyhow::Result<Verdict> {
    let catalog = arguments.kinds.catalog()?;
    let old = match &arguments.old {
        Some(path) => objects(path)?,
        None => Vec::new(),
    };
    let new = objects(&arguments.filename)?;
    let (mut stream, mut rejected) = (Stream::default(), false);
    for document in &new {
        let old = old.iter().find(|old| identity(old) == identity(document));
        let request = admission_review(document, old);
        let review = admission::review(&catalog, Phase::Both, arguments.ratcheting.into(), request.as_bytes())
            .with_context(|| format!("{}: {}", document.file.display(), document.title()))?;
        print_answer(document, &review);
        if review.outcome() == ReviewOutcome::Denied {
            rejected = true;
            continue;
        }
        let (text, format) = normalized(document, &edits(document, &review), arguments.output)?;
        stream.push(&text, format);
    }
    stream.end_line();
    output::print(stream.into_text())?;
    Ok(Verdict::rejected_if(rejected))
}

/// Reads a file of objects.
fn objects(path: &PathBuf) -> anyhow::Result<Vec<Document>> {
    let documents = manifest::read(std::slice::from_ref(path))?;
    if documents.is_empty() {
        bail!("no objects in `{}`", path.display());
    }
    for document in &documents {
        if document.kind.is_none() || document.api_version.is_none() {
            let (line, column) = document.position("").unwrap_or((1, 1));
            bail!("{}:{line}:{column}: not an object: `apiVersion` or `kind` is missing", document.file.display());
        }
    }
    Ok(documents)
}

type Identity<'d> = [&'d Option<String>; 4];

fn identity(document: &Document) -> Identity<'_> {
    [&document.api_version, &document.kind, &document.namespace, &document.name]
}

/// Prints warnings and the denial in kubectl's words.
fn print_answer(document: &Document, review: &Review) {
    let paint = Paint::of(&std::io::stderr());
    for warning in review.warnings() {
        output::note(format_args!("{} {warning}", paint.warning("Warning:")));
    }
    let (kind, name) = (document.kind.as_deref().unwrap_or_default(), document.name.as_deref().unwrap_or_default());
    let causes: Vec<_> = review.causes().collect();
    match causes.as_slice() {
        [] => {}
        [(field, message)] => output::note(format_args!("The {kind} \"{name}\" is invalid: {field}: {message}")),
        several => {
            output::note(format_args!("The {kind} \"{name}\" is invalid: "));
            for (field, message) in several {
                output::note(format_args!("* {field}: {message}"));
            }
        }
    }
}

/// Returns the changes of an answer as edits of the object's document.
pub(super) fn edits(document: &Document, review: &Review) -> Vec<Edit> {
    let base = pointer_tokens(&document.pointer).unwrap_or_default();
    let place = |path: &FieldPath| base.iter().cloned().chain(path.segments().iter().map(Segment::to_token)).collect();
    let edit = |change: Change| match change.operation() {
        PatchOperation::Set(path, value) => Edit::Set(place(&path), Value::from(&*value)),
        PatchOperation::Remove(path) => Edit::Remove(place(&path)),
    };
    review.changes().map(edit).collect()
}

/// Returns the text of the normalised object, and its format.
fn normalized(document: &Document, edits: &[Edit], wanted: Option<ObjectFormat>) -> anyhow::Result<(String, Format)> {
    let format = wanted.map_or(document.section.format, Format::from);
    let alone = document.pointer.is_empty();
    if alone && format == document.section.format {
        let text = if edits.is_empty() {
            document.section.text.clone()
        } else {
            let edited = manifest::edit(&document.section, edits)?;
            if edited.rewritten {
                output::note(format_args!(
                    "{}: comments are lost: anchors reach the changed fields",
                    document.file.display()
                ));
            }
            edited.text
        };
        return Ok((text, format));
    }
    let json = if edits.is_empty() {
        document.text.clone()
    } else {
        let list = manifest::edited_value(&document.section, edits)?;
        list.pointer(&document.pointer).unwrap_or(&Value::Null).to_string()
    };
    Ok(match format {
        Format::Json => (manifest::pretty(&json) + "\n", format),
        Format::Yaml => (manifest::to_yaml(&json)?, format),
    })
}
