//! Builds a catalog from documents: CRDs, `UnionDeclaration`s and saved OpenAPI documents.
//!
//! A declaration applies to the CRD of its target. If no document is that CRD, the target is a built-in type, and an OpenAPI
//! document has its schema. The crate `kube-unions-manifests` combines them; [`asked`] finds a kind by a name of a user.

pub(crate) mod asked;

pub(crate) use kube_unions_manifests::{Assembly, schemas};

use super::manifest::{self, Document};
use super::values::only;
use anyhow::bail;
use clap::builder::StyledStr;
use clap::{Arg, Args, ValueEnum};
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_manifests::BuiltinUnions;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The flags of commands that learn unions from files.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input
    ///
    /// Folders are searched for .yaml, .yml and .json files, except in hidden folders. Documents of other kinds are skipped.
    /// For built-in types, save the OpenAPI document of their group: `kubectl get --raw /openapi/v3/apis/apps/v1`.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub(crate) from: Vec<PathBuf>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    pub(crate) builtin_unions: BuiltinUnionsArg,
}

/// The treatment of the unions that OpenAPI documents publish for built-in types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[schemars(rename = "BuiltinUnionsManifest")]
pub(crate) enum BuiltinUnionsArg {
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
    pub(crate) fn assembly(&self) -> anyhow::Result<Assembly> {
        let mut files = manifest::index(&self.from);
        let kinds = files.kinds();
        manifest::fail_on(&files.problems)?;
        let mut assembly = assemble(kinds, self.builtin_unions);
        assembly.documents += files.objects();
        manifest::fail_on(&assembly.problems)?;
        match assembly.missing(&self.from) {
            Some(missing) => bail!(missing),
            None => Ok(assembly),
        }
    }
}

/// The arguments of commands that check declarations.
#[derive(Debug, Args)]
#[command(mut_args(only("from", |from| from.short_alias('f').alias("filename"))))]
pub(crate) struct DeclarationArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input
    ///
    /// A `UnionDeclaration` is checked against the schema of its target: include the CRD, or the OpenAPI document of a
    /// built-in type.
    #[arg(required_unless_present = "from", value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

impl DeclarationArgs {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        [&*self.paths, &self.sources.from].concat()
    }
}

/// `--from` of a command that reads a cluster without it.
pub(crate) fn or_cluster(from: Arg) -> Arg {
    let with_default = |help: &StyledStr| format!("{help} [default: the cluster]");
    let (help, long) = (from.get_help().map(with_default), from.get_long_help().map(with_default));
    from.help(help.unwrap_or_default()).long_help(long.unwrap_or_default())
}

/// Compiles the declarations of documents. A problem with one document leaves the others in force.
pub(crate) fn assemble(documents: Vec<Document>, builtin: BuiltinUnionsArg) -> Assembly {
    kube_unions_manifests::assemble(documents, builtin.into())
}

/// Returns the unions of an object's kind, `None` if it has none.
pub(crate) fn entry_of<'c>(catalog: &'c Catalog, document: &Document) -> Option<&'c CatalogEntry> {
    let (group, version) = document.group_version();
    catalog.lookup(group, version, document.kind.as_deref()?)
}
