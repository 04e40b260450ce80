//! Errors of making an annotated CRD.

use kube_core::crd::MergeError;
use kube_unions_core::declaration::{ANNOTATIONS_LIMIT, DefinitionError, Fault, Severity};
use std::fmt::{self, Write};

/// An error of making an annotated CRD.
///
/// `Debug` prints the same text as `Display`, because a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum CrdError {
    /// A union has a fault. Displays one line for each fault.
    #[error("{}", lines(.definition, .faults))]
    Faulty {
        /// Name of the CRD, empty if it has none.
        definition: String,
        /// All faults, warnings included, sorted.
        faults: Vec<Fault>,
    },
    /// The schema of the CRD is not derived from its type, so the places of the unions are unknown.
    #[error(
        "the schema of `{definition}` {version} is not the one that kube derives from its type: pass the schema to \
         `Unions::version_of` and the CRD to `Unions::annotate`"
    )]
    OtherSchema { definition: String, version: String },
    /// The schema is invalid for a CRD.
    #[error("invalid schema of version `{version}` for a CRD: {source}")]
    Schema { version: String, source: serde_json::Error },
    /// The CRD already has an invalid annotation.
    #[error("invalid annotation `kube-unions.dev/unions` of `{definition}`: {source}; remove it")]
    Annotation { definition: String, source: serde_json::Error },
    /// The annotations are larger than Kubernetes allows.
    #[error(
        "{} would have {bytes} bytes, more than the {ANNOTATIONS_LIMIT} that Kubernetes allows: declare the unions in fewer \
         versions, or split the CRD",
        subject("the annotations", .definition)
    )]
    TooLarge {
        /// Name of the CRD, empty if it has none.
        definition: String,
        /// Size of all annotations together.
        bytes: usize,
    },
    /// kube cannot merge the versions.
    #[error("cannot merge the versions: {0}")]
    Merge(#[from] MergeError),
    /// The CRD lacks a part that unions need.
    #[error(transparent)]
    Unreadable(#[from] DefinitionError),
    /// The CRD cannot be serialized.
    #[error("cannot write the CRD as JSON: {0}")]
    Json(#[source] serde_json::Error),
}

impl CrdError {
    /// Fails if one of the faults of a CRD is an error.
    pub(super) fn check(definition: &str, faults: Vec<Fault>) -> Result<(), Self> {
        if faults.iter().any(|fault| fault.severity() == Severity::Error) {
            return Err(Self::Faulty { definition: definition.to_owned(), faults });
        }
        Ok(())
    }
}

impl fmt::Debug for CrdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn lines(definition: &str, faults: &[Fault]) -> String {
    let mut text = subject("invalid unions", definition) + ":";
    for Fault { version, path, kind, message, .. } in faults {
        text.push_str("\n  ");
        let place = [version.as_deref().unwrap_or_default(), path];
        for part in place.into_iter().filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push_str(": ");
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{}: {message}", kind.severity());
    }
    text
}

fn subject(what: &str, definition: &str) -> String {
    if definition.is_empty() { what.to_owned() } else { format!("{what} of `{definition}`") }
}
