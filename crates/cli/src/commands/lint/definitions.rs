//! CRDs as a whole: schemas that an API server refuses, and choices that no declaration names.

use super::rules::subjects::ReadDefinition;
use crate::input::kinds::Assembly;
use crate::input::manifest::Problem;
use crate::report::diagnostic::Diagnostic;
use kube_unions_core::declaration::FaultKind;
use kube_unions_core::schema::EXTENSION;
use kube_unions_evidence::RefusedExpression;
use kube_unions_manifests::SchemaFault;
use kube_unions_manifests::crd::{keywords, schemas};
use serde_json::Value;

/// Returns what `lint` reports about CRDs themselves. A CRD that is made of another document is the work of whoever makes it.
pub(super) fn diagnostics(assembly: &Assembly, definitions: &[ReadDefinition<'_>]) -> Vec<Diagnostic> {
    let written = definitions.iter().filter(|definition| definition.document.made.is_none());
    let found = written.flat_map(|definition| {
        let refused = Diagnostic::of_refused_schemas(definition.document, &definition.crd, expressions);
        refused.into_iter().chain(undeclared(assembly, definition))
    });
    found.collect()
}

/// Returns the expressions of a schema that an API server refuses.
fn expressions(schema: &Value) -> Vec<SchemaFault> {
    let faults = RefusedExpression::find(schema).into_iter().map(|it| SchemaFault {
        depth: it.node.len(),
        tokens: it.node.into_iter().chain(it.expression).collect(),
        message: it.message,
    });
    faults.collect()
}

/// Returns a note for a CRD whose validations make a choice, and for which nothing declares a union.
fn undeclared(assembly: &Assembly, definition: &ReadDefinition<'_>) -> Option<Diagnostic> {
    let (document, crd) = (definition.document, &definition.crd);
    let is_declared = assembly.catalog.entries().iter().any(|entry| definition.defines(entry))
        || assembly.catalog.faults().iter().any(|fault| Some(&*fault.definition) == document.name.as_deref())
        || document.text.contains(EXTENSION);
    if is_declared {
        return None;
    }
    let mut choices = schemas(crd).flat_map(|(index, _, schema)| {
        let found = keywords(schema, |name| matches!(name, "anyOf" | "oneOf"));
        found.into_iter().filter(|(_, _, value)| is_choice(value)).map(move |(path, keyword, _)| (index, path, keyword))
    });
    let (index, path, keyword) = choices.next()?;
    let tokens: Vec<&str> = path.iter().map(String::as_str).chain([keyword]).collect();
    let at = format!("/spec/versions/{index}/schema/openAPIV3Schema{}", kube_unions_core::field_path::pointer(tokens));
    let message = format!(
        "`{keyword}` of required fields is a choice, and no union is declared; `kube-unions propose {}` tells \
         which unions the validations enforce, and `kube-unions annotate --propose` declares them in the CRD",
        document.file.display()
    );
    let problem = Problem::of_document(document, &at, message);
    Some(Diagnostic { definition: document.name.clone(), ..Diagnostic::of_input(problem, FaultKind::UndeclaredUnion) })
}

/// Returns true if each of several parts requires a field.
fn is_choice(parts: &Value) -> bool {
    let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
    let requires = |part: &Value| part.get("required").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    parts.len() > 1 && parts.iter().all(requires)
}
