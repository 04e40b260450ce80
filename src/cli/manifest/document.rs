//! One object of a manifest: what it says it is, and where it stands.

use super::file::{ManifestFile, Section};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// An object of a manifest.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// Where it was read, `<stdin>` for standard input.
    pub(crate) file: PathBuf,
    /// The object as JSON.
    pub(crate) text: String,
    pub(crate) kind: Option<String>,
    pub(crate) api_version: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) section: Arc<Section>,
    /// Where it stands in its section: the empty pointer, or an item of a list.
    pub(crate) pointer: String,
    openapi: bool,
}

impl Document {
    /// Line and column, counted from 1, of what a JSON Pointer into the object names, or of the nearest above it that is
    /// there. `None` only where the text is beyond telling: nested past all measure.
    pub(crate) fn position(&self, pointer: &str) -> Option<(usize, usize)> {
        self.section.position(&format!("{}{pointer}", self.pointer))
    }

    /// Whether it is a `CustomResourceDefinition`, of whichever version.
    pub(crate) fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "CustomResourceDefinition")
    }

    /// Whether it is a `UnionDeclaration`, of whichever version.
    pub(crate) fn is_declaration(&self) -> bool {
        self.is("kube-unions.dev", "UnionDeclaration")
    }

    /// Whether it is an OpenAPI document with schemas, of version 2 or 3.
    pub(crate) fn is_openapi(&self) -> bool {
        self.openapi
    }

    /// Returns true for a document that describes kinds: a CRD, a `UnionDeclaration` or an OpenAPI document.
    pub(crate) fn describes_kinds(&self) -> bool {
        self.is_definition() || self.is_declaration() || self.is_openapi()
    }

    fn is(&self, group: &str, kind: &str) -> bool {
        let own = self.api_version.as_deref().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        self.kind.as_deref() == Some(kind) && own == Some(group)
    }

    /// Group and version, as `apiVersion` has them; empty where that is missing.
    pub(crate) fn group_version(&self) -> (&str, &str) {
        let api_version = self.api_version.as_deref().unwrap_or_default();
        api_version.split_once('/').unwrap_or(("", api_version))
    }

    /// What to call it in a message: `Rollout/web`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.kind.as_deref().unwrap_or("?"), self.name.as_deref().unwrap_or("?"))
    }
}

impl ManifestFile {
    /// The documents of the file, lists flattened.
    pub(crate) fn documents(&self) -> Vec<Document> {
        let mut documents = Vec::new();
        for section in &self.sections {
            self.flatten(section, &mut documents);
        }
        documents
    }

    /// The documents of one of its sections.
    pub(crate) fn documents_of(&self, section: &Arc<Section>) -> Vec<Document> {
        let mut documents = Vec::new();
        self.flatten(section, &mut documents);
        documents
    }

    fn flatten(&self, section: &Arc<Section>, documents: &mut Vec<Document>) {
        // A list may hold lists: a stack of what is still to be read, the next on top.
        let mut waiting = vec![(section.json(), String::new(), None::<Head>)];
        while let Some((text, pointer, list)) = waiting.pop() {
            if text == "null" {
                continue;
            }
            let mut head = Head::read(text);
            if let Some(items) = head.items.take() {
                let below = |index: usize| format!("{pointer}/items/{index}");
                let items = items.into_iter().enumerate().rev();
                waiting.extend(items.map(|(index, item)| (item.get(), below(index), Some(head.clone_type()))));
                continue;
            }
            let text = head.take_type(list).map_or_else(|| text.to_owned(), |list| list.with_type(text));
            documents.push(Document {
                file: self.path.clone(),
                text,
                kind: head.kind,
                api_version: head.api_version,
                name: head.name,
                namespace: head.namespace,
                section: Arc::clone(section),
                pointer,
                openapi: head.openapi,
            });
        }
    }
}

/// What tells one object from another, as far as it is there and of the right type.
#[derive(Debug, Default)]
struct Head<'t> {
    kind: Option<String>,
    api_version: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    openapi: bool,
    /// Of a list only.
    items: Option<Vec<&'t RawValue>>,
}

impl<'t> Head<'t> {
    fn read(text: &'t str) -> Self {
        let Some(object) = members(text) else { return Self::default() };
        let metadata = object.get("metadata").and_then(|metadata| members(metadata.get())).unwrap_or_default();
        let kind = string(&object, "kind");
        let items = kind.as_ref().filter(|kind| kind.ends_with("List")).and_then(|_| object.get("items"));
        Self {
            api_version: string(&object, "apiVersion"),
            name: string(&metadata, "name"),
            namespace: string(&metadata, "namespace"),
            openapi: kind.is_none() && is_openapi(&object),
            items: items.and_then(|items| serde_json::from_str(items.get()).ok()),
            kind,
        }
    }

    fn clone_type(&self) -> Head<'t> {
        Self { kind: self.kind.clone(), api_version: self.api_version.clone(), ..Self::default() }
    }

    /// Items of a typed list, as the API server answers it, leave to the list to say what they are. Gives what was taken.
    fn take_type(&mut self, list: Option<Head<'_>>) -> Option<ListType> {
        let list = list.filter(|_| self.kind.is_none() && self.api_version.is_none())?;
        let kind = list.kind?.strip_suffix("List").filter(|kind| !kind.is_empty())?.to_owned();
        let taken = ListType { kind, api_version: list.api_version? };
        self.kind = Some(taken.kind.clone());
        self.api_version = Some(taken.api_version.clone());
        Some(taken)
    }
}

/// What the items of a typed list are.
struct ListType {
    kind: String,
    api_version: String,
}

impl ListType {
    /// An item that says itself what it is.
    fn with_type(&self, item: &str) -> String {
        let kind = serde_json::json!({"apiVersion": self.api_version, "kind": self.kind}).to_string();
        match (kind.strip_suffix('}'), item.trim_start().strip_prefix('{')) {
            (Some(_), Some(rest)) if rest.trim_start().starts_with('}') => kind,
            (Some(kind), Some(rest)) => format!("{kind},{rest}"),
            _ => item.to_owned(),
        }
    }
}

/// Whether it says that it is an OpenAPI document, and has schemas where its version has them.
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
