//! `--to cel` and `--to openapi`: puts rules into the schemas of CRDs. `--to json-schema`: writes a JSON schema for each kind and version
//! that a CRD serves.
//!
//! The CRDs of files are edited as text, so comments and order stay as they are. Only CRDs are printed, of a cluster only those
//! with unions or with our rules. The crate `kube-unions-policies` has the rules. JSON schemas have the names that kubeconform and the
//! catalogues of schemas use: `example.com/widget_v1.json`.

mod built_in_schemas;

pub(super) use crate::commands::explain::NO_UNIONS;

use super::arguments::CompileArgs;
use super::source::CompileSource;
use crate::input::crd::{self, EditableCrd};
use crate::input::kinds;
use crate::input::manifest::{self, Document, Edit, EditedFile, ManifestFile, Stream};
use crate::report::difference;
use crate::report::{Verdict, json_list, output};
use anyhow::{Context, bail};
use built_in_schemas::BuiltInSchemas;
use kube::Client;
use kube_unions_command::files::StagedFile;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::declaration::{AnnotationContent, LAST_APPLIED};
use kube_unions_core::field_path::pointer_tokens;
use kube_unions_core::names::{GroupKind, GroupVersionKind, is_dns_label, is_dns_subdomain};
use kube_unions_core::union::Plan;
use kube_unions_manifests::CrdMaker;
use kube_unions_manifests::counts::count;
use kube_unions_policies::{
    PolicyOptions, Refusal, RefusalReason, RulesTarget, SchemaEdit, compile_rules, json_schema,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The keyword that names the kind of a schema.
const KIND_OF_SCHEMA: &str = "x-kubernetes-group-version-kind";

/// The fields of `metadata` that an API server writes.
const WRITTEN_BY_SERVER: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Compiles the CRDs of files or of a cluster.
pub(super) async fn run(
    arguments: &CompileArgs,
    source: &CompileSource,
    options: &PolicyOptions,
) -> anyhow::Result<Verdict> {
    let mut compiler = RulesCompiler {
        catalog: &source.catalog,
        options,
        seen: BTreeSet::new(),
        refusals: Vec::new(),
        checks: arguments.check.is_some(),
        changed: Vec::new(),
        problems: Vec::new(),
    };
    let edited: Vec<EditedFile> = match &source.client {
        Some(client) => compiler.of_cluster(client).await?,
        None => source.files.iter().map(|file| compiler.edit(file)).collect::<anyhow::Result<_>>()?,
    };
    if source.catalog.entries().is_empty() {
        output::note(NO_UNIONS);
    }
    compiler.refusals.extend(kinds_without_crd(&source.catalog, &compiler.seen));
    compiler.refusals.sort();
    edited.iter().flat_map(|file| &file.notices).for_each(output::note);
    Refusal::lines(&compiler.refusals).iter().for_each(output::note);
    compiler.problems.iter().for_each(output::note);

    if arguments.check.is_some() {
        compiler.changed.iter().for_each(output::note);
    } else if arguments.write {
        for (file, edited) in source.files.iter().zip(&edited).filter(|(_, edited)| edited.changed) {
            manifest::write_back(&file.path, &edited.text)?;
        }
    } else {
        let mut stream = Stream::default();
        for file in &edited {
            file.definitions
                .iter()
                .for_each(|part| stream.push(file.text.get(part.clone()).unwrap_or_default(), file.format));
        }
        output::print(stream.into_text())?;
    }
    let differs = arguments.check.is_some() && !compiler.changed.is_empty();
    let failed = differs || source.catalog.entries().is_empty() || !compiler.problems.is_empty();
    let partial = !compiler.refusals.is_empty() || source.has_errors;
    Ok(Verdict::rejected_if(failed || (partial && !arguments.allow_partial)))
}

struct RulesCompiler<'c> {
    catalog: &'c Catalog,
    options: &'c PolicyOptions,
    /// The kinds whose CRD was seen.
    seen: BTreeSet<GroupVersionKind>,
    refusals: Vec<Refusal>,
    /// True if files are not written but held against the rules.
    checks: bool,
    /// A line for each CRD that changes.
    changed: Vec<String>,
    /// A line for each CRD that cannot be printed.
    problems: Vec<String>,
}

