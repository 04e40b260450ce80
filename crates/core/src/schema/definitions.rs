//! Named schemas with unresolved references. A type may contain itself.

use super::Schema;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Prefixes of a reference, before the name of a definition.
const ROOTS: [&str; 3] = ["#/components/schemas/", "#/definitions/", "#/$defs/"];

/// Prefixes of the names of components that API servers generate from Go types. The name of a CRD's component begins with
/// its group, reversed.
const OF_GO_TYPES: [&str; 4] =
    ["io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.kube-aggregator.", "io.k8s.apiextensions-apiserver."];

/// A text is not an OpenAPI document, or one of its schemas cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// The text is not JSON, or does not have the shape of a document.
    #[error("not a readable OpenAPI document: {0}")]
    Malformed(#[source] serde_json::Error),
    /// The document has no schemas of version 2 or 3.
    #[error("not an OpenAPI document of version 2 or 3: it has neither `definitions` nor `components.schemas`")]
    NoSchemas,
    /// A schema is malformed.
    #[error("the schema `{name}` can't be read")]
    Schema {
        /// The name of the schema in the document.
        name: String,
        /// The error of the JSON reader.
        source: serde_json::Error,
    },
    /// The schema is too large or too deep once its references are resolved.
    #[error("the schema `{0}` is too large or too deep once its references are resolved")]
    TooLarge(String),
    /// A reference has no target.
    #[error("the reference `{0}` leads to no schema of the document")]
    Dangling(String),
}

/// The named schemas that one schema refers to, directly or not.
#[derive(Debug, Default)]
pub struct Definitions {
    schemas: BTreeMap<Box<str>, Schema>,
    published: bool,
    tagged: bool,
}

#[derive(Deserialize)]
#[serde(expecting = "a JSON schema")]
struct WireJsonSchema {
    #[serde(default)]
    definitions: BTreeMap<String, Box<RawValue>>,
    #[serde(default, rename = "$defs")]
    defs: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "the components of an OpenAPI document")]
pub(super) struct Components {
    #[serde(default)]
    pub(super) schemas: BTreeMap<String, Box<RawValue>>,
}

impl Definitions {
    /// Reads a JSON schema that may bring definitions along, in `definitions`, `$defs` or `components.schemas`.
    pub fn read(text: &str) -> Result<(Schema, Self), OpenApiError> {
        let schema: Schema = serde_json::from_str(text).map_err(OpenApiError::Malformed)?;
        let mut document: WireJsonSchema = serde_json::from_str(text).map_err(OpenApiError::Malformed)?;
        document.definitions.append(&mut document.defs);
        document.definitions.append(&mut document.components.schemas);
        let definitions = Self::reached(&schema, &document.definitions)?;
        Ok((schema, definitions))
    }

    /// Returns the definitions that `from` refers to. Leaves out references without a target.
    pub(super) fn reached(from: &Schema, components: &BTreeMap<String, Box<RawValue>>) -> Result<Self, OpenApiError> {
        let mut schemas = BTreeMap::<Box<str>, Schema>::new();
        let mut wanted = Vec::new();
        names(from, &mut wanted);
        while let Some(name) = wanted.pop() {
            let Some(text) = components.get(&*name) else { continue };
            if schemas.contains_key(&name) {
                continue;
            }
            let read = |source| OpenApiError::Schema { name: name.to_string(), source };
            let schema: Schema = serde_json::from_str(text.get()).map_err(read)?;
            names(&schema, &mut wanted);
            schemas.insert(name, schema);
        }
        Ok(Self { schemas, published: false, tagged: false })
    }

    /// Marks the definitions as published by an API server, reached from this component. A zero default in them has no
    /// effect.
    pub(super) fn published(self, component: &str) -> Self {
        Self { published: true, tagged: OF_GO_TYPES.iter().any(|start| component.starts_with(start)), ..self }
    }

    /// Returns true if the schema comes from a Go type. The struct tags of the type alone decide how the API server merges;
    /// the list and map types of server-side apply do not count.
    pub fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// Returns true if the schema comes from the OpenAPI document of an API server.
    pub fn is_published(&self) -> bool {
        self.published
    }

    /// Returns the name and the schema that a reference points to.
    pub fn get(&self, reference: &str) -> Option<(&str, &Schema)> {
        self.schemas.get_key_value(name_of(reference)?).map(|(name, schema)| (&**name, schema))
    }
}

/// Returns the name in a reference, for example in `#/definitions/Name`.
pub(super) fn name_of(reference: &str) -> Option<&str> {
    ROOTS.into_iter().find_map(|root| reference.strip_prefix(root))
}

fn names(schema: &Schema, found: &mut Vec<Box<str>>) {
    schema.walk(&mut |_, node| {
        found.extend(node.reference.as_deref().and_then(name_of).map(Box::from));
        for part in &node.all_of {
            names(part, found);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_wherever_documents_keep_them_and_types_may_hold_themselves() {
        for (root, open, close) in [
            ("definitions", r#""definitions": {"#, "}"),
            ("$defs", r#""$defs": {"#, "}"),
            ("components/schemas", r#""components": {"schemas": {"#, "}}"),
        ] {
            let text = format!(
                r##"{{"allOf": [{{"$ref": "#/{root}/Node"}}], {open}"Unused": {{"type": 7}},
                  "Node": {{"properties": {{"next": {{"$ref": "#/{root}/Node"}}, "gone": {{"$ref": "#/{root}/Gone"}}}}}}{close}}}"##
            );
            let (schema, definitions) = Definitions::read(&text).unwrap();
            let reference = schema.all_of[0].reference.as_deref().unwrap();
            let (name, node) = definitions.get(reference).unwrap();
            assert_eq!((name, node.properties["next"].reference.as_deref()), ("Node", Some(reference)));
            assert!(definitions.get(&format!("#/{root}/Gone")).is_none());
        }
    }
}
