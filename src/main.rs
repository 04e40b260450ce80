//! The program of the image: the webhook, and the commands that the chart runs beside it.

use clap::{Parser, Subcommand};
use kube_unions_command::exit::{exit_code, usage_code};
use kube_unions_command::output::{HELP_WIDTH, STYLES};
use kube_unions_webhook::commands::{audit, install_crd, serve, unregister, verify, version};
use std::process::ExitCode;

/// Enforce Kubernetes union types: the admission webhook
#[derive(Debug, Parser)]
#[command(version, max_term_width = HELP_WIDTH, styles = STYLES)]
struct Program {
    #[command(subcommand)]
    command: WebhookCommand,
}

#[derive(Debug, Subcommand)]
enum WebhookCommand {
    /// Run the admission webhook
    Serve(Box<serve::ServeArgs>),
    /// Write reports of stored objects that the webhook would reject
    Audit(audit::ReportingArgs),
    /// Check that a cluster enforces unions
    Verify(verify::VerifyArgs),
    /// Remove the webhook's registration from a cluster
    Unregister(unregister::UnregisterArgs),
    /// Install or upgrade the CRD of `UnionDeclaration` in a cluster
    InstallCrd(install_crd::InstallCrdArgs),
    /// Print the version
    Version(version::VersionArgs),
}

impl WebhookCommand {
    fn run(self) -> anyhow::Result<ExitCode> {
        let verdict = match self {
            Self::Serve(arguments) => return serve::run(*arguments),
            Self::Audit(arguments) => audit::run(&arguments)?,
            Self::Verify(arguments) => verify::run(&arguments)?,
            Self::Unregister(arguments) => unregister::run(&arguments)?,
            Self::InstallCrd(arguments) => install_crd::run(&arguments)?,
            Self::Version(arguments) => version::run(&arguments, env!("CARGO_PKG_NAME"))?,
        };
        Ok(verdict.into())
    }
}

fn main() -> ExitCode {
    match Program::try_parse() {
        Ok(program) => exit_code(program.command.run()),
        // clap reports help and version as errors, too.
        Err(error) => usage_code(&error),
    }
}
