//! Applies declarations to definitions, and compiles the catalog.

use crate::counts::count;
use crate::document::Document;
use crate::input;
use crate::misspelt;
use crate::parts::KindParts;
use crate::problem::Problem;
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{
    Declaration, Definition, DefinitionError, Fault, FaultKind, OpenApi, Source, Target,
};
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::schema::{DefaultsError, EXTENSION, Schema};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The treatment of the unions that OpenAPI documents publish for built-in types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuiltinUnions {
    /// Ignore them: some of them are wrong.
    #[default]
    Ignored,
    /// Use them where their values can be checked and are right.
    OpenApi,
}

/// Compiles the declarations of documents. A problem with one document leaves the others in force.
pub fn assemble(documents: Vec<Document>, builtin: BuiltinUnions) -> Assembly {
    KindParts::read(documents).assemble(builtin)
}

/// A catalog, and the places of its faults.
#[derive(Debug, Default)]
pub struct Assembly {
    /// The unions in force.
    pub catalog: Catalog,
    /// The documents that cannot be read.
    pub problems: Vec<Problem>,
    /// CRDs, by name.
    definitions: BTreeMap<String, Document>,
    /// `UnionDeclaration`s, by name.
    declarations: BTreeMap<String, Document>,
    targets: Vec<Target>,
    openapi: Vec<(PathBuf, OpenApi)>,
    builtin: BuiltinUnions,
    /// The number of documents of all kinds. A caller that assembles some of its documents adds the others.
    pub documents: usize,
    /// The schemas of the served versions of CRDs. Built-in types have their defaults in Go code.
    schemas: BTreeMap<GroupVersionKind, Schema>,
}

impl KindParts {
    /// Applies each declaration to its target, and compiles everything.
    fn assemble(mut self, builtin: BuiltinUnions) -> Assembly {
        let mut builder = Builder::new();
        let mut described: BTreeSet<GroupKind> = BTreeSet::new();
        let (mut definitions, mut schemas) = (BTreeMap::new(), BTreeMap::new());
        for (name, (document, definition)) in std::mem::take(&mut self.definitions) {
            described.insert(definition.group_kind().clone());
            for version in definition.versions().iter().filter(|version| version.served) {
                let GroupKind { group, kind } = definition.group_kind().clone();
                let kind = GroupVersionKind { group, version: version.name.clone(), kind };
                schemas.insert(kind, version.schema.clone());
            }
            builder.apply(self.declared(definition));
            definitions.insert(name, document);
        }

        let targets: Vec<Target> = self.declarations().map(|declaration| declaration.target().clone()).collect();
        let mut wanted: BTreeSet<GroupKind> = targets.iter().map(Target::group_kind).collect();
        let published = builtin == BuiltinUnions::OpenApi;
        if published {
            wanted.extend(self.publishing());
        }
        for wanted in wanted.difference(&described.clone()) {
            let documents = self.openapi.iter().map(|(_, openapi)| openapi);
            match Definition::from_openapi(documents, &wanted.group, &wanted.kind, published) {
                Ok(definition) => {
                    described.insert(wanted.clone());
                    builder.apply(self.declared(definition));
                }
                Err(DefinitionError::NotDescribed(_)) => {}
                Err(error) => self.problems.push(self.undescribed(&wanted.group, &wanted.kind, &error)),
            }
        }

        // If a schema is unreadable or none was given, it may be the missing target.
        let complete = self.problems.is_empty() && !(definitions.is_empty() && self.openapi.is_empty());
        let mut declarations = BTreeMap::new();
        for (name, (document, (declaration, mut faults))) in self.declarations {
            let kind = &declaration.target().kind;
            let missing = !described.contains(&declaration.target().group_kind());
            if complete && missing && !kind.is_empty() {
                faults.push(target_missing(&declaration, &described));
            }
            builder.report(&name, faults);
            declarations.insert(name, document);
        }
        Assembly {
            catalog: builder.build(),
            problems: self.problems,
            definitions,
            declarations,
            targets,
            openapi: self.openapi.into_iter().map(|(document, openapi)| (document.file, openapi)).collect(),
            builtin,
            documents: self.documents,
            schemas,
        }
    }

    /// Returns the declarations, sorted by name. The first of two contradicting ones is in force.
    fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.declarations.values().map(|(_, (declaration, _))| declaration)
    }

    pub(crate) fn declared(&self, mut definition: Definition) -> Definition {
        for declaration in self.declarations() {
            definition.declare(declaration);
        }
        definition
    }

    /// Returns the kinds whose OpenAPI schemas publish unions.
    fn publishing(&self) -> BTreeSet<GroupKind> {
        let mut publishing = BTreeSet::new();
        // Resolving the references of every kind is slow, a text search is not.
        for (_, openapi) in self.openapi.iter().filter(|(document, _)| document.text.contains(EXTENSION)) {
            let kinds: BTreeSet<GroupKind> = openapi.kinds().map(GroupVersionKind::group_kind).collect();
            // An unreadable schema may have unions. The next reader reports its problem.
            let publishes = |kind: &GroupKind| {
                Definition::from_openapi([openapi], &kind.group, &kind.kind, true).map_or(true, |it| has_unions(&it))
            };
            publishing.extend(kinds.into_iter().filter(publishes));
        }
        publishing
    }

    /// Returns the problem of a document whose schema of a kind is unreadable.
    fn undescribed(&self, group: &str, kind: &str, error: &DefinitionError) -> Problem {
        let describes = |openapi: &OpenApi| openapi.kinds().any(|it| (&*it.group, &*it.kind) == (group, kind));
        let document = self.openapi.iter().find(|(_, openapi)| describes(openapi));
        let file = document.map_or(Path::new(""), |(document, _)| &document.file);
        Problem::of_file(file, format!("the kind `{kind}`: {}", with_causes(error)))
    }
}

