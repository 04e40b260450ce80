//! Reads schemas from the API server: CRDs, and the OpenAPI documents of a group.
//!
//! The index of documents gives each a URL that changes with its content. A document is read once per URL and cached while a
//! kind of its group needs it: the core group's document is 1.5 MB.
//!
//! Knows nothing of declarations: [`documents`](super::documents) decides what to read, and when.

use super::services::{self, GroupVersions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Client, Resource};
use kube_unions_api::{self as api, ObjectPath, RequestError, found};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Definition, DefinitionError, OpenApi};
use kube_unions_core::names::GroupKind;
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::sync::Arc;

/// The extension in the text of a document.
const EXTENSION: &str = "\"x-kubernetes-unions\"";

/// The reason why a schema cannot be read or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaFetchError(pub(super) String);

/// Reads schemas, and caches OpenAPI documents.
pub(super) struct Schemas {
    client: Client,
    documents: CachedByUrl<Arc<OpenApi>>,
    /// The kinds that publish unions.
    publishing: CachedByUrl<Vec<GroupKind>>,
    /// Groups and versions whose documents repeat the schemas of CRDs.
    from_definitions: Mutex<GroupVersions>,
}

/// Contents of documents, each with the URL of the document, by path in the index.
type CachedByUrl<T> = Mutex<HashMap<String, (String, T)>>;

/// The index of documents: their URLs, by path.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentIndex(BTreeMap<String, String>);

#[derive(Deserialize)]
struct WireIndex {
    paths: BTreeMap<String, WireEntry>,
}

#[derive(Deserialize)]
struct WireEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Schemas {
    pub(super) fn new(client: Client) -> Self {
        Self { client, documents: Mutex::default(), publishing: Mutex::default(), from_definitions: Mutex::default() }
    }

    /// Ignores the documents of these groups and versions from now on: only an accepted CRD defines its kind. Returns true if they
    /// differ from before.
    pub(super) fn set_from_definitions(&self, from_definitions: GroupVersions) -> bool {
        let mut known = self.from_definitions.lock();
        let changed = *known != from_definitions;
        *known = from_definitions;
        changed
    }

    /// Reads a CRD as JSON text, `None` if the cluster does not have it.
    pub(super) async fn definition(&self, name: &str) -> Result<Option<String>, SchemaFetchError> {
        let text = ObjectPath::new(CustomResourceDefinition::url_path(&(), None), name).text(&self.client).await;
        found(text).map_err(|error| unread(&format!("CRD `{name}`"), &error))
    }

    /// Returns true if the API server serves a group and version from its own code, so that no CRD describes it.
    pub(super) async fn is_own(&self, group: &str, version: &str) -> bool {
        let path = ObjectPath::new(APIService::url_path(&(), None), &format!("{version}.{group}"));
        let service = path.text(&self.client).await.ok().and_then(|text| serde_json::from_str(&text).ok());
        service.is_some_and(|service| services::is_own(&service))
    }

    /// Reads the index.
    pub(super) async fn index(&self) -> Result<DocumentIndex, SchemaFetchError> {
        let what = "index of OpenAPI documents";
        let text = api::text(&self.client, "/openapi/v3").await.map_err(|error| unread(what, &error))?;
        let index: WireIndex = serde_json::from_str(&text).map_err(|error| malformed(what, &error))?;
        let from_definitions = self.from_definitions.lock();
        let counts = |path: &str| {
            group_version(path)
                .is_none_or(|(group, version)| !from_definitions.contains(&(group.into(), version.into())))
        };
        let paths = index.paths.into_iter().filter(|(path, _)| counts(path));
        Ok(DocumentIndex(paths.map(|(path, entry)| (path, entry.url)).collect()))
    }

