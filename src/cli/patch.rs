//! `patch`: strategic merge patches, made and applied from files, and sent to a cluster.

mod difference;
mod live;
mod object;
mod offline;
mod schema;

use super::Verdict;
use clap::{Args, Subcommand};

/// Arguments of `patch`.
#[derive(Debug, Args)]
pub(super) struct PatchArgs {
    #[command(subcommand)]
    command: PatchCommand,
}

#[derive(Debug, Subcommand)]
enum PatchCommand {
    /// Make the patch that turns one object into another: two-way, or three-way with --current
    Create(offline::CreateArgs),
    /// Print an object with a patch applied to it
    Apply(offline::ApplyArgs),
    /// Patch an object of a cluster, custom resources included, which API servers refuse
    Live(live::LiveArgs),
}

pub(super) fn run(arguments: &PatchArgs) -> anyhow::Result<Verdict> {
    match &arguments.command {
        PatchCommand::Create(arguments) => offline::create(arguments),
        PatchCommand::Apply(arguments) => offline::apply(arguments),
        PatchCommand::Live(arguments) => live::run(arguments),
    }
}
