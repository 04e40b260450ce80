//! `version`: prints the version and the features of this build.

use crate::cli::input::values::ReportFormat;
use crate::cli::report::{Verdict, output};
use clap::Args;

/// Arguments of `version`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kube-unions version
  kube-unions version -o json")]
pub(crate) struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

pub(super) fn run(arguments: &VersionArgs) -> anyhow::Result<Verdict> {
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
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
