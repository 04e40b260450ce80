//! Schemas of built-in types, from the OpenAPI documents of an API server. In version 3 each group and version has a
//! document; in version 2 one document has all.

use super::definitions::{Components, OpenApiError, name_of};
use super::{DefaultValue, Definitions, Schema, Source};
use crate::names::{GroupKind, GroupVersionKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// An OpenAPI document. Its schemas are parsed on demand.
#[derive(Debug)]
pub struct OpenApi {
    components: BTreeMap<String, Box<RawValue>>,
    // The name of the component that describes each kind.
    kinds: BTreeMap<GroupVersionKind, String>,
    with_status: BTreeSet<GroupVersionKind>,
    /// The plural name of each resource, and true if it is namespaced.
    resources: BTreeMap<GroupVersionKind, (Box<str>, bool)>,
}

#[derive(Deserialize)]
#[serde(expecting = "an OpenAPI document")]
struct WireOpenApi {
    #[serde(default)]
    definitions: Option<BTreeMap<String, Box<RawValue>>>,
    #[serde(default)]
    components: Option<Components>,
    #[serde(default)]
    paths: BTreeMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct Described {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Vec<GroupVersionKind>,
}

#[derive(Deserialize)]
struct PathItem {
    #[serde(default)]
    put: Option<PathOperation>,
}

#[derive(Deserialize)]
struct PathOperation {
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kind: Option<GroupVersionKind>,
}

impl OpenApi {
    /// Parses a document of version 2 or 3.
    pub fn parse(text: &str) -> Result<Self, OpenApiError> {
        let document: WireOpenApi = serde_json::from_str(text).map_err(OpenApiError::Malformed)?;
        let components = document
            .components
            .map(|components| components.schemas)
            .or(document.definitions)
            .ok_or(OpenApiError::NoSchemas)?;
        let mut kinds = BTreeMap::new();
        for (name, schema) in &components {
            // Skip components of several kinds: they are request options, for example `DeleteOptions`.
            if let Ok(Described { kinds: described }) = serde_json::from_str(schema.get())
                && let [kind] = described.as_slice()
            {
                kinds.insert(kind.clone(), name.clone());
            }
        }
        // A list contains objects of its item kind and is never written.
        let all: BTreeSet<GroupVersionKind> = kinds.keys().cloned().collect();
        kinds.retain(|kind, _| {
            let item =
                kind.kind.strip_suffix("List").map(|item| GroupVersionKind { kind: item.into(), ..kind.clone() });
            item.is_none_or(|item| !all.contains(&item))
        });
        let (mut with_status, mut resources) = (BTreeSet::new(), BTreeMap::new());
        for (path, item) in &document.paths {
            // An object is replaced at its own path and its status below. Other subresources are of other kinds.
            let object = path.strip_suffix("/status").unwrap_or(path);
            let Some((collection, "{name}")) = object.rsplit_once('/') else { continue };
            let Some(kind) = serde_json::from_str::<PathItem>(item.get()).ok().and_then(|item| item.put?.kind) else {
                continue;
            };
            if object.len() < path.len() {
                with_status.insert(kind);
            } else if let Some((parent, plural)) = collection.rsplit_once('/') {
                resources.insert(kind, (plural.into(), parent.ends_with("/{namespace}")));
            }
        }
        Ok(Self { components, kinds, with_status, resources })
    }

    /// Returns the kinds that the document describes, without lists.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.kinds.keys()
    }

    /// Returns the kinds that the document describes at some version, without lists.
    pub fn group_kinds(&self) -> BTreeSet<GroupKind> {
        self.kinds().map(GroupVersionKind::group_kind).collect()
    }

    /// Drops the kinds that CRDs define. An API server adds them to the document of their group and version, even if that
    /// has built-in types. The name of their component is made of group, version and kind.
    pub fn drop_custom_kinds(&mut self) {
        self.kinds.retain(|kind, component| {
            let GroupVersionKind { group, version, kind } = kind;
            let reversed: Vec<&str> = group.rsplit('.').collect();
            *component != format!("{}.{version}.{kind}", reversed.join("."))
        });
    }

    /// Returns true if the paths of the document have a status subresource for the kind.
    pub(crate) fn has_status_subresource(&self, kind: &GroupVersionKind) -> bool {
        self.with_status.contains(kind)
    }

    /// Returns the plural name of the kind's resource, and true if it is namespaced. Returns `None` if the document has no
    /// path for it.
    pub fn resource(&self, kind: &GroupVersionKind) -> Option<(&str, bool)> {
        self.resources.get(kind).map(|(plural, namespaced)| (&**plural, *namespaced))
    }

    /// Returns the schema of a kind with unresolved references, and the definitions that it refers to. A type that contains
    /// itself stays whole. Returns `None` if the document does not describe the kind.
    pub fn unresolved_schema(&self, kind: &GroupVersionKind) -> Result<Option<(Schema, Definitions)>, OpenApiError> {
        let Some(name) = self.kinds.get(kind) else { return Ok(None) };
        let Some(text) = self.components.get(name) else { return Ok(None) };
        let read = |source| OpenApiError::Schema { name: kind.kind.to_string(), source };
        let schema: Schema = serde_json::from_str(text.get()).map_err(read)?;
        let definitions = Definitions::reached(&schema, &self.components)?.published(name);
        Ok(Some((schema, definitions)))
    }

    /// Returns the schema of a kind with resolved references. A type that contains itself is followed once. Returns `None`
    /// if the document does not describe the kind.
    pub fn schema(&self, kind: &GroupVersionKind) -> Result<Option<Schema>, OpenApiError> {
        let component = self.kinds.get(kind).and_then(|name| self.components.get_key_value(name));
        let Some((name, text)) = component else { return Ok(None) };
        let read = |source| OpenApiError::Schema { name: name.clone(), source };
        let mut schema: Schema = serde_json::from_str(text.get()).map_err(read)?;
        let definitions = Definitions::reached(&schema, &self.components)?;
        Resolver { definitions: &definitions, open: vec![name.as_str()], nodes: 0, depth: 0 }.follow(&mut schema)?;
        Ok(Some(schema))
    }
}

/// Most nodes of a schema with resolved references. A pod, the largest built-in type, has some thousands.
const MOST_NODES: usize = 200_000;

/// Greatest depth of a schema with resolved references, including references and parts of `allOf`. No schema of Kubernetes
/// is deeper than 40.
const GREATEST_DEPTH: usize = 80;

struct Resolver<'d> {
    definitions: &'d Definitions,
    /// The components that are being resolved, outermost first.
    open: Vec<&'d str>,
    /// The number of nodes resolved so far.
    nodes: usize,
    /// The depth of the node that is being resolved.
    depth: usize,
}

