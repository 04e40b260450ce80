//! The schemas of kinds, without their unions compiled.

use crate::document::Document;
use crate::parts::KindParts;
use crate::problem::Problem;
use kube_unions_core::declaration::{Definition, OpenApi};

/// The schemas of kinds, each with its document.
#[derive(Debug)]
pub struct KindSchemas {
    /// CRDs, with the unions of `UnionDeclaration`s, sorted by name.
    pub definitions: Vec<(Document, Definition)>,
    /// OpenAPI documents, in the order of the input.
    pub openapi: Vec<(Document, OpenApi)>,
    /// The documents that cannot be read.
    pub problems: Vec<Problem>,
    parts: KindParts,
}

impl KindSchemas {
    /// Returns a definition of a built-in type with the unions of `UnionDeclaration`s.
    pub fn declared(&self, definition: Definition) -> Definition {
        self.parts.declared(definition)
    }
}

/// Reads the schemas of documents.
pub fn schemas(documents: Vec<Document>) -> KindSchemas {
    let mut parts = KindParts::read(documents);
    let definitions = std::mem::take(&mut parts.definitions).into_values();
    let definitions = definitions.map(|(document, definition)| (document, parts.declared(definition))).collect();
    let (openapi, problems) = (std::mem::take(&mut parts.openapi), std::mem::take(&mut parts.problems));
    KindSchemas { definitions, openapi, problems, parts }
}
