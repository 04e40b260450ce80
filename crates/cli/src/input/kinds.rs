//! Builds a catalog from documents: CRDs, `UnionDeclaration`s and saved OpenAPI documents.
//!
//! A declaration applies to the CRD of its target. If no document is that CRD, the target is a built-in type, and an OpenAPI
//! document has its schema. The crate `kube-unions-manifests` combines them; [`asked`] finds a kind by a name of a user.

pub(crate) mod asked;

pub(crate) use kube_unions_command::sources::{BuiltinUnionsArg, SourceArgs, assemble, or_cluster};
pub(crate) use kube_unions_manifests::{Assembly, schemas};

use super::manifest::Document;
use super::values::only;
use clap::Args;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use std::path::PathBuf;

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

/// Returns the unions of an object's kind, `None` if it has none.
pub(crate) fn entry_of<'c>(catalog: &'c Catalog, document: &Document) -> Option<&'c CatalogEntry> {
    let (group, version) = document.group_version();
    catalog.lookup(group, version, document.kind.as_deref()?)
}