impl Resolver<'_> {
    /// Returns the schema that a reference points to, with its own references replaced.
    fn target(&mut self, reference: &str) -> Result<Schema, OpenApiError> {
        let dangling = || OpenApiError::Dangling(name_of(reference).unwrap_or(reference).to_owned());
        let (name, schema) = self.definitions.get(reference).ok_or_else(dangling)?;
        if self.open.contains(&name) {
            return Ok(Schema { type_name: Some("object".into()), ..Schema::default() });
        }
        let mut schema = schema.clone();
        self.open.push(name);
        self.follow(&mut schema)?;
        self.open.pop();
        Ok(schema)
    }

    /// Replaces references by their targets.
    fn follow(&mut self, schema: &mut Schema) -> Result<(), OpenApiError> {
        self.nodes = self.nodes.saturating_add(1);
        self.depth = self.depth.saturating_add(1);
        if self.nodes > MOST_NODES || self.depth > GREATEST_DEPTH {
            let name = self.open.first().copied().unwrap_or_default();
            return Err(OpenApiError::TooLarge(name.to_owned()));
        }
        self.follow_inside(schema)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn follow_inside(&mut self, schema: &mut Schema) -> Result<(), OpenApiError> {
        if let Some(reference) = schema.reference.take() {
            let target = self.target(&reference)?;
            schema.adopt(target);
        }
        for mut part in std::mem::take(&mut schema.all_of) {
            self.follow(&mut part)?;
            schema.adopt(part);
        }
        if matches!(schema.default, DefaultValue::Zero(_)) {
            schema.default = DefaultValue::Absent;
        }
        for declared in &mut schema.unions {
            declared.source = Source::Published;
        }
        for property in schema.properties.values_mut() {
            self.follow(property)?;
        }
        for inner in [&mut schema.items, &mut schema.additional_properties].into_iter().flatten() {
            self.follow(inner)?;
        }
        Ok(())
    }
}

