//! The built-in kinds that commands know when no input describes them.
//!
//! `builtin/kinds.json` is an OpenAPI document with the kinds of the presets, cut down to what unions, patches and names need. It
//! says of which version of Kubernetes it is. It is decoded only if an object, a declaration or a user names a built-in kind. What an
//! input describes or declares takes precedence.

use super::kinds::{self, Assembly, BuiltinUnionsArg, SourceArgs};
use super::manifest::{self, Document};
use crate::report::output;
use anyhow::{Context, bail};
use clap::Args;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_manifests::counts::count;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The schemas, as Kubernetes publishes them.
const KINDS: &str = include_str!("builtin/kinds.json");

/// The presets, which declare their unions.
const PRESETS: [&str; 11] = [
    include_str!("../../../../manifests/presets/autoscaling.yaml"),
    include_str!("../../../../manifests/presets/budgets.yaml"),
    include_str!("../../../../manifests/presets/env.yaml"),
    include_str!("../../../../manifests/presets/handlers.yaml"),
    include_str!("../../../../manifests/presets/ingress.yaml"),
    include_str!("../../../../manifests/presets/network-policies.yaml"),
    include_str!("../../../../manifests/presets/persistent-volumes.yaml"),
    include_str!("../../../../manifests/presets/profiles.yaml"),
    include_str!("../../../../manifests/presets/services.yaml"),
    include_str!("../../../../manifests/presets/strategies.yaml"),
    include_str!("../../../../manifests/presets/volumes.yaml"),
];

/// Declarations of unions that kube-unions never enforces on a cluster. The API server refuses what violates them.
const OFFLINE: &str = include_str!("builtin/offline.yaml");

/// The groups of built-in kinds whose names have a dot.
const GROUPS: &str = "admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io authentication.k8s.io \
                      authorization.k8s.io certificates.k8s.io coordination.k8s.io discovery.k8s.io events.k8s.io \
                      flowcontrol.apiserver.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io \
                      rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io";

/// The file of what is embedded, as messages name it.
pub(crate) const FILE: &str = "built in";

/// The presets whose discriminator the API server sets if an object lacks it, with its value.
const DEFAULTED: [(&str, &str); 3] = [
    ("deployment-strategy", "RollingUpdate"),
    ("service-type", "ClusterIP"),
    ("statefulset-strategy", "RollingUpdate"),
];

/// The field that says what a declaration does about a violation.
const ACTIONS: &str = "validationActions";

/// The flag of commands that know built-in kinds.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct PresetsArg {
    /// Do not use the presets, which declare the unions of built-in kinds that no input declares
    #[arg(long)]
    no_presets: bool,
}

/// The unions of built-in kinds that a command adds to those of its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddedUnions {
    pub(crate) published: BuiltinUnionsArg,
    pub(crate) presets: PresetsArg,
}

/// The embedded kinds and presets.
#[derive(Debug)]
pub(crate) struct BuiltInKinds {
    document: Document,
    presets: BTreeMap<String, BuiltInPreset>,
}

#[derive(Debug)]
struct BuiltInPreset {
    document: Document,
    /// True if kube-unions never enforces it on a cluster.
    is_offline: bool,
    /// The spec of the declaration, without its actions.
    spec: Map<String, Value>,
}

/// Returns true if only an API server itself has kinds of a group.
pub(crate) fn is_group(group: &str) -> bool {
    !group.contains('.') || GROUPS.split(' ').any(|known| known == group)
}

/// Compiles the declarations of an input, and the presets of the kinds among `named` that the input does not declare.
///
/// The API server itself refuses what violates a preset. So a preset denies here, also one of the input, although it only warns on a
/// cluster.
pub(crate) fn assemble(
    given: Vec<Document>,
    named: &BTreeSet<GroupVersionKind>,
    added: AddedUnions,
) -> anyhow::Result<Assembly> {
    let number = given.len();
    let declares = |document: &Document| document.is_declaration() && is_group(&target(&declared(document)).group);
    let declares = given.iter().any(declares) && !given.iter().any(Document::is_openapi);
    let documents = if declares || named.iter().any(|kind| is_group(&kind.group)) {
        let built_in = BuiltInKinds::read()?;
        let knows = declares || named.iter().any(|kind| built_in.knows(&kind.group_kind()));
        if knows { built_in.enforced(given, Some(named), added) } else { given }
    } else {
        given
    };
    let mut assembly = kinds::assemble(documents, added.published);
    assembly.documents = number;
    Ok(assembly)
}

