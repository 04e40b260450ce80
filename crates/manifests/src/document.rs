//! One object of a manifest: its type, its name and its place in the file.

use crate::crd_maker::MadeCrd;
use crate::file::{ManifestFile, Problem, Section};
use crate::foreign::left_over;
use kube_unions_core::field_path::{self, pointer_tokens};
use kube_unions_core::names::GroupVersionKind;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An object of a manifest.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file, `<stdin>` for standard input.
    pub file: PathBuf,
    /// The object as JSON.
    pub text: String,
    /// Its `kind`.
    pub kind: Option<String>,
    /// Its `apiVersion`.
    pub api_version: Option<String>,
    /// Its `metadata.name`.
    pub name: Option<String>,
    /// Its `metadata.namespace`.
    pub namespace: Option<String>,
    /// The part of the file that has the object.
    pub section: Arc<Section>,
    /// Its JSON Pointer in the section: empty, or that of an item of a list.
    pub pointer: String,
    /// The origin of a CRD that somebody else makes of the object. `text` is the CRD then.
    pub made: Option<Arc<MadeCrd>>,
    openapi: bool,
}

/// A field that identifies an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdentityField<'d> {
    /// The field as messages name it, for example `metadata.name`.
    pub name: &'static str,
    /// Its JSON Pointer in the object.
    pub pointer: &'static str,
    /// Its value. `None` if it is missing or no text.
    pub value: Option<&'d str>,
}

impl Document {
    /// Returns the fields that identify the object among all objects of a cluster.
    pub fn identity(&self) -> [IdentityField<'_>; 4] {
        [
            ("apiVersion", "/apiVersion", &self.api_version),
            ("kind", "/kind", &self.kind),
            ("metadata.namespace", "/metadata/namespace", &self.namespace),
            ("metadata.name", "/metadata/name", &self.name),
        ]
        .map(|(name, pointer, value)| IdentityField { name, pointer, value: value.as_deref() })
    }

    /// Returns line and column, counted from 1, of a value in the object, or of its nearest existing parent. `None` if the text is
    /// nested too deeply to be parsed.
    pub fn position(&self, pointer: &str) -> Option<(usize, usize)> {
        if self.made.is_none() {
            return self.section.position(&format!("{}{pointer}", self.pointer));
        }
        let path = pointer_tokens(pointer)?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        self.section.position(&field_path::pointer(self.path_in_text(&path)))
    }

    /// Returns the document with another text of its object.
    #[must_use]
    pub fn with_text(&self, text: String) -> Self {
        Self { text, ..self.clone() }
    }

    /// Returns the document with another origin. Without one, paths and positions are those of the object in the file.
    #[must_use]
    pub fn with_origin(&self, made: Option<Arc<MadeCrd>>) -> Self {
        Self { made, ..self.clone() }
    }

    /// Returns a value within the document as a document of its own. Its positions stay those of the file.
    #[must_use]
    pub fn inner(&self, pointer: &str, text: String) -> Self {
        let (head, _) = ObjectHead::read(&text);
        Self::of(head, self.file.clone(), text, &self.section, format!("{}{pointer}", self.pointer))
    }

    /// Returns the documents of one section, with the items of lists. `list` is the list that has the section as an item.
    pub(crate) fn all_in(file: &Path, section: &Arc<Section>, list: Option<&ObjectHead>) -> Vec<Self> {
        let mut documents = Vec::new();
        // A list may contain lists. The stack has the values that are not read yet.
        let mut waiting = vec![(section.json(), String::new(), list.cloned())];
        while let Some((text, pointer, list)) = waiting.pop() {
            if text == "null" {
                continue;
            }
            let (mut head, items) = ObjectHead::read(text);
            if let Some(items) = items {
                let below = |index: usize| format!("{pointer}/items/{index}");
                let items = items.into_iter().enumerate().rev();
                waiting.extend(items.map(|(index, item)| (item.get(), below(index), Some(head.clone()))));
                continue;
            }
            let text = if head.take_type(list) { head.with_type(text) } else { text.to_owned() };
            documents.push(Self::of(head, file.to_owned(), text, section, pointer));
        }
        documents
    }

