//! The schemas that a client has defined, by name. Their number and size are bounded: the least recently used one goes first.

use crate::answer::{ErrorObject, FaultReason};
use crate::request::{Define, OfDefinition, OfJsonSchema, OfOpenApi, SchemaSource};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Definition, Fault as DeclarationFault, Severity};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::error::Error;
use strategic_merge_patch::{GroupVersionKind, OpenApi, Patcher};

/// Most schemas that are kept.
const MOST: usize = 64;

/// Largest total length of the kept schemas, as their requests have it.
const LARGEST: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct SchemaCache {
    /// The most recently used one last.
    kept: VecDeque<KeptSchema>,
}

struct KeptSchema {
    name: Box<str>,
    length: usize,
    patcher: Patcher,
}

impl SchemaCache {
    /// Reads a schema, keeps it in place of one of the same name, and returns notes about declarations that are not in force.
    pub(crate) fn define(&mut self, request: &Define<'_>, length: usize) -> Result<Vec<String>, ErrorObject> {
        let (patcher, warnings) = match &request.source {
            SchemaSource::Definition(source) => of_definition(source)?,
            SchemaSource::Openapi(source) => (of_openapi(source)?, Vec::new()),
            SchemaSource::JsonSchema(source) => (of_json_schema(source)?, Vec::new()),
        };
        let patcher = if request.strict { patcher.strict() } else { patcher };
        self.kept.retain(|kept| *kept.name != *request.schema);
        self.kept.push_back(KeptSchema { name: request.schema.as_str().into(), length, patcher });
        while self.kept.len() > 1 && (self.kept.len() > MOST || self.length() > LARGEST) {
            self.kept.pop_front();
        }
        Ok(warnings)
    }

    /// Returns the patcher of a schema, which is then the most recently used one.
    pub(crate) fn patcher(&mut self, name: &str) -> Result<&Patcher, ErrorObject> {
        let position = self.kept.iter().position(|kept| *kept.name == *name);
        if let Some(used) = position.and_then(|position| self.kept.remove(position)) {
            self.kept.push_back(used);
            if let Some(kept) = self.kept.back() {
                return Ok(&kept.patcher);
            }
        }
        Err(ErrorObject::new(
            FaultReason::UnknownSchema,
            format!("no schema `{name}`: define it, again if others replaced it"),
        ))
    }

    fn length(&self) -> usize {
        self.kept.iter().map(|kept| kept.length).sum()
    }
}

fn of_definition(source: &OfDefinition<'_>) -> Result<(Patcher, Vec<String>), ErrorObject> {
    let mut definition = Definition::from_json(object(source.document)?).map_err(|error| invalid(&error))?;
    let mut warnings = Vec::new();
    for text in &source.union_declarations {
        let (declaration, faults) = Declaration::from_json(text.get()).map_err(|error| invalid(&error))?;
        warnings.extend(faults.iter().filter_map(warning));
        if !definition.declare(&declaration) {
            let (name, kind) = (declaration.name(), definition.kind());
            warnings.push(format!("the UnionDeclaration `{name}` is not about the kind `{kind}`"));
        }
    }
    warnings.extend(definition.faults().iter().filter_map(warning));
    let versions = definition.versions();
    let named = |name: &str| versions.iter().find(|version| *version.name == *name);
    let version = match (&source.version, versions) {
        (Some(name), _) => named(name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let version = version.ok_or_else(|| {
        let known: Vec<_> = versions.iter().map(|version| format!("`{}`", version.name)).collect();
        let wanted = source.version.as_ref().map_or("select a version".into(), |name| format!("no version `{name}`"));
        ErrorObject::new(
            FaultReason::InvalidSchema,
            format!("{wanted}: `{}` has {}", definition.name(), known.join(", ")),
        )
    })?;
    let patcher = Patcher::for_resource(definition.kind(), &version.schema).map_err(|error| invalid(&error))?;
    Ok((patcher, warnings))
}

fn of_openapi(source: &OfOpenApi<'_>) -> Result<Patcher, ErrorObject> {
    let document = OpenApi::parse(object(source.document)?).map_err(|error| invalid(&error))?;
    let (group, version, kind) = (source.group.as_str(), source.version.as_str(), source.kind.as_str());
    let kind = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
    Patcher::from_openapi(&document, &kind).map_err(|error| invalid(&error))
}

fn of_json_schema(source: &OfJsonSchema<'_>) -> Result<Patcher, ErrorObject> {
    Patcher::from_json_schema(&source.name, object(source.document)?).map_err(|error| invalid(&error))
}

fn object(document: &RawValue) -> Result<&str, ErrorObject> {
    let text = document.get();
    let wrong = || ErrorObject::new(FaultReason::InvalidSchema, "the document of the schema is not an object");
    text.starts_with('{').then_some(text).ok_or_else(wrong)
}

fn invalid(error: &dyn Error) -> ErrorObject {
    ErrorObject::new(FaultReason::InvalidSchema, with_causes(error))
}

/// Returns the text of a fault that takes a union out of force. A note does not.
fn warning(fault: &DeclarationFault) -> Option<String> {
    let place = if fault.path.is_empty() { String::new() } else { format!("{}: ", fault.path) };
    (fault.severity() != Severity::Note).then(|| format!("{place}{}", fault.message))
}
