//! What the schemas of a kind's versions declare, read off them and brought to the annotation.

use super::union::Mark;
use super::{ANNOTATION, ANNOTATIONS_LIMIT, CrdError, Definition, Fault, Severity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps};
use kube_core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::{AnnotationContent, Place, Source};
use kube_unions_core::schema::{EXTENSION, PlaceStep};
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The unions of a kind, version by version, for CRDs that are made by other means than [`crd`](super::crd).
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

/// What one schema declares.
#[derive(Debug, Clone, Default)]
struct DeclaredUnions {
    declared: BTreeMap<Place, Value>,
    /// What can't stand where it has to, in a form that can: declared only to learn all that is wrong with it.
    doubtful: BTreeMap<Place, Value>,
    faults: Vec<(Place, String)>,
}

impl Unions {
    /// Those of no version yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds those of a type, the whole object with its `spec`, as the version of this name. Places are those of the schema
    /// that kube derives from it.
    #[must_use]
    pub fn version<T: JsonSchema>(self, name: &str) -> Self {
        self.version_of(name, &schema::<T>())
    }

    /// Adds those of a schema that was made from a type in another way. It must be structural, so without references.
    #[must_use]
    pub fn version_of(mut self, name: &str, schema: &Schema) -> Self {
        let mut found = DeclaredUnions::default();
        found.read(schema.as_value(), &Place::root());
        self.versions.push(VersionSchema { name: name.to_owned(), schema: schema.as_value().clone(), found });
        self
    }

    /// The annotation alone, key and value, checked against the schemas.
    pub fn annotation(&self) -> Result<(String, String), CrdError> {
        let mut versions = Vec::new();
        for VersionSchema { name, schema, .. } in &self.versions {
            // As a CRD would have it: some of what schemas say does not come that far.
            let props = props(schema).map_err(|source| CrdError::Schema { version: name.clone(), source })?;
            versions.push(json!({"name": name, "schema": {"openAPIV3Schema": props}}));
        }
        let spec = json!({"group": "", "names": {"kind": ""}, "versions": versions});
        let (declared, contradictions) = self.over("", AnnotationContent::new());
        self.check("", &spec.to_string(), &declared, contradictions)?;
        let value = text(&declared)?;
        measure("", &[(ANNOTATION, value.as_str())])?;
        Ok((ANNOTATION.to_owned(), value))
    }

    /// The CRD with these unions in its annotation, checked against its own schemas. What the annotation says already stays.
    pub fn annotate(&self, crd: CustomResourceDefinition) -> Result<CustomResourceDefinition, CrdError> {
        let (declared, contradictions) = self.over(name(&crd), declarations(&crd)?);
        self.check(name(&crd), &spec(&crd)?, &declared, contradictions)?;
        put(crd, &declared)
    }

    /// What was declared before and what these declare, and where they contradict each other.
    fn over(&self, definition: &str, mut declared: AnnotationContent) -> (AnnotationContent, Vec<Fault>) {
        let mut contradictions = Vec::new();
        for version in &self.versions {
            for (place, value) in &version.found.declared {
                let by_pointer = declared.entry(version.name.clone()).or_default();
                let before = by_pointer.insert(place.to_pointer(), value.clone());
                if before.is_some_and(|before| before != *value) {
                    let message = "the annotation says otherwise already; make them the same or remove one";
                    contradictions.push(fault(definition, &version.name, place, message.to_owned()));
                }
            }
        }
        (declared, contradictions)
    }

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
            faults.extend(own.map(|(place, message)| fault(name, &version.name, place, message.clone())));
            for (place, value) in &version.found.doubtful {
                let by_pointer = all.entry(version.name.clone()).or_default();
                append(by_pointer.entry(place.to_pointer()).or_insert_with(|| json!([])), value);
            }
        }
        faults.extend(faults_of(name, &all, spec)?);
        faults.sort();
        if faults.iter().any(|fault| fault.severity == Severity::Error) {
            return Err(CrdError::Faulty { definition: name.to_owned(), faults });
        }
        Ok(())
    }
}

impl DeclaredUnions {
    /// Reads what a node declares and all nodes below it do.
    fn read(&mut self, node: &Value, place: &Place) {
        let Some(keywords) = node.as_object() else { return };
        let properties = keywords.get("properties").and_then(Value::as_object);
        for (keyword, value) in keywords {
            match keyword.as_str() {
                EXTENSION => self.declare(place, value),
                "properties" => {
                    for (name, property) in properties.into_iter().flatten() {
                        self.read(property, &place.property(name));
                    }
                }
                "items" if value.is_object() => self.read(value, &place.then(PlaceStep::Items)),
                "additionalProperties" => self.read(value, &place.then(PlaceStep::Values)),
                "allOf" | "anyOf" | "oneOf" | "not" | "items" | "patternProperties" => {
                    if has_union(value) {
                        let message = format!(
                            "a union stands below `{keyword}`, where a CRD has no fields; declare it on the type around it, for a variant \
                             on the enum"
                        );
                        self.faults.push((place.clone(), message));
                    }
                }
                "$ref" => {
                    let message = "stands for another schema by `$ref`, which a CRD can't have: generate the schema with \
                                   `inline_subschemas`, and give a type that holds itself a schema of its own there";
                    self.faults.push((place.clone(), message.to_owned()));
                }
                _ => match Mark::from_keyword(keyword) {
                    None => {}
                    Some(Ok(mark)) => {
                        let has = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
                        self.take(&mark, place, has);
                    }
                    Some(Err(error)) => {
                        let message = format!(
                            "a union can't be read ({error}); let the types and what makes the CRD use one version of kube-unions"
                        );
                        self.faults.push((place.clone(), message));
                    }
                },
            }
        }
    }

