//! The sources of unions in documents, and the catalog that follows from them.

use crate::built_in_groups::is_built_in_group;
use crate::builtin_defaults::BuiltInDefaults;
use crate::counts::count;
use crate::document::Document;
use crate::file::Problem;
use crate::input;
use crate::misspelt;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Declaration, Definition, DefinitionError, Fault, FaultKind, OpenApi, Target};
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::revision::RevisedKind;
use kube_unions_core::schema::{DefaultsError, EXTENSION, Schema};
use kube_unions_core::workspace::Workspace;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The treatment of the unions that OpenAPI documents publish for built-in types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuiltinUnions {
    /// Ignore them: some of them are wrong.
    #[default]
    Ignored,
    /// Use them where their values can be checked and are right.
    OpenApi,
}

/// The label that the presets of kube-unions have.
const PRESET: &str = "kube-unions.dev/preset";

/// Compiles the declarations of documents. A problem with one document leaves the others in force.
pub fn assemble(documents: Vec<Document>, builtin: BuiltinUnions) -> Assembly {
    assemble_beside(documents, builtin, CompiledAlone::default())
}

/// Compiles the documents that are left after others were compiled. [`alone`](crate::alone) tells which.
pub(crate) fn assemble_beside(documents: Vec<Document>, builtin: BuiltinUnions, alone: CompiledAlone) -> Assembly {
    let mut assembly = Assembly { alone, builtin, ..schemas(documents) };
    assembly.compile();
    assembly
}

/// Counts of the documents that were compiled before, and what they describe.
#[derive(Debug, Default)]
pub(crate) struct CompiledAlone {
    kinds: BTreeSet<GroupKind>,
    definitions: usize,
    unions: usize,
}

impl CompiledAlone {
    pub(crate) fn add(&mut self, assembly: &Assembly) {
        self.kinds.extend(assembly.workspace.defined().cloned());
        self.definitions += assembly.definitions.len();
        self.unions += assembly.catalog.union_count();
    }
}

/// Reads the schemas of documents, and compiles nothing: the catalog is empty.
pub fn schemas(documents: Vec<Document>) -> Assembly {
    Assembly::read(documents)
}

/// A catalog, and the places of its faults.
#[derive(Debug, Default)]
pub struct Assembly {
    /// The unions in force.
    pub catalog: Catalog,
    /// The documents that cannot be read.
    pub problems: Vec<Problem>,
    /// The number of presets whose kinds no document describes.
    pub(crate) idle_presets: usize,
    /// The number of documents of all kinds. A caller that assembles some of its documents adds the others.
    pub documents: usize,
    pub(crate) workspace: Workspace,
    /// The documents that are CRDs, by name.
    pub(crate) definitions: BTreeMap<String, Document>,
    /// The documents that are `UnionDeclaration`s, by name.
    pub(crate) declarations: BTreeMap<String, Document>,
    pub(crate) openapi: Vec<(Document, Arc<OpenApi>)>,
    pub(crate) alone: CompiledAlone,
    pub(crate) builtin: BuiltinUnions,
    /// The kinds that the documents describe, with unions or without: the served versions of CRDs, and those of built-in types.
    pub(crate) kinds: BTreeSet<GroupVersionKind>,
    /// The schemas of built-in types with unions.
    pub(crate) built_in: BTreeMap<GroupVersionKind, Schema>,
    /// The defaults that these schemas lack.
    pub(crate) built_in_defaults: Option<BuiltInDefaults>,
}

