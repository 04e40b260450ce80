//! The errors of documents that are no CRD, no built-in type or no `UnionDeclaration`.

use crate::schema::OpenApiError;

/// A document does not define a kind.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DefinitionError {
    /// The document is not JSON, or does not have the shape of a CRD.
    #[error("not a readable CustomResourceDefinition: `{path}`: {message}")]
    Malformed {
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error(
        "not a CustomResourceDefinition of apiextensions.k8s.io/v1: apiVersion is `{api_version}`, kind is `{kind}`"
    )]
    NotADefinition { api_version: String, kind: String },
    /// An OpenAPI document is malformed.
    #[error(transparent)]
    OpenApi(#[from] OpenApiError),
    /// No OpenAPI document describes the kind.
    #[error("no OpenAPI document describes the kind `{0}`")]
    NotDescribed(String),
    /// No version of the CRD has a schema.
    #[error("`{0}` has no schema: give `spec.versions[].schema.openAPIV3Schema`")]
    NoSchema(String),
}

/// A document is not a `UnionDeclaration`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DeclarationError {
    /// The document is not JSON, or does not have the shape of a `UnionDeclaration`.
    #[error("not a readable UnionDeclaration: `{path}`: {message}")]
    Malformed {
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error("not a UnionDeclaration of kube-unions.dev/v1alpha1: apiVersion is `{api_version}`, kind is `{kind}`")]
    NotADeclaration { api_version: String, kind: String },
}
