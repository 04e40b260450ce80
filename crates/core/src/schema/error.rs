//! The error of a document with schemas.

/// A text is not an OpenAPI document, or one of its schemas cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// The text is not JSON, or does not have the shape of a document.
    #[error("not a readable OpenAPI document: {0}")]
    Malformed(#[source] serde_json::Error),
    /// The document has no schemas of version 2 or 3.
    #[error("not an OpenAPI document of version 2 or 3: it has neither `definitions` nor `components.schemas`")]
    NoSchemas,
    /// A schema is malformed.
    #[error("the schema `{name}` can't be read")]
    Schema {
        /// The name of the schema in the document.
        name: String,
        /// The error of the JSON reader.
        source: serde_json::Error,
    },
    /// The schema is too large or too deep once its references are resolved.
    #[error("the schema `{0}` is too large or too deep once its references are resolved")]
    TooLarge(String),
    /// A reference has no target.
    #[error("the reference `{0}` leads to no schema of the document")]
    Dangling(String),
}
