//! `--to kustomize`: the OpenAPI document from which kustomize learns how custom resources merge.
//!
//! kustomize knows the lists of built-in kinds only, and replaces every other list. Without `openapi: path:` in a kustomization
//! it uses a document of its own; with it, that file alone, so the document has the built-in kinds too.
//!
//! It looks a kind up by `x-kubernetes-group-version-kind`, and takes the names of definitions as they are. It merges a list only if a
//! strategy says so, and does not need to know any other field, so the definitions have nothing else. `paths` tell it which kinds have no
//! namespace.
//!
//! kustomize merges some places in another way than the schema asks for: it knows neither `retainKeys` nor atomic objects, and in a list
//! with several keys, it loses a change if an item has fewer keys than another, in the resource or in the patch.

use crate::input::kinds::{self, BuiltinUnionsArg};
use crate::input::manifest::{self, Document, Problem};
use crate::input::require::RequireArg;
use crate::input::values::ObjectFormat;
use crate::report::conclusion::Conclusion;
use crate::report::output::{self, Paint};
use crate::report::{Verdict, diagnostic};
use anyhow::{Context, bail};
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::schema::{PlaceStep, Schema};
use kube_unions_manifests::counts::count;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use strategic_merge_patch::{MergeRule, MergeStrategy, Patcher};

/// Prints the document of the CRDs of `from`. The rules of the document `add_to` take precedence over those of built-in kinds.
pub(in crate::commands) fn run(
    from: &[PathBuf],
    add_to: Option<&Path>,
    output: ObjectFormat,
    require: RequireArg,
) -> anyhow::Result<Verdict> {
    let documents = manifest::read(from)?;
    let mut document = KustomizeDocument::read(add_to)?;

    let assembly = kinds::assemble(documents, BuiltinUnionsArg::Ignored);
    manifest::fail_on(&assembly.problems)?;
    let definitions = assembly.declared_definitions();
    if definitions.is_empty() {
        bail!("no CustomResourceDefinition in {}", manifest::list(from));
    }
    let paint = Paint::of(&std::io::stderr());
    let diagnostics = diagnostic::diagnose(&assembly);
    for diagnostic in &diagnostics {
        output::note(diagnostic::line(diagnostic, paint));
    }

    let mut limits = KustomizeLimits::default();
    let (mut versions, mut lists, mut unions) = (0_usize, 0, 0);
    for (origin, definition) in &definitions {
        for version in definition.versions().iter().filter(|version| version.served) {
            let rules = Patcher::resource_rules(definition.kind(), &version.schema)
                .map_err(|error| unfit(origin, version.position, &error))?;
            let kind = CustomKind { definition, kind: definition.group_kind().at(&version.name), rules };
            // Every object has the rules of `metadata`.
            for rule in kind.rules.iter().filter(|rule| !is_of_metadata(rule)) {
                lists += usize::from(matches!(rule.strategy, MergeStrategy::Keys(_) | MergeStrategy::Set));
                unions += usize::from(rule.retain_keys);
            }
            limits.add(&kind, &version.schema);
            document.add(&kind);
            versions += 1;
        }
    }
    output::print(match output {
        ObjectFormat::Json => document.to_json()? + "\n",
        ObjectFormat::Yaml => manifest::to_yaml(&document.to_json()?)?,
    })?;
    for line in limits.lines() {
        output::hint(line);
    }
    output::summary(format_args!(
        "{}: {}, {}",
        count(versions, "version"),
        count(lists, "merging list"),
        count(unions, "union"),
    ));
    let rejected = diagnostics.iter().any(diagnostic::Diagnostic::is_error);
    let nothing = || {
        format!(
            "nothing merges by a key: the schemas in {} have no list with `x-kubernetes-list-type: map` or `set`",
            manifest::list(from)
        )
    };
    let nothing = (lists == 0 && !rejected).then(nothing);
    Conclusion::new(require, nothing, rejected, String::new()).end()
}

/// Returns an error about a schema with its position.
fn unfit(origin: &Document, version: usize, error: &strategic_merge_patch::SchemaError) -> anyhow::Error {
    let pointer = format!("/spec/versions/{version}/schema/openAPIV3Schema{}", error.place().to_pointer());
    Problem::of_document(origin, &pointer, error.to_string()).into()
}

