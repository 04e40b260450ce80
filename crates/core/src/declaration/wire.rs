//! The wire types of documents, with the fields that are read.

use super::definition::{DefinitionError, DefinitionVersion, Resource};
use crate::schema::{Schema, null_is_default};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The `apiVersion` and the kind of a CRD.
pub(super) const CRD: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with `metadata` and `spec`")]
pub(super) struct WireDocument<S> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    pub(super) metadata: Metadata,
    pub(super) spec: S,
}

#[derive(Deserialize)]
#[serde(expecting = "the metadata of an object")]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(expecting = "the spec of a CustomResourceDefinition")]
pub(super) struct Spec {
    pub(super) group: Box<str>,
    pub(super) names: Names,
    #[serde(default)]
    pub(super) scope: Option<Box<str>>,
    pub(super) versions: Vec<WireVersion>,
}

/// The spec of a CRD without its versions.
#[derive(Deserialize)]
#[serde(expecting = "the spec of a CustomResourceDefinition")]
pub(super) struct Head {
    pub(super) group: Box<str>,
    pub(super) names: Names,
    #[serde(default)]
    pub(super) scope: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(expecting = "the names of a CustomResourceDefinition")]
pub(super) struct Names {
    pub(super) kind: Box<str>,
    #[serde(default)]
    pub(super) plural: Option<Box<str>>,
    #[serde(default)]
    pub(super) singular: Option<Box<str>>,
    #[serde(default, rename = "shortNames")]
    pub(super) short: Option<Vec<String>>,
}

impl Names {
    /// Returns the kind, and the resource if the plural is known.
    pub(super) fn into_parts(self, scope: Option<&str>) -> (Box<str>, Option<Resource>) {
        let Self { kind, plural, singular, short } = self;
        let resource = plural.map(|plural| Resource {
            plural,
            singular: singular.unwrap_or_default(),
            short_names: short.unwrap_or_default(),
            namespaced: scope != Some("Cluster"),
            custom: true,
        });
        (kind, resource)
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a version of a CustomResourceDefinition")]
pub(super) struct WireVersion {
    name: Box<str>,
    /// Always present in a stored CRD.
    #[serde(default)]
    served: Option<bool>,
    #[serde(default)]
    schema: Option<CustomResourceValidation>,
    #[serde(default)]
    subresources: Option<Subresources>,
}

#[derive(Deserialize)]
#[serde(expecting = "a map with `openAPIV3Schema`")]
struct CustomResourceValidation {
    #[serde(rename = "openAPIV3Schema", default)]
    schema: Option<Schema>,
}

#[derive(Deserialize)]
#[serde(expecting = "a map of subresources")]
struct Subresources {
    #[serde(default)]
    status: Option<IgnoredAny>,
    #[serde(default)]
    scale: Option<Scale>,
}

#[derive(Deserialize)]
#[serde(expecting = "a map with `specReplicasPath`")]
struct Scale {
    #[serde(rename = "specReplicasPath", default)]
    replicas: Box<str>,
}

impl WireVersion {
    /// Returns the version with its position, `None` if it has no schema.
    pub(super) fn into_version((position, version): (usize, Self)) -> Option<DefinitionVersion> {
        Some(DefinitionVersion {
            name: version.name,
            position,
            served: version.served.unwrap_or(true),
            status_subresource: version.subresources.as_ref().is_some_and(|all| all.status.is_some()),
            scaled: version
                .subresources
                .and_then(|all| all.scale)
                .map(|scale| scale.replicas.trim_start_matches('.').into()),
            schema: version.schema?.schema?,
        })
    }
}

/// Reads an object of this `apiVersion` and kind.
pub(super) fn read_object<'a, S: Deserialize<'a>>(
    text: &'a str,
    wanted: (&'static str, &'static str),
) -> Result<WireDocument<S>, DefinitionError> {
    let object: WireDocument<S> = read(text, "", wanted.1)?;
    if (&*object.api_version, &*object.kind) != wanted {
        let WireDocument { api_version, kind, .. } = object;
        return Err(DefinitionError::OtherKind { wanted, api_version, kind });
    }
    Ok(object)
}

/// Reads JSON of an object, or a part of one. The path of an error begins with `prefix`.
pub(super) fn read<'a, T: Deserialize<'a>>(
    text: &'a str,
    prefix: &str,
    wanted: &'static str,
) -> Result<T, DefinitionError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => prefix.trim_end_matches('.').to_owned(),
            inner => format!("{prefix}{inner}"),
        };
        let message = error.into_inner().to_string();
        // Drop line and column: they refer to the JSON, which is seldom the file that the user wrote.
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        DefinitionError::Malformed { wanted, path, message: message.to_owned() }
    })
}
