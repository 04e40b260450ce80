//! `review`: one admission review in, one out, by the same code that the webhook runs.

use super::kinds::KindArgs;
use super::{Ratcheting, Verdict, manifest, output};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kube_unions_core::admission::{self, Phase, ReviewOutcome};
use std::path::{Path, PathBuf};

/// Arguments of `review`.
#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    #[command(flatten)]
    kinds: KindArgs,
    /// The `AdmissionReview`, as JSON or YAML; `-` is standard input
    #[arg(short, long, value_name = "REVIEW", default_value = "-")]
    filename: PathBuf,
    /// The phase of admission [default: both, one after the other, as the API server would]
    #[arg(long, value_enum)]
    phase: Option<ReviewPhase>,
    /// Whether to let an invalid union through that the request does not change
    #[arg(long, value_enum, default_value_t)]
    ratcheting: Ratcheting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReviewPhase {
    /// Normalise: the answer may hold a patch
    Mutate,
    /// Validate: the answer is yes or no
    Validate,
}

pub(super) fn run(arguments: &ReviewArgs) -> anyhow::Result<Verdict> {
    let catalog = arguments.kinds.catalog()?;
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

/// The bytes that the webhook would get: JSON as it stands in the file, faults included; YAML as the JSON it means.
fn body(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = manifest::bytes(path)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_none_or(|first| *first == b'{') {
        return Ok(bytes);
    }
    let mut documents = manifest::parse(path, bytes)?;
    match (documents.pop(), documents.len()) {
        (Some(review), 0) => Ok(review.text.into_bytes()),
        (None, _) => bail!("`{}` holds no AdmissionReview", path.display()),
        (Some(_), more) => {
            bail!("`{}` holds {} documents, where one AdmissionReview is expected", path.display(), more + 1)
        }
    }
}