/// The files of `--from`, read before the objects that they are about.
pub(crate) struct SourceFiles<'s> {
    sources: &'s SourceArgs,
    kinds: Vec<Document>,
    objects: usize,
}

impl<'s> SourceFiles<'s> {
    /// Reads what describes kinds. Skips documents of other kinds.
    pub(crate) fn read(sources: &'s SourceArgs) -> anyhow::Result<Self> {
        let mut files = manifest::index(&sources.from);
        let kinds = files.kinds();
        manifest::fail_on(&files.problems)?;
        Ok(Self { sources, kinds, objects: files.objects() })
    }

    /// Compiles them, see [`assemble`]. Fails without files if no object is of a built-in kind.
    pub(crate) fn assemble(self, presets: PresetsArg, named: &BTreeSet<GroupVersionKind>) -> anyhow::Result<Assembly> {
        let Self { sources, kinds, objects } = self;
        if sources.from.is_empty() && !named.is_empty() && !named.iter().any(|kind| is_group(&kind.group)) {
            bail!("nothing declares unions of {}: give --from with the CRD", kinds::asked::list(named.iter()));
        }
        let mut assembly = assemble(kinds, named, AddedUnions { published: sources.builtin_unions, presets })?;
        assembly.documents += objects;
        manifest::fail_on(&assembly.problems)?;
        assembly.without_effect().iter().for_each(output::hint);
        match assembly.missing(&sources.from).filter(|_| !sources.from.is_empty()) {
            Some(missing) => bail!(missing),
            None => Ok(assembly),
        }
    }
}

impl BuiltInKinds {
    /// Decodes what is embedded.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let parse = |text: &str| manifest::parse(Path::new(FILE), text.as_bytes().to_vec());
        let document = parse(KINDS)?.pop().context("no built-in kinds")?;
        let mut presets = BTreeMap::new();
        for (text, is_offline) in PRESETS.map(|text| (text, false)).into_iter().chain([(OFFLINE, true)]) {
            for document in parse(text)? {
                let (name, spec) = (document.name.clone().unwrap_or_default(), declared(&document));
                presets.insert(name, BuiltInPreset { document, is_offline, spec });
            }
        }
        Ok(Self { document, presets })
    }

    /// Returns the version of Kubernetes that the schemas are of.
    pub(crate) fn version(&self) -> String {
        self.document.text_at(&["info", "version"]).unwrap_or_default()
    }

    /// Returns true for a kind with presets.
    fn knows(&self, kind: &GroupKind) -> bool {
        self.presets.values().any(|preset| target(&preset.spec) == *kind)
    }

    /// Returns true for a preset, also one that an input has.
    pub(crate) fn is_preset(&self, document: &Document) -> bool {
        let name = document.name.as_deref().filter(|_| document.is_declaration());
        let preset = name.and_then(|name| self.presets.get(name));
        preset.is_some_and(|preset| declared(document) == preset.spec)
    }

    /// Returns the names of the declarations that kube-unions never enforces on a cluster.
    pub(crate) fn offline(&self) -> impl Iterator<Item = &str> {
        self.presets.iter().filter(|(_, preset)| preset.is_offline).map(|(name, _)| name.as_str())
    }

    /// Returns what an input is read with: the schemas, and the presets of the kinds in `named`, or of all, that the input does not declare.
    pub(crate) fn beside(
        &self,
        given: &[Document],
        named: Option<&BTreeSet<GroupVersionKind>>,
        added: AddedUnions,
    ) -> Vec<Document> {
        let mut documents = vec![self.document.clone()];
        let publishes = added.published == BuiltinUnionsArg::OpenApi && given.iter().any(Document::is_openapi);
        if added.presets.no_presets || publishes {
            return documents;
        }
        let declarations = || given.iter().filter(|it| it.is_declaration());
        let taken: BTreeSet<&str> = declarations().filter_map(|it| it.name.as_deref()).collect();
        let places: BTreeSet<(GroupKind, String)> = declarations().flat_map(|it| places(&declared(it))).collect();
        let kinds: Option<BTreeSet<GroupKind>> =
            named.map(|named| named.iter().map(GroupVersionKind::group_kind).collect());
        let is_wanted = |(name, preset): &(&String, &BuiltInPreset)| {
            !taken.contains(name.as_str())
                && kinds.as_ref().is_none_or(|kinds| kinds.contains(&target(&preset.spec)))
                && !self::places(&preset.spec).iter().any(|place| places.contains(place))
        };
        documents.extend(self.presets.iter().filter(is_wanted).map(|(_, preset)| preset.document.clone()));
        documents
    }

    /// Returns an input and the documents of [`Self::beside`], with presets as the API server's own validation enforces them. The first document
    /// that describes a kind counts, so the input takes precedence.
    pub(crate) fn enforced(
        &self,
        mut given: Vec<Document>,
        named: Option<&BTreeSet<GroupVersionKind>>,
        added: AddedUnions,
    ) -> Vec<Document> {
        given.extend(self.beside(&given, named, added));
        let enforced = |document| if self.is_preset(&document) { denying(&document) } else { document };
        given.into_iter().map(enforced).collect()
    }

    /// Returns the documents of [`Self::enforced`] for all kinds, for rules that see no default of the API server.
    pub(crate) fn in_schemas(&self, given: Vec<Document>, added: AddedUnions) -> Vec<Document> {
        let enforced = self.enforced(given, None, added).into_iter();
        let defaulted = |document: Document| {
            let name = document.name.as_deref().filter(|_| document.is_declaration());
            match DEFAULTED.iter().find(|(preset, _)| name == Some(preset)) {
                Some((_, value)) => with_default(&document, value),
                None => document,
            }
        };
        enforced.map(defaulted).collect()
    }
}

