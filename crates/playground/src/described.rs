//! The schema of a kind, and the engines of patches that follow from it.

use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::OpenApi;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_manifests::Assembly;
use std::sync::Arc;
use strategic_merge_patch::{Patcher, ServerSideApply};

/// The document that describes a kind.
pub(crate) enum DescribedKind {
    /// A CRD has its schema.
    Resource(Box<Schema>),
    /// An OpenAPI document has its schema, and Go code its defaults.
    BuiltIn(Arc<OpenApi>),
}

impl DescribedKind {
    /// Returns the description of a kind, `None` if no document describes it.
    pub(crate) fn of(kinds: &Assembly, kind: &GroupVersionKind) -> Option<Self> {
        let definitions = kinds.declared_definitions();
        let version = definitions
            .iter()
            .find(|(_, definition)| *definition.group_kind() == kind.group_kind())
            .and_then(|(_, definition)| definition.versions().iter().find(|version| version.name == kind.version));
        if let Some(version) = version {
            return Some(Self::Resource(Box::new(version.schema.clone())));
        }
        let (_, openapi) = kinds.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind))?;
        Some(Self::BuiltIn(Arc::clone(openapi)))
    }

    pub(crate) fn patcher(&self, kind: &GroupVersionKind) -> Result<Patcher, String> {
        match self {
            Self::Resource(schema) => Patcher::for_resource(&kind.kind, schema).map_err(|error| with_causes(&error)),
            Self::BuiltIn(openapi) => Patcher::from_openapi(openapi, kind).map_err(|error| with_causes(&error)),
        }
    }

    pub(crate) fn server_side(&self, kind: &GroupVersionKind) -> Result<ServerSideApply, String> {
        match self {
            Self::Resource(schema) => {
                ServerSideApply::for_resource(&kind.kind, schema).map_err(|error| with_causes(&error))
            }
            Self::BuiltIn(openapi) => ServerSideApply::from_openapi(openapi, kind).map_err(|error| with_causes(&error)),
        }
    }
}