    /// Returns an item of a list that has no type of its own, without its content. `None` if the list gives no type.
    pub(crate) fn item_of(file: &Path, section: &Arc<Section>, list: &ObjectHead) -> Option<Self> {
        let mut head = ObjectHead::default();
        let is_typed = head.take_type(Some(list.clone()));
        is_typed.then(|| Self::of(head, file.to_owned(), String::new(), section, String::new()))
    }

    fn of(head: ObjectHead, file: PathBuf, text: String, section: &Arc<Section>, pointer: String) -> Self {
        let ObjectHead { kind, api_version, name, namespace, openapi } = head;
        Self {
            file,
            text,
            kind,
            api_version,
            name,
            namespace,
            section: Arc::clone(section),
            pointer,
            made: None,
            openapi,
        }
    }

    /// Returns true if the section of the document has the object that a path leads into.
    pub fn has_parent_of(&self, path: &[String]) -> bool {
        let whole: Option<Value> = serde_json::from_str(self.section.json()).ok();
        let parents = path.split_last().map_or(&[][..], |(_, parents)| parents);
        let at = whole.as_ref().and_then(|whole| whole.pointer(&field_path::pointer(parents)));
        at.is_some_and(Value::is_object)
    }

    /// Returns true for a `CustomResourceDefinition` of any version.
    pub fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "CustomResourceDefinition")
    }

    /// Returns true for a `UnionDeclaration` of any version.
    pub fn is_declaration(&self) -> bool {
        self.is("kube-unions.dev", "UnionDeclaration")
    }

    /// Returns true for an OpenAPI document with schemas, of version 2 or 3.
    pub fn is_openapi(&self) -> bool {
        self.openapi
    }

    /// Returns true for a document that describes kinds: a CRD or the source of one, a `UnionDeclaration` or an OpenAPI document.
    pub fn describes_kinds(&self) -> bool {
        self.is_definition() || self.makes_definitions() || self.is_declaration() || self.is_openapi()
    }

    /// Returns true for a document that is judged as an object: one that describes no kinds, or a CRD that says how its objects are
    /// converted, which is a union.
    pub fn is_object(&self) -> bool {
        let converts = || {
            let spec = members(&self.text).and_then(|object| members(object.get("spec")?.get()));
            spec.is_some_and(|spec| spec.contains_key("conversion"))
        };
        !self.describes_kinds() || self.is_definition() && converts()
    }

    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        let own = self.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        self.kind.as_deref() == Some(kind) && own == Some(group)
    }

    /// Returns group and version of `apiVersion`, empty if it is missing.
    pub fn group_version(&self) -> (&str, &str) {
        let api_version = self.api_version.as_deref().unwrap_or_default();
        api_version.split_once('/').unwrap_or(("", api_version))
    }

    /// Returns its kind, empty where a part is missing.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        let (group, version) = self.group_version();
        let kind = self.kind.as_deref().unwrap_or_default();
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns the text at a path of the object.
    pub fn text_at(&self, path: &[&str]) -> Option<String> {
        let mut value = self.text.as_str();
        for name in path {
            value = members(value)?.get(*name)?.get();
        }
        serde_json::from_str(value).ok()
    }

    /// Returns the start of the name that the API server generates for an object without a name.
    pub fn generate_name(&self) -> Option<String> {
        if self.name.as_ref().is_some_and(|name| !name.is_empty()) {
            return None;
        }
        self.text_at(&["metadata", "generateName"]).filter(|start| !start.is_empty())
    }

    /// Returns its name in messages, for example `Rollout/web`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind.as_deref().unwrap_or("?"), self.name.as_deref().unwrap_or("?"))
    }
}

impl Problem {
    /// Returns a problem of the value at a JSON Pointer in a document.
    pub fn of_document(document: &Document, pointer: &str, message: String) -> Self {
        Self { file: document.file.clone(), position: document.position(pointer), message }
    }

