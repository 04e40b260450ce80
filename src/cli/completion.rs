//! `completion`: prints scripts that complete arguments in a shell.

use super::{Cli, Verdict, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(kube-unions completion bash)
  kube-unions completion zsh > \"${fpath[1]}/_kube-unions\"")]
pub(super) struct CompletionArgs {
    /// The shell to complete for
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionArgs) -> anyhow::Result<Verdict> {
    // The generator panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "kube-unions", &mut script);
    output::print(script)?;
    Ok(Verdict::Accepted)
}
