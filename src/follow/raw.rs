//! A CRD as the API server stores it: its annotations, and the JSON texts of its `spec` and `status`.
//!
//! The types of `k8s_openapi` drop `x-kubernetes-unions`. Knows nothing of schemas: the workspace reads the texts.

use kube_unions_core::workspace::CrdText;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A CRD. `spec` and `status` stay text.
#[derive(Debug, Deserialize)]
pub(super) struct RawCrd<'t> {
    metadata: RawMetadata,
    #[serde(borrow)]
    spec: &'t RawValue,
    #[serde(borrow)]
    status: Option<&'t RawValue>,
}

#[derive(Debug, Deserialize)]
struct RawMetadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl<'t> RawCrd<'t> {
    /// Reads a CRD from its JSON text.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub(super) fn read(text: &'t str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the texts of a CRD that was read, or the reason why it is malformed.
    pub(super) fn texts(read: &Result<Self, String>) -> Result<CrdText<'_>, &str> {
        let Self { metadata, spec, status } = read.as_ref().map_err(String::as_str)?;
        Ok(CrdText { annotations: &metadata.annotations, spec: spec.get(), status: status.map(RawValue::get) })
    }
}
