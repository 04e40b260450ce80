//! `completion`: prints scripts that complete arguments in a shell.
//!
//! The scripts are static: they name every command, flag and value, and leave paths to the shell, which quotes them and knows
//! `~`. kubectl has no scripts of plugins; it runs the program as
//! `kubectl_complete-unions` instead. kubectl gives the words after `kubectl unions`, the last one unfinished, and reads the answer of a
//! hidden command of cobra, `__complete`: a candidate per line, a tab before its description, and a last line with a
//! [`ShellCompDirective`].
//!
//! Packages install manual pages beside the scripts: [`man`] writes them.

pub(super) mod man;

use crate::report::{Verdict, output};
use clap::builder::ArgExt;
use clap::{Arg, Args, Command, Subcommand, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{self, ArgValueCompleter, CompletionCandidate};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Called as `kubectl-unions`, prints the script for that name. For `kubectl unions`, install kubectl's own completion and link \
the program as `kubectl_complete-unions` in a folder of PATH.

Packages get manual pages, too: `kube-unions completion man DIR` writes them.

Examples:
  source <(kube-unions completion bash)
  kube-unions completion zsh > \"${fpath[1]}/_kube-unions\"
  kube-unions completion fish > ~/.config/fish/completions/kube-unions.fish
  kube-unions completion powershell | Out-String | Invoke-Expression
  eval (kube-unions completion elvish | slurp)"
)]
pub(crate) struct CompletionArgs {
    /// The shell to complete for
    #[arg(required = true)]
    shell: Option<Shell>,
    #[command(subcommand)]
    pages: Option<CompletionCommand>,
}

#[derive(Debug, Subcommand)]
enum CompletionCommand {
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Man(man::ManArgs),
}

/// Prints the script that completes the arguments of `program`, or writes its manual pages.
pub(super) fn run(arguments: &CompletionArgs, program: Command) -> anyhow::Result<Verdict> {
    if let Some(CompletionCommand::Man(arguments)) = &arguments.pages {
        return man::run(arguments, program);
    }
    arguments.shell.iter().try_for_each(|shell| output::print(script(*shell, &program)))?;
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

/// The identifiers of the candidates that stand for every file and every folder, which the shell lists.
const FILES: &str = "path::files";
const FOLDERS: &str = "path::folders";

/// The bits of cobra's `ShellCompDirective` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellCompDirective {
    /// Complete files, because there is no candidate.
    Files = 0,
    /// Complete nothing but the candidates.
    NoFiles = 4,
    /// Complete folders.
    Folders = 16,
}

/// Prints the candidates for the last of `words`, and a directive. The words are arguments of `plugin`.
pub(crate) fn complete_for_kubectl(words: &[OsString], plugin: Command) -> anyhow::Result<Verdict> {
    output::print(answer(words, plugin)?)?;
    Ok(Verdict::Accepted)
}

fn answer(words: &[OsString], plugin: Command) -> anyhow::Result<String> {
    let empty = OsString::new();
    let unfinished = words.last().unwrap_or(&empty);
    let mut arguments = vec![OsString::from(plugin.get_name())];
    arguments.extend_from_slice(words);
    if words.is_empty() {
        arguments.push(empty.clone());
    }
    let last = arguments.len() - 1;
    let mut command = with_each_argument(plugin, &with_marked_paths);
    let candidates = engine::complete(&mut command, arguments, last, None)?;

    let is = |candidate: &CompletionCandidate, id: &str| candidate.get_id().is_some_and(|it| it == id);
    let is_path = |candidate: &CompletionCandidate| is(candidate, FILES) || is(candidate, FOLDERS);
    // kubectl offers flags only after a dash.
    let is_dashed = |word: &OsStr| word.as_encoded_bytes().starts_with(b"-");
    let is_offered = |candidate: &&CompletionCandidate| {
        !is_path(candidate) && (is_dashed(unfinished) || !is_dashed(candidate.get_value()))
    };
    let mut text = String::new();
    for candidate in candidates.iter().filter(is_offered) {
        text += value_after_equals(&candidate.get_value().to_string_lossy(), unfinished);
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(line) = help.lines().next() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\t{line}");
        }
        text.push('\n');
    }
    let has = |id: &str| text.is_empty() && candidates.iter().any(|candidate| is(candidate, id));
    let directive = match (has(FILES), has(FOLDERS)) {
        (true, _) => ShellCompDirective::Files,
        (false, true) => ShellCompDirective::Folders,
        (false, false) => ShellCompDirective::NoFiles,
    };
    let _ = writeln!(text, ":{}", directive as u8);
    Ok(text)
}