/// The places, each with the versions of its kind.
#[derive(Debug, Default)]
struct KustomizeLimits {
    places: BTreeMap<(GroupKind, String, String), Vec<Box<str>>>,
}

impl KustomizeLimits {
    /// Adds the places of a kind.
    fn add(&mut self, custom: &CustomKind<'_>, schema: &Schema) {
        for rule in &custom.rules {
            for limit in limits(rule, schema) {
                let place = (custom.definition.group_kind().clone(), rule.place.to_string(), limit);
                self.places.entry(place).or_default().push(custom.kind.version.clone());
            }
        }
    }

    /// Returns a line for each place, sorted by kind and path.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.places.iter().map(|((kind, place, limit), versions)| {
            let place = if place.is_empty() { "the root" } else { place };
            format!("{kind} {}: {place}: {limit}", versions.join(", "))
        })
    }
}

/// Returns the limits that a rule meets.
fn limits(rule: &MergeRule, schema: &Schema) -> Vec<String> {
    let mut limits = Vec::new();
    if rule.retain_keys {
        limits.push(
            "kustomize does not clear the other members of a union: set the old member to null in the patch, or write \
             `$patch: replace` in the object"
                .to_owned(),
        );
    }
    if rule.strategy == MergeStrategy::Replace {
        limits.push(
            "kustomize merges this object, although it is atomic: write `$patch: replace` in the object of the patch"
                .to_owned(),
        );
    }
    if let MergeStrategy::Keys(keys) = &rule.strategy
        && keys.len() > 1
    {
        let items = schema.at(&rule.place.then(PlaceStep::Items));
        let required = |key: &str| items.is_some_and(|items| items.required.iter().any(|field| **field == *key));
        let optional: Vec<String> =
            keys.iter().filter(|key| !required(key.as_ref())).map(|key| format!("`{key}`")).collect();
        if !optional.is_empty() {
            limits.push(format!(
                "kustomize loses the change of an item that lacks a key which another item has: write {} in each item, of the \
                 resource and of the patch",
                optional.join(" and ")
            ));
        }
    }
    limits
}

/// The rules of the kinds that kustomize knows without a document; `tests/controlplane/kustomize-kinds` prints them.
const BUILT_IN: &str = include_str!("kustomize/builtin.json");

/// The keyword of a definition with the kinds that it describes.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// A custom resource at one version, with its rules.
struct CustomKind<'d> {
    definition: &'d Definition,
    kind: GroupVersionKind,
    rules: Vec<MergeRule>,
}

/// The document under construction.
struct KustomizeDocument {
    /// The document of `--add-to`, without definitions and paths.
    rest: Map<String, Value>,
    paths: Map<String, Value>,
    definitions: BTreeMap<String, Value>,
}

/// A schema node with only the keywords that matter to kustomize.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MergeNode {
    #[serde(rename = "type")]
    type_name: NodeType,
    #[serde(rename = "x-kubernetes-group-version-kind", skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<Value>,
    #[serde(rename = "x-kubernetes-patch-strategy", skip_serializing_if = "Option::is_none")]
    strategy: Option<&'static str>,
    #[serde(rename = "x-kubernetes-patch-merge-key", skip_serializing_if = "Option::is_none")]
    key: Option<Box<str>>,
    /// All keys of a list with several.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Box<str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<Box<str>, MergeNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<MergeNode>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_properties: Option<Box<MergeNode>>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "lowercase")]
enum NodeType {
    #[default]
    Object,
    Array,
}

impl KustomizeDocument {
    /// Starts with the built-in kinds that the document of `--add-to` does not describe.
    fn read(given: Option<&Path>) -> anyhow::Result<Self> {
        let mut rest = match given {
            Some(path) => given_document(path)?,
            None => Map::new(),
        };
        let section = |rest: &mut Map<String, Value>, name: &str| match rest.remove(name) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let (paths, definitions) = (section(&mut rest, "paths"), section(&mut rest, "definitions"));
        let mut document = Self { rest, paths, definitions: definitions.into_iter().collect() };
        let known: Vec<Value> = document.definitions.values().flat_map(kinds).cloned().collect();
        let built_in: BTreeMap<String, Value> =
            serde_json::from_str(BUILT_IN).context("the rules of built-in kinds")?;
        for (name, mut definition) in built_in {
            remove_kinds(&mut definition, &known);
            document.definitions.entry(name).or_insert(definition);
        }
        Ok(document)
    }

