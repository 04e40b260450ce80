//! The error of a document that is no CRD, no built-in type or no `UnionDeclaration`.

use crate::schema::OpenApiError;

/// A document does not define a kind, or does not declare unions.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DefinitionError {
    /// The document is not JSON, or does not have the shape of its kind.
    #[error("not a readable {wanted}: `{path}`: {message}")]
    Malformed {
        /// The kind: a CRD or a `UnionDeclaration`.
        wanted: &'static str,
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error("not a {} of {}: apiVersion is `{api_version}`, kind is `{kind}`", .wanted.1, .wanted.0)]
    OtherKind {
        /// The `apiVersion` and the kind.
        wanted: (&'static str, &'static str),
        api_version: String,
        kind: String,
    },
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
