//! Why there is no annotated CRD.

use super::{ANNOTATIONS_LIMIT, Fault};
use kube_core::crd::MergeError;
use kube_unions_core::declaration::DefinitionError;
use std::fmt::{self, Write};

/// Why there is no annotated CRD. Its `Debug` is its text, for that is what a `main` prints that returns it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// At least one union is declared wrongly. Displays as one line for each fault.
    #[error("{}", lines(.definition, .faults))]
    Faulty {
        /// The name of the CRD, empty where there is none.
        definition: String,
        /// All that was found, warnings too, sorted.
        faults: Vec<Fault>,
    },
    /// The CRD has another schema than its type, so that places in the one are not places in the other.
    #[error(
        "the schema of `{definition}` {version} is not the one that kube derives from its type; \
         give the schema that it was made from to `Unions::version_of`, and the CRD to `Unions::annotate`"
    )]
    OtherSchema {
        /// The name of the CRD.
        definition: String,
        /// The version.
        version: String,
    },
    /// A schema that no CRD can have.
    #[error("the schema of version `{version}` is none that a CRD can have: {source}")]
    Schema {
        /// The version.
        version: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The CRD has an annotation that can't be added to.
    #[error("the annotation `kube-unions.dev/unions` of `{definition}` can't be added to: {source}; remove it")]
    Annotation {
        /// The name of the CRD.
        definition: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// More than Kubernetes allows.
    #[error(
        "{} would take {bytes} bytes, and Kubernetes allows {ANNOTATIONS_LIMIT}: declare the unions in fewer versions, or split \
         the CRD",
        of(.definition, "annotations")
    )]
    TooLarge {
        /// The name of the CRD, empty where there is none.
        definition: String,
        /// What all of its annotations would take together.
        bytes: usize,
    },
    /// kube can't merge the versions.
    #[error("the versions can't be merged: {0}")]
    Merge(#[from] MergeError),
    /// The CRD can't be read as unions need it.
    #[error(transparent)]
    Unreadable(#[from] DefinitionError),
    /// The CRD can't be written.
    #[error("the CRD can't be written as JSON: {0}")]
    Json(#[source] serde_json::Error),
}

impl fmt::Debug for CrdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn lines(definition: &str, faults: &[Fault]) -> String {
    let mut text = of(definition, "unions") + " are declared wrongly:";
    for Fault { version, path, severity, message, .. } in faults {
        text.push_str("\n  ");
        let place = [version.as_deref().unwrap_or_default(), path];
        for part in place.into_iter().filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push_str(": ");
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{severity}: {message}");
    }
    text
}

/// Names something of a CRD, or of a kind that has none yet.
fn of(definition: &str, what: &str) -> String {
    if definition.is_empty() { format!("the {what}") } else { format!("the {what} of `{definition}`") }
}
