//! The built-in kinds that programs know when no input describes them.
//!
//! `built_in/kinds.json` is an OpenAPI document with the kinds of the presets, cut down to what unions, patches and names need. It
//! says of which version of Kubernetes it is. A description or declaration of an input takes precedence.

use kube_unions_core::declaration::OpenApi;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::{BuiltinUnions, Document, ManifestFile, Problem};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The schemas, as Kubernetes publishes them.
const KINDS: &str = include_str!("built_in/kinds.json");

/// The presets, which declare their unions.
const PRESETS: [&str; 11] = [
    include_str!("../../../manifests/presets/autoscaling.yaml"),
    include_str!("../../../manifests/presets/budgets.yaml"),
    include_str!("../../../manifests/presets/env.yaml"),
    include_str!("../../../manifests/presets/handlers.yaml"),
    include_str!("../../../manifests/presets/ingress.yaml"),
    include_str!("../../../manifests/presets/network-policies.yaml"),
    include_str!("../../../manifests/presets/persistent-volumes.yaml"),
    include_str!("../../../manifests/presets/profiles.yaml"),
    include_str!("../../../manifests/presets/services.yaml"),
    include_str!("../../../manifests/presets/strategies.yaml"),
    include_str!("../../../manifests/presets/volumes.yaml"),
];

/// Declarations of unions that kube-unions never enforces on a cluster. The API server refuses what violates them.
const OFFLINE: &str = include_str!("built_in/offline.yaml");

/// The file of what is embedded, as messages name it.
pub const FILE: &str = "built in";

/// The presets whose discriminator the API server sets if an object lacks it, with its value.
const DEFAULTED: [(&str, &str); 3] = [
    ("deployment-strategy", "RollingUpdate"),
    ("service-type", "ClusterIP"),
    ("statefulset-strategy", "RollingUpdate"),
];

/// The unions without which the API server refuses their object: the end of the names of their declarations, and of their paths.
///
/// The presets do not say so, because a later version of Kubernetes may have a member that they do not know. An object with that member alone
/// would seem to lack one.
const REQUIRED: [(&str, &str); 6] = [
    ("-env", ".valueFrom"),
    ("-handlers", ""),
    ("-profiles", ""),
    ("horizontalpodautoscaler-metrics", ""),
    ("ingress-backends", ""),
    ("persistentvolume-source", ""),
];

/// The field that says what a declaration does about a violation.
const ACTIONS: &str = "validationActions";

/// The unions of built-in kinds that a program adds to those of its input.
#[derive(Debug, Clone, Copy)]
pub struct AddedUnions {
    /// The treatment of the unions that OpenAPI documents of the input publish.
    pub published: BuiltinUnions,
    /// True if presets declare the unions that nothing else declares.
    pub presets: bool,
}

/// The embedded kinds and presets.
#[derive(Debug)]
pub struct BuiltInKinds {
    document: Document,
    presets: BTreeMap<String, BuiltInPreset>,
}

#[derive(Debug)]
struct BuiltInPreset {
    /// The declaration, with what [`REQUIRED`] adds.
    document: Document,
    /// True if kube-unions never enforces it on a cluster.
    is_offline: bool,
    /// The spec of the declaration as it is published, without its actions.
    spec: Map<String, Value>,
}

impl BuiltInKinds {
    /// Decodes what is embedded.
    ///
    /// # Errors
    /// An embedded file cannot be read. The tests rule it out.
    pub fn read() -> Result<Self, Problem> {
        let parse =
            |text: &str| ManifestFile::read(PathBuf::from(FILE), text.as_bytes().to_vec()).map(|file| file.documents());
        let missing = || Problem::of_file(Path::new(FILE), "no built-in kinds".to_owned());
        let document = parse(KINDS)?.pop().ok_or_else(missing)?;
        let mut presets = BTreeMap::new();
        for (text, is_offline) in PRESETS.map(|text| (text, false)).into_iter().chain([(OFFLINE, true)]) {
            for document in parse(text)? {
                let (name, spec) = (document.name.clone().unwrap_or_default(), declared(&document));
                presets.insert(name, BuiltInPreset { document: requiring(&document), is_offline, spec });
            }
        }
        Ok(Self { document, presets })
    }