    /// Adds the rules of a custom resource. They replace what the document said about the kind.
    fn add(&mut self, custom: &CustomKind<'_>) {
        let GroupVersionKind { group, version, kind } = &custom.kind;
        let identity = json!({"group": group, "version": version, "kind": kind});
        for definition in self.definitions.values_mut() {
            remove_kinds(definition, std::slice::from_ref(&identity));
        }
        let mut root = MergeNode { kinds: vec![identity.clone()], ..MergeNode::default() };
        for rule in &custom.rules {
            root.at(rule.place.steps()).set(rule);
        }
        if let Some(resource) = custom.definition.resource().filter(|resource| !resource.namespaced) {
            let path = format!("/apis/{group}/{version}/{}/{{name}}", resource.plural);
            self.paths.insert(path, json!({"get": {KINDS: identity}}));
        }
        self.definitions.insert(name(&custom.kind), json!(root));
    }

    /// Returns the document as JSON text.
    fn to_json(&self) -> anyhow::Result<String> {
        let mut document = Map::new();
        document.insert("swagger".to_owned(), json!("2.0"));
        document.insert("info".to_owned(), json!({"title": "Merge rules for kustomize", "version": "v1"}));
        document.extend(self.rest.clone());
        document.insert("paths".to_owned(), json!(self.paths));
        document.insert("definitions".to_owned(), json!(self.definitions));
        Ok(serde_json::to_string_pretty(&document)?)
    }
}

impl MergeNode {
    fn at(&mut self, steps: &[PlaceStep]) -> &mut Self {
        steps.iter().fold(self, |node, step| match step {
            PlaceStep::Property(name) => node.properties.entry(name.clone()).or_default(),
            PlaceStep::Items => node.items.get_or_insert_default(),
            PlaceStep::Values => node.additional_properties.get_or_insert_default(),
        })
    }

    fn set(&mut self, rule: &MergeRule) {
        let keys: &[Box<str>] = if let MergeStrategy::Keys(keys) = &rule.strategy { keys } else { &[] };
        let is_list = matches!(rule.strategy, MergeStrategy::Keys(_) | MergeStrategy::Set);
        self.type_name = if is_list { NodeType::Array } else { NodeType::Object };
        self.strategy = Some(match (is_list, rule.retain_keys) {
            (true, false) => "merge",
            (true, true) => "merge,retainKeys",
            (false, true) => "retainKeys",
            (false, false) => "replace",
        });
        self.key = keys.first().cloned();
        if keys.len() > 1 {
            self.keys = keys.to_vec();
        }
    }
}

/// Returns true for the rules that every object has.
fn is_of_metadata(rule: &MergeRule) -> bool {
    rule.place.steps().first() == Some(&PlaceStep::Property("metadata".into()))
}

/// Returns the name that the API server gives to the definition of a custom resource: `com.example.v1.Widget`.
fn name(kind: &GroupVersionKind) -> String {
    let group = kind.group.rsplit('.').filter(|label| !label.is_empty());
    group.chain([&*kind.version, &*kind.kind]).collect::<Vec<_>>().join(".")
}

/// Returns the kinds that a definition describes.
fn kinds(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.get(KINDS).and_then(Value::as_array).into_iter().flatten()
}

/// Takes kinds out of a definition, so that only one describes each.
fn remove_kinds(definition: &mut Value, unwanted: &[Value]) {
    let Some(kinds) = definition.get_mut(KINDS).and_then(Value::as_array_mut) else { return };
    kinds.retain(|kind| !unwanted.contains(kind));
    if kinds.is_empty()
        && let Some(definition) = definition.as_object_mut()
    {
        definition.remove(KINDS);
    }
}

/// Reads the document of `--add-to`, the only one of its file.
fn given_document(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let documents = manifest::read(&[path.to_owned()])?;
    let [document] = documents.as_slice() else {
        bail!("{}: give one OpenAPI document, as `kustomize openapi fetch` saves it", path.display());
    };
    match serde_json::from_str(&document.text) {
        Ok(Value::Object(members)) if members.get("definitions").is_some_and(Value::is_object) => Ok(members),
        Ok(_) => bail!(
            "{}: not an OpenAPI document of version 2: it has no `definitions`; `kustomize openapi fetch` saves one",
            path.display()
        ),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read", path.display())),
    }
}
