//! The program `kube-unions`: the command line.
//!
//! - `commands` has the commands of the program, a file or folder each;
//! - `input` reads files, folders and the flags that only commands for authors have;
//! - `report` prints diagnostics, trees, SARIF and progress.
//!
//! The crate `kube-unions-command` has the rest of input and output, and `kube-unions-webhook` the commands that run and maintain the
//! webhook. The crate `kube-unions-manifests` parses and edits YAML and JSON, finds misspelt names, and builds an `AdmissionReview`.

#![allow(missing_docs, reason = "a program: only its own binary and tests use the library")]

mod commands;
mod input;
mod report;

use self::commands::Command;
use self::report::output;
use clap::{CommandFactory, FromArgMatches, Parser};
use colorchoice_clap::Color;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use commands::{annotated, predicted_applies, suite_schema, suites, with_built_in_defaults};
pub use kube_unions_command::exit::{exit_code, usage_code};

/// The name of the program, unless it is called by another one.
const PROGRAM: &str = "kube-unions";

/// The file name of the plugin that kubectl runs as `kubectl unions`.
const PLUGIN: &str = "kubectl-unions";

/// The file name of the program that kubectl runs to complete the arguments of `kubectl unions`.
const PLUGIN_COMPLETION: &str = "kubectl_complete-unions";

/// Enforce Kubernetes union types: fields of an object of which at most one may be set
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, max_term_width = output::HELP_WIDTH, styles = output::STYLES, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    color: Color,
    /// Print findings, warnings and errors, but no summary and no progress
    #[arg(short, long, global = true)]
    quiet: bool,
    /// True if the program is called as a plugin of kubectl.
    #[arg(skip)]
    is_plugin: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success, nothing to object to
  1  the input is rejected: denied, invalid, in conflict, or with faults
  2  wrong usage, unreadable or malformed input, or failed I/O";

impl Cli {
    /// Parses the arguments. The first one is the name of the program. Help and version are errors, see [`usage_code`].
    pub fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut arguments: Vec<OsString> = arguments.into_iter().collect();
        let stem = arguments.first().and_then(|program| Path::new(program).file_stem());
        let is_called = |name: &str| stem.is_some_and(|stem| stem == name);
        if is_called(PLUGIN_COMPLETION) {
            let words = arguments.split_off(1);
            let command = Command::CompleteForKubectl(words);
            return Ok(Self { command, color: Color::default(), quiet: false, is_plugin: true });
        }
        let is_plugin = is_called(PLUGIN);
        commands::old_names::renamed(&mut arguments);
        let mut command = commands::grouped(Self::command());
        if is_plugin {
            command = command.name(PLUGIN).bin_name("kubectl unions");
        }
        let matches = &mut command.try_get_matches_from_mut(arguments).map_err(commands::with_suggestion)?;
        let cli = Self::from_arg_matches_mut(matches).map_err(|error| error.format(&mut command))?;
        Ok(Self { is_plugin, ..cli })
    }

    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.color.write_global();
        if self.quiet {
            output::leave_out_summaries();
        }
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The evaluation of a stranger's rule catches its panics.
            if !kube_unions_evidence::is_evaluating() {
                hook(panic);
            }
        }));
        self.command.run(|| Self::command().name(if self.is_plugin { PLUGIN } else { PROGRAM }))
    }
}