/// Returns the spec of a declaration, without its actions.
fn declared(declaration: &Document) -> Map<String, Value> {
    let object: Value = serde_json::from_str(&declaration.text).unwrap_or_default();
    let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.shift_remove(ACTIONS);
    spec
}

/// Returns a declaration that denies what violates it.
fn denying(declaration: &Document) -> Document {
    let Ok(mut object) = serde_json::from_str::<Value>(&declaration.text) else { return declaration.clone() };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert(ACTIONS.to_owned(), Value::from(vec!["Deny"]));
    }
    declaration.with_text(object.to_string())
}

/// Returns a declaration in which an object without discriminator has the choice of a value.
fn with_default(declaration: &Document, value: &str) -> Document {
    let Ok(mut object) = serde_json::from_str::<Value>(&declaration.text) else { return declaration.clone() };
    for union in object.pointer_mut("/spec/unions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(members) = union.get_mut("fieldMembers").and_then(Value::as_object_mut)
            && let Some(choice) = members.get(value).cloned()
        {
            members.insert(String::new(), choice);
        }
    }
    declaration.with_text(object.to_string())
}

/// Returns the kind that a `UnionDeclaration` is about.
pub(crate) fn target_of(declaration: &Document) -> GroupKind {
    target(&declared(declaration))
}

/// Returns the kind that a declaration is about.
fn target(spec: &Map<String, Value>) -> GroupKind {
    let text = |name| spec.get("target").and_then(|it| it.get(name)).and_then(Value::as_str).unwrap_or_default();
    GroupKind::new(text("group"), text("kind"))
}

/// Returns the places of the unions of a declaration.
fn places(spec: &Map<String, Value>) -> Vec<(GroupKind, String)> {
    let unions = spec.get("unions").and_then(Value::as_array).into_iter().flatten();
    let path = |union: &Value| union.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
    unions.map(|union| (target(spec), path(union))).collect()
}

/// Counts objects of kinds of which no union is known, because nothing describes them, so that nobody takes them for judged.
#[derive(Debug)]
pub(crate) struct UnknownUnions<'a> {
    described: BTreeSet<&'a GroupVersionKind>,
    counts: BTreeMap<GroupVersionKind, usize>,
}

impl<'a> UnknownUnions<'a> {
    pub(crate) fn new(assembly: &'a Assembly) -> Self {
        Self { described: assembly.kinds().collect(), counts: BTreeMap::new() }
    }

    /// Adds an object of a kind without unions. A CRD tells that a kind has none, the schema of a built-in kind does not.
    pub(crate) fn add(&mut self, object: &Document) {
        let kind = object.group_version_kind();
        if !kind.kind.is_empty() && (is_group(&kind.group) || !self.described.contains(&kind)) {
            *self.counts.entry(kind).or_default() += 1;
        }
    }

    /// Prints a note, if there are any.
    pub(crate) fn print(&self) {
        if !self.counts.is_empty() {
            let objects = count(self.counts.values().sum::<usize>(), "object");
            let kinds = kinds::asked::list(self.counts.keys());
            output::hint(format_args!("no union is known of {kinds}: {objects} not judged"));
        }
    }
}