impl Schema {
    /// Adds the attributes of another description of the same node that this one lacks.
    fn adopt(&mut self, other: Self) {
        let Self { type_name, format, properties, additional_properties, items, required, values, default, .. } = other;
        self.type_name = self.type_name.take().or(type_name);
        self.format = self.format.take().or(format);
        for (name, property) in properties {
            self.properties.entry(name).or_insert(property);
        }
        self.additional_properties = self.additional_properties.take().or(additional_properties);
        self.items = self.items.take().or(items);
        self.required.extend(required);
        self.values = self.values.take().or(values);
        if self.default == DefaultValue::Absent {
            self.default = default;
        }
        self.list_type = self.list_type.take().or(other.list_type);
        if self.list_map_keys.is_empty() {
            self.list_map_keys = other.list_map_keys;
        }
        self.patch_strategy = self.patch_strategy.take().or(other.patch_strategy);
        self.patch_merge_key = self.patch_merge_key.take().or(other.patch_merge_key);
        let recommended = other.recommended_patch_merge_key;
        self.recommended_patch_merge_key = self.recommended_patch_merge_key.take().or(recommended);
        self.map_type = self.map_type.take().or(other.map_type);
        self.preserve_unknown_fields |= other.preserve_unknown_fields;
        self.embedded_resource |= other.embedded_resource;
        self.unions.extend(other.unions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Place;
    use serde_json::{Value, json};

    fn document(root: &str) -> String {
        let schemas = json!({
            "v1.Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}],
                "properties": {
                    "spec": {"allOf": [{"$ref": format!("#/{root}/v1.Spec")}], "default": {}, "description": "…"},
                    "parts": {"type": "array", "items": {"$ref": format!("#/{root}/v1.Thing")},
                        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
                },
            },
            "v1.Spec": {
                "type": "object", "required": ["type"],
                "properties": {"type": {"type": "string", "default": "", "enum": ["A"]}, "size": {"type": "integer", "default": 3}},
                "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A"}}],
            },
        });
        let put = json!({"put": {"x-kubernetes-group-version-kind":
            {"group": "example.com", "version": "v1", "kind": "Thing"}}});
        let paths = json!({
            "/apis/example.com/v1/namespaces/{namespace}/things": {},
            "/apis/example.com/v1/namespaces/{namespace}/things/{name}": put,
            "/apis/example.com/v1/namespaces/{namespace}/things/{name}/resize": put,
            "/apis/example.com/v1/namespaces/{namespace}/things/{name}/status": put,
        });
        if root == "definitions" {
            json!({"swagger": "2.0", "definitions": schemas, "paths": paths}).to_string()
        } else {
            json!({"openapi": "3.0.0", "components": {"schemas": schemas}, "paths": paths}).to_string()
        }
    }

    #[test]
    fn both_versions_give_the_same_schema_with_references_followed() {
        for root in ["definitions", "components/schemas"] {
            let document = OpenApi::parse(&document(root)).unwrap();
            let kind = document.kinds().next().unwrap().clone();
            assert!(document.has_status_subresource(&kind));
            assert_eq!(document.resource(&kind), Some(("things", true)));
            let schema = document.schema(&kind).unwrap().unwrap();
            let at = |pointer| schema.at(&Place::from_pointer(pointer).unwrap()).unwrap();
            let spec = at("/properties/spec");
            assert!(spec.is_object() && spec.default == DefaultValue::Absent);
            assert_eq!(spec.unions[0].source, Source::Published);
            let kind = at("/properties/spec/properties/type");
            assert_eq!((&kind.default, kind.values.as_deref()), (&DefaultValue::Absent, Some(&[Value::from("A")][..])));
            assert_eq!(at("/properties/spec/properties/size").default, DefaultValue::Given(Value::from(3)));
            assert_eq!(at("/properties/parts").list_keys(), [Box::from("name")]);
            assert!(at("/properties/parts/items").properties.is_empty(), "a type that holds itself is followed once");
        }
    }

    #[test]
    fn types_of_go_say_all_there_is_of_strategic_merge_patch() {
        for (component, tagged) in [("io.k8s.api.v1.Thing", true), ("com.example.v1.Thing", false), ("v1.Thing", false)]
        {
            let text = document("definitions").replace("\"v1.Thing\"", &format!("\"{component}\""));
            let document = OpenApi::parse(&text).unwrap();
            let kind = document.kinds().next().unwrap().clone();
            let (_, definitions) = document.unresolved_schema(&kind).unwrap().unwrap();
            assert_eq!((definitions.is_tagged(), definitions.is_published()), (tagged, true), "{component}");
        }
    }

    #[test]
    fn what_is_no_document_or_leads_nowhere_is_an_error() {
        assert!(matches!(OpenApi::parse("{}"), Err(OpenApiError::NoSchemas)));
        assert!(matches!(OpenApi::parse("[1"), Err(OpenApiError::Malformed(_))));
        let text = document("definitions").replace("v1.Spec\"}", "v1.Nothing\"}");
        let document = OpenApi::parse(&text).unwrap();
        let kind = document.kinds().next().unwrap().clone();
        assert!(matches!(document.schema(&kind), Err(OpenApiError::Dangling(name)) if name == "v1.Nothing"));
    }
}
