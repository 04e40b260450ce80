//! The annotation of a CRD: reads, checks and writes it.

use super::error::CrdError;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::{ANNOTATION, ANNOTATIONS_LIMIT, AnnotationContent, Definition, Fault};
use std::collections::BTreeMap;

/// Returns the declarations in the annotation of a CRD.
pub(super) fn read(crd: &CustomResourceDefinition) -> Result<AnnotationContent, CrdError> {
    let Some(text) = crd.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION)) else {
        return Ok(AnnotationContent::new());
    };
    serde_json::from_str(text).map_err(|source| CrdError::Annotation { definition: name(crd).to_owned(), source })
}

/// Returns the faults of declarations for a CRD with this name and spec.
pub(super) fn faults(name: &str, declared: &AnnotationContent, spec: &str) -> Result<Vec<Fault>, CrdError> {
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), text(declared)?)]);
    let mut builder = Builder::new();
    builder.apply(Definition::from_parts(name, &annotations, spec, None)?);
    Ok(builder.build().faults().to_vec())
}

/// Returns the CRD with these declarations in its annotation. No declarations leave it unchanged.
pub(super) fn write(
    mut crd: CustomResourceDefinition,
    declared: &AnnotationContent,
) -> Result<CustomResourceDefinition, CrdError> {
    if declared.is_empty() {
        return Ok(crd);
    }
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION.to_owned(), text(declared)?);
    let all: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    check_size(crd.metadata.name.as_deref().unwrap_or_default(), &all)?;
    Ok(crd)
}

/// Returns the value of the annotation.
pub(super) fn text(declared: &AnnotationContent) -> Result<String, CrdError> {
    serde_json::to_string(declared).map_err(CrdError::Json)
}

/// Fails if annotations are larger together than Kubernetes allows.
pub(super) fn check_size(definition: &str, annotations: &[(&str, &str)]) -> Result<(), CrdError> {
    let bytes = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_LIMIT {
        return Err(CrdError::TooLarge { definition: definition.to_owned(), bytes });
    }
    Ok(())
}

/// Returns the name of a CRD, empty if it has none.
pub(super) fn name(crd: &CustomResourceDefinition) -> &str {
    crd.metadata.name.as_deref().unwrap_or_default()
}

/// Returns the spec of a CRD as JSON.
pub(super) fn spec(crd: &CustomResourceDefinition) -> Result<String, CrdError> {
    serde_json::to_string(&crd.spec).map_err(CrdError::Json)
}
