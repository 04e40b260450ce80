//! The values of flags that several commands have, and changes to such flags.

use clap::{Arg, ValueEnum};
use kube_unions_core::admission::Ratcheting;
use kube_unions_core::names::is_dns_label;
use kube_unions_manifests::Format;
use schemars::JsonSchema;
use serde::Deserialize;

/// Changes one argument that commands share, for one of them. `Command::mut_arg` would move it behind the others.
pub fn only(id: &'static str, change: impl Fn(Arg) -> Arg) -> impl FnMut(Arg) -> Arg {
    move |arg| if arg.get_id() == id { change(arg) } else { arg }
}

/// The treatment of a write that leaves an invalid union unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[schemars(rename = "RatchetingManifest")]
pub enum RatchetingArg {
    /// Allow the write, with a warning.
    #[default]
    Enabled,
    /// Deny the write.
    Disabled,
}

/// A subresource that has unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[schemars(rename = "SubresourceManifest")]
pub enum Subresource {
    /// The status subresource.
    #[serde(rename = "status")]
    #[value(help = None)]
    Status,
}

impl Subresource {
    /// Returns the name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
        }
    }
}

impl From<RatchetingArg> for Ratcheting {
    fn from(ratcheting: RatchetingArg) -> Self {
        match ratcheting {
            RatchetingArg::Enabled => Self::Enabled,
            RatchetingArg::Disabled => Self::Disabled,
        }
    }
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Lines for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// The format of a report of findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// Lines for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
}

/// The format of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    Yaml,
    Json,
}

impl From<ObjectFormat> for Format {
    fn from(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Yaml => Self::Yaml,
            ObjectFormat::Json => Self::Json,
        }
    }
}

/// Parses the name of a namespace. The API server refuses a whole selector for one invalid name.
pub fn namespace(text: &str) -> Result<String, String> {
    accept(text, is_dns_label(text), "namespace", "use one name of lower-case letters, digits and `-`")
}

/// Returns a valid text, or says what is invalid and what to use instead.
pub fn accept(text: &str, valid: bool, what: &str, hint: &str) -> Result<String, String> {
    if valid { Ok(text.to_owned()) } else { Err(format!("invalid {what} {text:?}: {hint}")) }
}
