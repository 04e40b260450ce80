//! The command line: arguments as typed, one file a command.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0, nothing to object to; 1, the input was
//! understood and is rejected ([`Verdict::Rejected`]); 2, usage, malformed input or I/O (an error). Users script against
//! both, so they are a contract.

mod annotate;
mod audit;
mod certs;
mod completion;
mod connection;
mod crd;
mod diagnostic;
mod exit;
mod explain;
mod generate;
mod kinds;
mod lint;
mod manifest;
mod normalize;
mod output;
mod patch;
mod progress;
mod request;
mod review;
mod serve;
mod tree;
mod unregister;
mod verify;
mod version;

use self::exit::Verdict;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use kube_unions_core::admission;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use annotate::annotated;
pub use output::{is_closed_pipe, report};

/// The name under which kubectl finds a plugin that it runs as `kubectl unions`.
const PLUGIN: &str = "kubectl-unions";

/// Kubernetes union types on the clusters of today: normalises and validates objects whose fields exclude each other.
#[derive(Debug, Parser)]
#[command(name = "kube-unions", version, max_term_width = 120, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing to object to
  1  the input was understood and is rejected
  2  usage, unreadable or malformed input, I/O";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the admission webhook
    Serve(Box<serve::ServeArgs>),
    /// Answer one `AdmissionReview`, exactly as the webhook does
    Review(review::ReviewArgs),
    /// Print objects as the webhook would have them stored
    Normalize(normalize::NormalizeArgs),
    /// Report everything that is wrong with the unions that CRDs and `UnionDeclarations` declare
    Lint(lint::LintArgs),
    /// Find the objects that exist already and would be rejected
    Audit(audit::AuditArgs),
    /// Move `x-kubernetes-unions` of CRDs into the annotation that clusters keep
    Annotate(annotate::AnnotateArgs),
    /// Declare the unions that Go types mark on the CRDs that are made from them
    Generate(generate::GenerateArgs),
    /// Show the unions of a kind as a tree
    Explain(explain::ExplainArgs),
    /// Make, apply and send strategic merge patches, for custom resources, too
    Patch(patch::PatchArgs),
    /// Write a certificate authority and a serving certificate for development
    Certs(certs::CertsArgs),
    /// See on a cluster whether unions are enforced there
    Verify(verify::VerifyArgs),
    /// Take the webhook's registration off a cluster, so that no write is sent to it any more
    Unregister(unregister::UnregisterArgs),
    /// Print a completion script
    Completion(completion::CompletionArgs),
    /// Print the version
    Version(version::VersionArgs),
}

impl Cli {
    /// Reads the arguments, the program's own name first. Help and version are errors too, see [`clap::Error::exit`].
    pub fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let mut command = Self::command();
        let stem = arguments.first().and_then(|program| Path::new(program).file_stem());
        if stem.is_some_and(|stem| stem == PLUGIN) {
            command = command.name(PLUGIN).bin_name("kubectl unions");
        }
        Self::from_arg_matches_mut(&mut command.try_get_matches_from_mut(arguments)?)
            .map_err(|error| error.format(&mut command))
    }

    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let verdict = match self.command {
            Command::Serve(arguments) => return serve::run(*arguments),
            Command::Review(arguments) => review::run(&arguments)?,
            Command::Normalize(arguments) => normalize::run(&arguments)?,
            Command::Lint(arguments) => lint::run(&arguments)?,
            Command::Audit(arguments) => audit::run(&arguments)?,
            Command::Annotate(arguments) => annotate::run(&arguments)?,
            Command::Generate(arguments) => generate::run(&arguments)?,
            Command::Explain(arguments) => explain::run(&arguments)?,
            Command::Patch(arguments) => patch::run(&arguments)?,
            Command::Certs(arguments) => certs::run(&arguments)?,
            Command::Verify(arguments) => verify::run(&arguments)?,
            Command::Unregister(arguments) => unregister::run(&arguments)?,
            Command::Completion(arguments) => completion::run(&arguments)?,
            Command::Version(arguments) => version::run(&arguments)?,
        };
        Ok(verdict.into())
    }
}

/// Whether a write that leaves an invalid union as it was is let through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Ratcheting {
    /// Let through what was invalid before and did not change, with a warning
    #[default]
    Enabled,
    /// Every write must be valid
    Disabled,
}

impl From<Ratcheting> for admission::Ratcheting {
    fn from(ratcheting: Ratcheting) -> Self {
        match ratcheting {
            Ratcheting::Enabled => Self::Enabled,
            Ratcheting::Disabled => Self::Disabled,
        }
    }
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}
