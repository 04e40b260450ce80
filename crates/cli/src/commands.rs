//! The commands of the program. Those that run and maintain the webhook are in `kube-unions-webhook`.

mod annotate;
mod audit;
mod certs;
mod chart;
mod compile;
mod completion;
mod explain;
mod generate;
mod lint;
mod normalize;
pub(super) mod old_names;
mod patch;
mod preview;
mod propose;
mod test;

use crate::report::output::{HELP_WIDTH, STYLES};
use clap::error::{ContextKind, ContextValue};
use clap::{Command as ClapCommand, Subcommand};
use kube_unions_webhook::commands::{install_crd, serve, unregister, verify, version};
use std::ffi::OsString;
use std::process::ExitCode;

pub use annotate::annotated;
pub use preview::{predicted_applies, with_built_in_defaults};
pub use test::{suite_schema, suites};

/// The groups of commands in the help of the program, each with its first command.
const GROUPS: [(&str, &str); 5] = [
    ("Write unions", "generate"),
    ("Try them", "explain"),
    ("On a cluster", "audit"),
    ("Run the webhook", "serve"),
    ("Other commands", "completion"),
];

/// Names that commands of other tools have, each with what does that here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("apply", "patch apply"),
    ("check", "lint"),
    ("delete", "unregister"),
    ("diff", "preview"),
    ("helm", "chart"),
    ("template", "chart"),
    ("uninstall", "unregister"),
    ("upgrade", "preview"),
    ("validate", "audit"),
];

/// The commands, in the order of their groups.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Declare unions on CRDs from the markers of their Go types
    Generate(generate::GenerateArgs),
    /// Propose unions for CRDs from their validations
    Propose(propose::ProposeArgs),
    /// Move `x-kubernetes-unions` in CRDs into the annotation that clusters keep
    Annotate(annotate::AnnotateArgs),
    /// Report faults in the unions that CRDs and `UnionDeclarations` declare
    Lint(lint::LintArgs),
    /// Compile unions to admission policies and rules in CRDs, which need no webhook
    Compile(Box<compile::CompileArgs>),
    /// Show the unions of a kind as a tree
    Explain(explain::ExplainArgs),
    /// Predict which unions an upgrade leaves invalid, without a cluster
    Preview(preview::PreviewArgs),
    /// Find where a chart's defaults and your values contradict each other
    Chart(Box<chart::ChartArgs>),
    /// Print objects as the webhook normalises them
    Normalize(normalize::NormalizeArgs),
    /// Create, apply and send strategic merge patches, also for custom resources
    Patch(patch::PatchArgs),
    /// Run the tests of unions in files and folders
    Test(test::TestArgs),
    /// Find stored objects that the webhook would reject or change
    Audit(audit::AuditArgs),
    /// Check that a cluster enforces unions
    Verify(verify::VerifyArgs),
    /// Install or upgrade the CRD of `UnionDeclaration` in a cluster
    InstallCrd(install_crd::InstallCrdArgs),
    /// Remove the webhook's registration from a cluster
    Unregister(unregister::UnregisterArgs),
    /// Run the admission webhook
    Serve(Box<serve::ServeArgs>),
    /// Create a certificate authority and a serving certificate for development
    Certs(certs::CertsArgs),
    /// Print a completion script
    Completion(completion::CompletionArgs),
    /// Print the version
    Version(version::VersionArgs),
    #[command(flatten)]
    Old(old_names::OldCommand),
    /// Complete the arguments of `kubectl unions`. The last one is unfinished.
    #[command(skip)]
    CompleteForKubectl(Vec<OsString>),
}

/// Suggests a command for one that only other tools have.
pub(super) fn with_suggestion(mut error: clap::Error) -> clap::Error {
    let asked = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(asked)) => ELSEWHERE.iter().find(|(elsewhere, _)| elsewhere == asked),
        _ => None,
    };
    if let Some((_, command)) = asked {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![(*command).to_owned()]));
    }
    error
}

/// Lists the commands of the program in groups, as kubectl does.
pub(super) fn grouped(program: ClapCommand) -> ClapCommand {
    let header = STYLES.get_header();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let starts = |command: &&ClapCommand| GROUPS.iter().find(|(_, first)| *first == command.get_name());
    let visible: Vec<&ClapCommand> = program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    for group in visible.chunk_by(|_, next| starts(next).is_none()) {
        let (heading, _) = group.first().and_then(starts).unwrap_or(&("Commands", ""));
        let list = ClapCommand::new("")
            .max_term_width(HELP_WIDTH)
            .disable_help_subcommand(true)
            .help_template("{subcommands}");
        let list = list.styles(STYLES).subcommands(group.iter().copied().cloned()).render_help();
        template.extend([format!("\n{header}{heading}:{header:#}\n{}", list.ansi())]);
    }
    template.extend([format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")]);
    program.help_template(template)
}

impl Command {
    /// Runs the command. `program` returns the whole command line.
    pub(super) fn run(self, program: impl FnOnce() -> ClapCommand) -> anyhow::Result<ExitCode> {
        let verdict = match self {
            Self::Serve(arguments) => return serve::run(*arguments),
            Self::Normalize(arguments) => normalize::run(&arguments)?,
            Self::Lint(arguments) => lint::run(&arguments)?,
            Self::Test(arguments) => test::run(&arguments)?,
            Self::Audit(arguments) => audit::run(arguments)?,
            Self::Chart(arguments) => chart::run(&arguments)?,
            Self::Preview(arguments) => preview::run(&arguments)?,
            Self::Annotate(arguments) => annotate::run(&arguments)?,
            Self::Generate(arguments) => generate::run(&arguments)?,
            Self::Propose(arguments) => propose::run(&arguments)?,
            Self::Compile(arguments) => compile::run(&arguments)?,
            Self::Explain(arguments) => explain::run(arguments)?,
            Self::Patch(arguments) => patch::run(&arguments)?,
            Self::Certs(arguments) => certs::run(&arguments)?,
            Self::Verify(arguments) => verify::run(&arguments)?,
            Self::InstallCrd(arguments) => install_crd::run(&arguments)?,
            Self::Unregister(arguments) => unregister::run(&arguments)?,
            Self::Completion(arguments) => completion::run(&arguments, program())?,
            Self::Version(arguments) => version::run(&arguments, crate::PROGRAM)?,
            Self::Old(command) => command.run(program)?,
            Self::CompleteForKubectl(words) => completion::complete_for_kubectl(&words, program())?,
        };
        Ok(verdict.into())
    }
}
