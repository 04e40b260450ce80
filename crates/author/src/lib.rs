//! For authors of types in Rust: unions on types that derive `JsonSchema`, and CRDs that carry them to a cluster.
//!
//! Kubernetes has the members of a union beside its discriminator. An enum with a tag has the same shape in JSON, but kube's
//! derive has no schema for it: it panics, for the tag has another value in each variant. A struct has that shape and says nothing
//! of the union. So the union is put on the struct, by a transform: [`Union`] where a discriminator decides, [`AtMostOne`] where the
//! fields only exclude each other. The API server would drop it from the schema, and typed clients have no field for it, so
//! [`crd`] carries it in an annotation, and refuses to where the union does not fit the fields.
//!
//! ```
//! use kube::CustomResource;
//! use kube_unions_author::{self as author, Union};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Rollout", namespaced)]
//! struct RolloutSpec {
//!     strategy: Option<Strategy>,
//! }
//!
//! #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[schemars(transform = Union::by("type").member("Canary", "canary").empty("Recreate"))]
//! struct Strategy {
//!     r#type: StrategyType,
//!     canary: Option<Canary>,
//! }
//!
//! #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! enum StrategyType { Canary, Recreate }
//!
//! #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! struct Canary { weight: i32 }
//!
//! let crd = author::crd::<Rollout>()?;
//! let annotations = crd.metadata.annotations.unwrap_or_default();
//! assert_eq!(
//!     annotations[author::ANNOTATION],
//!     r#"{"v1":{"/properties/spec/properties/strategy/properties/type":{"fieldMembers":{"Canary":{"name":"canary"},"Recreate":null}}}}"#
//! );
//! # Ok::<(), author::CrdError>(())
//! ```
//!
//! # Where a union stands
//!
//! On the struct that has the fields, wherever that is used: in an `Option`, a `Vec`, a map, or flattened into another, whose fields
//! the union is about then. Fields have the names that they have in JSON, `#[serde(rename_all)]` done. A struct can have several
//! unions, one transform each. On a field whose type is somebody else's, `#[schemars(transform = …)]` does the same.
//!
//! An enum whose variants hold one value each has a field for every variant in a CRD, one of which must be set. With
//! [`AtMostOne`] on the enum, a patch that sets another variant switches to it:
//!
//! ```
//! # use kube_unions_author::AtMostOne;
//! #[derive(schemars::JsonSchema)]
//! #[serde(rename_all = "camelCase")]
//! #[schemars(transform = AtMostOne::new().member("Git", "git").member("Bucket", "bucket"))]
//! enum Source { Git(Git), Bucket(Bucket) }
//! # #[derive(schemars::JsonSchema)] struct Git {}
//! # #[derive(schemars::JsonSchema)] struct Bucket {}
//! ```
//!
//! # The discriminator
//!
//! Best is an enum of variants without content, and a field that is neither an `Option` nor has a default. The variants' names
//! are the values, as serde writes them: `#[serde(rename_all = "…")]` on the enum and `#[serde(rename = "…")]` on a variant
//! count. `Option<Enum>` has the same values; without one and without a member the union is not set. With `#[serde(default)]` the
//! schema has a default: a client that drops the field seems to choose that, and other members are cleared, so it earns a
//! [warning](warnings). A `String` has no values that the schema could check: another warning.
//!
//! # What goes wrong
//!
//! [`crd`] lists all of it at once, with version and path. In Rust the remedy is:
//!
//! | message | remedy |
//! |---|---|
//! | the member … is not a property | name it as JSON does: `blueGreen`, not `blue_green` |
//! | the member … is required | make it an `Option` |
//! | the member … has a default | `#[serde(skip_serializing_if = "…")]` beside `#[serde(default)]`, so that the default is not in the schema |
//! | the value … is not in the enum | name it as serde does |
//! | the enum … has …, which is not in `fieldMembers` | [`member`](Union::member), [`optional`](Union::optional) or [`empty`](Union::empty) |
//! | a union stands below `anyOf` | put it on the enum, not on what a variant holds |
//!
//! # Several versions
//!
//! [`merge`] does what kube's `merge_crds` does, and keeps the unions of every version; `merge_crds` itself keeps those of the
//! stored version alone.
//!
//! ```
//! # use kube_unions_author;
//! # mod v1 { #[derive(kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Rollout")] pub struct RolloutSpec {} }
//! # mod v2 { #[derive(kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! # #[kube(group = "example.com", version = "v2", kind = "Rollout")] pub struct RolloutSpec {} }
//! let crd = author::merge([author::crd::<v1::Rollout>()?, author::crd::<v2::Rollout>()?], "v2")?;
//! # Ok::<(), author::CrdError>(())
//! ```
//!
//! CRDs that are made in another way get the annotation from [`Unions`].

mod error;
mod union;
mod unions;

pub use error::CrdError;
pub use kube_unions_core::declaration::{ANNOTATION, ANNOTATIONS_LIMIT, Fault, Severity};
pub use union::{AtMostOne, Union};
pub use unions::Unions;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_core::crd::merge_crds;
use kube_unions_core::declaration::{AnnotationContent, Definition};
use schemars::JsonSchema;

/// The CRD of a kind as kube derives it, with the unions of its types in the annotation that clusters keep.
///
/// A kind without unions has none.
///
/// # Errors
/// All that is wrong with any union, see [`CrdError::Faulty`].
pub fn crd<K: CustomResourceExt + JsonSchema>() -> Result<CustomResourceDefinition, CrdError> {
    let crd = K::crd();
    let schema = unions::schema::<K>();
    let mut all = Unions::new();
    for version in &crd.spec.versions {
        let name = &version.name;
        let props = unions::props(schema.as_value());
        let props = props.map_err(|source| CrdError::Schema { version: name.clone(), source })?;
        // With `schema = "manual"` it is whatever its author made.
        if version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) != Some(&props) {
            let definition = unions::name(&crd).to_owned();
            return Err(CrdError::OtherSchema { definition, version: name.clone() });
        }
        all = all.version_of(name, &schema);
    }
    all.annotate(crd)
}

/// One CRD of several that have one version each, as kube's `merge_crds` makes it, with the unions of all of them. `stored` is
/// the version that is stored.
///
/// # Errors
/// What kube can't merge, annotations that are too large together, and all that is wrong with any union.
pub fn merge(
    crds: impl IntoIterator<Item = CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, CrdError> {
    let crds: Vec<_> = crds.into_iter().collect();
    let mut declared = AnnotationContent::new();
    for crd in &crds {
        for (version, places) in unions::declarations(crd)? {
            declared.entry(version).or_default().extend(places);
        }
    }
    let merged = unions::put(merge_crds(crds, stored)?, &declared)?;
    let faults = warnings(&merged)?;
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        return Err(CrdError::Faulty { definition: unions::name(&merged).to_owned(), faults });
    }
    Ok(merged)
}

/// What an annotated CRD declares and what may surprise: a discriminator with a default, or without an enum, a union in a list
/// whose items have no keys. A CRD of another make may have errors among it.
///
/// # Errors
/// The CRD has no schema, or an annotation that can't be read.
pub fn warnings(crd: &CustomResourceDefinition) -> Result<Vec<Fault>, CrdError> {
    unions::faults_of(unions::name(crd), &unions::declarations(crd)?, &unions::spec(crd)?)
}
