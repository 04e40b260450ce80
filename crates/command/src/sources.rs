//! The flags that name the sources of unions, and the catalog of what they name.

use crate::manifest::{self, Document};
use anyhow::bail;
use clap::builder::StyledStr;
use clap::{Arg, Args, ValueEnum};
use kube_unions_manifests::{Assembly, BuiltinUnions};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The flags of commands that learn unions from files.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input
    ///
    /// Folders are searched for .yaml, .yml and .json files, except in hidden folders. Documents of other kinds are skipped.
    /// The OpenAPI document of a group describes its built-in types: `kubectl get --raw /openapi/v3/apis/apps/v1`.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub from: Vec<PathBuf>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    pub builtin_unions: BuiltinUnionsArg,
}

/// The treatment of the unions that OpenAPI documents publish for built-in types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[schemars(rename = "BuiltinUnionsManifest")]
pub enum BuiltinUnionsArg {
    /// Ignore them.
    #[default]
    #[value(help = "Ignore them: some of them are wrong")]
    Ignored,
    /// Use them where their values can be checked and are right.
    #[serde(rename = "OpenAPI")]
    #[value(name = "openapi")]
    OpenApi,
}

impl From<BuiltinUnionsArg> for BuiltinUnions {
    fn from(unions: BuiltinUnionsArg) -> Self {
        match unions {
            BuiltinUnionsArg::Ignored => Self::Ignored,
            BuiltinUnionsArg::OpenApi => Self::OpenApi,
        }
    }
}

impl SourceArgs {
    /// Returns the catalog of the kinds in the files, with their schemas. Skips documents of other kinds.
    pub fn assembly(&self) -> anyhow::Result<Assembly> {
        let mut files = manifest::index(&self.from);
        let kinds = files.kinds();
        manifest::fail_on(&files.all_problems())?;
        let mut assembly = assemble(kinds, self.builtin_unions);
        assembly.documents += files.objects();
        manifest::fail_on(&assembly.problems)?;
        match assembly.missing(&self.from) {
            Some(missing) => bail!(missing),
            None => Ok(assembly),
        }
    }
}

/// `--from` of a command that reads a cluster without it.
pub fn or_cluster(from: Arg) -> Arg {
    let with_default = |help: &StyledStr| format!("{help} [default: the cluster]");
    let (help, long) = (from.get_help().map(with_default), from.get_long_help().map(with_default));
    from.help(help.unwrap_or_default()).long_help(long.unwrap_or_default())
}

/// Compiles the declarations of documents. A problem with one document leaves the others in force.
pub fn assemble(documents: Vec<Document>, builtin: BuiltinUnionsArg) -> Assembly {
    kube_unions_manifests::assemble(documents, builtin.into())
}