impl RulesCompiler<'_> {
    /// Puts rules into the CRDs of a file. Every other byte stays as it is.
    fn edit(&mut self, file: &ManifestFile) -> anyhow::Result<EditedFile> {
        let edited = manifest::edit_crds(file, |document| {
            let crd: Value = serde_json::from_str(&document.text)
                .with_context(|| format!("{}: {} cannot be edited", document.file.display(), document.title()))?;
            if document.made.as_ref().is_some_and(|made| made.maker == CrdMaker::Kro) {
                self.refuse(&crd);
                return Ok(Vec::new());
            }
            let (edits, _) = self.edits(&crd, &pointer_tokens(&document.pointer).unwrap_or_default());
            if !edits.is_empty() {
                self.changed.push(difference::would_change(document));
            }
            Ok(edits)
        })?;
        if self.checks {
            self.changed.extend(difference::of_edit(file, &edited));
        }
        Ok(edited)
    }

    /// Refuses the unions of a CRD that has no place for rules in its source.
    fn refuse(&mut self, crd: &Value) {
        let text = |pointer| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let kind = GroupKind::new(text("/spec/group"), text("/spec/names/kind"));
        for entry in self.catalog.entries().iter().filter(|entry| entry.gvk().group_kind() == kind) {
            let gvk = entry.gvk().clone();
            self.seen.insert(gvk.clone());
            self.refusals.push(Refusal { gvk, place: None, reason: RefusalReason::NoPlaceForRules });
        }
    }

    /// Returns the edits of a CRD at a path, and true if it has unions.
    fn edits(&mut self, crd: &Value, base: &[String]) -> (Vec<Edit>, bool) {
        let without_unions = Plan::default();
        let (mut edits, mut has_unions) = (Vec::new(), false);
        for (position, gvk, schema) in served_versions(crd) {
            let entry = self.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind);
            has_unions |= entry.is_some();
            let plan = entry.map_or(&without_unions, |entry| entry.plan());
            let compiled = compile_rules(&RulesTarget { gvk: &gvk, plan, schema }, self.options);
            let way = ["spec", "versions", &position.to_string(), "schema", "openAPIV3Schema"].map(str::to_owned);
            edits.extend(compiled.edits.into_iter().map(|SchemaEdit { path, kept, added }| {
                let path = base.iter().cloned().chain(way.iter().cloned()).chain(path).collect();
                Edit::Items { path, kept, added }
            }));
            self.refusals.extend(compiled.refusals);
            self.seen.insert(gvk);
        }
        (edits, has_unions)
    }

    /// Puts rules into the stored CRDs of a cluster, and returns each as its author could apply it.
    async fn of_cluster(&mut self, client: &Client) -> anyhow::Result<Vec<EditedFile>> {
        let mut edited = Vec::new();
        crd::for_each_stored(client, |object| {
            edited.extend(self.stored(object.name, object.text)?);
            Ok(())
        })
        .await?;
        Ok(edited)
    }

    /// Returns a stored CRD with rules, `None` if it has no unions and had no rules.
    fn stored(&mut self, name: &str, text: &str) -> anyhow::Result<Option<EditedFile>> {
        let mut crd: Value = serde_json::from_str(text).with_context(|| format!("cannot read the CRD `{name}`"))?;
        let (edits, has_unions) = self.edits(&crd, &[]);
        if edits.is_empty() && !has_unions {
            return Ok(None);
        }
        if !edits.is_empty() {
            self.changed.push(format!("customresourcedefinition.apiextensions.k8s.io/{name}: would change"));
        }
        let declared = last_applied(&crd);
        let file = manifest::file(Path::new(name), as_applied(&mut crd).to_string().into_bytes())?;
        let mut problem = None;
        let edited = manifest::edit_crds(&file, |document| {
            let (moves, unmoved) = EditableCrd::read(document)?.move_to_annotation(&declared)?;
            problem = unmoved;
            Ok(moves.into_iter().chain(edits.iter().cloned()).collect())
        })?;
        if let Some(problem) = problem {
            self.problems.push(format!("customresourcedefinition.apiextensions.k8s.io/{name}: {problem}"));
            return Ok(None);
        }
        let text = manifest::to_yaml(&edited.text)?;
        let definitions = vec![Range { start: 0, end: text.len() }];
        Ok(Some(EditedFile { text, format: manifest::Format::Yaml, definitions, ..edited }))
    }
}

