//! A kind with its versions and their schemas, read from a CRD or from OpenAPI documents.

use super::{
    ANNOTATION, ClaimedKind, Declared, Fault, LAST_APPLIED, OpenApi, Place, annotation, is_exempt, last_applied, wire,
};
use crate::names::{GroupKind, GroupVersionKind};
use crate::schema::{OpenApiError, Schema};
use std::collections::{BTreeMap, HashMap};

/// A kind as far as unions need it: the schemas of its versions, with every declaration grafted on. It comes from a CRD or,
/// for a built-in type, from OpenAPI documents.
#[derive(Debug)]
pub struct Definition {
    pub(super) name: String,
    pub(super) kind: GroupKind,
    pub(super) resource: Option<Resource>,
    pub(super) versions: Vec<DefinitionVersion>,
    /// The positions of versions, by name; of two of one name the first.
    pub(super) positions: HashMap<Box<str>, usize>,
    pub(super) faults: Vec<Fault>,
}

/// The resource through which objects of a kind are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Its name in paths and rules: `deployments`.
    pub plural: Box<str>,
    /// For one object; empty where that is not known.
    pub singular: Box<str>,
    /// Other names, as far as they are known.
    pub short_names: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether a CRD defines it.
    pub custom: bool,
}

/// One version of a kind.
#[derive(Debug)]
pub struct DefinitionVersion {
    /// `v1`, `v1beta1`, …
    pub name: Box<str>,
    /// Its position in `spec.versions`.
    pub position: usize,
    /// True if the API server serves it. Nothing is in force of a version that it does not serve.
    pub served: bool,
    /// Whether `status` is changed through a subresource of its own.
    pub status_subresource: bool,
    /// The schema, declarations included.
    pub schema: Schema,
}

/// Why a document is not a CRD whose unions could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Not JSON, or not shaped like a CRD.
    #[error("not a readable CustomResourceDefinition: `{path}`: {message}")]
    Malformed {
        /// Where in the document.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// Another kind, or a version of the API that is no longer served.
    #[error(
        "not a CustomResourceDefinition of apiextensions.k8s.io/v1: it says apiVersion `{api_version}`, kind `{kind}`"
    )]
    NotADefinition {
        /// What it says.
        api_version: String,
        /// What it says.
        kind: String,
    },
    /// An OpenAPI document with something wrong in it.
    #[error(transparent)]
    OpenApi(#[from] OpenApiError),
    /// No document describes the kind.
    #[error("no OpenAPI document describes the kind `{0}`")]
    NotDescribed(String),
    /// No version has a schema.
    #[error("`{0}` has no schema: give `spec.versions[].schema.openAPIV3Schema`")]
    NoSchema(String),
}

impl Definition {
    /// Reads a whole CRD from its JSON text.
    pub fn from_json(text: &str) -> Result<Self, DefinitionError> {
        let document: wire::Document<'_> = wire::read(text, "")?;
        if (&*document.api_version, &*document.kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
            let (api_version, kind) = (document.api_version, document.kind);
            return Err(DefinitionError::NotADefinition { api_version, kind });
        }
        Self::from_parts(&document.metadata.name, &document.metadata.annotations, document.spec.get())
    }

    /// Reads a CRD from its name, its annotations and the JSON text of its `spec`, by the names that the `spec` asks for.
    pub fn from_parts(name: &str, annotations: &BTreeMap<String, String>, spec: &str) -> Result<Self, DefinitionError> {
        Self::read(name, annotations, spec, None)
    }

    /// The same, by the names of a claim: those that the API server has accepted.
    pub fn with_accepted_names(
        claim: ClaimedKind,
        name: &str,
        annotations: &BTreeMap<String, String>,
        spec: &str,
    ) -> Result<Self, DefinitionError> {
        Self::read(name, annotations, spec, Some(claim))
    }