    /// Takes a union of the object at a place, with the question whether that has a field.
    fn take(&mut self, mark: &Mark, place: &Place, has: impl Fn(&str) -> bool) {
        match mark {
            Mark::Union(union) => {
                let (value, twice) = union.extension();
                let at = if has(union.discriminator()) {
                    let at = place.property(union.discriminator());
                    self.declare(&at, &value);
                    at
                } else {
                    append(
                        self.doubtful.entry(place.clone()).or_insert_with(|| json!([])),
                        &json!([union.by_fields()]),
                    );
                    place.clone()
                };
                self.refuse_twice("value", twice, &at);
            }
            Mark::AtMostOne(union) => {
                let (value, twice) = union.extension();
                self.declare(place, &json!([value]));
                self.refuse_twice("member", twice, place);
            }
        }
    }

    fn declare(&mut self, place: &Place, value: &Value) {
        if let Some(before) = self.declared.get_mut(place) {
            if !append(before, value) && before != value {
                let message = "two unions are declared by this field; keep one".to_owned();
                self.faults.push((place.clone(), message));
            }
        } else {
            self.declared.insert(place.clone(), value.clone());
        }
    }

    fn refuse_twice(&mut self, what: &str, names: Vec<&str>, place: &Place) {
        let message = |name| format!("the {what} `{name}` is given twice; keep one");
        self.faults.extend(names.into_iter().map(|name| (place.clone(), message(name))));
    }
}

/// The schema of a type as kube's derive makes it for a CRD, unions in it.
pub(super) fn schema<T: JsonSchema>() -> Schema {
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

/// A schema as CRDs have it.
pub(super) fn props(schema: &Value) -> Result<JSONSchemaProps, serde_json::Error> {
    serde_json::from_value(schema.clone())
}

/// What a CRD's annotation says.
pub(super) fn declarations(crd: &CustomResourceDefinition) -> Result<AnnotationContent, CrdError> {
    let Some(text) = crd.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION)) else {
        return Ok(AnnotationContent::new());
    };
    serde_json::from_str(text).map_err(|source| CrdError::Annotation { definition: name(crd).to_owned(), source })
}

/// Everything that is wrong with what is declared of a kind.
pub(super) fn faults_of(name: &str, declared: &AnnotationContent, spec: &str) -> Result<Vec<Fault>, CrdError> {
    let annotations = BTreeMap::from([(ANNOTATION.to_owned(), text(declared)?)]);
    let mut builder = Builder::new();
    builder.apply(Definition::from_parts(name, &annotations, spec)?);
    Ok(builder.build().faults().to_vec())
}

/// The CRD with this in its annotation, or without one where there is nothing to say.
pub(super) fn put(
    mut crd: CustomResourceDefinition,
    declared: &AnnotationContent,
) -> Result<CustomResourceDefinition, CrdError> {
    if declared.is_empty() {
        return Ok(crd);
    }
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION.to_owned(), text(declared)?);
    let all: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    measure(crd.metadata.name.as_deref().unwrap_or_default(), &all)?;
    Ok(crd)
}

pub(super) fn name(crd: &CustomResourceDefinition) -> &str {
    crd.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn spec(crd: &CustomResourceDefinition) -> Result<String, CrdError> {
    serde_json::to_string(&crd.spec).map_err(CrdError::Json)
}

fn text(declared: &AnnotationContent) -> Result<String, CrdError> {
    serde_json::to_string(declared).map_err(CrdError::Json)
}

fn measure(definition: &str, annotations: &[(&str, &str)]) -> Result<(), CrdError> {
    let bytes = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_LIMIT {
        return Err(CrdError::TooLarge { definition: definition.to_owned(), bytes });
    }
    Ok(())
}

fn fault(definition: &str, version: &str, place: &Place, message: String) -> Fault {
    Fault {
        definition: definition.to_owned(),
        declaration: None,
        version: Some(version.to_owned()),
        path: place.to_string(),
        severity: Severity::Error,
        source: Some(Source::Schema),
        pointer: "/metadata/annotations/kube-unions.dev~1unions".to_owned(),
        message,
    }
}

/// Adds to a list of unions those that it lacks. Tells whether both are lists.
fn append(list: &mut Value, more: &Value) -> bool {
    let (Some(list), Some(more)) = (list.as_array_mut(), more.as_array()) else { return false };
    for union in more {
        if !list.contains(union) {
            list.push(union.clone());
        }
    }
    true
}

fn has_union(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(keyword, value)| Mark::is_keyword(keyword) || has_union(value)),
        Value::Array(items) => items.iter().any(has_union),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