    /// Returns the problem of a document without `apiVersion` or `kind`.
    pub fn of_untyped(document: &Document) -> Option<Self> {
        let is_untyped = document.kind.is_none() || document.api_version.is_none();
        let message = || "not an object: `apiVersion` or `kind` is missing".to_owned();
        is_untyped.then(|| Self::of_document(document, "", message()))
    }

    /// Returns the problem of a document whose kind a tool was to fill in.
    pub fn of_left_over_kind(document: &Document) -> Option<Self> {
        let fields = [("/kind", &document.kind), ("/apiVersion", &document.api_version)];
        fields.into_iter().find_map(|(pointer, text)| {
            let advice = left_over(text.as_deref()?)?;
            Some(Self::of_document(document, pointer, format!("{}: of no kind: {advice}", document.title())))
        })
    }
}

impl ManifestFile {
    /// Returns the documents of the file, with the items of lists.
    pub fn documents(&self) -> Vec<Document> {
        self.sections.iter().flat_map(|section| self.documents_of(section)).collect()
    }

    /// Returns the documents of a section.
    pub fn documents_of(&self, section: &Arc<Section>) -> Vec<Document> {
        Document::all_in(&self.path, section, None)
    }
}

/// The fields that identify an object. A missing field, or one of a wrong type, is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectHead {
    kind: Option<String>,
    api_version: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    openapi: bool,
}

impl ObjectHead {
    /// Reads the fields of an object, and the items of a list.
    pub(crate) fn read(text: &str) -> (Self, Option<Vec<&RawValue>>) {
        let object = members(text).unwrap_or_default();
        let metadata = object.get("metadata").and_then(|metadata| members(metadata.get())).unwrap_or_default();
        let kind = string(&object, "kind");
        let items = kind.as_ref().filter(|kind| kind.ends_with("List")).and_then(|_| object.get("items"));
        let items = items.and_then(|items| serde_json::from_str(items.get()).ok());
        let head = Self {
            api_version: string(&object, "apiVersion"),
            name: string(&metadata, "name"),
            // An empty one is none to every client.
            namespace: string(&metadata, "namespace").filter(|namespace| !namespace.is_empty()),
            openapi: kind.is_none() && is_openapi(&object),
            kind,
        };
        (head, items)
    }

    /// Takes the type of an item from its list, if only the list has one, as in lists from the API server.
    fn take_type(&mut self, list: Option<Self>) -> bool {
        let list = list.filter(|_| self.kind.is_none() && self.api_version.is_none());
        let taken = list.and_then(|list| {
            let kind = list.kind?.strip_suffix("List").filter(|kind| !kind.is_empty())?.to_owned();
            Some((kind, list.api_version?))
        });
        let is_taken = taken.is_some();
        if let Some((kind, api_version)) = taken {
            (self.kind, self.api_version) = (Some(kind), Some(api_version));
        }
        is_taken
    }

    /// Adds the type to the text of an item.
    fn with_type(&self, item: &str) -> String {
        let kind = serde_json::json!({"apiVersion": self.api_version, "kind": self.kind}).to_string();
        match (kind.strip_suffix('}'), item.trim_start().strip_prefix('{')) {
            (Some(_), Some(rest)) if rest.trim_start().starts_with('}') => kind,
            (Some(kind), Some(rest)) => format!("{kind},{rest}"),
            _ => item.to_owned(),
        }
    }
}

/// Returns true for an OpenAPI document with schemas at the place of its version.
fn is_openapi(object: &BTreeMap<String, &RawValue>) -> bool {
    let within = |name: &str| object.get(name).and_then(|value| members(value.get()));
    (object.contains_key("openapi") && within("components").is_some_and(|inner| inner.contains_key("schemas")))
        || (object.contains_key("swagger") && object.contains_key("definitions"))
}

fn members(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

fn string(object: &BTreeMap<String, &RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(object.get(name)?.get()).ok()
}
