//! `version`: prints the version and the features of this build.

use clap::Args;
use kube_unions_command::values::ReportFormat;
use kube_unions_command::{Verdict, output};

/// Arguments of `version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kube-unions version
  kube-unions version -o json")]
pub struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

/// Prints the version of the program of this name.
pub fn run(arguments: &VersionArgs, name: &str) -> anyhow::Result<Verdict> {
    let version = env!("CARGO_PKG_VERSION");
    let features: Vec<&str> = cfg!(feature = "otlp").then_some("otlp").into_iter().collect();
    output::print(match arguments.output {
        ReportFormat::Text => format!("{name} {version}\n"),
        ReportFormat::Json => format!(
            "{}\n",
            serde_json::json!({
                "name": name, "version": version, "features": features,
                "os": std::env::consts::OS, "arch": std::env::consts::ARCH,
            })
        ),
    })?;
    Ok(Verdict::Accepted)
}
