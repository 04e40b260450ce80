//! CRDs that others make: Crossplane from a `CompositeResourceDefinition`, kro from a `ResourceGraphDefinition`.
//!
//! The rest of the program sees the CRD that such a document will become. Positions and edits are those of the document.
//! [`simple_schema`](crate::simple_schema) reads the schemas of kro.

use crate::crd_maker::{CrdMaker, MadeCrd};
use crate::document::Document;
use crate::file::Problem;
use crate::simple_schema;
use kube_unions_core::declaration::ANNOTATION;
use kube_unions_core::field_path::{self, pointer_tokens};
use kube_unions_core::schema::EXTENSION;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The group of a kind, the kind, and who makes CRDs of it.
pub(crate) const MAKERS: [(&str, &str, CrdMaker); 2] = [
    ("apiextensions.crossplane.io", "CompositeResourceDefinition", CrdMaker::Crossplane),
    ("kro.run", "ResourceGraphDefinition", CrdMaker::Kro),
];

/// The fields at the root of an object of a Crossplane CRD, whatever its schema says.
const OF_CROSSPLANE: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Validations that a Crossplane CRD does not get from the `spec` and `status` of a schema.
const DROPPED: [&str; 5] = ["allOf", "anyOf", "maxProperties", "minProperties", "not"];

/// Validations that it does not get from the root of a schema either: rules are kept from Crossplane 2.2 on.
const DROPPED_AT_ROOT: [&str; 2] = ["oneOf", "x-kubernetes-validations"];

impl Document {
    /// Returns true if somebody else makes CRDs of the document.
    pub fn makes_definitions(&self) -> bool {
        self.maker().is_some()
    }

    /// Returns the CRDs that the document is or becomes.
    ///
    /// # Errors
    /// Returns a problem if the CRD cannot be told.
    pub fn definitions(&self) -> Result<Vec<Self>, Problem> {
        let Some(maker) = self.maker() else {
            return Ok(if self.is_definition() { vec![self.clone()] } else { Vec::new() });
        };
        let mut source: Value = serde_json::from_str(&self.text)
            .map_err(|error| Problem::of_document(self, "", format!("{} cannot be read: {error}", self.title())))?;
        let dropped = if maker == CrdMaker::Crossplane { drop_validations(&mut source) } else { Vec::new() };
        let made = match maker {
            CrdMaker::Crossplane => crossplane(&source),
            CrdMaker::Kro => kro(&source).map(|crd| vec![crd]),
        };
        let made = made.map_err(|(pointer, message)| {
            Problem::of_document(self, &pointer, format!("{}: {message}", self.title()))
        })?;
        let annotation = source.pointer("/metadata/annotations").and_then(|all| all.get(ANNOTATION));
        let crd = |(position, crd): (usize, Value)| {
            let misplaced = annotation.and_then(Value::as_str).map(str::to_owned);
            let (of_claim, dropped) = (position > 0, dropped.clone());
            self.inner("", crd.to_string()).with_origin(Some(Arc::new(MadeCrd { maker, of_claim, misplaced, dropped })))
        };
        Ok(made.into_iter().enumerate().map(crd).collect())
    }

    /// Returns the path in the text of a value in the CRD.
    pub fn path_in_text(&self, path: &[&str]) -> Vec<String> {
        let base = pointer_tokens(&self.pointer).unwrap_or_default();
        let own = match self.made.as_ref().map(|made| made.maker) {
            None => path.to_vec(),
            Some(maker) => maker.path_in_source(path),
        };
        base.into_iter().chain(own.into_iter().map(str::to_owned)).collect()
    }

    fn maker(&self) -> Option<CrdMaker> {
        MAKERS.into_iter().find(|(group, kind, _)| self.is(group, kind)).map(|(_, _, maker)| maker)
    }
}

type SourceFault = (String, String);

/// Returns the CRD of a composite resource, and that of its claim if there is one.
fn crossplane(source: &Value) -> Result<Vec<Value>, SourceFault> {
    let spec = get(source, "/spec");
    let mut versions = Vec::new();
    for (index, version) in get(spec, "/versions").as_array().into_iter().flatten().enumerate() {
        let pointer = format!("/spec/versions/{index}/schema/openAPIV3Schema");
        let schema = crossplane_schema(get(version, "/schema/openAPIV3Schema").clone(), &pointer)?;
        versions.push(json!({
            "name": get(version, "/name"), "served": get(version, "/served"), "storage": get(version, "/referenceable"),
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}, "scale": get(version, "/subresources/scale")},
        }));
    }
    // `v1` has the scope of Crossplane 1 unless it says otherwise: the cluster's.
    let is_v2 = get(source, "/apiVersion").as_str().is_some_and(|version| version.ends_with("/v2"));
    let scope = match get(spec, "/scope").as_str() {
        Some("Namespaced") => "Namespaced",
        None if is_v2 => "Namespaced",
        _ => "Cluster",
    };
    let crd = |name: Value, names: &Value, scope: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": metadata(name, get(spec, "/metadata")),
            "spec": {"group": get(spec, "/group"), "names": names, "scope": scope, "versions": versions},
        })
    };
    let mut crds = vec![crd(get(source, "/metadata/name").clone(), get(spec, "/names"), scope)];
    if let Some(plural) = get(spec, "/claimNames/plural").as_str() {
        let name = format!("{plural}.{}", get(spec, "/group").as_str().unwrap_or_default());
        crds.push(crd(name.into(), get(spec, "/claimNames"), "Namespaced"));
    }
    Ok(crds)
}

