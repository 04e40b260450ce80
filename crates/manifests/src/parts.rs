//! Reads CRDs, `UnionDeclaration`s and OpenAPI documents.

use crate::assembly::Assembly;
use crate::document::Document;
use crate::file::Problem;
use crate::misspelt;
use kube_unions_core::declaration::{Declaration, Definition, DefinitionError, OpenApi};
use kube_unions_core::field_path::pointer;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Assembly {
    /// Reads the schemas of documents, and compiles nothing: the catalog is empty.
    pub(crate) fn read(documents: Vec<Document>) -> Self {
        let mut parts = Self { documents: documents.len(), ..Self::default() };
        for document in documents {
            let read = if document.is_definition() {
                parts.read_definition(document)
            } else if document.makes_definitions() {
                document.definitions().and_then(|made| made.into_iter().try_for_each(|crd| parts.read_definition(crd)))
            } else if document.is_declaration() {
                parts.read_declaration(document)
            } else if document.is_openapi() {
                parts.read_openapi(document)
            } else {
                // A name that is nearly that of a declaration would pass in silence.
                let misspelt = misspelt::kind_of_declaration(&document);
                misspelt.map_or(Ok(()), |message| Err(Problem::of_document(&document, "", message)))
            };
            parts.problems.extend(read.err());
        }
        parts
    }

    fn read_definition(&mut self, document: Document) -> Result<(), Problem> {
        let definition = Definition::from_json(&document.text).map_err(|error| unfit(&document, &error))?;
        add(&mut self.definitions, "CustomResourceDefinition", definition.name(), document)?;
        self.workspace.set_definition(definition);
        Ok(())
    }

    fn read_declaration(&mut self, document: Document) -> Result<(), Problem> {
        let read = Declaration::from_json(&document.text).map_err(|error| unfit(&document, &error))?;
        let name = read.0.name().to_owned();
        add(&mut self.declarations, "UnionDeclaration", &name, document)?;
        self.workspace.set_declaration(&name, Ok(read));
        Ok(())
    }

    fn read_openapi(&mut self, document: Document) -> Result<(), Problem> {
        let openapi = OpenApi::parse(&document.text);
        let openapi = openapi.map_err(|error| Problem::of_file(&document.file, error.to_string()))?;
        self.openapi.push((document, Arc::new(openapi)));
        Ok(())
    }
}

/// Adds a document under its name. Returns a problem if the name is taken; the first document stays.
fn add(known: &mut BTreeMap<String, Document>, sort: &str, name: &str, document: Document) -> Result<(), Problem> {
    if let Some(first) = known.get(name) {
        let message = format!("{sort} `{name}` is already in {}", first.file.display());
        return Err(Problem::of_document(&document, "", message));
    }
    known.insert(name.to_owned(), document);
    Ok(())
}

/// Returns the problem of a document that does not define what its kind says.
fn unfit(document: &Document, error: &DefinitionError) -> Problem {
    let name = document.name.as_deref().unwrap_or("(no name)");
    #[expect(clippy::wildcard_enum_match_arm, reason = "the texts of the others name the document")]
    let (path, message) = match error {
        DefinitionError::Malformed { wanted, path, message } => {
            let path = path.trim_end_matches('.');
            let place = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
            // The position in the JSON text is not the position in the file.
            let message = message.split(" at line ").next().unwrap_or_default();
            (path, format!("`{name}` is not a readable {wanted}: {place}{message}"))
        }
        DefinitionError::OtherKind { .. } => ("", format!("`{name}` is {error}")),
        _ => ("", error.to_string()),
    };
    // A name with a dot yields the pointer of a parent.
    let names = path.split(['.', '[', ']']).filter(|name| !name.is_empty());
    Problem::of_document(document, &pointer(names), message)
}