    /// Returns the version of Kubernetes that the schemas are of.
    pub fn version(&self) -> String {
        self.document.text_at(&["info", "version"]).unwrap_or_default()
    }

    /// Returns true if one of the kinds has presets, or was meant to be a kind that has.
    pub fn knows_any(&self, kinds: &BTreeSet<GroupVersionKind>) -> bool {
        let known: BTreeSet<GroupKind> = self.presets.values().map(|preset| target(&preset.spec)).collect();
        let is_near = |openapi: OpenApi| {
            let known = KnownKinds::new(openapi.kinds());
            kinds.iter().any(|kind| known.near(kind).is_some())
        };
        kinds.iter().any(|kind| known.contains(&kind.group_kind()))
            || OpenApi::parse(&self.document.text).is_ok_and(is_near)
    }

    /// Returns true for a preset, also one that an input has.
    pub fn is_preset(&self, document: &Document) -> bool {
        self.preset(document).is_some()
    }

    fn preset(&self, document: &Document) -> Option<&BuiltInPreset> {
        let name = document.name.as_deref().filter(|_| document.is_declaration())?;
        let (preset, spec) = (self.presets.get(name)?, declared(document));
        (spec == preset.spec || spec == declared(&preset.document)).then_some(preset)
    }

    /// Returns the names of the declarations that kube-unions never enforces on a cluster.
    pub fn offline(&self) -> impl Iterator<Item = &str> {
        self.presets.iter().filter(|(_, preset)| preset.is_offline).map(|(name, _)| name.as_str())
    }

    /// Returns what an input is read with: the schemas, and the presets of the kinds in `named`, or of all, that the input does not declare.
    pub fn beside(
        &self,
        given: &[Document],
        named: Option<&BTreeSet<GroupVersionKind>>,
        added: AddedUnions,
    ) -> Vec<Document> {
        let mut documents = vec![self.document.clone()];
        let publishes = added.published == BuiltinUnions::OpenApi && given.iter().any(Document::is_openapi);
        if !added.presets || publishes {
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
    pub fn enforced(
        &self,
        mut given: Vec<Document>,
        named: Option<&BTreeSet<GroupVersionKind>>,
        added: AddedUnions,
    ) -> Vec<Document> {
        given.extend(self.beside(&given, named, added));
        let enforced = |document| match self.preset(&document) {
            Some(preset) => denying(&document.with_text(preset.document.text.clone())),
            None => document,
        };
        given.into_iter().map(enforced).collect()
    }

    /// Returns the documents of [`Self::enforced`] for all kinds, for rules that see no default of the API server.
    pub fn in_schemas(&self, given: Vec<Document>, added: AddedUnions) -> Vec<Document> {
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

/// Returns a declaration with the unions of [`REQUIRED`] as required.
fn requiring(declaration: &Document) -> Document {
    let Ok(mut object) = serde_json::from_str::<Value>(&declaration.text) else { return declaration.clone() };
    let name = declaration.name.as_deref().unwrap_or_default();
    let is_required = |union: &Map<String, Value>| {
        let path = union.get("path").and_then(Value::as_str).unwrap_or_default();
        REQUIRED.iter().any(|(of_names, of_paths)| name.ends_with(of_names) && path.ends_with(of_paths))
    };
    let unions = object.pointer_mut("/spec/unions").and_then(Value::as_array_mut);
    for union in unions.into_iter().flatten().filter_map(Value::as_object_mut).filter(|union| is_required(union)) {
        union.insert("required".to_owned(), true.into());
    }
    declaration.with_text(object.to_string())
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
pub fn target_of(declaration: &Document) -> GroupKind {
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
