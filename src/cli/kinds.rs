//! The kinds of some documents: CRDs, `UnionDeclaration`s and saved OpenAPI documents, put together into one catalog.
//!
//! A declaration goes onto the CRD of its target; where there is none, the target is a built-in type, and its schema is in the
//! OpenAPI documents.

mod assembly;
mod parts;

pub(super) use assembly::Assembly;

use self::parts::Parts;
use super::manifest::{self, Document, Problem};
use anyhow::bail;
use clap::{Args, ValueEnum};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Definition, OpenApi};
use std::path::PathBuf;

/// Where the kinds come from, for the commands that judge objects.
#[derive(Debug, Args)]
pub(super) struct KindArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, `-` is standard input
    ///
    /// Folders are searched for .yaml, .yml and .json, hidden ones excepted. Documents of other kinds are passed over. For
    /// built-in types save the OpenAPI document of their group: `kubectl get --raw /openapi/v3/apis/apps/v1`.
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    builtin_unions: BuiltinUnionsArg,
}

/// Whether the unions that OpenAPI documents publish for built-in types are in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum BuiltinUnionsArg {
    /// They are not: some of them are wrong
    #[default]
    Ignored,
    /// They are, where their values can be checked and are right
    #[value(name = "openapi")]
    OpenApi,
}

impl KindArgs {
    pub(super) fn catalog(&self) -> anyhow::Result<Catalog> {
        catalog(&self.from, self.builtin_unions)
    }
}

/// The catalog of what files and folders hold; documents of other kinds are passed over.
pub(super) fn catalog(paths: &[PathBuf], builtin: BuiltinUnionsArg) -> anyhow::Result<Catalog> {
    let assembly = assemble(manifest::read(paths)?, builtin);
    manifest::fail_on(&assembly.problems)?;
    if let Some(lack) = assembly.lack(paths) {
        bail!(lack);
    }
    Ok(assembly.catalog)
}

/// Compiles what is declared in some documents. A problem with one leaves the others in force.
pub(super) fn assemble(documents: Vec<Document>, builtin: BuiltinUnionsArg) -> Assembly {
    Parts::read(documents).assemble(builtin)
}

/// The schemas of kinds, each with the document that it was read from, for who wants no catalog.
#[derive(Debug)]
pub(super) struct KindSchemas {
    /// CRDs with the unions of `UnionDeclaration`s, by name.
    pub(super) definitions: Vec<(Document, Definition)>,
    pub(super) openapi: Vec<(Document, OpenApi)>,
    pub(super) problems: Vec<Problem>,
}

/// What some documents describe.
pub(super) fn schemas(documents: Vec<Document>) -> KindSchemas {
    let mut parts = Parts::read(documents);
    let definitions = std::mem::take(&mut parts.definitions).into_values();
    let definitions = definitions.map(|(document, definition)| (document, parts.declared(definition))).collect();
    KindSchemas { definitions, openapi: parts.openapi, problems: parts.problems }
}

/// Whether somebody who asks for `Kind` or `Kind.group`, in any case, means this kind.
pub(super) fn is_meant(asked: &str, group: &str, kind: &str) -> bool {
    let (name, of) = asked.split_once('.').map_or((asked, None), |(name, of)| (name, Some(of)));
    kind.eq_ignore_ascii_case(name) && of.is_none_or(|of| group.eq_ignore_ascii_case(of))
}
