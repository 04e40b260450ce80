//! `review`: answers an `AdmissionReview` with the code of the webhook.

use crate::input::kinds::SourceArgs;
use crate::input::manifest;
use crate::input::values::{RatchetingArg, only};
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kube_unions_core::admission::{self, Phase, ReviewOutcome};
use std::path::{Path, PathBuf};

/// Arguments of `review`.
#[derive(Debug, Args)]
#[command(mut_args(only("from", |from| from.required(true))), after_help = "\
Exit codes:
  0  allowed
  1  denied
  2  wrong usage, or input that cannot be read or answered

Examples:
  kube-unions review --from crds/ -f review.json
  kube-unions review --from crds/ --phase mutate < review.json")]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// The `AdmissionReview`, as JSON or YAML; `-` is standard input
    #[arg(short, long, value_name = "REVIEW", default_value = "-")]
    filename: PathBuf,
    /// The phase of admission [default: both, one after the other]
    #[arg(long, value_enum)]
    phase: Option<ReviewPhase>,
    /// Allow or deny a write that leaves an invalid union unchanged
    #[arg(long, value_enum, default_value_t)]
    ratcheting: RatchetingArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReviewPhase {
    /// Normalise: the answer may have a patch
    Mutate,
    /// Validate: the answer allows or denies
    Validate,
}

pub(super) fn run(arguments: &ReviewArgs) -> anyhow::Result<Verdict> {
    let catalog = arguments.sources.assembly()?.catalog;
    let phase = match arguments.phase {
        None => Phase::Both,
        Some(ReviewPhase::Mutate) => Phase::Mutate,
        Some(ReviewPhase::Validate) => Phase::Validate,
    };
    let body = body(&arguments.filename)?;
    let review = admission::review(&catalog, phase, arguments.ratcheting.into(), &body)
        .with_context(|| format!("{} cannot be answered", manifest::list(std::slice::from_ref(&arguments.filename))))?;
    let mut answer = review.to_json();
    answer.push(b'\n');
    output::print(answer)?;
    Ok(Verdict::rejected_if(review.outcome() == ReviewOutcome::Denied))
}

/// Reads the body of the request: JSON byte for byte, faults included; YAML as JSON.
fn body(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = manifest::bytes(path)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let mut documents = match first {
        Some(b'{') => return Ok(bytes),
        Some(_) => manifest::parse(path, bytes)?,
        None => Vec::new(),
    };
    match (documents.pop(), documents.len()) {
        (Some(review), 0) => Ok(review.text.into_bytes()),
        (None, _) => bail!("{}", manifest::empty(&[path.to_owned()])),
        (Some(_), more) => {
            let path = manifest::list(&[path.to_owned()]);
            bail!("{path} has {} documents: give one AdmissionReview", more + 1)
        }
    }
}
