//! Kinds with their versions and schemas, read from CRDs or OpenAPI documents.

use super::{
    ANNOTATION, ClaimedKind, Declared, Fault, LAST_APPLIED, OpenApi, Place, annotation, is_exempt, last_applied, wire,
};
use crate::names::{GroupKind, GroupVersionKind};
use crate::schema::{MOST_UNTYPED_NODES, OpenApiError, Schema};
use std::collections::{BTreeMap, HashMap};

/// A kind: the schemas of its versions, with every declaration grafted onto them. A CRD defines it, or for a built-in type
/// OpenAPI documents.
#[derive(Debug, Clone)]
pub struct Definition {
    pub(super) name: String,
    pub(super) kind: GroupKind,
    pub(super) resource: Option<Resource>,
    pub(super) versions: Vec<DefinitionVersion>,
    /// The position of each version by name. If two versions have the same name, that of the first.
    pub(super) positions: HashMap<Box<str>, usize>,
    pub(super) faults: Vec<Fault>,
    /// The number of nodes that declarations may still add where the schemas describe nothing.
    pub(super) untyped_budget: usize,
}

/// The resource of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The plural name, as in paths and rules, for example `deployments`.
    pub plural: Box<str>,
    /// The singular name, empty if not known.
    pub singular: Box<str>,
    /// The short names, empty if not known.
    pub short_names: Vec<String>,
    /// True if its objects are namespaced.
    pub namespaced: bool,
    /// True if a CRD defines it.
    pub custom: bool,
}

/// A version of a kind.
#[derive(Debug, Clone)]
pub struct DefinitionVersion {
    /// The name, for example `v1beta1`.
    pub name: Box<str>,
    /// The position in `spec.versions`.
    pub position: usize,
    /// True if the API server serves the version. Unions of other versions are not in force.
    pub served: bool,
    /// True if objects are stored at this version. False for built-in types, since OpenAPI documents do not tell.
    pub storage: bool,
    /// True if `status` is a subresource.
    pub status_subresource: bool,
    /// The path of the field that the scale subresource sets, for example `spec.replicas`.
    pub scaled: Option<Box<str>>,
    /// The schema with all declarations.
    pub schema: Schema,
}

/// A document does not define a kind.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DefinitionError {
    /// The document is not JSON, or does not have the shape of a CRD.
    #[error("not a readable CustomResourceDefinition: `{path}`: {message}")]
    Malformed {
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error(
        "not a CustomResourceDefinition of apiextensions.k8s.io/v1: apiVersion is `{api_version}`, kind is `{kind}`"
    )]
    NotADefinition { api_version: String, kind: String },
    /// An OpenAPI document is malformed.
    #[error(transparent)]
    OpenApi(#[from] OpenApiError),
    /// No OpenAPI document describes the kind.
    #[error("no OpenAPI document describes the kind `{0}`")]
    NotDescribed(String),
    /// No version of the CRD has a schema.
    #[error("`{0}` has no schema: give `spec.versions[].schema.openAPIV3Schema`")]
    NoSchema(String),
}

impl Definition {
    /// Reads a CRD from its JSON text.
    pub fn from_json(text: &str) -> Result<Self, DefinitionError> {
        let document: wire::WireDefinition<'_> = wire::read(text, "")?;
        if (&*document.api_version, &*document.kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
            let (api_version, kind) = (document.api_version, document.kind);
            return Err(DefinitionError::NotADefinition { api_version, kind });
        }
        Self::from_parts(&document.metadata.name, &document.metadata.annotations, document.spec.get())
    }

    /// Reads a CRD from its name, its annotations and the JSON text of its `spec`. Uses the names that the `spec` asks for.
    pub fn from_parts(name: &str, annotations: &BTreeMap<String, String>, spec: &str) -> Result<Self, DefinitionError> {
        Self::read(name, annotations, spec, None)
    }

    /// Reads a CRD like [`Self::from_parts`], but uses the names that the API server has accepted.
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
        let versions = spec.versions.into_iter().enumerate().filter_map(wire::WireVersion::into_version).collect();
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
        Self { name, kind, resource, versions, positions, faults: Vec::new(), untyped_budget: MOST_UNTYPED_NODES }
    }

    /// Reads a built-in type from the OpenAPI documents that describe it, one version from each. Drops the unions that the
    /// documents declare unless `published` is true.
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
                    storage: false,
                    status_subresource: document.has_status_subresource(described),
                    scaled: None,
                    schema,
                });
            }
        }
        if versions.is_empty() {
            return Err(DefinitionError::NotDescribed(name.to_string()));
        }
        Ok(Self::of_versions(name.to_string(), name, resource, versions))
    }

    /// Returns the name of the CRD, for example `widgets.example.com`. A built-in type has kind and group, for example
    /// `Deployment.apps`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the group of the kind.
    pub fn group(&self) -> &str {
        &self.kind.group
    }

    /// Returns the name of the kind.
    pub fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// Returns the kind with its group.
    pub fn group_kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Returns the resource, if the CRD or the documents have it.
    pub fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    /// Returns the versions that have a schema.
    pub fn versions(&self) -> &[DefinitionVersion] {
        &self.versions
    }

    /// Returns true if objects of this kind are never sent to a webhook, see [`is_exempt`].
    pub fn is_exempt(&self) -> bool {
        is_exempt(self.group(), self.resource.as_ref().map(|resource| &*resource.plural), self.kind())
    }

    /// Returns the faults of declarations that were found before compiling.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Takes the versions, to change or compile their schemas.
    pub fn take_versions(&mut self) -> Vec<DefinitionVersion> {
        std::mem::take(&mut self.versions)
    }

    pub(super) fn version_named(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

impl DefinitionVersion {
    /// Returns the declarations at a place.
    pub fn declared_at(&self, place: &Place) -> &[Declared] {
        self.schema.at(place).map_or(&[], |node| &node.unions)
    }

    /// Returns all declarations by place.
    pub fn declarations(&self) -> BTreeMap<Place, Vec<Declared>> {
        let mut declarations = BTreeMap::new();
        self.schema.walk(&mut |place, node| {
            if !node.unions.is_empty() {
                declarations.insert(place.clone(), node.unions.clone());
            }
        });
        declarations
    }

    /// Replaces the declarations at a place. Does nothing if the schema does not have the place.
    pub fn put(&mut self, place: &Place, declared: Vec<Declared>) {
        if let Some(node) = self.schema.at_mut(place) {
            node.unions = declared;
        }
    }
}
