//! The command line. One file for each command, and the files that commands share:
//!
//! - `manifest` reads and writes files; `kinds` builds a catalog from them; `crd` edits the unions of a CRD;
//! - `connection` connects to a cluster;
//! - `diagnostic`, `sarif`, `tree`, `progress` and `output` print; `exit` has the exit codes, `values` the values of
//!   shared flags, and `require` the flag that makes "nothing to check" a failure.
//!
//! The crate `kube-unions-manifests` parses and edits YAML and JSON, finds misspelt names, and builds an `AdmissionReview`.
//!
//! Data goes to standard output, everything else to standard error. Users script against both, and against the exit codes.

mod annotate;
mod audit;
mod certs;
mod check_cel;
mod compile;
mod completion;
mod connection;
mod crd;
mod diagnostic;
mod exit;
mod explain;
mod generate;
mod install_crd;
mod kinds;
mod lint;
mod man;
mod manifest;
mod normalize;
mod openapi;
mod output;
mod patch;
mod progress;
mod require;
mod review;
mod sarif;
mod serve;
mod test;
mod tree;
mod unregister;
mod values;
mod verify;
mod version;

use self::exit::Verdict;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use annotate::annotated;
pub use exit::{exit_code, usage_code};
pub use test::suite_schema;

/// The name of the program, unless it is called by another one.
const PROGRAM: &str = "kube-unions";

/// The file name of the plugin that kubectl runs as `kubectl unions`.
const PLUGIN: &str = "kubectl-unions";

/// The file name of the program that kubectl runs to complete the arguments of `kubectl unions`.
const PLUGIN_COMPLETION: &str = "kubectl_complete-unions";

/// Enforce Kubernetes union types: fields of an object of which at most one may be set
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, max_term_width = 120, styles = output::STYLES, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// True if the program is called as a plugin of kubectl.
    #[arg(skip)]
    is_plugin: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success, nothing to object to
  1  the input is rejected: denied, invalid, in conflict, or with faults
  2  wrong usage, unreadable or malformed input, or failed I/O";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the admission webhook
    Serve(Box<serve::ServeArgs>),
    /// Answer an `AdmissionReview` as the webhook does
    Review(review::ReviewArgs),
    /// Print objects as the webhook normalises them
    Normalize(normalize::NormalizeArgs),
    /// Report faults in the unions that CRDs and `UnionDeclarations` declare
    Lint(lint::LintArgs),
    /// Run the tests of unions in files and folders
    Test(test::TestArgs),
    /// Find stored objects that the webhook would reject or change
    Audit(audit::AuditArgs),
    /// Move `x-kubernetes-unions` in CRDs into the annotation that clusters keep
    Annotate(annotate::AnnotateArgs),
    /// Declare unions on CRDs from the markers of their Go types
    Generate(generate::GenerateArgs),
    /// Compare unions with the CEL rules that a CRD has beside them
    CheckCel(check_cel::CheckCelArgs),
    /// Compile unions to admission policies and rules in CRDs, which need no webhook
    Compile(Box<compile::CompileArgs>),
    /// Print the OpenAPI document from which kustomize learns how custom resources merge
    Openapi(openapi::OpenapiArgs),
    /// Show the unions of a kind as a tree
    Explain(explain::ExplainArgs),
    /// Create, apply and send strategic merge patches, also for custom resources
    Patch(patch::PatchArgs),
    /// Create a certificate authority and a serving certificate for development
    Certs(certs::CertsArgs),
    /// Check that a cluster enforces unions
    Verify(verify::VerifyArgs),
    /// Install or upgrade the CRD of `UnionDeclaration` in a cluster
    InstallCrd(install_crd::InstallCrdArgs),
    /// Remove the webhook's registration from a cluster
    Unregister(unregister::UnregisterArgs),
    /// Print a completion script
    Completion(completion::CompletionArgs),
    /// Print the version
    Version(version::VersionArgs),
    /// Write the manual pages, for packages
    #[command(hide = true)]
    Man(man::ManArgs),
    /// Complete the arguments of `kubectl unions`. The last one is unfinished.
    #[command(skip)]
    CompleteForKubectl(Vec<OsString>),
}

impl Cli {
    /// Parses the arguments. The first one is the name of the program. Help and version are errors, see [`usage_code`].
    pub fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut arguments: Vec<OsString> = arguments.into_iter().collect();
        let stem = arguments.first().and_then(|program| Path::new(program).file_stem());
        let is_called = |name: &str| stem.is_some_and(|stem| stem == name);
        if is_called(PLUGIN_COMPLETION) {
            let words = arguments.split_off(1);
            return Ok(Self { command: Command::CompleteForKubectl(words), is_plugin: true });
        }
        let is_plugin = is_called(PLUGIN);
        let mut command = Self::command();
        if is_plugin {
            command = command.name(PLUGIN).bin_name("kubectl unions");
        }
        let matches = &mut command.try_get_matches_from_mut(arguments)?;
        let cli = Self::from_arg_matches_mut(matches).map_err(|error| error.format(&mut command))?;
        Ok(Self { is_plugin, ..cli })
    }

    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The evaluation of a stranger's rule catches its panics.
            if !kube_unions_evidence::is_evaluating() {
                hook(panic);
            }
        }));
        let verdict = match self.command {
            Command::Serve(arguments) => return serve::run(*arguments),
            Command::Review(arguments) => review::run(&arguments)?,
            Command::Normalize(arguments) => normalize::run(&arguments)?,
            Command::Lint(arguments) => lint::run(&arguments)?,
            Command::Test(arguments) => return test::run(&arguments),
            Command::Audit(arguments) => audit::run(&arguments)?,
            Command::Annotate(arguments) => annotate::run(&arguments)?,
            Command::Generate(arguments) => generate::run(&arguments)?,
            Command::CheckCel(arguments) => check_cel::run(&arguments)?,
            Command::Compile(arguments) => compile::run(&arguments)?,
            Command::Openapi(arguments) => openapi::run(&arguments)?,
            Command::Explain(arguments) => explain::run(&arguments)?,
            Command::Patch(arguments) => patch::run(&arguments)?,
            Command::Certs(arguments) => certs::run(&arguments)?,
            Command::Verify(arguments) => verify::run(&arguments)?,
            Command::InstallCrd(arguments) => install_crd::run(&arguments)?,
            Command::Unregister(arguments) => unregister::run(&arguments)?,
            Command::Completion(arguments) => {
                completion::run(&arguments, &Self::command().name(if self.is_plugin { PLUGIN } else { PROGRAM }))?
            }
            Command::Version(arguments) => version::run(&arguments)?,
            Command::Man(arguments) => man::run(&arguments, Self::command())?,
            Command::CompleteForKubectl(words) => {
                completion::complete_for_kubectl(&words, Self::command().name(PLUGIN))?
            }
        };
        Ok(verdict.into())
    }
}
