//! A watched object: its name, its annotations, and the JSON texts of its `spec` and `status`.
//!
//! The types of `k8s_openapi` drop `x-kubernetes-unions`, and one malformed object would fail its whole page or event. Reading
//! this type succeeds for every JSON value; a malformed object is reported later, as a fault of that object.
//!
//! Knows nothing of schemas: the workspace reads the texts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::core::{ClusterResourceScope, ObjectMeta};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Fault, UnionDeclaration, UnionDeclarationStatus};
use kube_unions_core::workspace::CrdText;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

pub(super) type RawDefinition = Raw<CustomResourceDefinition>;

pub(super) type RawDeclaration = Raw<UnionDeclaration>;

/// An object of a type with parsed metadata. The rest stays text.
#[derive(Debug, Clone)]
pub(super) struct Raw<K> {
    /// `name`, `resourceVersion` and `generation` only.
    pub(super) metadata: ObjectMeta,
    parts: Result<ObjectParts, String>,
    resource: PhantomData<K>,
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

impl<K> Raw<K> {
    /// Returns the name, empty if it is missing.
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the parts.
    ///
    /// # Errors
    /// The reason why the object is malformed.
    pub(super) fn parts(&self) -> Result<&ObjectParts, &str> {
        self.parts.as_ref().map_err(String::as_str)
    }

    /// Reads an object from its JSON text.
    pub(super) fn read(text: &str) -> Self {
        let mut metadata = ObjectMeta::default();
        let parts = parts(text, &mut metadata);
        Self { metadata, parts, resource: PhantomData }
    }
}

impl RawDefinition {
    /// Returns the texts of the CRD.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub(super) fn crd(&self) -> Result<CrdText<'_>, &str> {
        let ObjectParts { annotations, spec, status } = self.parts()?;
        Ok(CrdText { annotations, spec: spec.get(), status: status.as_ref().map(|status| status.get()) })
    }
}

impl RawDeclaration {
    /// Returns the stored status; an empty one if it cannot be read.
    pub(super) fn status(&self) -> UnionDeclarationStatus {
        let status = self.parts.as_ref().ok().and_then(|parts| parts.status.as_ref());
        status.and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default()
    }

    /// Reads the declaration and its own faults.
    ///
    /// # Errors
    /// The reason why it cannot be read at all.
    pub(super) fn declaration(&self) -> Result<(Declaration, Vec<Fault>), String> {
        let (metadata, spec) = (json!({"name": self.name()}), self.parts()?.spec.get());
        let text = format!(
            r#"{{"apiVersion":"kube-unions.dev/v1alpha1","kind":"UnionDeclaration","metadata":{metadata},"spec":{spec}}}"#
        );
        Declaration::from_json(&text).map_err(|error| with_causes(&error))
    }
}

impl<'de, K> serde::Deserialize<'de> for Raw<K> {
    /// Never fails on well-formed JSON. The deserializer must read from text: the API server writes `type` before `object` in a
    /// watch event, so that serde buffers nothing.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::read(text.get()))
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Raw<K> {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(of: &()) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &()) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &()) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &()) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
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
#[serde(rename_all = "camelCase")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_version: Option<&'a RawValue>,
    #[serde(borrow)]
    generation: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Returns the parts of an object, and sets its metadata as far as it can be read.
fn parts(text: &str, metadata: &mut ObjectMeta) -> Result<ObjectParts, String> {
    let RawEnvelope { metadata: fields, spec, status } =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let fields = fields.map(|raw| serde_json::from_str::<RawMetadata<'_>>(raw.get())).transpose();
    let fields = fields.map_err(|error| format!("`metadata`: {error}"))?.unwrap_or_default();
    metadata.name = fields.name.and_then(read);
    metadata.resource_version = fields.resource_version.and_then(read);
    metadata.generation = fields.generation.and_then(read);
    let annotations = fields.annotations.map(|raw| serde_json::from_str::<Option<_>>(raw.get())).transpose();
    let annotations = annotations.map_err(|error| format!("`metadata.annotations`: {error}"))?.flatten();
    let spec = spec.ok_or("it has no `spec`")?.to_owned();
    Ok(ObjectParts { annotations: annotations.unwrap_or_default(), spec, status: status.map(ToOwned::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::ObjectList;
    use kube::core::WatchEvent;

    #[test]
    fn a_list_with_odd_items_is_read_whole() {
        let text = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList",
            "metadata":{"resourceVersion":"9"},
            "items":[{"metadata":{"name":"a","resourceVersion":"1","annotations":{"k":"v"}},"spec":{"x":1}},
                     {"metadata":{"name":"b","annotations":{"k":[]}},"spec":{}},
                     {"metadata":{"name":"c"}},
                     {"metadata":7},
                     "nonsense"]}"#;
        let list: ObjectList<RawDefinition> = serde_json::from_str(text).unwrap();
        let names: Vec<&str> = list.iter().map(RawDefinition::name).collect();
        assert_eq!(names, ["a", "b", "c", "", ""]);
        let parts = list.items[0].parts().unwrap();
        assert_eq!(parts.spec.get(), r#"{"x":1}"#);
        assert_eq!(parts.annotations["k"], "v");
        assert!(list.items[1].parts().unwrap_err().starts_with("`metadata.annotations`: "));
        assert_eq!(list.items[2].parts().unwrap_err(), "it has no `spec`");
        assert!(list.items[3..].iter().all(|it| it.parts().is_err()));
    }

    #[test]
    fn a_watch_event_deeper_than_any_parser_goes_is_read() {
        let deep = "{\"properties\":".repeat(5_000) + "{}" + &"}".repeat(5_000);
        let text = format!(
            r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"deep","resourceVersion":"2"}},"spec":{deep}}}}}"#
        );
        let event: WatchEvent<RawDefinition> = serde_json::from_str(&text).unwrap();
        let WatchEvent::Modified(definition) = event else { panic!("not a modification") };
        assert_eq!(definition.name(), "deep");
        assert_eq!(definition.meta().resource_version.as_deref(), Some("2"));
        assert_eq!(definition.parts().unwrap().spec.get().len(), deep.len());
    }
}
