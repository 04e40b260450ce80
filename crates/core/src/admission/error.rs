//! Errors of a review that has no answer.

use crate::meter::Exhausted;
use crate::union::LONGEST_TEXT;

/// Why a body is not an `AdmissionReview` that can be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// Nothing was sent.
    #[error("the body is empty; send an AdmissionReview of admission.k8s.io/v1 as JSON")]
    Empty,
    /// Not text.
    #[error("the body is not UTF-8, from byte {0} on")]
    NotUtf8(usize),
    /// Not JSON, or not of the shape of a review.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(String),
    /// Another kind.
    #[error(
        "the body is of kind `{kind}` and apiVersion `{api_version}`; this webhook answers AdmissionReview of admission.k8s.io/v1 only"
    )]
    Unsupported {
        /// The kind it says it is.
        kind: String,
        /// The version it says it is.
        api_version: String,
    },
    /// No `request`.
    #[error("`request` is missing: this AdmissionReview asks nothing")]
    NoRequest,
    /// An answer could not be told from another.
    #[error("`request.uid` is missing or empty: an answer must echo it")]
    NoUid,
    /// Longer than an offset can be.
    #[error("the body is longer than {LONGEST_TEXT} bytes")]
    TooLong,
    /// Reading or answering it takes more memory than there is for it.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// No kind.
    #[error("`request.kind` is missing: it says what the object is")]
    NoKind,
    /// Not one of the four.
    #[error("`request.operation` is `{0}`; it must be CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation(String),
    /// No object where there must be one.
    #[error("`request.{0}` is not an object")]
    NotAnObject(&'static str),
}
