//! Checks unions against schemas and annotates CRDs with them.

use super::annotation;
use super::error::CrdError;
use super::found::{DeclaredUnions, append};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube_core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use kube_unions_core::declaration::{ANNOTATION, AnnotationContent, Fault, FaultKind};
use kube_unions_core::schema::{Place, Source};
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The unions of a kind, by version, for CRDs that [`crd`](crate::crd()) does not make.
///
/// ```
/// # use kube_unions_author::{AtMostOne, Unions};
/// #[derive(schemars::JsonSchema)]
/// struct Source { spec: SourceSpec }
///
/// #[derive(schemars::JsonSchema)]
/// #[schemars(transform = AtMostOne::new().member("Git", "git").member("OCI", "oci"))]
/// struct SourceSpec { git: Option<String>, oci: Option<String> }
///
/// let (key, value) = Unions::new().version::<Source>("v1").annotation()?;
/// assert_eq!(key, "kube-unions.dev/unions");
/// assert_eq!(value, r#"{"v1":{"/properties/spec":[{"fields-to-discriminateBy":{"git":"Git","oci":"OCI"}}]}}"#);
/// # Ok::<(), kube_unions_author::CrdError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Unions {
    versions: Vec<VersionSchema>,
}

#[derive(Debug, Clone)]
struct VersionSchema {
    name: String,
    schema: Value,
    found: DeclaredUnions,
}

impl Unions {
    /// Creates a set without versions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a version with the unions of a type: the whole object with its `spec`. The schema is the one that kube derives.
    #[must_use]
    pub fn version<T: JsonSchema>(self, name: &str) -> Self {
        self.version_of(name, &derived_schema::<T>())
    }

    /// Adds a version with the unions of a schema that was made in another way. It must be structural, so without references.
    #[must_use]
    pub fn version_of(mut self, name: &str, schema: &Schema) -> Self {
        let found = DeclaredUnions::of(schema.as_value());
        self.versions.push(VersionSchema { name: name.to_owned(), schema: schema.as_value().clone(), found });
        self
    }

    /// Returns key and value of the annotation, checked against the schemas.
    ///
    /// # Errors
    /// A union has a fault, a schema is invalid for a CRD, or the annotation is too large.
    pub fn annotation(&self) -> Result<(String, String), CrdError> {
        let mut versions = Vec::new();
        for VersionSchema { name, schema, .. } in &self.versions {
            // Reduce the schema to the keywords that a CRD keeps.
            let props = props(schema).map_err(|source| CrdError::Schema { version: name.clone(), source })?;
            versions.push(json!({"name": name, "schema": {"openAPIV3Schema": props}}));
        }
        let spec = json!({"group": "", "names": {"kind": ""}, "versions": versions});
        let (declared, contradictions) = self.added_to("", AnnotationContent::new());
        self.check("", &spec.to_string(), &declared, contradictions)?;
        let value = annotation::text(&declared)?;
        annotation::check_size("", &[(ANNOTATION, value.as_str())])?;
        Ok((ANNOTATION.to_owned(), value))
    }

    /// Returns the CRD with these unions in its annotation, checked against its own schemas. Other declarations in the annotation
    /// stay.
    ///
    /// # Errors
    /// A union has a fault or contradicts the annotation, the CRD has no schema, or its annotations are too large.
    pub fn annotate(&self, crd: CustomResourceDefinition) -> Result<CustomResourceDefinition, CrdError> {
        let (declared, contradictions) = self.added_to(annotation::name(&crd), annotation::read(&crd)?);
        self.check(annotation::name(&crd), &annotation::spec(&crd)?, &declared, contradictions)?;
        annotation::write(crd, &declared)
    }

    /// Returns declarations with these unions added, and a fault for each contradiction.
    fn added_to(&self, definition: &str, mut declared: AnnotationContent) -> (AnnotationContent, Vec<Fault>) {
        let mut contradictions = Vec::new();
        for version in &self.versions {
            for (place, value) in &version.found.declared {
                let by_pointer = declared.entry(version.name.clone()).or_default();
                let before = by_pointer.insert(place.to_pointer(), value.clone());
                if before.is_some_and(|before| before != *value) {
                    let message = "the annotation already declares another union here; make them equal or remove one";
                    let kind = FaultKind::Contradiction;
                    contradictions.push(fault(kind, definition, &version.name, place, message.to_owned()));
                }
            }
        }
        (declared, contradictions)
    }

    /// Fails if a union of these versions, or any of `declared`, has a fault.
    fn check(
        &self,
        name: &str,
        spec: &str,
        declared: &AnnotationContent,
        mut faults: Vec<Fault>,
    ) -> Result<(), CrdError> {
        let mut all = declared.clone();
        for version in &self.versions {
            let own = version.found.faults.iter();
            faults.extend(own.map(|(place, message)| {
                fault(FaultKind::MalformedExtension, name, &version.name, place, message.clone())
            }));
            for (place, value) in &version.found.doubtful {
                let by_pointer = all.entry(version.name.clone()).or_default();
                append(by_pointer.entry(place.to_pointer()).or_insert_with(|| json!([])), value);
            }
        }
        faults.extend(annotation::faults(name, &all, spec)?);
        faults.sort();
        CrdError::check(name, faults)
    }
}

/// Returns the schema that kube derives from a type for a CRD, with its marks.
pub(super) fn derived_schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Returns a schema as a CRD has it.
pub(super) fn props(schema: &Value) -> Result<JSONSchemaProps, serde_json::Error> {
    serde_json::from_value(schema.clone())
}

fn fault(kind: FaultKind, definition: &str, version: &str, place: &Place, message: String) -> Fault {
    Fault {
        version: Some(version.to_owned()),
        path: place.to_string(),
        source: Some(Source::Schema),
        pointer: "/metadata/annotations/kube-unions.dev~1unions".to_owned(),
        ..Fault::new(kind, definition, message)
    }
}
