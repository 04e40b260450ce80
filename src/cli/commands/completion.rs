//! `completion`: prints scripts that complete arguments in a shell.
//!
//! The scripts are static: they name every command, flag and value, and leave paths to the shell, which quotes them and knows
//! `~`. kubectl has no scripts of plugins; it runs a program instead, which [`kubectl`] answers.

mod kubectl;

pub(super) use kubectl::complete_for_kubectl;

use crate::cli::report::{Verdict, output};
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Called as `kubectl-unions`, prints the script for that name. For `kubectl unions`, install kubectl's own completion and link \
the program as `kubectl_complete-unions` in a folder of PATH.

Examples:
  source <(kube-unions completion bash)
  kube-unions completion zsh > \"${fpath[1]}/_kube-unions\"
  kube-unions completion fish > ~/.config/fish/completions/kube-unions.fish
  kube-unions completion powershell | Out-String | Invoke-Expression
  eval (kube-unions completion elvish | slurp)")]
pub(crate) struct CompletionArgs {
    /// The shell to complete for
    shell: Shell,
}

/// Prints the script that completes the arguments of `program`.
pub(super) fn run(arguments: &CompletionArgs, program: &Command) -> anyhow::Result<Verdict> {
    output::print(script(arguments.shell, program))?;
    Ok(Verdict::Accepted)
}

fn script(shell: Shell, command: &Command) -> String {
    let program = command.get_name();
    let generated = |name: &str| {
        let mut command = with_each_argument(command.clone(), &hinted);
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, name, &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    if shell == Shell::Bash {
        // The script completes nothing after a subcommand if the program's name has a hyphen
        // (https://github.com/clap-rs/clap/issues/6421). It needs the name only in the lines that register it.
        let identifier = program.replace('-', "_");
        let registered = format!(" -o default {program}\n");
        return generated(&identifier).replace(&format!(" -o default {identifier}\n"), &registered);
    }
    // The script for elvish knows commands and flags, and fails where there are none.
    let paths = if shell == Shell::Elvish { ELVISH_PATHS.replace("PROGRAM", program) } else { String::new() };
    generated(program) + &paths
}

/// Adds paths to the candidates in elvish.
const ELVISH_PATHS: &str = "
var commands-and-flags~ = $edit:completion:arg-completer[PROGRAM]
set edit:completion:arg-completer[PROGRAM] = {|@words|
    try { commands-and-flags $@words } catch { }
    edit:complete-filename $@words
}
";

/// Changes every argument of a command and of the commands below it.
fn with_each_argument(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    command.mut_args(change).mut_subcommands(|inner| with_each_argument(inner, change))
}

/// Tells shells which arguments are paths. They take an unknown argument for a path, and bash quotes paths only by this hint.
fn hinted(argument: Arg) -> Arg {
    let hint = argument.get_value_hint();
    let takes_any = argument.get_action().takes_values() && argument.get_possible_values().is_empty();
    if hint == ValueHint::AnyPath {
        argument.value_hint(ValueHint::FilePath)
    } else if hint == ValueHint::Unknown && takes_any {
        argument.value_hint(ValueHint::Other)
    } else {
        argument
    }
}