/// Replaces the completion of paths by one candidate, which tells the shell to complete them itself.
fn with_marked_paths(argument: Arg) -> Arg {
    let hint = argument.get_value_hint();
    if hint == ValueHint::DirPath {
        argument.add(paths(FOLDERS))
    } else if [ValueHint::AnyPath, ValueHint::FilePath].contains(&hint) {
        argument.add(paths(FILES))
    } else {
        argument
    }
}

fn paths(id: &'static str) -> impl ArgExt {
    ArgValueCompleter::new(move |_: &OsStr| vec![CompletionCandidate::new("").id(Some(id.to_owned()))])
}

/// Returns the value of `--flag=value` if the unfinished word has an equals sign. The shell keeps the rest of the word.
fn value_after_equals<'c>(candidate: &'c str, unfinished: &OsStr) -> &'c str {
    let has_value = unfinished.as_encoded_bytes().starts_with(b"-") && unfinished.as_encoded_bytes().contains(&b'=');
    if has_value { candidate.split_once('=').map_or(candidate, |(_, value)| value) } else { candidate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, PLUGIN};
    use clap::CommandFactory;

    fn answer_to(words: &[&str]) -> String {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        answer(&words, Cli::command().name(PLUGIN)).unwrap()
    }

    #[test]
    fn candidates_are_commands_flags_and_values() {
        let described = |command: &str, help: &str| format!("{command}\t{help}\n:4\n");
        assert_eq!(
            answer_to(&["pat"]),
            described("patch", "Create, apply and send strategic merge patches, also for custom resources")
        );
        assert_eq!(
            answer_to(&["patch", "ap"]),
            described("apply", "Apply a patch to an object in a file, and print the result")
        );
        assert_eq!(answer_to(&["lint", "--st"]), described("--strict", "Exit with 1 for warnings, too"));
        assert_eq!(answer_to(&["explain", "-o", "js"]), described("json", "JSON for programs"));
        assert_eq!(answer_to(&["explain", "--output=js"]), described("json", "JSON for programs"));
        assert_eq!(answer_to(&["nothing-like-it"]), ":4\n");
    }

    #[test]
    fn every_command_is_a_candidate_for_no_word_and_for_an_empty_one() {
        let all = answer_to(&[]);
        assert_eq!(all, answer_to(&[""]));
        let names: Vec<&str> = all.lines().filter_map(|line| line.split('\t').next()).collect();
        let commands = Cli::command();
        let visible = commands.get_subcommands().filter(|command| !command.is_hide_set());
        let wanted: Vec<&str> = visible.map(Command::get_name).chain(["help", ":4"]).collect();
        assert_eq!(names, wanted);
    }

    #[test]
    fn paths_are_left_to_the_shell() {
        for words in [
            &["lint", ""][..],
            &["lint", "cr"],
            &["lint", "a.yaml", "b"],
            &["explain", "--from=x"],
            &["generate", "--go", "a"],
        ] {
            assert_eq!(answer_to(words), ":0\n", "{words:?}");
        }
        for words in [&["certs", "--dir", ""][..], &["certs", "--dir=ce"], &["serve", "--tls-cert-dir", "c"]] {
            assert_eq!(answer_to(words), ":16\n", "{words:?}");
        }
        for words in [&["explain", ""][..], &["audit", "--context", ""]] {
            assert_eq!(answer_to(words), ":4\n", "{words:?}");
        }
    }
}