/// Removes the validations that Crossplane drops, and returns their JSON Pointers.
fn drop_validations(source: &mut Value) -> Vec<String> {
    let versions = get(source, "/spec/versions").as_array().map_or(0, Vec::len);
    let at_root: Vec<&str> = DROPPED.iter().chain(&DROPPED_AT_ROOT).copied().collect();
    let nodes = [("", &*at_root), ("/properties/spec", &DROPPED), ("/properties/status", &DROPPED)];
    let mut dropped = Vec::new();
    for index in 0..versions {
        for (node, keywords) in nodes {
            let place = format!("/spec/versions/{index}/schema/openAPIV3Schema{node}");
            let Some(schema) = source.pointer_mut(&place).and_then(Value::as_object_mut) else { continue };
            let present = keywords.iter().filter(|keyword| schema.shift_remove(**keyword).is_some());
            dropped.extend(present.map(|keyword| format!("{place}/{keyword}")));
        }
    }
    dropped
}

/// Returns the schema that Crossplane makes: of the properties at its root, only `spec` and `status` count.
fn crossplane_schema(mut schema: Value, pointer: &str) -> Result<Value, SourceFault> {
    let Some(root) = schema.as_object_mut() else {
        return Err((
            pointer.to_owned(),
            "the version has no `schema.openAPIV3Schema`, and Crossplane needs one".to_owned(),
        ));
    };
    root.insert("type".to_owned(), "object".into());
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return Ok(schema) };
    for (name, property) in &*properties {
        if !OF_CROSSPLANE.contains(&name.as_str()) && property.to_string().contains(EXTENSION) {
            let message =
                format!("Crossplane drops `{name}`, and the union in it: an object has only `spec` and `status`");
            let property = field_path::pointer(["properties", name]);
            return Err((format!("{pointer}{property}"), message));
        }
    }
    properties.retain(|name, _| OF_CROSSPLANE.contains(&name.as_str()));
    for name in ["spec", "status"] {
        let property = properties.entry(name).or_insert_with(|| json!({}));
        if let Some(property) = property.as_object_mut() {
            property.insert("type".to_owned(), "object".into());
        }
    }
    Ok(schema)
}

/// Returns the CRD of a graph of resources. The types of its status are those of expressions, which only a cluster knows.
fn kro(source: &Value) -> Result<Value, SourceFault> {
    let schema = get(source, "/spec/schema");
    let Some(kind) = get(schema, "/kind").as_str() else {
        return Err(("/spec/schema".to_owned(), "`spec.schema.kind` is missing".to_owned()));
    };
    let spec = simple_schema::object(get(schema, "/spec"), get(schema, "/types"))
        .map_err(|(path, message)| (format!("/spec/schema{}", field_path::pointer(path)), message))?;
    let group = get(schema, "/group").as_str().unwrap_or("kro.run");
    let singular = kind.to_lowercase();
    let plural = simple_schema::plural(&singular);
    let name = format!("{}.{group}", plural.as_deref().unwrap_or(&singular));
    let scope = get(schema, "/scope").as_str().unwrap_or("Namespaced");
    let root = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let version = json!({"name": get(schema, "/apiVersion"), "served": true, "storage": true,
        "schema": {"openAPIV3Schema": root}, "subresources": {"status": {}}});
    let names = json!({"kind": kind, "plural": plural, "singular": singular, "shortNames": get(schema, "/shortNames")});
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": metadata(name.into(), get(schema, "/metadata")),
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }))
}

/// Returns the value at a JSON Pointer, null if there is none.
fn get<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    static NULL: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NULL)
}

/// Returns the metadata of a CRD: a name, and the labels and annotations that its source has for it.
fn metadata(name: Value, given: &Value) -> Map<String, Value> {
    let kept = ["labels", "annotations"].into_iter().filter_map(|key| Some((key.to_owned(), given.get(key)?.clone())));
    kept.chain([("name".to_owned(), name)]).collect()
}
