//! A watched object: its name, its annotations, and the JSON texts of its `spec` and `status`.
//!
//! The types of `k8s_openapi` drop `x-kubernetes-unions`. Reading this type succeeds for every JSON value; a malformed object is
//! reported later, as a fault of that object.
//!
//! Knows nothing of schemas: the workspace reads the texts.

use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Fault, UnionDeclarationStatus};
use kube_unions_core::workspace::CrdText;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A CRD or a `UnionDeclaration`. `spec` and `status` stay text.
#[derive(Debug, Clone, Default)]
pub(super) struct RawObject {
    /// Empty if it is missing.
    pub(super) name: String,
    pub(super) generation: Option<i64>,
    parts: Option<ObjectParts>,
    /// The reason why it is malformed.
    fault: String,
}

/// The parts of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectParts {
    pub(super) annotations: BTreeMap<String, String>,
    /// JSON text.
    pub(super) spec: Box<RawValue>,
    /// JSON text.
    pub(super) status: Option<Box<RawValue>>,
}

impl RawObject {
    /// Reads an object from its JSON text.
    pub(super) fn read(text: &str) -> Self {
        let mut this = Self::default();
        match this.read_parts(text) {
            Ok(parts) => this.parts = Some(parts),
            Err(fault) => this.fault = fault,
        }
        this
    }

    /// Returns the parts.
    ///
    /// # Errors
    /// The reason why the object is malformed.
    pub(super) fn parts(&self) -> Result<&ObjectParts, &str> {
        self.parts.as_ref().ok_or(&self.fault)
    }

    /// Returns the texts of a CRD.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub(super) fn crd(&self) -> Result<CrdText<'_>, &str> {
        let ObjectParts { annotations, spec, status } = self.parts()?;
        Ok(CrdText { annotations, spec: spec.get(), status: status.as_ref().map(|status| status.get()) })
    }

    /// Returns the stored status of a declaration; an empty one if it cannot be read.
    pub(super) fn status(&self) -> UnionDeclarationStatus {
        let status = self.parts.as_ref().and_then(|parts| parts.status.as_ref());
        status.and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default()
    }

    /// Reads a declaration and its own faults.
    ///
    /// # Errors
    /// The reason why it cannot be read at all.
    pub(super) fn declaration(&self) -> Result<(Declaration, Vec<Fault>), String> {
        let (metadata, spec) = (json!({"name": self.name}), self.parts()?.spec.get());
        let text = format!(
            r#"{{"apiVersion":"kube-unions.dev/v1alpha1","kind":"UnionDeclaration","metadata":{metadata},"spec":{spec}}}"#
        );
        Declaration::from_json(&text).map_err(|error| with_causes(&error))
    }
    /// Returns the parts of an object, and sets its metadata as far as it can be read.
    fn read_parts(&mut self, text: &str) -> Result<ObjectParts, String> {
        let RawEnvelope { metadata, spec, status } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let metadata = metadata.map(|raw| serde_json::from_str::<RawMetadata<'_>>(raw.get())).transpose();
        let metadata = metadata.map_err(|error| format!("`metadata`: {error}"))?.unwrap_or_default();
        self.name = metadata.name.and_then(read).unwrap_or_default();
        self.generation = metadata.generation.and_then(read);
        let annotations = metadata.annotations.map(|raw| serde_json::from_str::<Option<_>>(raw.get())).transpose();
        let annotations = annotations.map_err(|error| format!("`metadata.annotations`: {error}"))?.flatten();
        let spec = spec.ok_or("it has no `spec`")?.to_owned();
        Ok(ObjectParts { annotations: annotations.unwrap_or_default(), spec, status: status.map(ToOwned::to_owned) })
    }
}

/// Every field is raw, so that a field of a wrong type does not fail the others.
#[derive(serde::Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Default, serde::Deserialize)]
struct RawMetadata<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    generation: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_read_as_far_as_it_can_be() {
        let read = RawObject::read;
        let named = read(r#"{"metadata":{"name":"a","resourceVersion":"1","annotations":{"k":"v"}},"spec":{"x":1}}"#);
        assert_eq!(named.name, "a");
        let parts = named.parts().unwrap();
        assert_eq!(parts.spec.get(), r#"{"x":1}"#);
        assert_eq!(parts.annotations["k"], "v");
        let odd = read(r#"{"metadata":{"name":"b","annotations":{"k":[]}},"spec":{}}"#);
        assert_eq!(odd.name, "b");
        assert!(odd.parts().unwrap_err().starts_with("`metadata.annotations`: "));
        let empty = read(r#"{"metadata":{"name":"c"}}"#);
        assert_eq!((&*empty.name, empty.parts().unwrap_err()), ("c", "it has no `spec`"));
        for text in [r#"{"metadata":7}"#, r#""nonsense""#] {
            let object = read(text);
            assert!(object.parts().is_err() && object.name.is_empty(), "{text}");
        }
    }
}
