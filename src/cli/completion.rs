//! `completion`: scripts that shells complete arguments with.

use super::{Cli, Verdict, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completion`.
#[derive(Debug, Args)]
pub(super) struct CompletionArgs {
    /// The shell to complete for
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionArgs) -> anyhow::Result<Verdict> {
    // Through a buffer: the generator panics where it cannot write, and a closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "kube-unions", &mut script);
    output::print(script)?;
    Ok(Verdict::Accepted)
}
