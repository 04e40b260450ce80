//! CRDs of types that use kube's derive.

use super::annotation;
use super::error::CrdError;
use super::unions::{Unions, derived_schema, props};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use kube_core::crd::merge_crds;
use kube_unions_core::declaration::{AnnotationContent, Fault};
use schemars::JsonSchema;

/// Returns the CRD that kube derives for a kind, with the unions of its types in the annotation.
///
/// Without unions, the CRD gets no annotation.
///
/// # Errors
/// [`CrdError::Faulty`] lists every fault of every union.
pub fn crd<K: CustomResourceExt + JsonSchema>() -> Result<CustomResourceDefinition, CrdError> {
    let crd = K::crd();
    let schema = derived_schema::<K>();
    let mut unions = Unions::new();
    for version in &crd.spec.versions {
        let name = &version.name;
        let props = props(schema.as_value());
        let props = props.map_err(|source| CrdError::Schema { version: name.clone(), source })?;
        // With `schema = "manual"`, the schema may be any.
        if version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) != Some(&props) {
            let definition = annotation::name(&crd).to_owned();
            return Err(CrdError::OtherSchema { definition, version: name.clone() });
        }
        unions = unions.version_of(name, &schema);
    }
    unions.annotate(crd)
}

/// Merges CRDs of one version each, as kube's `merge_crds` does, and keeps the unions of all of them. `stored` is the version
/// to store.
///
/// # Errors
/// kube cannot merge the CRDs, the annotations are too large together, or a union has a fault.
pub fn merge(
    crds: impl IntoIterator<Item = CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, CrdError> {
    let crds: Vec<_> = crds.into_iter().collect();
    let mut declared = AnnotationContent::new();
    for crd in &crds {
        for (version, places) in annotation::read(crd)? {
            declared.entry(version).or_default().extend(places);
        }
    }
    let merged = annotation::write(merge_crds(crds, stored)?, &declared)?;
    CrdError::check(annotation::name(&merged), warnings(&merged)?)?;
    Ok(merged)
}

/// Returns the faults of the unions in an annotated CRD, warnings included: a discriminator with a default or without an enum, a
/// union in a list whose items have no keys. A CRD from [`crd`] or [`merge`] has only warnings.
///
/// # Errors
/// The CRD has no schema, or its annotation is invalid.
pub fn warnings(crd: &CustomResourceDefinition) -> Result<Vec<Fault>, CrdError> {
    annotation::faults(annotation::name(crd), &annotation::read(crd)?, &annotation::spec(crd)?)
}
