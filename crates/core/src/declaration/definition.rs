//! Kinds with their versions and schemas.

use super::{Fault, is_exempt};
use crate::names::GroupKind;
use crate::schema::{Declared, OpenApiError, Place, Schema};
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

/// A document does not define a kind, or does not declare unions.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DefinitionError {
    /// The document is not JSON, or does not have the shape of its kind.
    #[error("not a readable {wanted}: `{path}`: {message}")]
    Malformed {
        /// The kind: a CRD or a `UnionDeclaration`.
        wanted: &'static str,
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error("not a {} of {}: apiVersion is `{api_version}`, kind is `{kind}`", .wanted.1, .wanted.0)]
    OtherKind {
        /// The `apiVersion` and the kind.
        wanted: (&'static str, &'static str),
        api_version: String,
        kind: String,
    },
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
    /// True if `status` is a subresource.
    pub status_subresource: bool,
    /// The path of the field that the scale subresource sets, for example `spec.replicas`.
    pub scaled: Option<Box<str>>,
    /// The schema with all declarations.
    pub schema: Schema,
}

impl Definition {
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
