//! `patch`: creates and applies strategic merge patches, from files or on a cluster.
//!
//! `offline` has `patch create` and `patch apply`, `live` has `patch live`. The engine is the crate `strategic-merge-patch`;
//! `kind_patcher` joins it with the unions of a kind.

mod difference;
mod input;
mod kind_patcher;
mod live;
mod offline;
mod schema;

use crate::cli::report::Verdict;
use clap::{Args, Subcommand};

/// Arguments of `patch`.
#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    #[command(subcommand)]
    command: PatchCommand,
}

#[derive(Debug, Subcommand)]
enum PatchCommand {
    /// Create the patch that turns one object into another
    Create(offline::CreateArgs),
    /// Apply a patch to an object in a file, and print the result
    Apply(offline::ApplyArgs),
    /// Patch an object in a cluster, including custom resources
    Live(live::LiveArgs),
}

pub(super) fn run(arguments: &PatchArgs) -> anyhow::Result<Verdict> {
    match &arguments.command {
        PatchCommand::Create(arguments) => offline::create(arguments),
        PatchCommand::Apply(arguments) => offline::apply(arguments),
        PatchCommand::Live(arguments) => live::run(arguments),
    }
}
