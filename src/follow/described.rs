//! Describes a kind of a cluster, once, for a command: its schema, with the unions that `UnionDeclaration`s declare.

use super::learn::each;
use super::raw::RawDeclaration;
use super::schemas::{SchemaFetchError, Schemas};
use crate::api::{DiscoveredResource, LiveError};
use kube::{Client, Resource};
use kube_unions_core::declaration::{BuiltinGroups, Declaration, Definition, DefinitionError, OpenApi};
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::Workspace;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The schema of a kind.
#[derive(Debug)]
pub enum KindDescription {
    /// From its CRD, with the unions of `UnionDeclaration`s.
    Custom(Definition),
    /// From the API server's own document: the document, and the definition with the unions of `UnionDeclaration`s.
    BuiltIn(Arc<OpenApi>, Definition),
}

/// A kind that cannot be described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// A request failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The schema cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaFetchError),
    /// The CRD, or the OpenAPI document, is malformed.
    #[error("cannot use the definition `{name}`: {message}")]
    Definition {
        /// The name of the CRD or the kind.
        name: Box<str>,
        message: String,
    },
    /// Neither a CRD nor a document describes the kind.
    #[error("the server does not describe {0}: neither by a CustomResourceDefinition nor in its OpenAPI documents")]
    NotDescribed(Box<DiscoveredResource>),
}

/// Returns the schema of a resource, from its CRD or from the OpenAPI document of a built-in type.
pub async fn described(client: &Client, resource: &DiscoveredResource) -> Result<KindDescription, DescribeError> {
    let schemas = Schemas::new(client.clone());
    let declarations = declarations(client).await?;
    let name = format!("{}.{}", resource.plural, resource.group);
    let raw = if resource.group.is_empty() { None } else { schemas.definition(&name).await? };
    // Anybody who may create CRDs may name one as a built-in resource.
    let reserved = BuiltinGroups::Guessed.has(&resource.group);
    let raw =
        if raw.is_some() && reserved && schemas.is_own(&resource.group, &resource.version).await { None } else { raw };
    if let Some(raw) = raw {
        let fail = |message: String| DescribeError::Definition { name: name.as_str().into(), message };
        let parts = raw.parts().map_err(|message| fail(message.to_owned()))?;
        let definition = Definition::from_parts(raw.name(), &parts.annotations, parts.spec.get())
            .map_err(|error| fail(error.to_string()))?;
        return Ok(KindDescription::Custom(declarations.declared(definition)));
    }
    let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
    let version = BTreeSet::from([resource.version.to_string()]);
    let edition = schemas.documents(&schemas.index().await?, &kind, Some(&version)).await?;
    let not_described = || DescribeError::NotDescribed(Box::new(resource.clone()));
    let document = edition.into_iter().next().ok_or_else(not_described)?;
    match Definition::from_openapi([&*document], &kind.group, &kind.kind, false) {
        Ok(definition) => Ok(KindDescription::BuiltIn(document, declarations.declared(definition))),
        Err(DefinitionError::NotDescribed(_)) => Err(not_described()),
        Err(error) => Err(DescribeError::Definition { name: kind.to_string().into(), message: error.to_string() }),
    }
}

/// Returns all `UnionDeclaration`s; none if the cluster lacks their CRD, or the user may not list them.
async fn declarations(client: &Client) -> Result<Workspace, LiveError> {
    let mut declarations = Workspace::of_files();
    let read = each(client, RawDeclaration::url_path(&(), None), |text| {
        // A malformed declaration declares nothing; its status has the reason.
        if let Ok(read) = Declaration::from_json(text) {
            let name = read.0.name().to_owned();
            declarations.set_declaration(&name, Ok(read));
        }
    });
    match read.await {
        Err(error) if !matches!(error.code(), Some(403 | 404)) => Err(error),
        _ => Ok(declarations),
    }
}
