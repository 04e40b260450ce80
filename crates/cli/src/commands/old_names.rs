//! The names that commands had before they became part of others, for scripts. They are hidden, and go with the next release.

mod check_cel;

use self::check_cel::CheckCelArgs;
use super::compile;
use super::completion::man::{self, ManArgs};
use super::normalize::review::{self, ReviewPhase};
use crate::input::builtin::PresetsArg;
use crate::input::kinds::SourceArgs;
use crate::input::require::RequireArg;
use crate::input::values::{ObjectFormat, RatchetingArg, only};
use crate::report::Verdict;
use clap::{Args, Command, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum OldCommand {
    /// Print a verdict on each union beside the rules of its CRD, as `lint` reports them
    #[command(hide = true)]
    CheckCel(CheckCelArgs),
    /// Print the document of `compile --to kustomize`
    #[command(hide = true)]
    Openapi(OpenapiArgs),
    /// Answer an `AdmissionReview`, as `normalize -o review`
    #[command(hide = true)]
    Review(ReviewArgs),
    /// Write the manual pages, as `completion man`
    #[command(hide = true)]
    Man(ManArgs),
}

/// Replaces `generate --from-crd` by `propose` in the arguments of the program. Flags of the program may come first.
pub(crate) fn renamed(arguments: &mut Vec<OsString>) {
    let is_flag = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"-");
    let is_command = |pair: &[OsString]| matches!(pair, [before, it] if before != "--color" && !is_flag(it));
    let command = arguments.windows(2).position(is_command).map(|before| before + 1);
    let flag = arguments.iter().take_while(|it| *it != "--").position(|it| it == "--from-crd");
    if let (Some(command), Some(flag)) = (command.and_then(|at| arguments.get_mut(at)), flag)
        && *command == "generate"
    {
        *command = "propose".into();
        arguments.remove(flag);
    }
}

#[derive(Debug, Args)]
pub(crate) struct OpenapiArgs {
    /// Files and folders with CRDs and `UnionDeclarations`, `-` is standard input
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// An OpenAPI document with other kinds, as `kustomize openapi fetch` saves it
    #[arg(long, value_name = "FILE")]
    add_to: Option<PathBuf>,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value = "json")]
    output: ObjectFormat,
}

#[derive(Debug, Args)]
#[command(mut_args(only("from", |from| from.required(true))))]
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

impl OldCommand {
    pub(super) fn run(self, program: impl FnOnce() -> Command) -> anyhow::Result<Verdict> {
        match self {
            Self::CheckCel(arguments) => check_cel::run(&arguments),
            Self::Review(ReviewArgs { sources, filename, phase, ratcheting }) => {
                review::run(&sources, PresetsArg::default(), &filename, phase, ratcheting)
            }
            Self::Man(arguments) => man::run(&arguments, program()),
            Self::Openapi(OpenapiArgs { from, add_to, require, output }) => {
                compile::print_for_kustomize(&from, add_to.as_deref(), output, require)
            }
        }
    }
}