impl Assembly {
    /// Returns a custom resource as admission sees it: without the nulls that the API server prunes, and with the defaults of its
    /// schema. A built-in type stays as it is, and so does a text that cannot be parsed.
    pub fn completed<'d>(&self, document: &'d Document) -> Result<Cow<'d, str>, DefaultsError> {
        let (group, version) = document.group_version();
        let kind = document.kind.as_deref().unwrap_or_default();
        let kind = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
        let parsed =
            self.schemas.get(&kind).and_then(|schema| Some((schema, serde_json::from_str(&document.text).ok()?)));
        let Some((schema, mut object)) = parsed else { return Ok(Cow::Borrowed(&document.text)) };
        schema.complete(&mut object)?;
        Ok(Cow::Owned(object.to_string()))
    }

    /// Returns a document whose text is that of [`Self::completed`].
    pub fn completed_document(&self, document: &Document) -> Result<Document, DefaultsError> {
        Ok(document.with_text(self.completed(document)?.into_owned()))
    }

    /// Returns the documents that are CRDs.
    pub fn definitions(&self) -> impl Iterator<Item = &Document> {
        self.definitions.values()
    }

    /// Returns the kinds that the documents describe, with unions or without.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.schemas.keys().chain(self.openapi.iter().flat_map(|(_, openapi)| openapi.kinds()))
    }

    /// Returns the number of CRDs, of other documents that describe kinds, and of unions in force: `3 CRDs, 5 unions`.
    pub fn summary(&self) -> String {
        let others = [(self.declarations.len(), "UnionDeclaration"), (self.openapi.len(), "OpenAPI document")];
        let others: Vec<_> = others.into_iter().filter(|(number, _)| *number > 0).collect();
        let crds = (!self.definitions.is_empty() || others.is_empty()).then_some((self.definitions.len(), "CRD"));
        let unions = (self.catalog.union_count(), "union");
        let all = crds.into_iter().chain(others).chain([unions]);
        all.map(|(number, noun)| count(number, noun)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the file of a fault, and its line and column.
    pub fn place_of(&self, fault: &Fault) -> Option<(&Path, Option<(usize, usize)>)> {
        let document = match &fault.declaration {
            Some(name) => self.declarations.get(name),
            None => self.definitions.get(&fault.definition),
        };
        if let Some(document) = document {
            return Some((&document.file, document.position(&fault.pointer)));
        }
        // Several places of an OpenAPI document may refer to one union, so the fault has no position.
        let describes = |kind: &GroupVersionKind| {
            fault.version.as_deref().is_none_or(|version| *version == *kind.version)
                && display(&kind.group, &kind.kind) == fault.definition
        };
        let (file, _) = self.openapi.iter().find(|(_, openapi)| openapi.kinds().any(describes))?;
        Some((file, None))
    }

    /// Returns a message if the documents cannot declare a union. It names the missing documents.
    pub fn missing(&self, paths: &[PathBuf]) -> Option<String> {
        self.missing_beside(paths, "--builtin-unions=openapi")
    }

    /// Returns the message of [`Self::missing`] where `option` uses the unions that OpenAPI documents publish.
    pub fn missing_beside(&self, paths: &[PathBuf], option: &str) -> Option<String> {
        if !self.definitions.is_empty() {
            return None;
        }
        if self.documents == 0 {
            return Some(input::empty(paths));
        }
        let paths = input::list(paths);
        match (self.targets.first(), self.openapi.is_empty()) {
            (Some(_), false) => None,
            (Some(target), true) => Some(format!(
                "only UnionDeclarations in {paths}, and nothing that describes the kinds they are about: give {}",
                description_of(target)
            )),
            (None, false) if self.builtin == BuiltinUnions::OpenApi => None,
            (None, false) => Some(format!(
                "only OpenAPI documents in {paths}, and nothing that declares unions of their kinds: give \
                 UnionDeclarations, or {option} for those that the documents publish"
            )),
            (None, true) => Some(format!(
                "no CustomResourceDefinition in {paths}, and no UnionDeclaration with an OpenAPI document"
            )),
        }
    }
}

fn target_missing(declaration: &Declaration, described: &BTreeSet<GroupKind>) -> Fault {
    let target = declaration.target();
    let advice = match misspelt::near_kind(&target.group_kind(), described) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("give {}", description_of(target)),
    };
    let message = format!("nothing here describes the target; {advice}");
    Fault {
        declaration: Some(declaration.name().to_owned()),
        source: Some(Source::Declaration),
        pointer: "/spec/target".to_owned(),
        ..Fault::new(FaultKind::MissingTarget, &target.group_kind().to_string(), message)
    }
}

/// Names the documents that would describe a kind.
fn description_of(Target { group, versions, .. }: &Target) -> String {
    let version = versions.first().map_or("v1", String::as_str);
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    format!(
        "the CustomResourceDefinition, or for a built-in type an OpenAPI document: `kubectl get --raw /openapi/v3/{path}`"
    )
}

fn display(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

fn has_unions(definition: &Definition) -> bool {
    definition.versions().iter().any(|version| !version.declarations().is_empty())
}