impl Assembly {
    /// Applies each declaration to its target, and compiles everything.
    fn compile(&mut self) {
        if self.builtin == BuiltinUnions::OpenApi {
            let publishing = self.publishing();
            self.workspace.set_publishing(publishing);
        }
        let documents: Vec<_> = self.openapi().map(|(_, openapi)| Arc::clone(openapi)).collect();
        for kind in self.workspace.wanted() {
            self.workspace.set_documents(&kind, documents.clone());
        }
        while let Some(job) = self.workspace.next_job() {
            let compiled = job.compile();
            if let (Some(kind), Some(error)) = (compiled.ticket().builtin(), compiled.error()) {
                self.problems.push(self.undescribed(kind, error));
                self.workspace.give_up(compiled.ticket());
            } else {
                self.workspace.finish(compiled);
            }
        }
        // If a schema is unreadable or none was given, it may be the missing target.
        if self.problems.is_empty() {
            self.report_missing_targets();
        }
        self.catalog = self.workspace.catalog();
        let custom = self.workspace.definitions().flat_map(|definition| {
            let served = definition.versions().iter().filter(|version| version.served);
            served.map(|version| definition.group_kind().at(&version.name))
        });
        self.kinds = custom.chain(documents.iter().flat_map(|openapi| openapi.kinds().cloned())).collect();
        let entries = self.catalog.entries().iter().map(CatalogEntry::gvk);
        let built_in = entries.filter(|gvk| self.workspace.definition(&gvk.group_kind()).is_none());
        // A schema that is unreadable has no unions.
        let schema = |gvk: &GroupVersionKind| documents.iter().find_map(|openapi| openapi.schema(gvk).ok().flatten());
        self.built_in = built_in.filter_map(|gvk| Some((gvk.clone(), schema(gvk)?))).collect();
        if !self.built_in.is_empty() {
            self.built_in_defaults = BuiltInDefaults::read().ok();
        }
    }

    /// Returns the kinds whose OpenAPI schemas publish unions.
    fn publishing(&self) -> BTreeSet<GroupKind> {
        // Resolving the references of every kind is slow, a text search is not.
        let candidates = self.openapi().filter(|(document, _)| document.text.contains(EXTENSION));
        let kinds = candidates.flat_map(|(_, openapi)| {
            // An unreadable schema may have unions. Compiling it reports its problem.
            let publishes = |kind: &GroupKind| Definition::publishes(openapi, kind).unwrap_or(true);
            openapi.group_kinds().into_iter().filter(publishes)
        });
        kinds.collect()
    }

    /// Returns the problem of a document whose schema of a kind is unreadable.
    fn undescribed(&self, kind: &GroupKind, error: &DefinitionError) -> Problem {
        let mut documents = self.openapi();
        let describing = documents.find(|(_, openapi)| openapi.kinds().any(|it| it.group_kind() == *kind));
        let file = describing.map_or(Path::new(""), |(document, _)| &document.file);
        let kind = &kind.kind;
        Problem::of_file(file, format!("the kind `{kind}`: {}", with_causes(error)))
    }

    fn report_missing_targets(&mut self) {
        let workspace = &mut self.workspace;
        let missing = workspace.missing();
        let defined = workspace.defined().chain(workspace.documented().filter(|kind| !missing.contains(*kind)));
        let described: BTreeSet<GroupKind> = defined.chain(&self.alone.kinds).cloned().collect();
        let without = missing.iter().filter(|kind| !kind.kind.is_empty());
        let without = without.flat_map(|kind| workspace.declarations_of(kind));
        let is_preset =
            |declaration: &Arc<Declaration>| self.declarations.get(declaration.name()).is_some_and(is_preset);
        let (presets, others): (Vec<_>, Vec<_>) = without.partition(is_preset);
        self.idle_presets = presets.len();
        if self.definitions.is_empty() && self.alone.definitions == 0 && self.openapi.is_empty() {
            return;
        }
        for declaration in others {
            workspace.report(declaration.name(), Some(target_missing(&declaration, &described)));
        }
    }

    /// Returns the CRDs with the unions of `UnionDeclaration`s, each with its document, sorted by name.
    pub fn declared_definitions(&self) -> Vec<(&Document, Definition)> {
        let read = self.workspace.definitions();
        let declared = read.map(|definition| self.declared(definition.clone()));
        self.definitions().zip(declared).collect()
    }

    /// Returns a definition with the unions of `UnionDeclaration`s.
    pub fn declared(&self, definition: Definition) -> Definition {
        self.workspace.declared(definition)
    }

    /// Returns the OpenAPI documents, in the order of the input.
    pub fn openapi(&self) -> impl Iterator<Item = (&Document, &Arc<OpenApi>)> {
        self.openapi.iter().map(|(document, openapi)| (document, openapi))
    }

