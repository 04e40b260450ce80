//! The errors of a review that cannot be answered.

use crate::json::Unreadable;
use crate::meter::Exhausted;
use crate::union::LONGEST_TEXT;

/// A body is not an `AdmissionReview` that can be answered.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum ReviewError {
    /// The body is empty.
    #[error("the body is empty; send an AdmissionReview of admission.k8s.io/v1 as JSON")]
    Empty,
    /// The body is not UTF-8. The number is the offset of the first invalid byte.
    #[error("the body is not UTF-8: byte {0} is invalid")]
    NotUtf8(usize),
    /// The body is not JSON, or does not have the shape of a review.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(String),
    /// The body is an object of another kind or version.
    #[error("unsupported kind `{kind}` of apiVersion `{api_version}`: send an AdmissionReview of admission.k8s.io/v1")]
    Unsupported { kind: String, api_version: String },
    /// The review has no `request`.
    #[error("`request` is missing: send an AdmissionReview with a request")]
    NoRequest,
    /// The request has no `uid`, so its response could not be told from others.
    #[error("`request.uid` is missing or empty: the response must repeat it")]
    NoUid,
    /// The body is longer than an offset can address.
    #[error("the body is longer than {LONGEST_TEXT} bytes")]
    TooLong,
    /// The meter refused memory for reading or answering the review.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The request has no `kind`.
    #[error("`request.kind` is missing: give the group, version and kind of the object")]
    NoKind,
    /// The operation is not one of the four that Kubernetes defines.
    #[error("unknown `request.operation` `{0}`: use CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation(String),
    /// `object` or `oldObject` is missing or not an object.
    #[error("`request.{0}` is not an object")]
    NotAnObject(&'static str),
}

impl From<Unreadable> for ReviewError {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Exhausted(exhausted) => Self::Exhausted(exhausted),
            Unreadable::Malformed(reason) => Self::Malformed(reason.into()),
        }
    }
}