    fn read(
        name: &str,
        annotations: &BTreeMap<String, String>,
        spec: &str,
        claim: Option<ClaimedKind>,
    ) -> Result<Self, DefinitionError> {
        let spec: wire::Spec = wire::read(spec, "spec.")?;
        let (kind, resource) = if let Some(ClaimedKind { kind, resource }) = claim {
            (kind, Some(resource))
        } else {
            let (kind, resource) = spec.names.into_parts(spec.scope.as_deref());
            (GroupKind { group: spec.group, kind }, resource)
        };
        let versions = spec.versions.into_iter().enumerate().filter_map(wire::Version::into_version).collect();
        let mut definition = Self::of_versions(name.to_owned(), kind, resource, versions);
        if definition.versions.is_empty() {
            return Err(DefinitionError::NoSchema(definition.name));
        }
        if let Some(text) = annotations.get(ANNOTATION) {
            annotation::graft(&mut definition, text);
        }
        if let Some(text) = annotations.get(LAST_APPLIED) {
            last_applied::graft(&mut definition, text);
        }
        Ok(definition)
    }

    fn of_versions(
        name: String,
        kind: GroupKind,
        resource: Option<Resource>,
        versions: Vec<DefinitionVersion>,
    ) -> Self {
        let mut positions = HashMap::new();
        for (position, version) in versions.iter().enumerate() {
            positions.entry(version.name.clone()).or_insert(position);
        }
        Self { name, kind, resource, versions, positions, faults: Vec::new() }
    }

    /// Reads a built-in type from every document that describes it, one version each. What the documents themselves declare
    /// is dropped unless `published` says to take it.
    pub fn from_openapi<'d>(
        documents: impl IntoIterator<Item = &'d OpenApi>,
        group: &str,
        kind: &str,
        published: bool,
    ) -> Result<Self, DefinitionError> {
        let name = GroupKind::new(group, kind);
        let mut versions: Vec<DefinitionVersion> = Vec::new();
        let mut resource = None;
        for document in documents {
            let described: Vec<&GroupVersionKind> =
                document.kinds().filter(|known| (&*known.group, &*known.kind) == (group, kind)).collect();
            for described in described {
                let known = versions.iter().any(|version| version.name == described.version);
                let Some(mut schema) = document.schema(described)?.filter(|_| !known) else { continue };
                if !published {
                    schema.clear_unions();
                }
                if resource.is_none() {
                    resource = document.resource(described).map(|(plural, namespaced)| Resource {
                        plural: plural.into(),
                        singular: Box::default(),
                        short_names: Vec::new(),
                        namespaced,
                        custom: false,
                    });
                }
                versions.push(DefinitionVersion {
                    name: described.version.clone(),
                    position: versions.len(),
                    served: true,
                    status_subresource: document.has_status_subresource(described),
                    schema,
                });
            }
        }
        if versions.is_empty() {
            return Err(DefinitionError::NotDescribed(name.to_string()));
        }
        Ok(Self::of_versions(name.to_string(), name, resource, versions))
    }

    /// The name of the CRD, `widgets.example.com`; of a built-in type kind and group, `Deployment.apps`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group of its kind.
    pub fn group(&self) -> &str {
        &self.kind.group
    }

    /// The kind it defines.
    pub fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// Returns the kind with its group.
    pub fn group_kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Through which resource it is written, as far as its CRD or its documents tell.
    pub fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    /// Its versions that have a schema.
    pub fn versions(&self) -> &[DefinitionVersion] {
        &self.versions
    }

    /// True if its objects are never sent to the webhook.
    pub fn is_exempt(&self) -> bool {
        is_exempt(self.group(), self.resource.as_ref().map(|resource| &*resource.plural), self.kind())
    }

    /// What was wrong with declarations before any schema was asked.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Takes the versions out, for whoever changes their schemas further.
    pub fn take_versions(&mut self) -> Vec<DefinitionVersion> {
        std::mem::take(&mut self.versions)
    }

    pub(super) fn version_named(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

impl DefinitionVersion {
    /// What is declared at a place, whichever sources it came from.
    pub fn declared_at(&self, place: &Place) -> &[Declared] {
        self.schema.at(place).map_or(&[], |node| &node.unions)
    }

    /// Everything that is declared, by place.
    pub fn declarations(&self) -> BTreeMap<Place, Vec<Declared>> {
        let mut declarations = BTreeMap::new();
        self.schema.walk(&mut |place, node| {
            if !node.unions.is_empty() {
                declarations.insert(place.clone(), node.unions.clone());
            }
        });
        declarations
    }

    /// Has a place declare this instead of what it does, if the schema has the place.
    pub fn put(&mut self, place: &Place, declared: Vec<Declared>) {
        if let Some(node) = self.schema.at_mut(place) {
            node.unions = declared;
        }
    }
}
