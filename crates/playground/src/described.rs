//! The schema of a kind, and the engines of patches that follow from it.

use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::OpenApi;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_manifests::Assembly;
use kube_unions_manifests::crd::schemas;
use serde_json::Value;
use std::cell::OnceCell;
use std::sync::Arc;
use strategic_merge_patch::{ApplyEngines, Patcher, ServerSideApply};

/// The document that describes a kind.
pub(crate) enum DescribedKind {
    /// A CRD has its schema, also as it is written.
    Resource { schema: Box<Schema>, written: Value },
    /// An OpenAPI document has its schema, and Go code its defaults.
    BuiltIn { openapi: Arc<OpenApi>, typed: OnceCell<Option<ApplyEngines>> },
}

impl DescribedKind {
    /// Returns the description of a kind, `None` if no document describes it.
    pub(crate) fn of(kinds: &Assembly, kind: &GroupVersionKind) -> Option<Self> {
        let definitions = kinds.declared_definitions();
        let found = definitions.iter().find(|(_, definition)| *definition.group_kind() == kind.group_kind());
        if let Some((document, definition)) = found
            && let Some(version) = definition.versions().iter().find(|version| version.name == kind.version)
        {
            let crd: Value = serde_json::from_str(&document.text).unwrap_or_default();
            let written = schemas(&crd).find(|(_, name, _)| **name == *kind.version).map(|it| it.2.clone());
            let (schema, written) = (Box::new(version.schema.clone()), written.unwrap_or_default());
            return Some(Self::Resource { schema, written });
        }
        let (_, openapi) = kinds.openapi().find(|(_, openapi)| openapi.kinds().any(|it| it == kind))?;
        Some(Self::BuiltIn { openapi: Arc::clone(openapi), typed: OnceCell::new() })
    }

    pub(crate) fn patcher(&self, kind: &GroupVersionKind) -> Result<Patcher, String> {
        match self {
            Self::Resource { schema, .. } => {
                Patcher::for_resource(&kind.kind, schema).map_err(|error| with_causes(&error))
            }
            Self::BuiltIn { openapi, .. } => Patcher::from_openapi(openapi, kind).map_err(|error| with_causes(&error)),
        }
    }

    /// Returns the types of a built-in kind, made once. `None` for a custom resource.
    pub(crate) fn types(&self, kind: &GroupVersionKind) -> Option<&ApplyEngines> {
        let Self::BuiltIn { typed, .. } = self else { return None };
        let made = || self.server_side(kind).ok().map(|it| ApplyEngines { strategic: None, server_side: Some(it) });
        typed.get_or_init(made).as_ref()
    }

    pub(crate) fn server_side(&self, kind: &GroupVersionKind) -> Result<ServerSideApply, String> {
        match self {
            Self::Resource { schema, .. } => {
                ServerSideApply::for_resource(&kind.kind, schema).map_err(|error| with_causes(&error))
            }
            Self::BuiltIn { openapi, .. } => {
                ServerSideApply::from_openapi(openapi, kind).map_err(|error| with_causes(&error))
            }
        }
    }
}