    /// Returns an object as admission sees it: without the nulls that the API server prunes, and with the defaults of its schema. A
    /// built-in type with unions also gets the defaults that the API server has in Go code. An object of another kind stays as it is,
    /// and so does a text that cannot be parsed.
    pub fn completed<'d>(&self, document: &'d Document) -> Result<Cow<'d, str>, DefaultsError> {
        let kind = document.group_version_kind();
        let object = self.completed_schema(&kind).and_then(|_| serde_json::from_str(&document.text).ok());
        let Some(mut object) = object else { return Ok(Cow::Borrowed(&document.text)) };
        self.complete(&kind, &mut object)?;
        Ok(Cow::Owned(object.to_string()))
    }

    /// Completes an object of a kind as [`Self::completed`] does.
    pub fn complete(&self, kind: &GroupVersionKind, object: &mut Value) -> Result<(), DefaultsError> {
        let Some(schema) = self.completed_schema(kind) else { return Ok(()) };
        schema.complete(object)?;
        if let (true, Some(defaults)) = (self.built_in.contains_key(kind), &self.built_in_defaults) {
            defaults.add(&kind.group_kind(), schema, object);
        }
        Ok(())
    }

    fn completed_schema(&self, kind: &GroupVersionKind) -> Option<&Schema> {
        let definition = self.workspace.definition(&kind.group_kind());
        let mut versions = definition.into_iter().flat_map(Definition::versions);
        let version = versions.find(|version| version.served && version.name == kind.version);
        version.map(|version| &version.schema).or_else(|| self.built_in.get(kind))
    }

    /// Returns a document whose text is that of [`Self::completed`].
    pub fn completed_document(&self, document: &Document) -> Result<Document, DefaultsError> {
        Ok(document.with_text(self.completed(document)?.into_owned()))
    }

    /// Returns the schema of a built-in type with unions.
    pub fn built_in_schema(&self, kind: &GroupVersionKind) -> Option<&Schema> {
        self.built_in.get(kind)
    }

    /// Returns the documents that are CRDs.
    pub fn definitions(&self) -> impl Iterator<Item = &Document> {
        self.definitions.values()
    }

    /// Returns the kinds that the documents describe, with unions or without.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupVersionKind> {
        self.kinds.iter()
    }

    /// Returns the number of unions in force.
    pub fn union_count(&self) -> usize {
        self.catalog.union_count() + self.alone.unions
    }

    fn has_no_definitions(&self) -> bool {
        self.definitions.is_empty() && self.alone.definitions == 0
    }

    /// Returns the number of CRDs, of other documents that describe kinds, and of unions in force: `3 CRDs, 5 unions`.
    pub fn summary(&self) -> String {
        let Self { definitions, declarations, openapi, .. } = self;
        let others = [(declarations.len(), "UnionDeclaration"), (openapi.len(), "OpenAPI document")];
        let others: Vec<_> = others.into_iter().filter(|(number, _)| *number > 0).collect();
        let definitions = definitions.len() + self.alone.definitions;
        let crds = (definitions > 0 || others.is_empty()).then_some((definitions, "CRD"));
        let unions = (self.union_count(), "union");
        let all = crds.into_iter().chain(others).chain([unions]);
        all.map(|(number, noun)| count(number, noun)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the differences to an older revision of the documents, and the number of versions of kinds that both describe.
    pub fn changes_since(&self, old: &Self) -> (Vec<Fault>, usize) {
        let mut changes = Vec::new();
        let both: Vec<_> = self.kinds.intersection(&old.kinds).collect();
        for gvk in &both {
            let (before, after) = (old.name_of(gvk), self.name_of(gvk));
            changes.extend(self.kind_version(gvk, &after).changes_since(&old.kind_version(gvk, &before)));
        }
        for (one, kinds, kind) in [
            (old, old.kinds.difference(&self.kinds), FaultKind::OnlyInOld),
            (self, self.kinds.difference(&old.kinds), FaultKind::OnlyInNew),
        ] {
            changes.extend(kinds.filter_map(|gvk| one.kind_version(gvk, &one.name_of(gvk)).alone(kind)));
        }
        (changes, both.len())
    }

    /// Returns the name of the definition of a kind.
    fn name_of(&self, gvk: &GroupVersionKind) -> String {
        let kind = gvk.group_kind();
        self.workspace.definition(&kind).map_or_else(|| kind.to_string(), |known| known.name().to_owned())
    }

    fn kind_version<'k>(&'k self, gvk: &'k GroupVersionKind, definition: &'k str) -> RevisedKind<'k> {
        let versions = self.workspace.definition(&gvk.group_kind()).into_iter().flat_map(Definition::versions);
        RevisedKind {
            gvk,
            definition,
            plan: self.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind).map(|entry| &**entry.plan()),
            version: versions.into_iter().find(|version| version.name == gvk.version),
        }
    }

    /// Returns the file of a fault, and its line and column.
    pub fn place_of(&self, fault: &Fault) -> Option<(&Path, Option<(usize, usize)>)> {
        let document = match &fault.declaration {
            Some(name) => self.declarations.get(name),
            None => self.definitions.get(&fault.definition),
        };
        // The fault is that of the composite resource, too.
        if fault.declaration.is_none()
            && document.and_then(|document| document.made.as_ref()).is_some_and(|it| it.of_claim)
        {
            return None;
        }
        if let Some(document) = document {
            return Some((&document.file, document.position(&fault.pointer)));
        }
        // Several places of an OpenAPI document may refer to one union, so the fault has no position.
        let describes = |kind: &GroupVersionKind| {
            fault.version.as_deref().is_none_or(|version| *version == *kind.version)
                && kind.group_kind().to_string() == fault.definition
        };
        let (document, _) = self.openapi().find(|(_, openapi)| openapi.kinds().any(describes))?;
        Some((&document.file, None))
    }

    /// Returns a sentence about the presets that have no effect, because no document describes their kinds.
    pub fn without_effect(&self) -> Option<String> {
        (self.idle_presets > 0).then(|| without_effect(self.idle_presets))
    }

    /// Returns a message if the documents cannot declare a union. It names the missing documents.
    pub fn missing(&self, paths: &[PathBuf]) -> Option<String> {
        self.missing_beside(paths, "--builtin-unions=openapi")
    }

    /// Returns the message of [`Self::missing`] where `option` uses the unions that OpenAPI documents publish.
    pub fn missing_beside(&self, paths: &[PathBuf], option: &str) -> Option<String> {
        let presets = self.declarations.values().filter(|document| is_preset(document)).count();
        if !self.has_no_definitions() || presets > 0 && presets == self.declarations.len() {
            return None;
        }
        if self.documents == 0 {
            return Some(input::empty(paths));
        }
        let paths = input::list(paths);
        let declaration = self.declarations.keys().next().and_then(|name| self.workspace.declaration(name));
        let target = declaration.and_then(|known| Some(known.declaration()?.target()));
        match (target, self.openapi.is_empty()) {
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

/// Returns the sentence about a number of declarations whose kinds are not described.
pub fn without_effect(declarations: usize) -> String {
    format!("{} without effect: nothing here describes their kinds", count(declarations, "UnionDeclaration"))
}

/// Returns true for a declaration that kube-unions ships. A user gives all presets, and has the CRDs of some.
fn is_preset(declaration: &Document) -> bool {
    declaration.text_at(&["metadata", "labels", PRESET]).is_some()
}

fn target_missing(declaration: &Declaration, described: &BTreeSet<GroupKind>) -> Fault {
    let target = declaration.target();
    let advice = match misspelt::near_kind(&target.group_kind(), described) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("give {}", description_of(target)),
    };
    let message = format!("nothing here describes the target; {advice}");
    let definition = target.group_kind().to_string();
    Fault::of_declaration(FaultKind::MissingTarget, &definition, declaration.name(), "/spec/target", message)
}

/// Names the documents that would describe a kind.
fn description_of(Target { group, versions, .. }: &Target) -> String {
    let version = versions.first().map_or("v1", String::as_str);
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    let crd = "the CustomResourceDefinition";
    if !is_built_in_group(group) {
        return crd.to_owned();
    }
    format!("{crd}, or for a built-in type an OpenAPI document: `kubectl get --raw /openapi/v3/{path}`")
}
