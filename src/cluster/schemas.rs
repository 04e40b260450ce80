//! Where the schema of a kind comes from: its CRD, or the OpenAPI documents of its group.
//!
//! The index of documents gives each a URL that changes with its content. A document is read once a URL and kept while
//! somebody needs it: the core group's has a megabyte and a half.

use super::inputs::KindDocuments;
use super::raw::{Definitions, RawDefinition, RawResource};
use super::services::{self, FromDefinitions};
use hyper::Request;
use kube::Client;
use kube_unions_core::declaration::{Definition, DefinitionError, OpenApi};
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The extension, as it stands in a document's text.
const EXTENSION: &str = "\"x-kubernetes-unions\"";

/// Why a schema could not be had.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The CRD was not sent.
    #[error("cannot read the definition `{name}`")]
    Definition {
        /// Its name.
        name: Box<str>,
        /// What the client says.
        source: Arc<kube::Error>,
    },
    /// The index of OpenAPI documents was not sent.
    #[error("cannot read the index of OpenAPI documents")]
    Index(#[source] Arc<kube::Error>),
    /// The index is none.
    #[error("the index of OpenAPI documents is malformed")]
    MalformedIndex(#[source] Arc<serde_json::Error>),
    /// A document was not sent.
    #[error("cannot read the OpenAPI document of `{path}`")]
    Document {
        /// Its path in the index.
        path: String,
        /// What the client says.
        source: Arc<kube::Error>,
    },
    /// A document is none.
    #[error("the OpenAPI document of `{path}` is of no use")]
    Malformed {
        /// Its path in the index.
        path: String,
        /// What is wrong with it.
        source: Arc<DefinitionError>,
    },
    /// A document says nothing but what CRDs say. Where somebody has made a CRD in a group of the API server's own, it sends
    /// now its own document and now that of the CRDs, so that the next may be the right one.
    #[error("the OpenAPI document of `{path}` describes nothing but CRDs")]
    Foreign {
        /// Its path in the index.
        path: String,
    },
    /// Reading was cut off.
    #[error("reading an OpenAPI document ended badly")]
    CutOff,
}

/// Reads schemas from a cluster.
pub(super) struct Schemas {
    client: Client,
    /// By path in the index.
    documents: Mutex<HashMap<String, Document>>,
    /// By path in the index: the kinds that publish unions.
    publishing: Mutex<HashMap<String, (String, Vec<GroupKind>)>>,
    /// Groups and versions whose documents repeat what CRDs say.
    from_definitions: Mutex<FromDefinitions>,
}

struct Document {
    url: String,
    document: Arc<OpenApi>,
}

/// The index of documents: their URLs, by path.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentIndex(BTreeMap<String, String>);

#[derive(Deserialize)]
struct WireIndex {
    paths: BTreeMap<String, WireEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Schemas {
    pub(super) fn new(client: Client) -> Self {
        Self { client, documents: Mutex::default(), publishing: Mutex::default(), from_definitions: Mutex::default() }
    }

    /// Takes note of which documents repeat what CRDs say. They are passed over: only a CRD that counts speaks for its kind.
    /// Tells whether they are others than before.
    pub(super) fn set_from_definitions(&self, from_definitions: FromDefinitions) -> bool {
        let mut known = lock(&self.from_definitions);
        let changed = *known != from_definitions;
        *known = from_definitions;
        changed
    }

    /// A CRD as it is now, `None` if it is gone.
    pub(super) async fn definition(&self, name: &str) -> Result<Option<RawDefinition>, SchemaError> {
        match self.text(&Definitions::path(name)).await {
            Ok(text) => Ok(Some(RawDefinition::read(&text))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(source) => Err(SchemaError::Definition { name: name.into(), source: Arc::new(source) }),
        }
    }

    /// True if the API server says that it serves a group and version from its own code, so that no CRD describes it.
    pub(super) async fn is_own(&self, group: &str, version: &str) -> bool {
        let service = self.text(&format!("{}/{version}.{group}", services::PATH)).await;
        let service = service.ok().and_then(|text| serde_json::from_str(&text).ok());
        service.is_some_and(|service| services::is_own(&service))
    }

    /// The index as it is now.
    pub(super) async fn index(&self) -> Result<DocumentIndex, SchemaError> {
        let text = self.text("/openapi/v3").await.map_err(|error| SchemaError::Index(Arc::new(error)))?;
        let index: WireIndex =
            serde_json::from_str(&text).map_err(|error| SchemaError::MalformedIndex(Arc::new(error)))?;
        let from_definitions = lock(&self.from_definitions);
        let counts =
            |path: &str| group_version(path).is_none_or(|(group, version)| !from_definitions.has(group, version));
        let paths = index.paths.into_iter().filter(|(path, _)| counts(path));
        Ok(DocumentIndex(paths.map(|(path, entry)| (path, entry.url)).collect()))
    }

    /// The documents of the kind's group that are of these versions, of all if none are named.
    pub(super) async fn documents(
        &self,
        index: &DocumentIndex,
        kind: &GroupKind,
        versions: Option<&BTreeSet<String>>,
    ) -> Result<KindDocuments, SchemaError> {
        let mut found = KindDocuments { urls: Vec::new(), documents: Vec::new() };
        for (path, url) in index.of(&kind.group, versions) {
            found.documents.push(self.document(path, url).await?);
            found.urls.push(url.to_owned());
        }
        Ok(found)
    }

    /// The kinds of which the server's own documents declare unions.
    pub(super) async fn publishing(&self, index: &DocumentIndex) -> Result<BTreeSet<GroupKind>, SchemaError> {
        let mut kinds = BTreeSet::new();
        let mut seen = HashMap::new();
        for (path, url) in index.0.iter().filter(|(path, _)| group_version(path).is_some()) {
            let known = lock(&self.publishing).get(path).filter(|(known, _)| known == url).cloned();
            let (url, found) = match known {
                Some(known) => known,
                None => (url.clone(), self.publishing_in(path, url).await?),
            };
            kinds.extend(found.iter().cloned());
            seen.insert(path.clone(), (url, found));
        }
        *lock(&self.publishing) = seen;
        Ok(kinds)
    }

    /// Forgets the documents of groups that nobody needs.
    pub(super) fn retain(&self, needed: impl Fn(&str) -> bool) {
        lock(&self.documents).retain(|path, _| group_version(path).is_some_and(|(group, _)| needed(group)));
    }

    async fn document(&self, path: &str, url: &str) -> Result<Arc<OpenApi>, SchemaError> {
        if let Some(held) = lock(&self.documents).get(path).filter(|held| held.url == url) {
            return Ok(Arc::clone(&held.document));
        }
        let text = self.document_text(path, url).await?;
        let mut document = parse(path, text).await?;
        // Only a CRD that counts speaks for its kind.
        let described = document.kinds().next().is_some();
        document.drop_custom_kinds();
        if described && document.kinds().next().is_none() {
            return Err(SchemaError::Foreign { path: path.to_owned() });
        }
        let document = Arc::new(document);
        let held = Document { url: url.to_owned(), document: Arc::clone(&document) };
        lock(&self.documents).insert(path.to_owned(), held);
        Ok(document)
    }

    async fn publishing_in(&self, path: &str, url: &str) -> Result<Vec<GroupKind>, SchemaError> {
        let text = self.document_text(path, url).await?;
        if !text.contains(EXTENSION) {
            return Ok(Vec::new());
        }
        let document = parse(path, text).await?;
        tokio::task::spawn_blocking(move || publishing_kinds(&document)).await.map_err(|_| SchemaError::CutOff)
    }

    async fn document_text(&self, path: &str, url: &str) -> Result<String, SchemaError> {
        let fail = |source| SchemaError::Document { path: path.to_owned(), source: Arc::new(source) };
        self.text(url).await.map_err(fail)
    }

    async fn text(&self, url: &str) -> kube::Result<String> {
        let request = Request::get(url).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }
}

impl DocumentIndex {
    /// The documents of a group, of these versions or of all: path and URL.
    fn of<'i>(
        &'i self,
        group: &'i str,
        versions: Option<&'i BTreeSet<String>>,
    ) -> impl Iterator<Item = (&'i str, &'i str)> {
        self.0.iter().filter_map(move |(path, url)| {
            let (of, version) = group_version(path)?;
            let wanted = of == group && versions.is_none_or(|versions| versions.contains(version));
            wanted.then_some((path.as_str(), url.as_str()))
        })
    }

    /// What would tell an edition of these documents from another.
    pub(super) fn urls(&self, kind: &GroupKind, versions: Option<&BTreeSet<String>>) -> Vec<String> {
        self.of(&kind.group, versions).map(|(_, url)| url.to_owned()).collect()
    }
}

/// `api/v1` and `apis/apps/v1`; nothing else in the index describes kinds.
fn group_version(path: &str) -> Option<(&str, &str)> {
    match path.split_once('/')? {
        ("api", version) => Some(("", version)),
        ("apis", rest) => rest.split_once('/'),
        _ => None,
    }
}

fn publishing_kinds(document: &OpenApi) -> Vec<GroupKind> {
    let publishes = |kind: &&GroupKind| {
        Definition::from_openapi([document], &kind.group, &kind.kind, true)
            .is_ok_and(|definition| definition.versions().iter().any(|version| !version.declarations().is_empty()))
    };
    let kinds = document.kinds().map(GroupVersionKind::group_kind);
    let kinds: BTreeSet<_> = kinds.collect();
    kinds.iter().filter(publishes).cloned().collect()
}

/// On a thread of its own: a large document takes some milliseconds.
async fn parse(path: &str, text: String) -> Result<OpenApi, SchemaError> {
    let fail = |error| {
        let source = Arc::new(DefinitionError::OpenApi(error));
        SchemaError::Malformed { path: path.to_owned(), source }
    };
    tokio::task::spawn_blocking(move || OpenApi::parse(&text)).await.map_err(|_| SchemaError::CutOff)?.map_err(fail)
}

pub(super) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