/// Returns the served versions of a CRD: the position, the kind, and the schema.
fn served_versions(crd: &Value) -> impl Iterator<Item = (usize, GroupVersionKind, &Value)> {
    let text = |pointer| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let is_served = |position| crd.pointer(&format!("/spec/versions/{position}/served")) == Some(&Value::Bool(true));
    let served = crd::schemas(crd).filter(move |(position, ..)| is_served(*position));
    served.map(move |(position, version, schema)| {
        (position, GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }, schema)
    })
}

/// Returns a refusal for each kind with unions that no CRD defines.
fn kinds_without_crd<'c>(catalog: &'c Catalog, seen: &'c BTreeSet<GroupVersionKind>) -> impl Iterator<Item = Refusal> {
    let kinds = catalog.entries().iter().map(CatalogEntry::gvk).filter(|gvk| !seen.contains(*gvk));
    kinds.map(|gvk| Refusal { gvk: gvk.clone(), place: None, reason: RefusalReason::NotACustomResource })
}

/// Removes the fields of a stored CRD that an API server or `kubectl apply` writes.
fn as_applied(crd: &mut Value) -> &Value {
    let Some(fields) = crd.as_object_mut() else { return crd };
    fields.shift_remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in WRITTEN_BY_SERVER {
            metadata.shift_remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove(LAST_APPLIED);
        }
    }
    crd::add_type(fields);
    crd
}

/// Returns the unions that only the last applied configuration has. They move to the annotation of the project: the output is the
/// last applied configuration to be.
fn last_applied(crd: &Value) -> AnnotationContent {
    let annotation = crd.pointer("/metadata/annotations").and_then(|all| all.get(LAST_APPLIED)).and_then(Value::as_str);
    let applied = annotation.and_then(|text| manifest::parse(Path::new(LAST_APPLIED), text.as_bytes().to_vec()).ok());
    let mut content = AnnotationContent::new();
    for document in applied.iter().flatten().filter(|document: &&Document| document.is_definition()) {
        let Ok(crd) = EditableCrd::read(document) else { continue };
        for extension in crd.extensions {
            content.entry(extension.version).or_default().insert(extension.pointer, extension.value);
        }
    }
    content
}

/// Writes the schemas of the CRDs of files or of a cluster to a directory, or prints the only one.
pub(super) async fn write_schemas(
    arguments: &CompileArgs,
    source: &CompileSource,
    options: &PolicyOptions,
) -> anyhow::Result<Verdict> {
    let mut schemas = JsonSchemas { catalog: &source.catalog, options, files: BTreeMap::new(), refusals: Vec::new() };
    if let Some(client) = &source.client {
        crd::for_each_stored(client, |object| {
            let crd = serde_json::from_str(object.text);
            schemas.add(&crd.with_context(|| format!("cannot read the CRD `{}`", object.name))?)
        })
        .await?;
    }
    let documents = source.files.iter().flat_map(ManifestFile::documents);
    for document in documents.filter(Document::is_definition) {
        let crd = serde_json::from_str(&document.text);
        schemas.add(&crd.with_context(|| format!("{}: cannot be read", document.file.display()))?)?;
    }
    for document in &source.openapi {
        schemas.add_built_in(&serde_json::from_str(&document.text)?)?;
    }
    let JsonSchemas { mut files, mut refusals, .. } = schemas;
    if !arguments.kind.is_empty() {
        let wanted = kinds::asked::entries(source.catalog.entries(), &arguments.kind, "with unions")?;
        files.retain(|_, (gvk, _)| wanted.iter().any(|entry| entry.gvk() == gvk));
        refusals.retain(|refusal| wanted.iter().any(|entry| *entry.gvk() == refusal.gvk));
    }
    let seen: BTreeSet<_> = files.values().map(|(gvk, _)| gvk.clone()).collect();
    if arguments.kind.is_empty() {
        refusals.extend(kinds_without_crd(&source.catalog, &seen));
    }
    refusals.sort();
    Refusal::lines(&refusals).iter().for_each(output::note);
    match (&arguments.output_dir, files.values().next()) {
        (Some(directory), _) => {
            let staged = files.iter().map(|(name, (_, schema))| stage(&directory.join(name), schema));
            // All files or none.
            for file in staged.collect::<anyhow::Result<Vec<_>>>()? {
                file.persist().with_context(|| format!("cannot write to `{}`", directory.display()))?;
            }
            output::summary(format_args!("wrote {} to {}", count(files.len(), "schema"), directory.display()));
        }
        (None, Some((_, schema))) if files.len() == 1 => output::print(json_list::pretty(schema)?)?,
        (None, None) => {}
        (None, Some(_)) => {
            bail!("{} are more than one document: name a directory with --output-dir", count(files.len(), "schema"))
        }
    }
    let nothing = source.catalog.entries().is_empty();
    if nothing {
        output::note(NO_UNIONS);
    }
    let partial = !refusals.is_empty() || source.has_errors;
    Ok(Verdict::rejected_if(nothing || (partial && !arguments.allow_partial)))
}

