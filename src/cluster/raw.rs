//! A definition of custom resources as it comes over the wire: nothing but its name, its annotations and the text of
//! its `spec`.
//!
//! The typed form of `k8s_openapi` will not do: it drops `x-kubernetes-unions`, and a definition it cannot read would
//! fail the whole page or event it stands in. Reading this type succeeds for every JSON value; what is missing shows
//! later, as a fault of that one definition.

use kube::Resource;
use kube::core::{ClusterResourceScope, ObjectMeta};
use serde::de::Deserializer;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What one `CustomResourceDefinition` says, unread but for its metadata.
#[derive(Debug, Clone)]
pub struct RawDefinition {
    /// `name` and `resourceVersion` only.
    metadata: ObjectMeta,
    parts: Result<Parts, String>,
}

/// What a definition is made from.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) annotations: BTreeMap<String, String>,
    /// JSON text.
    pub(super) spec: Box<RawValue>,
}

impl RawDefinition {
    /// Its name; empty where it has none.
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its parts, or why it has none.
    pub(super) fn parts(&self) -> Result<&Parts, &str> {
        self.parts.as_ref().map_err(String::as_str)
    }

    fn read(text: &str) -> Self {
        let envelope = match serde_json::from_str::<Envelope<'_>>(text) {
            Ok(envelope) => envelope,
            Err(error) => return Self { metadata: ObjectMeta::default(), parts: Err(error.to_string()) },
        };
        let fields = envelope.metadata.map(RawValue::get).map(serde_json::from_str::<Metadata<'_>>);
        let fields = match fields.transpose() {
            Ok(fields) => fields.unwrap_or_default(),
            Err(error) => return Self { metadata: ObjectMeta::default(), parts: Err(format!("`metadata`: {error}")) },
        };
        let metadata = ObjectMeta {
            name: fields.name.and_then(string),
            resource_version: fields.resource_version.and_then(string),
            ..ObjectMeta::default()
        };
        Self { metadata, parts: parts(fields.annotations, envelope.spec) }
    }
}

impl<'de> serde::Deserialize<'de> for RawDefinition {
    /// Never fails on well-formed JSON. It has to come straight from the text: an API server writes `type` before
    /// `object` in a watch event, so that nothing is buffered on the way.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::read(text.get()))
    }
}

impl Resource for RawDefinition {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "CustomResourceDefinition".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "apiextensions.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "customresourcedefinitions".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Every field is raw, so that one of an odd type costs none of the others.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_version: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn parts(annotations: Option<&RawValue>, spec: Option<&RawValue>) -> Result<Parts, String> {
    let annotations = match annotations {
        None => BTreeMap::new(),
        Some(raw) => serde_json::from_str::<Option<_>>(raw.get())
            .map_err(|error| format!("`metadata.annotations`: {error}"))?
            .unwrap_or_default(),
    };
    let spec = spec.ok_or("it has no `spec`")?.to_owned();
    Ok(Parts { annotations, spec })
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