    /// Returns the documents of the kind's group for these versions, `None` for all. A document that has the same URL as before is
    /// the same.
    pub(super) async fn documents(
        &self,
        index: &DocumentIndex,
        kind: &GroupKind,
        versions: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Arc<OpenApi>>, SchemaFetchError> {
        let mut found = Vec::new();
        for (path, url) in &index.0 {
            let Some((group, version)) = group_version(path) else { continue };
            if *group == *kind.group && versions.is_none_or(|versions| versions.contains(version)) {
                found.push(self.document(path, url).await?);
            }
        }
        Ok(found)
    }

    /// Returns the kinds whose documents publish unions.
    pub(super) async fn publishing(&self, index: &DocumentIndex) -> Result<BTreeSet<GroupKind>, SchemaFetchError> {
        let mut kinds = BTreeSet::new();
        let mut seen = HashMap::new();
        for (path, url) in index.0.iter().filter(|(path, _)| group_version(path).is_some()) {
            let found = match cached(&self.publishing, path, url) {
                Some(found) => found,
                None => self.publishing_in(path, url).await?,
            };
            kinds.extend(found.iter().cloned());
            seen.insert(path.clone(), (url.clone(), found));
        }
        *self.publishing.lock() = seen;
        Ok(kinds)
    }

    /// Evicts the cached documents of other groups.
    pub(super) fn retain(&self, groups: &BTreeSet<&str>) {
        self.documents.lock().retain(|path, _| group_version(path).is_some_and(|(group, _)| groups.contains(group)));
    }

    async fn document(&self, path: &str, url: &str) -> Result<Arc<OpenApi>, SchemaFetchError> {
        if let Some(document) = cached(&self.documents, path, url) {
            return Ok(document);
        }
        let text = self.document_text(path, url).await?;
        let mut document = parse(path, text).await?;
        // Only an accepted CRD defines its kind.
        let described = document.kinds().next().is_some();
        document.drop_custom_kinds();
        if described && document.kinds().next().is_none() {
            // If a group of the API server has a CRD, the server sends its own document and that of the CRDs in turn, so that the
            // next attempt may succeed.
            return Err(SchemaFetchError(format!("the {} describes nothing but CRDs", title(path))));
        }
        let document = Arc::new(document);
        self.documents.lock().insert(path.to_owned(), (url.to_owned(), Arc::clone(&document)));
        Ok(document)
    }

    async fn publishing_in(&self, path: &str, url: &str) -> Result<Vec<GroupKind>, SchemaFetchError> {
        let text = self.document_text(path, url).await?;
        if !text.contains(EXTENSION) {
            return Ok(Vec::new());
        }
        let document = parse(path, text).await?;
        let publishing = move || {
            let publishes = |kind: &GroupKind| Definition::publishes(&document, kind).unwrap_or(false);
            document.group_kinds().into_iter().filter(publishes).collect()
        };
        tokio::task::spawn_blocking(publishing).await.map_err(|_| cut_off())
    }

    async fn document_text(&self, path: &str, url: &str) -> Result<String, SchemaFetchError> {
        api::text(&self.client, url).await.map_err(|error| unread(&title(path), &error))
    }
}

/// Returns group and version of `api/v1` and `apis/apps/v1`. No other path in the index describes kinds.
fn group_version(path: &str) -> Option<(&str, &str)> {
    match path.split_once('/')? {
        ("api", version) => Some(("", version)),
        ("apis", rest) => rest.split_once('/'),
        _ => None,
    }
}

/// Parses on a thread of its own, since a large document takes milliseconds.
async fn parse(path: &str, text: String) -> Result<OpenApi, SchemaFetchError> {
    let parsed = tokio::task::spawn_blocking(move || OpenApi::parse(&text)).await;
    parsed.map_err(|_| cut_off())?.map_err(|error| malformed(&title(path), &DefinitionError::OpenApi(error)))
}

fn title(path: &str) -> String {
    format!("OpenAPI document of `{path}`")
}

fn unread(what: &str, error: &RequestError) -> SchemaFetchError {
    SchemaFetchError(format!("cannot read the {what}: {error}"))
}

fn malformed(what: &str, error: &dyn Error) -> SchemaFetchError {
    SchemaFetchError(format!("the {what} is malformed: {}", with_causes(error)))
}

/// The error if the thread panicked, or the program is stopping.
fn cut_off() -> SchemaFetchError {
    SchemaFetchError("reading an OpenAPI document was interrupted: try again".to_owned())
}

fn cached<T: Clone>(cache: &CachedByUrl<T>, path: &str, url: &str) -> Option<T> {
    cache.lock().get(path).filter(|(known, _)| known == url).map(|(_, content)| content.clone())
}