struct JsonSchemas<'c> {
    catalog: &'c Catalog,
    options: &'c PolicyOptions,
    /// By the path of the file.
    files: BTreeMap<String, (GroupVersionKind, Value)>,
    refusals: Vec<Refusal>,
}

impl JsonSchemas<'_> {
    /// Adds the kinds with unions of an OpenAPI document. The first document with a kind counts.
    fn add_built_in(&mut self, openapi: &Value) -> anyhow::Result<()> {
        let Some(components) = openapi.pointer("/components/schemas") else { return Ok(()) };
        let built_in = BuiltInSchemas::new(components, self.options)?;
        for schema in components.as_object().into_iter().flat_map(Map::values) {
            let Some([gvk]) = schema.get(KIND_OF_SCHEMA).and_then(Value::as_array).map(Vec::as_slice) else { continue };
            let gvk: GroupVersionKind = serde_json::from_value(gvk.clone())?;
            let Some(entry) = self.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind) else { continue };
            let group = gvk.group.split('.').next().filter(|group| !group.is_empty());
            let version = group.map_or(gvk.version.to_string(), |group| format!("{group}-{}", gvk.version));
            let name = format!("{}-{version}.json", gvk.kind.to_lowercase());
            if self.files.contains_key(&name) {
                continue;
            }
            let (document, refusals) = built_in.schema(entry, schema);
            self.refusals.extend(refusals);
            self.files.insert(name, (gvk, document));
        }
        Ok(())
    }

    /// Adds the versions of a CRD.
    fn add(&mut self, crd: &Value) -> anyhow::Result<()> {
        let without_unions = Plan::default();
        for (_, gvk, schema) in served_versions(crd) {
            let kind = gvk.kind.to_lowercase();
            // Names become paths.
            if !is_dns_subdomain(&gvk.group) || !is_dns_label(&kind) || !is_dns_label(&gvk.version) {
                bail!("{gvk}: no API server takes a CRD with such names");
            }
            let entry = self.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind);
            let plan = entry.map_or(&without_unions, |entry| entry.plan());
            let (document, refusals) = json_schema(&RulesTarget { gvk: &gvk, plan, schema }, self.options);
            self.refusals.extend(refusals);
            let name = format!("{}/{kind}_{}.json", gvk.group, gvk.version);
            if let Some((known, _)) = self.files.insert(name, (gvk, document)) {
                bail!("{known}: defined more than once");
            }
        }
        Ok(())
    }
}

fn stage(path: &Path, schema: &Value) -> anyhow::Result<StagedFile> {
    let text = json_list::pretty(schema)?;
    let folder = path.parent().unwrap_or(path);
    let staged = fs::create_dir_all(folder).and_then(|()| StagedFile::of_output(path, text.as_bytes()));
    staged.with_context(|| format!("cannot write `{}`", path.display()))
}
